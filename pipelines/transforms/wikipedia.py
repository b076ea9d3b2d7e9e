"""Reads the pages of a Wikipedia dump in ranges, and builds the index of titles and the store of definitions, which all
workers use when they parse pages."""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import apache_beam as beam
import pyarrow as pa

from kbsource.dump.digests import CheckedFiles, read_hashes
from kbsource.dump.ranges import DumpRange, expand_inputs, from_root, plan_ranges, range_size, size_of
from kbsource.dump.reader import read_range
from kbsource.dump.siteinfo import read_header
from kbsource.errors import named_faults
from kbsource.files import CHUNK_BYTES, Files, Folder, base_name, glob, is_local, join
from kbsource.index.definition_store import KEYS_FILE, MODULE, TEMPLATE, build_definitions
from kbsource.index.mapped_files import local_index
from kbsource.pages.articles import HTML_PARSER, PARSER
from kbsource.pages.assembly import INDEXES_FILE, build_indexes
from kbsource.pages.base import CHANGES_FILE, write_changes
from kbsource.pages.staging import RangeScan, ScanReport, Selection, part_path, read_report, stage_scan
from kbsource.pages.staging import read_staged_batches as read_staged
from kbsource.records import BadRecord
from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import BatchRef, ChunkKey, once, read_batches
from kbsource.site import Site
from kbsource.temporary import TemporaryFolder
from kbsource.wikidata.kind import WikidataTables
from pipelines.primitives.shuffle import CollectSorted
from pipelines.runners.counters import count, count_rejected, timed
from pipelines.runners.workers import WorkerDoFn, do, wired

_MAIN_NAMESPACE = frozenset({0})
_DEFINED = frozenset({0, TEMPLATE, MODULE})
_ALL = Selection()
RAW, TITLES, DEFINITIONS, REJECTED, COUNTS = "raw", "titles", "definitions", "rejected", "counts"
Rows: TypeAlias = "BatchRef | pa.RecordBatch"


@dataclass(frozen=True, slots=True)
class Scanning:
    """Settings for scanning ranges."""

    site: Site
    as_of: str | None = None  # timestamp; use each page's newest revision not after it; None for the newest
    selection: Selection = _ALL  # which articles to include
    folder: str | None = None  # folder for the rows of the ranges; None to pass the rows through memory
    # file written by ``kbsource.dump.digests.write_hashes``; changed input files end the job
    hashes: str | None = None
    beats: str | None = None  # local folder where workers report their progress


