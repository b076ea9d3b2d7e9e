"""Verifies a release of any kind: every hash, every row count, and every invariant of its kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kbsource.errors import DataError, SetupError, value_fault
from kbsource.files import CHUNK_BYTES, Folder, join
from kbsource.release.counts import add_settings
from kbsource.release.invariants import COMMON, Checking, Finding, Findings, check
from kbsource.release.kind import Kind, kind_of, read_content
from kbsource.release.layout import EXTRA, MANIFEST, is_in, stored_files, table_of
from kbsource.release.manifest import FileEntry, Manifest
from kbsource.release.reader import check_hashes, file_fault, has_columns, opened_table
from kbsource.release.sql import MEMORY_MB, add_release, add_tables, connected
from kbsource.release.writer import is_id

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of a verification. ``findings`` is empty if the release is undamaged."""

    findings: tuple[Finding, ...]
    kind: str  #: name of the kind of release; empty if the manifest does not state it
    n_files: int
    n_bytes: int
    n_rows: int  #: rows of tables, and lines of other files
    counts: Mapping[str, int]  #: number of checked things by name, such as ``anchors``
    has_texts: bool  #: true if the release was compared with its sources
    extra: tuple[str, ...]  #: files and folders that were added on purpose, see ``layout.EXTRA``
    remarks: tuple[str, ...] = ()  #: notes for users that are not faults, see ``Kind.remarks``

    @property
    def is_sound(self) -> bool:
        """True if there are no findings."""
        return not self.findings


def verify(
    path: str,
    kinds: Sequence[Kind[Any]],
    *,
    sources: Mapping[str, str] | None = None,
    memory_mb: int = MEMORY_MB,
    on_progress: Progress = lambda done, total: None,
) -> VerifyReport:
    """Verifies a release and returns all faults.

    First, all files are hashed. Then rows, columns and invariants are checked in the files that are unchanged.

    Args:
        sources: folders of the release's sources to compare it with, by their names in ``Kind.made_from``.
        memory_mb: memory limit for checking invariants, in MB; larger data is spilled to disk.
        on_progress: receives the number of bytes hashed so far and the total.

    Raises:
        SetupError: a store does not answer, the folder contains no finished release, or ``sources`` are not its
            sources.
    """
    sources = sources or {}
    for folder in sources.values():
        Folder.of(folder).reached()
    content = read_content(path)
    found = Findings([*COMMON, *(invariant for kind in kinds for invariant in kind.invariants)])
    kind = None
    try:
        kind = kind_of(content, join(path, MANIFEST), kinds)
        manifest = kind.read(path)
    except SetupError as error:
        if sources and kind is None:
            raise
        found.add(MANIFEST, "manifest", str(error))
        return VerifyReport(found.sorted(), kind.name if kind else "", 1, len(content), 0, {}, False, ())
    _check_sources(path, kind, manifest, sources, kinds)
    files = _Files(path, found)
    files.list_release(kind, manifest, "")
    files.check_stored(on_progress)
    for fault in kind.count_faults(manifest):
        found.add(MANIFEST, "counts", fault)
    files.check_rows()
    counts = _check_invariants(kind, manifest, files, sources, memory_mb)
    has_texts = bool(sources) and counts is not None
    n_files, extra = len(files.entries), tuple(files.extra)
    sizes = n_files, files.n_bytes, files.n_rows
    remarks = tuple(kind.remarks(manifest)) if kind.remarks is not None else ()
    return VerifyReport(found.sorted(), kind.name, *sizes, counts or {}, has_texts, extra, remarks)


