"""Checking a release from the outside: every hash, every count, every law."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kbsource.errors import SetupError
from kbsource.files import LocalStorage, join, sha256_of
from kbsource.redirects import redirect_rows
from kbsource.release.layout import MANIFEST, index_path, stored_files
from kbsource.release.locations import PAGES_FILE, QIDS_FILE, Locations
from kbsource.release.manifest import FileEntry, Manifest, count_faults, read_manifest
from kbsource.release.page_checks import check_pages
from kbsource.release.writer import parquet_schema
from kbsource.schema import TABLES
from kbsource.title_index import ARTICLE, ARTICLES_FILE, STATUSES, TITLES_FILE, TitleIndex, title_keys

RULES = {
    "manifest": "the manifest is not what was written",
    "missing": "a listed file is not there",
    "unlisted": "a file is there that the manifest does not list",
    "size": "a file has another size",
    "sha256": "a file's content changed",
    "unreadable": "a file is not what its name says",
    "schema": "a table's columns are not those of its schema",
    "rows": "a file has another number of rows",
    "counts": "counts do not add up",
    "offset_law": "a span does not hold what it claims",
    "page_law": "a page is not built as pages are",
    "duplicate_page_id": "two pages have one page id",
    "duplicate_qid": "two pages have one Wikidata item",
    "page_order": "page ids do not ascend though the manifest says so",
    "dangling_target": "a link leads to a page that is not there",
    "target_title": "a link names its page by another title",
    "redirects_disagree": "pages, redirects table and index tell different redirects",
    "index_disagrees": "the index and the tables tell different things",
}
"""Every rule and what it means that it is broken."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken in one file: how often, and the first case."""

    file: str
    rule: str
    n_cases: int
    example: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found, by file and rule; a sound release has no findings.

    Attributes:
        n_files, n_bytes: files hashed and their size.
        n_pages, n_anchors, n_redirects: rows whose laws were checked.
    """

    findings: tuple[Finding, ...]
    n_files: int
    n_bytes: int
    n_pages: int
    n_anchors: int
    n_redirects: int

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


class _Findings:
    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Finding] = {}

    def add(self, file: str, rule: str, example: str, n_cases: int = 1) -> None:
        before = self._found.get((file, rule))
        if before is not None:
            n_cases, example = n_cases + before.n_cases, before.example
        self._found[(file, rule)] = Finding(file, rule, n_cases, example)

    def sorted(self) -> tuple[Finding, ...]:
        return tuple(one for _, one in sorted(self._found.items()))


class _Pages(NamedTuple):
    """What all pages of a release say, shard by shard."""

    page_ids: list[npt.NDArray[np.int64]]
    qids: list[Any]
    n_anchors: int


def verify_release(
    path: str, *, on_progress: Callable[[int, int], None] | None = None
) -> VerifyReport:
    """Checks a local release and gives everything that is wrong with it.

    Files are hashed first; the laws are then checked in those that are what was written. Memory: one row group, and
    about 40 bytes per page.

    Args:
        path: folder of the release.
        on_progress: told the bytes done and the bytes to do, each file once for its hash and each pages file once
            more for its laws.

    Raises:
        SetupError: the folder holds no finished release.
    """
    storage = LocalStorage()
    found = _Findings()
    if not storage.exists(join(path, MANIFEST)):
        raise SetupError(f"{path}: no {MANIFEST}, so there is no finished release to verify; build it first")
    try:
        manifest = read_manifest(path, storage)
    except SetupError as error:
        found.add(MANIFEST, "manifest", str(error))
        return VerifyReport(found.sorted(), 1, storage.size(join(path, MANIFEST)), 0, 0, 0)
    progress = _Progress(manifest, on_progress)
    intact = _check_files(path, manifest, found, progress)
    for fault in count_faults(manifest):
        found.add(MANIFEST, "counts", fault)
    index = _open_index(path, intact, found)
    pages = _check_pages_table(path, manifest, intact, index, found, progress)
    n_redirects = _check_redirects(path, manifest, intact, index, found)
    rejected = _check_rejected(path, manifest, intact, found)
    _check_plain_table("templates", path, manifest, intact, found)
    _check_uniqueness(pages, found)
    is_whole = all(entry.file in intact for entry in manifest.tables["pages"] + manifest.tables["rejected"])
    if is_whole and index is not None:
        _check_index(path, index, pages, rejected, found, intact)
    sizes = [entry.bytes for entries in manifest.tables.values() for entry in entries]
    sizes += [entry.bytes for entry in manifest.index]
    return VerifyReport(
        found.sorted(), len(sizes), sum(sizes), sum(map(len, pages.page_ids)), pages.n_anchors, n_redirects
    )


class _Progress:
    def __init__(self, manifest: Manifest, on_progress: Callable[[int, int], None] | None) -> None:
        pages = sum(entry.bytes for entry in manifest.tables["pages"])
        tables = sum(entry.bytes for entries in manifest.tables.values() for entry in entries)
        self._total = tables + sum(entry.bytes for entry in manifest.index) + pages
        self._done = 0
        self._on_progress = on_progress

    def add(self, n_bytes: int) -> None:
        self._done += n_bytes
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)


def _check_files(path: str, manifest: Manifest, found: _Findings, progress: _Progress) -> frozenset[str]:
    """Checks names, sizes and hashes, and gives the files that are what was written."""
    storage = LocalStorage()
    entries = [entry for table in manifest.tables.values() for entry in table]
    listed: dict[str, tuple[int, str]] = {entry.file: (entry.bytes, entry.sha256) for entry in entries}
    listed.update({entry.file: (entry.bytes, entry.sha256) for entry in manifest.index})
    present = set(stored_files(path, storage))
    for file in sorted(present - set(listed) - {MANIFEST}):
        found.add(file, "unlisted", "remove it, or fetch the release again")
    intact = set()
    for file, (n_bytes, sha256) in sorted(listed.items()):
        if file not in present:
            found.add(file, "missing", "fetch or build the release again")
        elif (size := storage.size(join(path, file))) != n_bytes:
            found.add(file, "size", f"{size} bytes, {n_bytes} were written")
        elif (digest := sha256_of(storage, join(path, file))) != sha256:
            found.add(file, "sha256", f"{digest}, {sha256} was written")
        else:
            intact.add(file)
        progress.add(n_bytes)
    return frozenset(intact)


def _open_index(path: str, intact: frozenset[str], found: _Findings) -> TitleIndex | None:
    files = [index_path(file) for file in (TITLES_FILE, ARTICLES_FILE)]
    if not intact.issuperset(files):
        for file in files:
            if file not in intact:
                found.add(file, "index_disagrees", "not usable, so links and redirects were not checked against it")
        return None
    try:
        return TitleIndex.open(os.path.join(path, "index"), cache_size=0)
    except SetupError as error:
        found.add(files[0], "unreadable", str(error))
        return None


def _row_groups(
    path: str, entry: FileEntry, table: str, intact: frozenset[str], found: _Findings
) -> Iterator[pa.RecordBatch]:
    """Gives a file's rows, one row group at a time, after checking its columns and the number of its rows."""
    if entry.file not in intact:
        return
    try:
        with pq.ParquetFile(os.path.join(path, entry.file), memory_map=True) as file:
            if not file.schema_arrow.equals(stored_schema(table), check_metadata=False):
                found.add(entry.file, "schema", f"columns {', '.join(file.schema_arrow.names)}")
                return
            if file.metadata.num_rows != entry.rows:
                found.add(entry.file, "rows", f"{file.metadata.num_rows} rows, {entry.rows} were written")
            for number in range(file.metadata.num_row_groups):
                group = file.read_row_group(number, use_threads=False).combine_chunks()
                yield from group.to_batches()
    except (pa.ArrowInvalid, OSError) as error:
        found.add(entry.file, "unreadable", str(error))