class ReadWikipediaDump(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Reads the articles, titles and redirects of a dump, as chunks. Applied to a pipeline.

    Outputs:
        ``raw``: (key, articles of schema ``staging.StagedArticle``), about 4 million characters per chunk; the key is
            the number of the range and the number of the chunk.
        ``titles``: (key, articles and redirects of schema ``kbsource.index.title_index_build.STATED_TITLES``).
        ``definitions``: (key, templates and modules of schema ``kbsource.index.definition_store.DEFINITION_ROWS``), if
            requested.
        ``rejected``: ``BadRecord`` of pages that cannot be read, in no particular order.
        ``counts``: (key, dict): ``pages``, ``articles``, ``redirects``, ``other_namespaces``, ``not_selected``,
            ``rejected``; the first is the sum of the others.

    With a folder, rows are ``BatchRef`` to files in it, and a range whose files exist is not read again: use a folder
    for only one dump and one set of options. Without a folder, rows are record batches and pass through the runner's
    memory.

    Args:
        dump: paths or patterns of the files; local, or in a file system that Beam supports.
        as_of: use each page's newest revision not after this time, like ``2019-08-01T00:00:00Z``; None for the newest.
        max_pages: maximum number of pages to read, counting all namespaces; pages are then read sequentially.
        titles: normalised titles of the articles to include; None for all.
        has_definitions: also return templates and modules, for ``BuildDefinitions``.
        range_bytes: compressed bytes per range; None for a default that depends on the dump.
        folder: for the rows that are read; None for no files.

    Attributes:
        site: facts about the wiki from the dump's header; ``ParseWikitext`` needs them.
        parser: the parser that ``ParseWikitext`` needs for the pages of this dump, which may be a snapshot of HTML.

    Raises:
        SetupError: a file is missing or is not a dump.
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
        paths = from_root(expand_inputs(patterns))
        self._ranges = plan_ranges(paths, range_bytes=range_size(size_of(paths), range_bytes))
        header = read_header(paths[0])
        self.site = header.site
        self.parser = PARSER if header.form == "xml" else HTML_PARSER
        self._scanning = Scanning(self.site, as_of, Selection(max_pages, titles, has_definitions), folder)

    def expand(self, pipeline: Any) -> Any:
        return pipeline | scan_ranges(self._ranges, self._scanning)


@wired
def scan_ranges(pipeline: Any, ranges: Sequence[DumpRange], scanning: Scanning) -> Any:
    """Reads the ranges of a dump, in order, and returns the outputs of ``ReadWikipediaDump``. Applied to a pipeline."""
    # The first N pages can only be counted sequentially.
    is_in_order = scanning.selection.max_pages is not None
    scan = beam.ParDo(_ScanRange(scanning)).with_outputs(TITLES, DEFINITIONS, REJECTED, COUNTS, main=RAW)
    groups = beam.Create([list(ranges)] if is_in_order else [[part] for part in ranges], reshuffle=False)
    return pipeline | "ranges" >> groups | "spread" >> beam.Reshuffle() | "scan" >> scan


class _ScanRange(WorkerDoFn):
    def __init__(self, scanning: Scanning) -> None:
        super().__init__()
        self._scanning = scanning

    def setup(self) -> None:
        super().setup()
        beats = self._scanning.beats
        can_show = beats is not None and is_local(beats)
        worker = f"{os.getpid()}-{threading.get_ident()}"  # a runner may set up several in one process at once
        self._beat = Beat.create(os.path.join(beats or "", f"scan-{worker}.beat")) if can_show else Beat.unshared()

    def process(self, element: list[DumpRange]) -> Iterator[Any]:
        remaining = self._scanning.selection.max_pages
        for dump_range in element:
            with named_faults():
                for tag, output in timed(self._scanned(dump_range, remaining)):
                    if tag == COUNTS:
                        count({**output[1], "stored_bytes": dump_range.end - dump_range.start})
                    elif tag == REJECTED:
                        count_rejected([output])
                    if tag == COUNTS and remaining is not None:
                        remaining -= output[1]["pages"]
                    yield output if tag == RAW else beam.pvalue.TaggedOutput(tag, output)

    def _scanned(self, dump_range: DumpRange, max_pages: int | None) -> Iterator[tuple[str, Any]]:
        scanning, part = self._scanning, dump_range.index
        folder, file = scanning.folder, base_name(dump_range.path)
        damages: list[int] = []
        scan = RangeScan(
            read_range(
                dump_range,
                scanning.site,
                files=checked_files(scanning.hashes),
                as_of=scanning.as_of,
                text_namespaces=_DEFINED if scanning.selection.has_definitions else _MAIN_NAMESPACE,
                on_progress=lambda n_bytes: self._beat.done(pages=0, amount=n_bytes),
                on_damage=damages.append,
            ),
            part=part,
            file=file,
            site=scanning.site,
            selection=replace(scanning.selection, max_pages=max_pages),
            n_bytes=dump_range.end - dump_range.start,
            damages=damages,
            on_page=partial(self._beat.done, pages=1, amount=0),
        )
        if folder is not None:
            path = part_path(folder, "scan", part)
            make = partial(stage_scan, scan, staging=folder, part=part)
            yield from _outputs(once(path, make, lambda _: read_report(folder, part)), folder)
            return
        n_of: Counter[str] = Counter()
        for kind, batch in scan:
            if kind == "rejected":
                yield from ((REJECTED, BadRecord(**row)) for row in batch.to_pylist())
            else:
                yield RAW if kind == "articles" else kind, (ChunkKey(part, n_of[kind]), batch)
                n_of[kind] += 1
        yield COUNTS, (ChunkKey(part, 0), counts_of(scan.report()))


def _outputs(report: ScanReport, folder: str) -> Iterator[tuple[str, Any]]:
    """Reads the outputs of a range from its files in a folder."""
    part = report.part
    for number, stored in enumerate(report.chunks):
        yield RAW, (ChunkKey(part, number), stored)
    for kind, n_rows in ((TITLES, report.n_articles + report.n_redirects), (DEFINITIONS, report.n_definitions)):
        if n_rows:
            path = part_path(folder, kind, part)
            n_batches = sum(1 for _ in read_staged(path))
            yield kind, (ChunkKey(part, 0), BatchRef(path, 0, n_batches, n_rows, 0))
    if report.rejected:
        for batch in read_staged(part_path(folder, "rejected", part)):
            yield from ((REJECTED, BadRecord(**row)) for row in batch.to_pylist())
    yield COUNTS, (ChunkKey(part, 0), counts_of(report))


def counts_of(report: ScanReport) -> dict[str, Any]:
    """Returns the counts of a range by name."""
    return {
        "pages": report.n_pages,
        "articles": report.n_articles,
        "redirects": report.n_redirects,
        "other_namespaces": report.n_other,
        "not_selected": report.n_unselected,
        "rejected": sum(report.rejected.values()),
    }


@dataclass(frozen=True, slots=True)
class Items:
    """Sources of the mapping from pages to Wikidata items."""

    site: Site
    page_props: str | None = None  # SQL dump of the table page_props
    wikidata: str | None = None  # folder of a release of Wikidata
    hashes: str | None = None  # see ``Scanning``; for page_props
    are_stated: bool = False  # without page_props: take the items that the titles state, as in a snapshot of HTML


class BuildTitleIndex(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Builds the index of titles, a side input of ``ParseWikitext``.

    (key, titles) -> the folder of the index, one element.

    The index contains the target of each title after all redirects, the titles that resolve to an article, and, with
    ``items``, the Wikidata item of each page. One worker builds it in key order; memory grows by about 20 bytes per
    title. An existing index is reused.

    Args:
        folder: folder of the index; workers on other machines must be able to read it.
        items: sources of items; None for no items.
        max_duplicates: maximum share of titles that may be skipped because a newer row has their page id.
        after: collection that must be finished first, such as a check; None for none.

    Raises:
        DataError: the share of duplicates is higher, or a table of items is damaged.
    """

    def __init__(
        self, folder: str, *, items: Items | None = None, max_duplicates: float = 1.0, after: Any = None
    ) -> None:
        super().__init__()
        build = partial(_build_index, items=items or Items(Site()), max_duplicates=max_duplicates)
        self._settings = {"folder": folder, "last_file": INDEXES_FILE, "build": build}
        self._after = () if after is None else (beam.pvalue.AsIter(after),)

    def expand(self, titles: Any) -> Any:
        return titles | "all titles" >> CollectSorted() | "build" >> do(_fill, *self._after, **self._settings)


class BuildDefinitions(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Builds the store of template definitions, a side input of ``ParseWikitext``.

    (key, templates and modules) -> the folder of the store, one element.

    One worker builds it in key order; memory grows by 40 bytes per page. An existing store is reused.

    Args:
        folder: folder of the store; workers on other machines must be able to read it.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._settings = {"folder": folder, "last_file": KEYS_FILE, "build": _build_store}

    def expand(self, definitions: Any) -> Any:
        return definitions | "all definitions" >> CollectSorted() | "build" >> do(_fill, **self._settings)


class FindChanges(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Finds what changed since a release, for ``ParseWikitext`` with a base. Writes the changes to the folder of the
    title index.

    The folder of a title index, one element -> the same folder.

    Args:
        base: folder of the release.
        generator: the software that wrote the dump, ``site.generator``.
        definitions: PCollection of one element, from ``BuildDefinitions``; None without.
    """

    def __init__(self, base: str, *, generator: str, definitions: Any = None) -> None:
        super().__init__()
        self._settings = {"base": base, "generator": generator}
        self._definitions = () if definitions is None else (beam.pvalue.AsSingleton(definitions),)

    def expand(self, index: Any) -> Any:
        return index | do(_find_changes, *self._definitions, **self._settings)


def _find_changes(index: str, definitions: str | None = None, **settings: str) -> Iterator[str]:
    def make() -> None:
        store = None if definitions is None else local_index(definitions)
        with index_to_work_on(index) as (folder, _):
            write_changes(folder, definitions=store, **settings)
            if folder != index:
                _copy(os.path.join(folder, CHANGES_FILE), join(index, CHANGES_FILE))

    yield once(join(index, CHANGES_FILE), make, lambda _: index)


def _fill(
    element: list[tuple[ChunkKey, Rows]], *_: Any, folder: str, last_file: str, build: Callable[..., None]
) -> Iterator[str]:
    """Writes files for look-ups into a folder. The last file marks the folder as complete."""

    def make() -> None:
        with TemporaryFolder() as scratch:
            # Scratch files are a few times as large as the rows, which is little beside the pages of a dump.
            local = folder if is_local(folder) else os.path.join(scratch, "index")
            near = os.path.join(local, "scratch")
            build(chain.from_iterable(read_batches(rows) for _, rows in element), folder=local, scratch=near)
            Folder.of(near).delete()
            if local != folder:
                for name in sorted(os.listdir(local), key=lambda name: (name == last_file, name)):
                    _copy(os.path.join(local, name), join(folder, name))

    yield once(join(folder, last_file), make, lambda _: folder)


def _build_store(batches: Iterator[pa.RecordBatch], *, folder: str, scratch: str) -> None:
    build_definitions(batches, folder)


def _build_index(
    batches: Iterator[pa.RecordBatch], *, folder: str, scratch: str, items: Items, max_duplicates: float
) -> None:
    build_indexes(
        batches,
        folder=folder,
        scratch=scratch,
        page_props=items.page_props,
        props_files=checked_files(items.hashes),
        wikidata=None if items.wikidata is None else WikidataTables.open(items.wikidata),
        site=items.site,
        max_share=max_duplicates,
        are_stated=items.are_stated,
    )


def checked_files(hashes: str | None) -> Files:
    """Returns access to files that are checked against their hashes; without hashes, files are not checked."""
    return Folder.of if hashes is None else CheckedFiles(read_hashes(hashes))


def _copy(source: str, target: str) -> None:
    with Folder.of(source).open() as reader, Folder.of(target).create() as writer:
        shutil.copyfileobj(reader, writer, CHUNK_BYTES)


@contextmanager
def index_to_work_on(folder: str) -> Iterator[tuple[str, str]]:
    """Opens a local folder with the files of an index, which may be extended, and a folder for scratch files."""
    if is_local(folder):
        yield folder, join(folder, "scratch")
        return
    with TemporaryFolder() as local:
        for path in glob(join(folder, "*")):
            _copy(path, os.path.join(local, base_name(path)))
        yield local, os.path.join(local, "scratch")
