"""Reads the files of a release of any kind, and checks that they match its manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kbsource.errors import DataError, SetupError, shown_value
from kbsource.files import Folder, check_regular, join
from kbsource.release.manifest import FileEntry

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_NAMES_SHOWN = 8
_ROWS_AT_A_TIME = 1 << 12
_FOOTERS_AT_A_TIME = 8


def parquet_file(source: Any, **options: Any) -> pq.ParquetFile:
    """Opens a Parquet file. If its pages have checksums, these are verified whenever the pages are read.

    Without checksums, every second flipped bit is read as different text without an error, because the zstd frames in
    Parquet have no checksums. With them, only one flipped bit in 200 is undetected, in page headers and the footer;
    ``kbsource verify`` detects these too. Reading raises DataError if a row group would need far more memory than its
    size justifies.

    Args:
        source: a path, or an open file.
    """
    # A slow import, which the lookup of titles does not need.
    from kbsource.release.parquet_bounds import BoundedParquetFile

    return BoundedParquetFile(source, page_checksum_verification=True, **options)


def open_table(path: str | Folder) -> pq.ParquetFile:
    """Opens a Parquet file for random access to its row groups: memory-mapped if it is local, otherwise by byte ranges.

    Close it with ``close(force=True)``.
    """
    file = Folder.of(path)
    if file.is_local and file.is_mapped:
        check_regular(file.url)
        return parquet_file(file.url, memory_map=True)
    return parquet_file(file.open_ranges(), pre_buffer=True)


@contextmanager
def opened_table(path: str | Folder) -> Iterator[pq.ParquetFile]:
    """Opens a file as ``open_table`` does, and closes it."""
    file = open_table(path)
    try:
        yield file
    finally:
        file.close(force=True)


@cache
def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Returns a schema as it is read back from a Parquet file, which cannot store timestamps in seconds."""
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    return pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema_arrow


def has_columns(file: pq.ParquetFile, schemas: Iterable[pa.Schema]) -> bool:
    """Returns whether a file has exactly the columns of one of the schemas: names, types and order."""
    return any(file.schema_arrow.equals(stored_schema(schema), check_metadata=False) for schema in schemas)


def checked_schemas(paths: Sequence[str], schemas: Sequence[pa.Schema]) -> set[int]:
    """Returns the number of the schema that each file of a table has. Reads only the footers, several at a time.

    Raises:
        DataError: as for ``check_columns``.
    """
    with ThreadPoolExecutor(min(_FOOTERS_AT_A_TIME, max(len(paths), 1))) as pool:
        return {*pool.map(partial(check_columns, schemas=schemas), paths)}


def check_columns(path: str | Folder, schemas: Sequence[pa.Schema]) -> int:
    """Returns the number of the schema that a file of a table has. Reads only its footer.

    Raises:
        DataError: the file has other columns, or is not a Parquet file.
        OSError: the file cannot be opened.
    """
    import pyarrow.parquet as pq

    try:
        file = Folder.of(path)
        if file.is_local:
            check_regular(file.url)
        with pa.OSFile(file.url) if file.is_local else file.open_ranges() as opened:
            found = pq.ParquetFile(opened).schema_arrow
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise _unfit(path, f"is not a readable Parquet file ({error})") from error
    return _schema_of(path, found, schemas)


def _schema_of(path: str | Folder, found: pa.Schema, schemas: Sequence[pa.Schema]) -> int:
    """Returns the number of the schema that matches the columns of a file; raises DataError if no schema does."""
    for number, schema in enumerate(schemas):
        if found.equals(stored_schema(schema), check_metadata=False):
            return number
    missing = [name for name in schemas[0].names if name not in found.names] if schemas else []
    if missing:
        raise _unfit(path, f"has no column {missing[0]}; it has {_listed_names(found.names)}")
    raise _unfit(path, f"does not have the columns of its table; it has {_listed_names(found.names)}")


def _unfit(path: str | Folder, fault: str) -> DataError:
    return DataError(f"{path} {fault}; download or build the release again, and check it with kbsource verify.")


def _listed_names(names: Sequence[str]) -> str:
    """Returns column names for a message: the first ones, shortened, on one line."""
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(shown_value(name) for name in names[:_NAMES_SHOWN]) + more