def _check_sources(
    path: str, kind: Kind[Any], manifest: Manifest, sources: Mapping[str, str], kinds: Iterable[Kind[Any]]
) -> None:
    if odd := [name for name in sources if name not in kind.made_from]:
        flags = " and ".join(f"--{name}" for name in odd)
        takers = ", ".join(f"a {known.name}" for known in kinds if {*odd} & {*known.made_from})
        raise SetupError(
            f"{path}: {flags} can be used only for {takers}, but this is {kind.with_article}; leave it out."
        )
    if sources and len(sources) < len(kind.made_from):
        flags = " and ".join(f"--{name}" for name in kind.made_from)
        raise SetupError(f"{path}: {flags} name the two sources of {kind.with_article}; pass both or neither.")
    for name, folder in sources.items():
        of, fact, hashed = kind.made_from[name]
        source = of.read(folder)
        made_from = manifest.made_from(fact)
        if made_from not in (None, source.sha256):
            raise SetupError(
                f"{path} was not made from the release {folder}; name the release whose manifest has the SHA-256 "
                f"{made_from}."
            )
        for table in hashed:
            check_hashes(folder, source.tables[table])


def _check_invariants(
    kind: Kind[Any], manifest: Manifest, files: _Files, sources: Mapping[str, str], memory_mb: int
) -> Mapping[str, int] | None:
    """Checks all invariants. Returns the number of rows or files checked, by the name of the check; None if the files
    are too damaged.
    """
    if not kind.invariants and not files.has_counts:
        return {}
    import duckdb

    found = files.found
    # One thread: a second one would need a third more CPU in total, and memory for row groups of its own.
    with connected(reads=[files.path, *sources.values()], memory_mb=memory_mb, threads=1) as db:
        whole = files.add_views(kind, db)
        checking = Checking(files.path, kind.name, manifest, sources, found, db, whole, files.entries, files.sound)
        try:
            if not files.add_settings(db):
                return None
            for name, folder in sources.items():
                add_release(db, kind.made_from[name].kind, folder, schema=name, places=True)
                checking.given.add(name)
            if kind.views is not None:
                checking.given.update(kind.views(checking))
            check(db, kind.invariants, checking.given, found)
            counts = files.check_counts(db)
            further = {} if kind.check is None else kind.check(checking)
            return None if further is None else {**counts, **further}
        except duckdb.OutOfMemoryException as error:
            raise SetupError(
                f"{files.path}: checking the invariants needs more than {memory_mb} MB; allow more with --memory."
            ) from error
        except duckdb.Error:
            if not files.find_unreadable():
                raise
            return None


