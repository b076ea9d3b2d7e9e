"""The files of a release, hashed while they are written: Parquet tables by groups of rows, and lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.files import HashingWriter, Storage, atomic_write, join
from kbsource.records import BadRecord
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.runtime.chunks import rows_batch
from kbsource.schema import ALL_TABLES, REJECTED, SCHEMA_VERSION

SMALL_GROUP_ROWS = 1 << 16
ROWS_PER_FILE = 2_000_000
"""Rows per file of the smaller tables, about 100 MB of redirects."""
GROUP_ROWS = 1 << 14
"""Rows of ``write_rows`` as Python has them, many times as large as in a batch."""

COMPRESSION_LEVEL = 1
"""Level 3 writes a fifth slower for 7 % less, 6 half as fast for 13 % less."""
_PLAIN_LEVEL = 3

# Beside ids. On text and nested columns statistics cost a tenth of the time and a quarter of the footer, and no query
# can use them.
_PRUNED_BY = frozenset(["title", "timestamp", "mention"])

# Columns whose values repeat within a row group; a dictionary for the others costs reading and writing a tenth of
# the time.
_DICTIONARY = frozenset(
    """
    kind level ordinal marker section element target_fragment categories caption header is_header colspan
    rowspan name outcome uses pieces parse_status is_disambiguation status hops fragment stage reason file
    entity_id property_id rank snak datatype value_type language unit year month day precision calendar globe
    label_language site n_statements class_id distance agreement
    """.split()
)


def is_id(name: str) -> bool:
    """Says whether a column holds ids, by which engines leave row groups out: every one has statistics.

    >>> [is_id(name) for name in ("page_id", "wikidata_qid", "title", "property_ids")]
    [True, True, False, False]
    """
    return name.endswith(("_id", "qid"))


def _leaves(name: str, path: str, type_: pa.DataType) -> Iterator[tuple[str, str, pa.DataType]]:
    """Gives nearest name, Parquet path and type of every leaf below a column."""
    if pa.types.is_list(type_):
        yield from _leaves(name, f"{path}.list.element", type_.value_type)
    elif pa.types.is_struct(type_):
        for field in type_:
            yield from _leaves(field.name, f"{path}.{field.name}", field.type)
    else:
        yield name, path, type_


def parquet_schema(table: str, schema: pa.Schema | None = None) -> pa.Schema:
    """Gives a table's schema with its version in the metadata, as it is written; None for the table's own."""
    own = ALL_TABLES[table] if schema is None else schema
    return own.with_metadata({"kbsource.table": table, "kbsource.schema_version": str(SCHEMA_VERSION)})


def _open(sink: HashingWriter, schema: pa.Schema) -> pq.ParquetWriter:
    """Opens a file. Text is compressed; numbers are packed (dictionary or deltas) and left as they are.

    To set up a decompressor costs a reader more than the numbers of a row group take to read: one page comes 40 %
    faster, writing takes a quarter less, and files are 4 % larger than with everything compressed.
    """
    leaves = [leaf for field in schema for leaf in _leaves(field.name, field.name, field.type)]
    dictionary = [path for name, path, _ in leaves if name in _DICTIONARY]
    text = {path for name, path, type_ in leaves if pa.types.is_string(type_) and name not in _DICTIONARY}
    deltas = [path for name, path, type_ in leaves if pa.types.is_integer(type_) and name not in _DICTIONARY]
    return pq.ParquetWriter(
        sink,
        schema,
        compression={path: "ZSTD" if path in text else "NONE" for _, path, _ in leaves},
        compression_level=dict.fromkeys(text, COMPRESSION_LEVEL),
        use_dictionary=dictionary,
        column_encoding=dict.fromkeys(deltas, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in schema.names if is_id(name) or name in _PRUNED_BY],
        write_page_index=True,
        write_page_checksum=True,
        use_content_defined_chunking=True,
        data_page_version="1.0",
        store_schema=True,
    )


class _HashedFile:
    """A file that is hashed while it is written, and appears under its name only once it is whole.

    Attributes:
        n_rows: rows, or lines, so far.
    """

    def __init__(self, output: str, file: str, storage: Storage) -> None:
        self._output, self._file, self._storage = output, file, storage
        self._entry: FileEntry | None = None
        self.n_rows = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            raw = stack.enter_context(atomic_write(self._storage, join(self._output, self._file)))
            self._sink = HashingWriter(raw)
            self._open(stack)
            self._stack = stack.pop_all()
        return self

    def _open(self, stack: ExitStack) -> None:
        """Opens what writes into the sink."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if kind is None:
            self._entry = FileEntry(self._file, self.n_rows, self._sink.n_bytes, self._sink.hexdigest())

    @property
    def entry(self) -> FileEntry:
        """What was written; only after the context has ended."""
        assert self._entry is not None
        return self._entry


class LinesFile(_HashedFile):
    """A file of lines."""

    def write(self, line: bytes) -> None:
        """Writes a line, with its end."""
        self._sink.write(line)
        self.n_rows += 1