def row_groups(path: str | Folder, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yields the row groups of a file in order. Memory: one row group. ``columns`` selects columns."""
    folder = Folder.of(path)
    # Prefetching saves requests to a store. For a local disk it would only copy the data.
    with folder.open() as file, parquet_file(file, pre_buffer=not folder.is_local) as parquet:
        for group in range(parquet.metadata.num_row_groups):
            yield parquet.read_row_group(group, columns=columns and list(columns), use_threads=False)


def read_table(folder: str, entries: Iterable[FileEntry], schemas: Sequence[pa.Schema]) -> Iterator[dict[str, Any]]:
    """Reads the rows of a table in order, with one row group in memory.

    Args:
        entries: the files of the table, as the manifest lists them.
        schemas: all schemas that the table may have.

    Raises:
        DataError: a file has other columns.
    """
    for entry in entries:
        path = join(folder, entry.file)
        check_columns(path, schemas)
        for group in row_groups(path):
            yield from _rows(group)


def rows_with(
    folder: str, entries: Iterable[FileEntry], schemas: Sequence[pa.Schema], column: str, value: str | int
) -> Iterator[dict[str, Any]]:
    """Reads the rows of a table with a value in a column of text or integers, in order. See ``groups_with`` and
    ``read_table``.
    """
    for entry in entries:
        path = join(folder, entry.file)
        with opened_table(path) as file:
            _schema_of(path, file.schema_arrow, schemas)
            for group in groups_with(file, column, value):
                yield from _rows(group)


def _rows(group: pa.Table) -> Iterator[dict[str, Any]]:
    """Yields the rows of a row group. Converts a few at a time, because rows in Python take many times the memory."""
    for batch in group.to_batches(max_chunksize=_ROWS_AT_A_TIME):
        yield from batch.to_pylist()


def groups_with(file: pq.ParquetFile, column: str, value: str | int) -> Iterator[pa.Table]:
    """Yields the rows with a value, from one row group after another. Row groups whose statistics exclude the value are
    not read.
    """
    import pyarrow.compute as pc  # a slow import, which few readers need

    number = [leaf.path for leaf in file.schema].index(column)
    for group in range(file.metadata.num_row_groups):
        known = file.metadata.row_group(group).column(number).statistics
        if known is None or not known.has_min_max or known.min <= value <= known.max:
            rows = file.read_row_group(group, use_threads=False)
            yield rows.filter(pc.equal(rows[column], value))


def file_fault(folder: str, entry: FileEntry, *, hashes: bool) -> tuple[str, str] | None:
    """Returns the invariant that a file violates, and a description; None if the file is unchanged.

    Args:
        hashes: compare the hash too, for which the file is read; otherwise only the size.
    """
    path = join(folder, entry.file)
    if not Folder.of(path).exists():
        return "missing", "download or build the release again"
    if (size := Folder.of(path).size()) != entry.bytes:
        return "size", f"{size} bytes; the manifest lists {entry.bytes}"
    if hashes and (digest := Folder.of(path).sha256()) != entry.sha256:
        return "sha256", f"{digest}, not the {entry.sha256} in the manifest"
    return None


def check_sizes(folder: str, entries: Iterable[FileEntry]) -> None:
    """Checks that no file of a release is missing or truncated. Call it before long work.

    Raises:
        SetupError: a file is missing or truncated.
    """
    _check(folder, entries, hashes=False)


def check_hashes(folder: str, entries: Iterable[FileEntry]) -> None:
    """Checks, like ``check_sizes``, that every file of a release is unchanged. Reads all files to hash them."""
    _check(folder, entries, hashes=True)


def check_same_facts(folder: str, old: Mapping[str, Any], new: Mapping[str, Any], *, name: str = "") -> None:
    """Checks that an old release, whose results are to be reused, was made with the same options and code. Raises
    SetupError if it was not.

    Args:
        old, new: values that determine the output of the old and of the new release, by name.
    """
    for key in sorted(old.keys() | new.keys()):
        had, has = old.get(key), new.get(key)
        if isinstance(had, Mapping) and isinstance(has, Mapping):
            check_same_facts(folder, had, has, name=f"{name}{key} ")
        elif had != has:
            remedy = "give the same option, or " if name == "option " else ""
            raise SetupError(
                f"{folder} was made with a different {name}{key} ({had!r}, here {has!r}), so rows copied from it "
                f"might differ from those that this run would write; {remedy}leave out --base."
            )


def _check(folder: str, entries: Iterable[FileEntry], *, hashes: bool) -> None:
    for entry in entries:
        if (fault := file_fault(folder, entry, hashes=hashes)) is not None:
            rule, seen = fault
            said = "is missing" if rule == "missing" else f"has {seen}"
            if hashes:
                said = f"is damaged or changed ({rule})"
            path = join(folder, entry.file)
            raise SetupError(f"{path} {said}; download or build the release again, and check it with kbsource verify.")
