"""The pages of a Wikipedia dump, read in ranges."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam

from kbsource.dump.digests import CheckedStorage, HashedFile, read_hashes
from kbsource.dump.ranges import DumpRange, expand_inputs, plan_ranges
from kbsource.dump.reader import read_range
from kbsource.dump.siteinfo import read_header
from kbsource.errors import named_faults
from kbsource.files import ReadableStorage, base_name, is_local
from kbsource.index.definition_store import MODULE, TEMPLATE
from kbsource.pages.staging import Scan, ScanReport, Selection, part_path, read_batches, read_report, stage_scan
from kbsource.records import BadRecord
from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import Key, Stored
from kbsource.site import Site
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.dump_files import check_names, range_size
from pipelines.stores.storage import absolute, storage_for

_MAIN_NAMESPACE = frozenset({0})
_DEFINED = frozenset({0, TEMPLATE, MODULE})
_ALL = Selection()
RAW, TITLES, DEFINITIONS, REJECTED, COUNTS = "raw", "titles", "definitions", "rejected", "counts"


@dataclass(frozen=True, slots=True)
class Scanning:
    """How ranges are scanned.

    Attributes:
        site: facts of the wiki.
        as_of: of each page the newest revision not after it, like ``2019-08-01T00:00:00Z``; None for the newest.
        selection: which articles are wanted.
        folder: takes what the ranges give; None to let it pass through memory.
        hashes: path of what ``kbsource.dump.digests.write_hashes`` wrote: files that are no longer what they were end
            the job; None to read them as they are.
        beats: local folder where workers show how far they are; None for none.
    """

    site: Site
    as_of: str | None = None
    selection: Selection = _ALL
    folder: str | None = None
    hashes: str | None = None
    beats: str | None = None


class ReadWikipediaDump(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """A dump -> its articles, titles and redirects, as chunks. Applied to a pipeline.

    Outputs:
        ``raw``: (Key, articles of schema ``pages.staging.ARTICLES``), about 4 million characters a chunk; the key is
            number of the range, number of the chunk.
        ``titles``: (Key, articles and redirects of schema ``kbsource.index.title_index_build.TITLE_ROWS``).
        ``definitions``: (Key, templates and modules of schema ``kbsource.index.definition_store.DEFINITION_ROWS``),
            where they are asked for.
        ``rejected``: ``BadRecord``, what cannot be read, in no order.
        ``counts``: (Key, dict): ``pages``, ``articles``, ``redirects``, ``other_namespaces``, ``not_selected``,
            ``rejected``; the first is the sum of the others.

    With a folder rows are ``Stored`` there, and a range whose files are there is not read again: a folder is for one
    dump read in one way. Without one rows are record batches and pass through the runner's memory.

    Args:
        dump: paths or patterns of the files; local, or of a file system of Beam.
        as_of: of each page the newest revision not after it, like ``2019-08-01T00:00:00Z``; None for the newest.
        max_pages: pages read at most, of all namespaces; they are then read one after the other.
        titles: normalised titles of the articles that are wanted; None for all.
        has_definitions: templates and modules are wanted too, for ``BuildDefinitions``.
        range_bytes: stored bytes of a range; None for a size that suits the dump.
        folder: takes what was read; None for none.

    Attributes:
        site: facts of the wiki, from the head of the dump; what ``ParseWikitext`` needs.

    Raises:
        SetupError: a file is missing or no dump.
    """

    def __init__(
        self,
        dump: str | Sequence[str],
        *,
        as_of: str | None = None,
        max_pages: int | None = None,
        titles: frozenset[str] | None = None,
        has_definitions: bool = False,
        range_bytes: int | None = None,
        folder: str | None = None,
    ) -> None:
        super().__init__()
        patterns = [dump] if isinstance(dump, str) else list(dump)
        storage = storage_for(*patterns)
        paths = [absolute(path) for path in expand_inputs(patterns, storage)]
        check_names(paths)
        n_bytes = range_bytes or range_size(sum(storage.size(path) for path in paths))
        self._ranges = plan_ranges(paths, storage, range_bytes=n_bytes)
        self.site = read_header(paths[0], storage).site
        self._scanning = Scanning(self.site, as_of, Selection(max_pages, titles, has_definitions), folder)

    def expand(self, pipeline: Any) -> Any:
        return pipeline | ScanRanges(self._ranges, self._scanning)


class ScanRanges(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Ranges of a dump -> the outputs of ``ReadWikipediaDump``. Applied to a pipeline.

    Args:
        ranges: in order, from ``kbsource.dump.ranges.plan_ranges``.
        scanning: how they are scanned.
    """

    def __init__(self, ranges: Sequence[DumpRange], scanning: Scanning) -> None:
        super().__init__()
        # Pages can only be counted out in order.
        is_in_order = scanning.selection.max_pages is not None
        self._groups = [list(ranges)] if is_in_order else [[part] for part in ranges]
        self._scanning = scanning

    def expand(self, pipeline: Any) -> Any:
        return (
            pipeline
            | "ranges" >> beam.Create(self._groups, reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "scan"
            >> beam.ParDo(_ScanRange(self._scanning)).with_outputs(TITLES, DEFINITIONS, REJECTED, COUNTS, main=RAW)
        )


class _ScanRange(WorkerDoFn):
    def __init__(self, scanning: Scanning) -> None:
        super().__init__()
        self._scanning = scanning
        self._hashed: dict[str, HashedFile] | None = None

    def setup(self) -> None:
        super().setup()
        beats = self._scanning.beats
        can_show = beats is not None and is_local(beats)
        self._beat = Beat.create(os.path.join(beats or "", f"scan-{os.getpid()}.beat")) if can_show else Beat.unshared()

    def process(self, element: list[DumpRange]) -> Iterator[Any]:
        remaining = self._scanning.selection.max_pages
        for dump_range in element:
            with named_faults():
                for tag, output in self._scanned(dump_range, remaining):
                    if tag == COUNTS and remaining is not None:
                        remaining -= output[1]["pages"]
                    yield output if tag == RAW else beam.pvalue.TaggedOutput(tag, output)

    def _scanned(self, dump_range: DumpRange, max_pages: int | None) -> Iterator[tuple[str, Any]]:
        scanning, part = self._scanning, dump_range.index
        folder, file = scanning.folder, base_name(dump_range.path)
        if folder is not None and storage_for(folder).exists(part_path(folder, "scan", part)):
            yield from _outputs(read_report(storage_for(folder), folder, part), folder)
            return
        damages: list[int] = []
        scan = Scan(
            read_range(
                dump_range,
                self._storage(dump_range.path),
                scanning.site,
                as_of=scanning.as_of,
                text_namespaces=_DEFINED if scanning.selection.has_definitions else _MAIN_NAMESPACE,
                on_progress=self._show_bytes,
                on_damage=damages.append,
            ),
            part=part,
            file=file,
            site=scanning.site,
            selection=replace(scanning.selection, max_pages=max_pages),
            n_bytes=dump_range.end - dump_range.start,
            damages=damages,
            on_page=self._show_page,
        )
        if folder is not None:
            yield from _outputs(stage_scan(scan, storage_for(folder), staging=folder, part=part), folder)
            return
        n_of: Counter[str] = Counter()
        for kind, batch in scan:
            if kind == "rejected":
                yield from ((REJECTED, BadRecord(**row)) for row in batch.to_pylist())
            else:
                yield RAW if kind == "articles" else kind, (Key(part, n_of[kind]), batch)
                n_of[kind] += 1
        yield COUNTS, (Key(part, 0), counts_of(scan.report()))

    def _storage(self, path: str) -> ReadableStorage:
        hashes = self._scanning.hashes
        if hashes is None:
            return storage_for(path)
        if self._hashed is None:
            self._hashed = read_hashes(hashes, storage_for(hashes))
        return CheckedStorage(storage_for(path), self._hashed)

    def _show_bytes(self, n_bytes: int) -> None:
        self._beat.done(pages=0, amount=n_bytes)

    def _show_page(self) -> None:
        self._beat.done(pages=1, amount=0)


def _outputs(report: ScanReport, folder: str) -> Iterator[tuple[str, Any]]:
    """Gives the outputs of a range that lies in a folder."""
    part = report.part
    for number, stored in enumerate(report.chunks):
        yield RAW, (Key(part, number), stored)
    for kind, n_rows in ((TITLES, report.n_articles + report.n_redirects), (DEFINITIONS, report.n_definitions)):
        if n_rows:
            path = part_path(folder, kind, part)
            n_batches = sum(1 for _ in read_batches(storage_for(folder), path))
            yield kind, (Key(part, 0), Stored(path, 0, n_batches, n_rows, 0))
    if report.rejected:
        for batch in read_batches(storage_for(folder), part_path(folder, "rejected", part)):
            yield from ((REJECTED, BadRecord(**row)) for row in batch.to_pylist())
    yield COUNTS, (Key(part, 0), counts_of(report))


def counts_of(report: ScanReport) -> dict[str, Any]:
    """Gives the counts of a range by name."""
    return {
        "pages": report.n_pages,
        "articles": report.n_articles,
        "redirects": report.n_redirects,
        "other_namespaces": report.n_other,
        "not_selected": report.n_unselected,
        "rejected": sum(report.rejected.values()),
    }
