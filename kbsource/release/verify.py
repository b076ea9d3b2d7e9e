"""Checking a release of any kind from the outside: every hash, every row count, every law of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kbsource.errors import SetupError
from kbsource.files import CHUNK_BYTES, Storage, join, sha256_of, storage_or_local
from kbsource.release.findings import RULES, Finding, Findings
from kbsource.release.intact import file_fault
from kbsource.release.kind import Kind, M, kind_of, read_content
from kbsource.release.layout import EXTRA, MANIFEST, is_in, stored_files, table_of
from kbsource.release.manifest import FileEntry, Manifest
from kbsource.release.reader import opened_table
from kbsource.release.writer import is_id


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found, by file and rule; a sound release has no findings.

    Attributes:
        kind: name of the kind of release; empty where the manifest does not tell.
        n_files, n_bytes: files hashed and their size.
        n_rows: rows of tables and lines of other files.
        counts: how much the laws were checked in, by what it is.
        has_texts: it was compared with what it was made from.
        extra: files and folders that were added on purpose, see ``layout.EXTRA``.
    """

    findings: tuple[Finding, ...]
    kind: str
    n_files: int
    n_bytes: int
    n_rows: int
    counts: Mapping[str, int]
    has_texts: bool
    extra: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def verify(
    path: str,
    kinds: Sequence[Kind[Any]],
    storage: Storage | None = None,
    *,
    sources: Mapping[str, str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:
    """Checks a release and gives everything that is wrong with it.

    Files are hashed first; rows, columns and laws are then checked in those that are what was written. Memory: one row
    group, and what the laws of the kind take.

    Args:
        path: folder of the release.
        kinds: that it may be of.
        storage: of all folders; None for the local file system.
        sources: folders that it was made from, to be compared with, by a name in ``Kind.made_from``.
        on_progress: told the bytes done and the bytes to do: every file once for its hash, once for what is in it.

    Raises:
        SetupError: the folder holds no finished release, or ``sources`` are not what it was made from.
    """
    storage, sources = storage_or_local(path, storage), sources or {}
    content = read_content(path, storage)
    found = Findings({**RULES, **{slug: meaning for kind in kinds for slug, meaning in kind.rules.items()}})
    kind = None
    try:
        kind = kind_of(content, join(path, MANIFEST), kinds)
        manifest = kind.read(path, storage)
    except SetupError as error:
        if sources and kind is None:
            raise
        found.add(MANIFEST, "manifest", str(error))
        return VerifyReport(found.sorted(), kind.name if kind else "", 1, len(content), 0, {}, False, ())
    _check_sources(path, kind, sources, kinds)
    checking = Checking(path, kind, manifest, storage, found=found, sources=sources, on_progress=on_progress)
    counts = checking.run()
    return VerifyReport(
        found.sorted(),
        kind.name,
        len(checking.entries),
        checking.n_bytes,
        checking.n_rows,
        counts or {},
        bool(sources) and counts is not None,
        tuple(checking.extra),
    )


def _check_sources(path: str, kind: Kind[Any], sources: Mapping[str, str], kinds: Iterable[Kind[Any]]) -> None:
    if odd := [name for name in sources if name not in kind.made_from]:
        flags = " and ".join(f"--{name}" for name in odd)
        takers = ", ".join(f"a {known.name}" for known in kinds if {*odd} & {*known.made_from})
        raise SetupError(f"{path}: {flags}: for {takers}, not for this kind ({kind.name}); leave it out.")
    if sources and len(sources) < len(kind.made_from):
        flags = " and ".join(f"--{name}" for name in kind.made_from)
        raise SetupError(f"{path}: {flags} are for a {kind.name}; give both of what these were made from, or none.")


class Checking(Generic[M]):
    """The verification of one release.

    Attributes:
        path, kind, manifest, storage: of the release.
        found: takes what is wrong.
        sources: folders that it is to be compared with, by name.
        entries: every listed file, those of the releases in its folders too.
        intact: files that are what was written.
        readable: those of them that are tables with the columns of their schema, or no tables.
        sound: those of them that have as many rows as were written.
        extra: files and folders that were added on purpose.
        n_rows: rows of tables and lines of other files.
    """

    def __init__(
        self,
        path: str,
        kind: Kind[M],
        manifest: M,
        storage: Storage,
        *,
        found: Findings,
        sources: Mapping[str, str],
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        self.path, self.kind, self.manifest, self.storage = path, kind, manifest, storage
        self.found, self.sources, self._on_progress = found, sources, on_progress
        self.entries: dict[str, FileEntry] = {}
        self._kinds: dict[str, Kind[Any]] = {}
        self._folders: set[str] = set()
        self._unknown: list[str] = []
        self.intact: set[str] = set()
        self.readable: set[str] = set()
        self.sound: set[str] = set()
        self.extra: list[str] = []
        self.n_rows = 0
        self._n_done, self._unread = 0, set[str]()

    def run(self) -> Mapping[str, int] | None:
        """Checks everything and gives what the laws were checked in; None where files are too damaged for that."""
        self._list(self.kind, self.manifest, "")
        self._check_files()
        if self.kind.count_faults is not None:
            for fault in self.kind.count_faults(self.manifest):
                self.found.add(MANIFEST, "counts", fault)
        self._unread = set(self.entries)
        for file in sorted(self.intact):
            self._check_rows(self.entries[file])
        counts = {} if self.kind.check is None else self.kind.check(self)
        for file in sorted(self._unread):
            self.done(file)
        return counts

    def done(self, file: str) -> None:
        """Takes note that what is in a file was checked."""
        if file in self._unread:
            self._unread.remove(file)
            self._add(self.entries[file].bytes)

    def _add(self, n_bytes: int) -> None:
        self._n_done += n_bytes
        if self._on_progress is not None:
            self._on_progress(self._n_done, 2 * self.n_bytes)

    @cached_property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(entry.bytes for entry in self.entries.values())

    def _list(self, kind: Kind[Any], manifest: Manifest, folder: str) -> None:
        """Lists the files of a release and of those in its folders, whose manifests count as files."""
        self._folders.add(folder)
        for entry in manifest.entries():
            file = join(folder, entry.file)
            self.entries[file] = FileEntry(file, entry.rows, entry.bytes, entry.sha256)
            self._kinds[file] = kind
        for part in manifest.parts if kind.parts is not None else ():
            inside = join(folder, part.folder)
            file, path = join(inside, MANIFEST), join(self.path, inside)
            if not self.storage.exists(join(path, MANIFEST)):
                self.found.add(file, "missing", "make it again")
                continue
            size, sha256 = self.storage.size(join(path, MANIFEST)), sha256_of(self.storage, join(path, MANIFEST))
            self.entries[file], self._kinds[file] = FileEntry(file, None, size, sha256), kind
            assert kind.parts is not None
            try:
                inner = kind.parts.read(path, self.storage)
            except SetupError as error:
                self.found.add(file, "manifest", str(error))
                self._unknown.append(inside)
                continue
            if inner.sha256 != part.manifest_sha256:
                self.found.add(file, "manifest", f"{inner.sha256}, {part.manifest_sha256} was written")
            self._list(kind.parts, inner, inside)

    def _check_files(self) -> None:
        """Checks names, sizes and hashes."""
        extra = [join(folder, name) for folder in sorted(self._folders) for name in sorted(EXTRA)]
        for file in stored_files(self.path, self.storage):
            if added := [name for name in extra if is_in(file, (name,))]:
                self.extra += [name for name in added if name not in self.extra]
            elif file not in self.entries and file != MANIFEST and not is_in(file, self._unknown):
                self.found.add(file, "unlisted", "remove it, or fetch the release again")
        for file, entry in sorted(self.entries.items()):
            fault = file_fault(self.path, entry, self.storage, hashes=True)
            if fault is None:
                self.intact.add(file)
            else:
                self.found.add(file, *fault)
            self._add(entry.bytes)

    def _check_rows(self, entry: FileEntry) -> None:
        """Checks columns, rows and statistics of a table, and the number of lines of another file that has some."""
        n_rows = entry.rows
        if table_of(entry.file) is not None:
            n_rows = self._checked_table(entry)
            if n_rows is None:
                return
        elif entry.rows is not None and not entry.file.endswith(".json"):
            with self.storage.open_read(join(self.path, entry.file)) as file:
                n_rows = sum(block.count(b"\n") for block in iter(lambda: file.read(CHUNK_BYTES), b""))
        self.readable.add(entry.file)
        if n_rows == entry.rows:
            self.sound.add(entry.file)
        else:
            self.found.add(entry.file, "rows", f"{n_rows} rows, {entry.rows} were written")
        if not entry.file.endswith(".json"):
            self.n_rows += n_rows or 0

    def _checked_table(self, entry: FileEntry) -> int | None:
        """Gives the rows of a table; None where it has other columns than its schema, or is no table."""
        schemas = self._kinds[entry.file].schemas(table_of(entry.file) or "")
        try:
            with opened_table(join(self.path, entry.file), self.storage) as file:
                if not any(file.schema_arrow.equals(stored_schema(schema), check_metadata=False) for schema in schemas):
                    self.found.add(entry.file, "schema", f"columns {', '.join(file.schema_arrow.names)}")
                    return None
                if fault := _statistics_fault(file):
                    self.found.add(entry.file, "statistics", fault)
                n_rows: int = file.metadata.num_rows
                return n_rows
        except (pa.ArrowInvalid, OSError) as error:
            self.found.add(entry.file, "unreadable", str(error))
            return None

    def batches(self, table: str) -> Iterator[tuple[FileEntry, pa.RecordBatch]]:
        """Gives (file, row group) of what can be read of a table."""
        for entry in self.manifest.tables.get(table, ()):
            yield from ((entry, batch) for batch in self.file_batches(entry))

    def file_batches(self, entry: FileEntry) -> Iterator[pa.RecordBatch]:
        """Gives the row groups of a table's file; none where it cannot be read."""
        if entry.file not in self.readable:
            return
        try:
            with opened_table(join(self.path, entry.file), self.storage) as file:
                for number in range(file.metadata.num_row_groups):
                    yield from file.read_row_group(number, use_threads=False).combine_chunks().to_batches()
        except (pa.ArrowInvalid, OSError) as error:
            self.found.add(entry.file, "unreadable", str(error))
        self.done(entry.file)

    def is_intact(self, *tables: str) -> bool:
        """Says whether every file of tables is what was written."""
        return self.intact.issuperset(entry.file for table in tables for entry in self.manifest.tables[table])

    def has_files(self, needed: Iterable[str], *, exactly: bool = False) -> bool:
        """Says whether these files are listed and sound, so that laws say something; notes those that are missing.

        Args:
            needed: paths in the release.
            exactly: no other file may be listed.
        """
        wanted = set(needed)
        for file in sorted(wanted - set(self.entries)):
            self.found.add(file, "missing", f"no {self.kind.name} is without it")
        odd = sorted(set(self.entries) - wanted) if exactly else []
        for file in odd:
            self.found.add(MANIFEST, "manifest", f"{file} is no part of a {self.kind.name}")
        return not odd and wanted <= self.sound


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Gives a schema as it is read back: Parquet keeps no timestamps in seconds."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    return pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema_arrow


def _statistics_fault(file: pq.ParquetFile) -> str | None:
    """Gives what is wrong with the statistics of id columns, by which engines leave row groups out; None for nothing.

    Releases of before 2026-12 lack some of them: only what is there must be true.
    """
    metadata = file.metadata
    names = [name for name in file.schema_arrow.names if is_id(name)]
    columns = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    for group in range(metadata.num_row_groups if names else 0):
        claimed = {name: metadata.row_group(group).column(columns[name]).statistics for name in names}
        claimed = {name: one for name, one in claimed.items() if one is not None and one.has_min_max}
        if not claimed:
            continue
        table = file.read_row_group(group, columns=list(claimed), use_threads=False)
        for name, statistics in claimed.items():
            found = pc.min_max(table[name]).as_py()
            if (found["min"], found["max"]) != (statistics.min, statistics.max):
                return f"{name} of row group {group}: {statistics.min} to {statistics.max}, found {found}"
    return None
