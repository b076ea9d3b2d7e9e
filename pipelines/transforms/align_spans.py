"""Evidence looked for in the pages of a release: where it stands, and how well it is said there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import apache_beam as beam

from kbsource.errors import named_faults
from kbsource.files import join
from kbsource.runtime.chunks import Key, Report, Stored, chunk_path, write_chunk
from kbsource.runtime.regroup import merge_group
from pipelines.alignment.cutting import cut_pages, cut_titles
from pipelines.alignment.release_pages import MakeSearch, ReleasePages, SearchSettings
from pipelines.alignment.resolving import page_groups
from pipelines.alignment.rows import RESOLVED
from pipelines.primitives.guarded_map import CHUNKS, GuardedMap
from pipelines.primitives.regroup import Regroup
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import absolute, storage_for

PAGES_OF_GROUP, MOST_GROUPS = 16, 64
"""Pages that are put together at least, and groups of them at most: the rows of a group are merged in memory, and each
chunk of the dataset has a reference for each group."""
TIMEOUT_S = 60.0
MEMORY_BYTES = 4 << 30


class AlignSpans(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, rows of ``RESOLVED``) -> (Key, rows of ``OUTCOMES``): what became of each piece of evidence.

    A row of evidence gives one row of outcome: page, span, BLEU and text, or why there is none (see
    ``mapping.records.Alignment``); for a page that the release does not have the titles that are like it. The search
    runs in a process beside the worker: an evidence that hangs or crashes it, in its chunk and again alone, ends as
    ``search_timeout``, ``search_crash`` or ``search_error``.

    With a folder the rows of all chunks are put in the order of their pages first, so that each page is read and
    tokenised once for all datasets; the keys are then those of groups of pages, and rows come as ``Stored``. Without
    one each chunk is searched as it comes, its rows pass through memory, and keys stay: right for what is small.

    Args:
        release: its folder; workers elsewhere must see it under this name.
        settings: how pages are searched, or that by number of the dataset.
        folder: takes the rows between the steps; for one job with one input only. None for none.
        timeout_s: seconds that an evidence may take.
        memory_bytes: memory that the searching process may allocate.
        beats: local folder where the processes show how far they are; None for none.

    Raises:
        SetupError: the folder holds no finished release, or the search fails too often to be right.
    """

    def __init__(
        self,
        release: str,
        *,
        settings: SearchSettings | Mapping[int, SearchSettings] | None = None,
        folder: str | None = None,
        timeout_s: float = TIMEOUT_S,
        memory_bytes: int = MEMORY_BYTES,
        beats: str | None = None,
    ) -> None:
        super().__init__()
        self._pages = ReleasePages.open(release)
        by_part = settings if isinstance(settings, Mapping) else {}
        of_all = SearchSettings() if settings is None or isinstance(settings, Mapping) else settings
        self._folder = None if folder is None else absolute(folder)
        self._search = GuardedMap(
            MakeSearch(self._pages, of_all, dict(by_part)),
            folder=None if self._folder is None else join(self._folder, "found"),
            timeout_s=timeout_s,
            memory_bytes=memory_bytes,
            beats=beats,
        )

    def expand(self, chunks: Any) -> Any:
        if self._folder is not None:
            n_pages = self._pages.n_pages
            n_groups = min(MOST_GROUPS, 1 + n_pages // PAGES_OF_GROUP)
            by_page = partial(page_groups, n_pages=n_pages, n_groups=n_groups)
            chunks = (
                chunks
                | "by page" >> Regroup(join(self._folder, "by_page"), by_page, order=("position",))
                | "cut" >> beam.ParDo(_Cut(n_groups, join(self._folder, "wanted")))
                | "spread" >> beam.Reshuffle()
            )
        return (chunks | "search" >> self._search)[CHUNKS]


class _Cut(WorkerDoFn):
    """(group of pages, pieces) -> (Key(group, number), ``Stored``)."""

    def __init__(self, n_groups: int, folder: str) -> None:
        super().__init__()
        self._n_groups, self._folder = n_groups, folder

    def process(self, element: tuple[int, tuple[Stored, ...]]) -> Iterator[tuple[Key, Stored]]:
        group, pieces = element
        storage = storage_for(self._folder)
        with named_faults():
            is_found = group < self._n_groups
            cuts = (
                cut_pages(merge_group(pieces, storage, ("position",)))
                if is_found
                else cut_titles(pieces, join(self._folder, "merging"))
            )
            for number, batches in enumerate(cuts):
                key = Key(group, number)
                path = chunk_path(self._folder, key)
                yield key, write_chunk(batches, RESOLVED, Report(), path=path, storage=storage)
