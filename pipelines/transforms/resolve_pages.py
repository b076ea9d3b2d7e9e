"""The pages that evidence names, looked up in a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.runtime.chunks import Key, Stored, read_stored
from pipelines.alignment.release_pages import ReleasePages, resolver_of
from pipelines.alignment.resolving import resolve_rows
from pipelines.alignment.rows import evidence_of_pairs
from pipelines.primitives.checkpoint import keep_chunk
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import absolute, storage_for

_PAIRS_AT_ONCE = 2_000


class EvidenceOfPairs(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(title of a page, text) -> (Key, record batch) of schema ``EVIDENCE``, for ``ResolvePages``.

    The rows have title and text as ``page_value`` and ``evidence_text`` to the end, so that each is known by them.
    """

    def expand(self, pairs: Any) -> Any:
        return (
            pairs
            | "together" >> beam.BatchElements(min_batch_size=_PAIRS_AT_ONCE, max_batch_size=_PAIRS_AT_ONCE)
            | "rows" >> beam.Map(evidence_of_pairs)
        )


class ResolvePages(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, rows of ``EVIDENCE``) -> (Key, rows of ``RESOLVED``): each with its page in a release, or without one.

    Redirects are followed; see ``mapping.search.resolve`` for what is tried. Rows are a ``Stored`` or a record batch,
    and come as record batches, or as ``Stored`` where there is a folder. In a chunk those without a page come first, in
    the order of the titles that were asked for, then the others in the order of their pages.

    Args:
        release: its folder; workers elsewhere must see it under this name.
        title_map: file of known moves, or the files by number of the dataset.
        folder: takes a file for each chunk; for one job with one input only. None for none.

    Raises:
        SetupError: the folder holds no finished release; a file of moves is not one.
    """

    def __init__(
        self, release: str, *, title_map: str | Mapping[int, str | None] | None = None, folder: str | None = None
    ) -> None:
        super().__init__()
        self._resolve = _Resolve(ReleasePages.open(release), title_map, None if folder is None else absolute(folder))

    def expand(self, chunks: Any) -> Any:
        return chunks | "resolve" >> beam.ParDo(self._resolve)


class _Resolve(WorkerDoFn):
    def __init__(
        self, pages: ReleasePages, title_map: str | Mapping[int, str | None] | None, folder: str | None
    ) -> None:
        super().__init__()
        self._pages, self._title_map, self._folder = pages, title_map, folder

    def process(self, element: tuple[Key, Stored | pa.RecordBatch]) -> Iterator[tuple[Key, Stored | pa.RecordBatch]]:
        key, rows = Key(*element[0]), element[1]
        with named_faults():
            yield (
                key,
                self._resolved(key, rows)
                if self._folder is None
                else keep_chunk(key, self._resolved(key, rows), self._folder),
            )

    def _resolved(self, key: Key, rows: Stored | pa.RecordBatch) -> pa.RecordBatch:
        moves = self._title_map
        title_map = moves if moves is None or isinstance(moves, str) else moves.get(key.part)
        batches = (rows,) if isinstance(rows, pa.RecordBatch) else read_stored(rows, storage_for(rows.path))
        return resolve_rows(batches, resolver_of(self._pages.folder, title_map), self._pages.starts())