def stored_schema(table: str) -> pa.Schema:
    """Gives a table's schema as it is read back: Parquet keeps no timestamps in seconds."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, parquet_schema(table)).close()
    return pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema_arrow


def _check_pages_table(
    path: str,
    manifest: Manifest,
    intact: frozenset[str],
    index: TitleIndex | None,
    found: _Findings,
    progress: _Progress,
) -> _Pages:
    page_ids, qids, n_anchors = [], [], 0
    statuses: Counter[str] = Counter()
    for entry in manifest.tables["pages"]:
        ids, own_qids = [np.empty(0, np.int64)], [pa.array([], pa.string())]

        def fault(rule: str, example: str, n_cases: int, file: str = entry.file) -> None:
            found.add(file, rule, example, n_cases)

        for batch in _row_groups(path, entry, "pages", intact, found):
            columns = check_pages(batch, index, fault)
            ids.append(columns.page_ids)
            own_qids.append(columns.qids)
            statuses.update(columns.parse_statuses)
            n_anchors += columns.n_anchors
        page_ids.append(np.concatenate(ids))
        qids.append(pa.concat_arrays(own_qids))
        if manifest.page_order == "by_page_id" and np.any(page_ids[-1][1:] <= page_ids[-1][:-1]):
            found.add(entry.file, "page_order", "page ids do not ascend")
        progress.add(entry.bytes)
    is_whole = all(entry.file in intact for entry in manifest.tables["pages"])
    if is_whole and dict(statuses) != {name: n for name, n in manifest.parse_statuses.items() if n}:
        found.add(MANIFEST, "counts", f"pages by parse status: {dict(statuses)}, not as the manifest has it")
    return _Pages(page_ids, qids, n_anchors)


def _check_redirects(
    path: str, manifest: Manifest, intact: frozenset[str], index: TitleIndex | None, found: _Findings
) -> int:
    """Compares the redirects table with the index, row by row, and gives the rows."""
    entries = manifest.tables["redirects"]
    if index is None or not intact.issuperset(entry.file for entry in entries):
        return sum(sum(1 for _ in _row_groups(path, entry, "redirects", intact, found)) * 0 for entry in entries)
    expected = redirect_rows(index)
    n_rows = 0
    for entry in entries:
        for batch in _row_groups(path, entry, "redirects", intact, found):
            stored = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for row, wanted in zip(stored, expected, strict=False):
                n_rows += 1
                if row != tuple(getattr(wanted, name) for name in TABLES["redirects"].names):
                    found.add(entry.file, "redirects_disagree", f"{row[1]!r}: the index has {wanted.title!r}")
    if next(expected, None) is not None:
        found.add(entries[-1].file, "redirects_disagree", "the index has more redirects")
    return n_rows