class TableFile(_HashedFile):
    """A Parquet file.

    Args:
        output: folder of the release.
        file: path in it.
        table: its name.
        storage: of the folder.
        schema: the table's columns; None for those that ``kbsource.schema`` has under its name.
        is_plain: everything is compressed alike: for small tables, which are read as a whole.
    """

    def __init__(
        self,
        output: str,
        file: str,
        table: str,
        storage: Storage,
        *,
        schema: pa.Schema | None = None,
        is_plain: bool = False,
    ) -> None:
        super().__init__(output, file, storage)
        self._schema, self._is_plain = parquet_schema(table, schema), is_plain

    def _open(self, stack: ExitStack) -> None:
        if self._is_plain:
            writer = pq.ParquetWriter(
                self._sink,
                self._schema,
                compression="zstd",
                compression_level=_PLAIN_LEVEL,
                write_page_checksum=True,
            )
        else:
            writer = _open(self._sink, self._schema)
        self._writer = stack.enter_context(writer)

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes a batch as one row group."""
        batch = batch.replace_schema_metadata(self._schema.metadata)
        self._writer.write_batch(batch, row_group_size=batch.num_rows)
        self.n_rows += batch.num_rows


class RollingFiles:
    """Batches of a table on their way into files, before anybody knows how many there will be; see ``name_files``.

    Args:
        output: folder that takes the files.
        table: its name.
        storage: of the folder.
        names: of the files in the table's folder, with a place for the number.
        rows_per_file: a file that has as many is full.
    """

    def __init__(self, output: str, table: str, storage: Storage, *, names: str, rows_per_file: int) -> None:
        self._output, self._table, self._storage = output, table, storage
        self._names, self._rows_per_file = names, rows_per_file
        self._stack = ExitStack()
        self._written: list[TableFile] = []

    def __enter__(self) -> RollingFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def room(self) -> int:
        """Rows that go into the file in work."""
        return self._rows_per_file - (self._written[-1].n_rows if self._written else self._rows_per_file)

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes a batch as one row group."""
        if self.room <= 0:
            self._stack.close()
            name = f"{self._table}/{self._names.format(len(self._written))}"
            self._written.append(self._stack.enter_context(TableFile(self._output, name, self._table, self._storage)))
        self._written[-1].write(batch)

    @property
    def entries(self) -> tuple[FileEntry, ...]:
        """What was written; only after the context has ended well."""
        return tuple(file.entry for file in self._written)


def name_files(
    entries: Sequence[FileEntry], table: str, storage: Storage, *, folder: str, output: str
) -> tuple[FileEntry, ...]:
    """Gives the files of a table their final names, in their order, and gives their entries; at least one.

    Args:
        entries: of the files; those that have been moved already stay.
        table: its name.
        storage: of both folders.
        folder: where the files lie.
        output: folder of the release.
    """
    if not entries:
        with TableFile(folder, f"{table}/none.unnamed", table, storage) as empty:
            pass
        entries = [empty.entry]
    waiting = frozenset(storage.glob(join(folder, table, "*")))
    named = []
    for number, entry in enumerate(entries):
        file = shard_path(table, number, len(entries))
        if (source := join(folder, entry.file)) in waiting:
            storage.rename(source, join(output, file))
        named.append(replace(entry, file=file))
    return tuple(named)


def write_small_table(
    rows: Iterable[Any], output: str, table: str, *, storage: Storage, rows_per_file: int = ROWS_PER_FILE
) -> tuple[FileEntry, ...]:
    """Writes dataclass rows, whose fields are the table's columns in order, and gives the files; at least
    one.

    Streams: memory holds ``SMALL_GROUP_ROWS`` rows. The files get their final names once their number is
        known. What ``rows`` raises passes through and leaves no file under a final name.
    """
    schema = parquet_schema(table)
    source = map(attrgetter(*schema.names), rows)
    with RollingFiles(output, table, storage, names="{:05d}.unnamed", rows_per_file=rows_per_file) as files:
        while (
            batch := rows_batch(islice(source, min(SMALL_GROUP_ROWS, files.room or rows_per_file)), schema)
        ).num_rows:
            files.write(batch)
    return name_files(files.entries, table, storage, folder=output, output=output)


def write_rows(
    rows: Iterable[Sequence[Any]],
    table: str,
    schema: pa.Schema,
    *,
    output: str,
    storage: Storage,
    file: str | None = None,
    group_rows: int = GROUP_ROWS,
) -> FileEntry:
    """Writes rows, values in the order of the columns, as one file, and gives its entry.

    Args:
        rows: taken one group after the other, so memory holds ``group_rows`` of them.
        table: its name.
        schema: its columns.
        output: folder of the release.
        storage: of the folder.
        file: path in it; None where it is the only one of the table.
        group_rows: rows in a row group.
    """

    def groups() -> Iterator[pa.RecordBatch]:
        source = iter(rows)
        while (batch := rows_batch(islice(source, group_rows), schema)).num_rows:
            yield batch

    return write_batches(groups(), table, schema, output=output, storage=storage, file=file)


def write_batches(
    batches: Iterable[pa.RecordBatch],
    table: str,
    schema: pa.Schema,
    *,
    output: str,
    storage: Storage,
    file: str | None = None,
) -> FileEntry:
    """Writes batches, each as a row group; the rest as ``write_rows``."""
    path = file or shard_path(table, 0, 1)
    with TableFile(output, path, table, storage, schema=schema, is_plain=True) as target:
        for batch in batches:
            target.write(batch)
    return target.entry


def write_rejected(rejected: Iterable[BadRecord], *, output: str, storage: Storage) -> FileEntry:
    """Writes the table ``rejected`` of what is made in seconds, and gives its entry."""
    rows = map(attrgetter(*REJECTED.names), rejected)
    return write_rows(rows, "rejected", REJECTED, output=output, storage=storage)


def write_lines(
    lines: Iterable[bytes], file: str, *, output: str, storage: Storage, n_rows: int | None = None
) -> FileEntry:
    """Writes lines, or other pieces of a file that has ``n_rows`` of them, and gives its entry."""
    with LinesFile(output, file, storage) as target:
        for line in lines:
            target.write(line)
    return target.entry if n_rows is None else replace(target.entry, rows=n_rows)