class _Files:
    """Checks the files of a release and of the releases in its folders."""

    def __init__(self, path: str, found: Findings) -> None:
        self.path, self.found = path, found
        self.entries: dict[str, FileEntry] = {}  # entries by path in the release
        self.sound: set[str] = set()  # unchanged files with the right number of rows
        self.extra: list[str] = []  # files that were added on purpose, see layout.EXTRA
        self.n_rows = self.n_bytes = 0
        self._releases: dict[str, tuple[Kind[Any], Manifest]] = {}  # releases in folders, by folder
        self._unknown: list[str] = []  # folders of releases with damaged manifests
        self._intact: set[str] = set()
        self._readable: set[str] = set()  # unchanged tables with the columns of their schema

    def list_release(self, kind: Kind[Any], manifest: Manifest, folder: str) -> None:
        """Records the files of a release and of the releases in its folders. The manifests of the latter are
        files too.
        """
        self._releases[folder] = kind, manifest
        for entry in manifest.entries():
            self._add(FileEntry(join(folder, entry.file), entry.rows, entry.bytes, entry.sha256))
        for part in manifest.parts if kind.parts is not None else ():
            assert kind.parts is not None
            inside = join(folder, part.folder)
            file, path = join(inside, MANIFEST), join(self.path, inside)
            if not Folder.of(join(path, MANIFEST)).exists():
                self.found.add(file, "missing", "make the release again")
                continue
            size, sha256 = Folder.of(join(path, MANIFEST)).size(), Folder.of(join(path, MANIFEST)).sha256()
            self._add(FileEntry(file, None, size, sha256))
            try:
                inner = kind.parts.read(path)
            except SetupError as error:
                self.found.add(file, "manifest", str(error))
                self._unknown.append(inside)
                continue
            if inner.sha256 != part.manifest_sha256:
                self.found.add(file, "manifest", f"{inner.sha256}, {part.manifest_sha256} was written")
            self.list_release(kind.parts, inner, inside)

    def _add(self, entry: FileEntry) -> None:
        self.entries[entry.file] = entry
        self.n_bytes += entry.bytes

    def check_stored(self, on_progress: Progress) -> None:
        """Checks names, sizes and hashes."""
        extra = [join(folder, name) for folder in sorted(self._releases) for name in sorted(EXTRA)]
        for file in stored_files(self.path):
            if added := [name for name in extra if is_in(file, (name,))]:
                self.extra += [name for name in added if name not in self.extra]
            elif file not in self.entries and file != MANIFEST and not is_in(file, self._unknown):
                self.found.add(file, "unlisted", "remove the file, or download the release again")
        n_done = 0
        for file, entry in sorted(self.entries.items()):
            fault = file_fault(self.path, entry, hashes=True)
            if fault is None:
                self._intact.add(file)
            else:
                self.found.add(file, *fault)
            n_done += entry.bytes
            on_progress(n_done, self.n_bytes)

    def check_rows(self) -> None:
        """Checks columns, rows and statistics of tables, and the number of lines of other files."""
        for kind, manifest, folder in ((*self._releases[folder], folder) for folder in sorted(self._releases)):
            for entry in manifest.entries():
                if (file := join(folder, entry.file)) in self._intact:
                    self._check_rows(kind, manifest, folder, self.entries[file])

    def _check_rows(self, kind: Kind[Any], manifest: Manifest, folder: str, entry: FileEntry) -> None:
        n_rows, table = entry.rows, table_of(entry.file)
        if table is not None:
            n_rows = self._checked_table(kind.schemas(table), entry)
            if n_rows is None:
                return
            self._readable.add(entry.file)
        elif entry.rows is not None and not entry.file.endswith(".json"):
            with Folder.of(join(self.path, entry.file)).open() as file:
                n_rows = sum(block.count(b"\n") for block in iter(lambda: file.read(CHUNK_BYTES), b""))
        if n_rows != entry.rows:
            self.found.add(entry.file, "rows", f"{n_rows} rows, {entry.rows} were written")
        elif (fault := self._document_fault(kind, manifest, folder, entry.file)) is not None:
            self.found.add(entry.file, "unreadable", fault)
        else:
            self.sound.add(entry.file)
        if not entry.file.endswith(".json"):
            self.n_rows += n_rows or 0

    def _document_fault(self, kind: Kind[Any], manifest: Manifest, folder: str, file: str) -> str | None:
        """Returns the fault of a JSON file that its kind declares, or of one of its lines; None if there is no fault or
        the file is not declared.
        """
        name, inner = file.removeprefix(f"{folder}/") if folder else file, join(self.path, folder)
        try:
            if name in kind.documents:
                kind.read_document(inner, name)
            elif name in kind.records:
                for _ in kind.lines(inner, manifest, name):
                    pass
        except SetupError as error:
            return str(error)
        return None

    def _checked_table(self, schemas: Iterable[pa.Schema], entry: FileEntry) -> int | None:
        """Returns the number of rows of a table; None if it is not a table, or its columns differ from its schema."""
        try:
            with opened_table(join(self.path, entry.file)) as file:
                if not has_columns(file, schemas):
                    self.found.add(entry.file, "schema", f"columns {', '.join(file.schema_arrow.names)}")
                    return None
                if fault := _statistics_fault(file):
                    self.found.add(entry.file, "statistics", fault)
                n_rows: int = file.metadata.num_rows
                return n_rows
        except (pa.ArrowInvalid, OSError) as error:
            self.found.add(entry.file, "unreadable", str(error))
            return None

    def add_views(self, kind: Kind[Any], db: Any) -> set[str]:
        """Adds a view of the readable files for each table of a kind. Returns the names of the complete tables."""
        files: dict[str, list[str]] = {table: [] for table in kind.declared}
        whole = {*files}
        for folder, (_, manifest) in self._releases.items():
            for table in manifest.tables:
                own = self._files_of(manifest, folder, table)
                files[table] += [file for file in own if file in self._readable]
                if not self._readable.issuperset(own):
                    whole.discard(table)
        add_tables(db, kind.declared, files, self.path, places=True)
        return whole

    @property
    def has_counts(self) -> bool:
        """True if a manifest of the release, or of a release in its folders, contains counts of tables."""
        return any(kind.counts for kind, _ in self._releases.values())

    def add_settings(self, db: Any) -> bool:
        """Adds the table of settings, which invariants and counts read, from the manifests. Returns False if a manifest
        lacks a setting.
        """
        settings = {}
        for folder, (kind, manifest) in self._releases.items():
            try:
                settings[folder] = {} if kind.settings is None else kind.settings(manifest)
            except (AttributeError, KeyError, TypeError, ValueError, SetupError) as error:
                file = join(folder, MANIFEST)
                if not self.found.has(file, "counts"):  # the count check already reports missing counts
                    detail = f"options or counts do not match those of {kind.with_article} ({error!r})"
                    self.found.add(file, "manifest", detail)
                return False
        add_settings(db, settings)
        return True

    def check_counts(self, db: Any) -> dict[str, int]:
        """Compares the counts of each manifest with its tables. Returns the number of checked things by name."""
        import duckdb

        summary: Counter[str] = Counter()
        for number, (folder, (kind, manifest)) in enumerate(self._releases.items()):
            if not kind.counts:
                continue
            files = {table: self._files_of(manifest, folder, table) for table in kind.tables}
            whole = {table for table, own in files.items() if self._readable.issuperset(own)}
            schema = "main" if len(self._releases) == 1 else f"release_{number}"
            missing = {table: files[table] for table in whole if schema != "main" or not files[table]}
            add_tables(db, kind.declared, missing, self.path, schema=schema)
            for count in kind.counts:
                if not count.tables(kind.tables) <= whole:
                    continue
                try:
                    counted = count.counted(db, kind.tables, schema=schema, part=folder)
                except duckdb.DataError as error:
                    self.found.add(join(folder, MANIFEST), "counts", f"not counted: {value_fault(error)}")
                    continue
                if count.summary:
                    summary[count.summary] += sum(counted.values())
                if count.path is None:
                    continue
                try:
                    written = count.written(manifest)
                except DataError:  # a count is missing, which was already reported
                    continue
                for path in sorted(counted.keys() | written.keys()):
                    if (n := counted.get(path, 0)) != (m := written.get(path, 0)):
                        self.found.add(join(folder, MANIFEST), "counts", f"{'.'.join(path)}: {n} counted, {m} written")
        return dict(summary)

    @staticmethod
    def _files_of(manifest: Manifest, folder: str, table: str) -> list[str]:
        return [join(folder, entry.file) for entry in manifest.tables.get(table, ())]

    def find_unreadable(self) -> bool:
        """Reads all unchanged tables, and reports those that cannot be read."""
        n_found = 0
        for file in sorted(self._readable):
            try:
                with opened_table(join(self.path, file)) as opened:
                    for number in range(opened.metadata.num_row_groups):
                        opened.read_row_group(number, use_threads=False)
            except (pa.ArrowInvalid, OSError) as error:
                self.found.add(file, "unreadable", str(error))
                n_found += 1
        return n_found > 0


def _statistics_fault(file: pq.ParquetFile) -> str | None:
    """Returns the fault in the statistics of id columns, which query engines use to skip row groups; None if they are
    correct.

    Missing statistics are no fault, because releases from before 2026-12 lack some.
    """
    metadata = file.metadata
    names = [name for name in file.schema_arrow.names if is_id(name)]
    columns = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    for group in range(metadata.num_row_groups if names else 0):
        claimed = {name: metadata.row_group(group).column(columns[name]).statistics for name in names}
        claimed = {
            name: statistics
            for name, statistics in claimed.items()
            if statistics is not None and statistics.has_min_max
        }
        if not claimed:
            continue
        table = file.read_row_group(group, columns=list(claimed), use_threads=False)
        for name, statistics in claimed.items():
            found = pc.min_max(table[name]).as_py()
            if (found["min"], found["max"]) != (statistics.min, statistics.max):
                return f"{name} of row group {group}: {statistics.min} to {statistics.max}, found {found}"
    return None
