"""Writes the files of a release: Parquet tables, one row group at a time, and files of lines. Each file is hashed while
it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import Any, Self, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.columns import batch_of, schema_of
from kbsource.errors import DataError, shown_value
from kbsource.files import Folder, HashingWriter, glob, join
from kbsource.records import BadRecord
from kbsource.release.layout import is_path, shard_path
from kbsource.release.manifest import FileEntry
from kbsource.rows import SCHEMA_VERSION, Row
from kbsource.runtime.chunks import rows_batch

R = TypeVar("R", bound=Row)
SMALL_GROUP_ROWS = 1 << 16
ROWS_PER_FILE = 2_000_000
"""Rows per file of the smaller tables; for redirects, about 100 MB."""
GROUP_ROWS = 1 << 14
"""Rows per row group of the smaller tables. ``write_rows`` holds them as Python objects, which take many times the
memory of a batch.
"""
_SPOOLED_BYTES = 1 << 20
"""Rejected rows are kept in memory up to this number of bytes, and on disk beyond it."""

COMPRESSION_LEVEL = 1
"""Zstandard's level for Parquet. Level 3 writes a fifth more slowly and saves 7 % of the size; level 6 takes twice as
long and saves 13 %.
"""
_PLAIN_LEVEL = 3

# Columns with statistics, in addition to ids. On text and nested columns, statistics would take a tenth of the time and
# a quarter of the footer, and no query could use them.
_PRUNED_BY = frozenset(["title", "timestamp", "mention"])

# Dictionary-encoded columns: their values repeat within a row group. A dictionary for other columns would make reading
# and writing 10 % slower.
_DICTIONARY = frozenset(
    """
    kind level ordinal marker section element target_fragment categories category_sort_keys caption header is_header
    colspan rowspan name outcome uses occurrences parse_status is_disambiguation status hops fragment stage reason file
    entity_id property_id rank snak datatype value_type language unit year month day precision calendar globe
    label_language site n_statements class_id distance agreement
    """.split()
)


def is_id(name: str) -> bool:
    """Returns whether a column contains ids. Such columns have statistics, which query engines use to skip row groups.

    >>> [is_id(name) for name in ("page_id", "wikidata_qid", "title", "property_ids")]
    [True, True, False, False]
    """
    return name.endswith(("_id", "qid"))


def _leaves(name: str, path: str, type_: pa.DataType) -> Iterator[tuple[str, str, pa.DataType]]:
    """Yields the nearest name, the Parquet path and the type of each leaf of a column."""
    if pa.types.is_list(type_):
        yield from _leaves(name, f"{path}.list.element", type_.value_type)
    elif pa.types.is_struct(type_):
        for field in type_:
            yield from _leaves(field.name, f"{path}.{field.name}", field.type)
    else:
        yield name, path, type_


def _open(sink: HashingWriter, schema: pa.Schema) -> pq.ParquetWriter:
    """Opens a Parquet writer. Text is compressed. Numbers are encoded (dictionary or deltas) but not compressed,
    because setting up a decompressor takes longer than reading the numbers of a row group.

    Without compression of numbers, a page is read 40 % faster, writing takes a quarter less time, and files are 4 %
    larger.
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
    """A file that is hashed while it is written, and gets its name only when it is complete.

    Raises:
        DataError: the file's path, which may contain names from the input, leads outside the output folder.
    """

    def __init__(self, output: str, file: str) -> None:
        if not is_path(file):
            raise DataError(
                f"{shown_value(file)} cannot be the path of a file in a release; rename the input file "
                f"that it is named after."
            )
        self._output, self._file = output, file
        self._entry: FileEntry | None = None
        self.n_rows = 0  #: number of rows, or lines, so far

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            raw = stack.enter_context(Folder.of(join(self._output, self._file)).create())
            self._sink = HashingWriter(raw)
            self._open(stack)
            self._stack = stack.pop_all()
        return self

    def _open(self, stack: ExitStack) -> None:
        """Opens the writer on top of the sink."""

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)
        if raised[0] is None:
            self._entry = FileEntry(self._file, self.n_rows, self._sink.n_bytes, self._sink.hexdigest())

    @property
    def entry(self) -> FileEntry:
        """The entry of the file; available when the context has ended."""
        assert self._entry is not None
        return self._entry


class LinesFile(_HashedFile):
    """A file of lines."""

    def write(self, line: bytes) -> None:
        """Writes a line, including its line end."""
        self._sink.write(line)
        self.n_rows += 1


class TableFile(_HashedFile):
    """A Parquet file.

    Args:
        is_plain: compress all columns in the same way. For small tables that are read as a whole.
    """

    def __init__(self, output: str, file: str, table: str, *, schema: pa.Schema, is_plain: bool = False) -> None:
        super().__init__(output, file)
        own = {"kbsource.table": table, "kbsource.schema_version": str(SCHEMA_VERSION)}
        self._schema, self._is_plain = schema.with_metadata(own), is_plain

    def _open(self, stack: ExitStack) -> None:
        if self._is_plain:
            writer = pq.ParquetWriter(
                self._sink, self._schema, compression="zstd", compression_level=_PLAIN_LEVEL, write_page_checksum=True
            )
        else:
            writer = _open(self._sink, self._schema)
        self._writer = stack.enter_context(writer)

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes a batch as one row group."""
        if not batch.num_rows:
            return
        batch = batch.replace_schema_metadata(self._schema.metadata)
        self._writer.write_batch(batch, row_group_size=batch.num_rows)
        self.n_rows += batch.num_rows


class RollingFiles:
    """Writes batches of a table to files while the number of files is still unknown. Afterwards, ``name_files`` gives
    them their final names.

    Args:
        names: file names in the table's folder, with a placeholder for the number.
        rows_per_file: number of rows at which a file is full.
    """

    def __init__(self, output: str, table: str, *, schema: pa.Schema, names: str, rows_per_file: int) -> None:
        self._output, self._table, self._schema = output, table, schema
        self._names, self._rows_per_file = names, rows_per_file
        self._stack = ExitStack()
        self._written: list[TableFile] = []

    def __enter__(self) -> RollingFiles:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)

    @property
    def room(self) -> int:
        """Number of rows that still fit into the current file."""
        return self._rows_per_file - (self._written[-1].n_rows if self._written else self._rows_per_file)

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes a batch as one row group."""
        if self.room <= 0:
            self._stack.close()
            name = f"{self._table}/{self._names.format(len(self._written))}"
            file = TableFile(self._output, name, self._table, schema=self._schema)
            self._written.append(self._stack.enter_context(file))
        self._written[-1].write(batch)

    @property
    def entries(self) -> tuple[FileEntry, ...]:
        """The entries of the files; available when the context has ended without an error."""
        return tuple(file.entry for file in self._written)


def name_files(
    entries: Sequence[FileEntry], table: str, *, schema: pa.Schema, folder: str, output: str
) -> tuple[FileEntry, ...]:
    """Gives the files of a table their final names, in order. If there are no files, an empty file is written.

    Args:
        entries: entries of the files. Files that already have their final names are skipped.
    """
    if not entries:
        with TableFile(folder, f"{table}/none.unnamed", table, schema=schema) as empty:
            pass
        entries = [empty.entry]
    waiting = frozenset(glob(join(folder, table, "*")))
    named = []
    for number, entry in enumerate(entries):
        file = shard_path(table, number, len(entries))
        if (source := join(folder, entry.file)) in waiting:
            Folder.of(source).move("", Folder.of(join(output, file)))
        named.append(replace(entry, file=file))
    return tuple(named)


def write_small_table(
    rows: Iterable[R], row: type[R], output: str, table: str, *, rows_per_file: int = ROWS_PER_FILE
) -> tuple[FileEntry, ...]:
    """Writes a table of rows; writes at least one file.

    Memory: ``SMALL_GROUP_ROWS`` rows. The files get their final names when their number is known. If ``rows`` raises an
    error, it propagates, and no file gets its final name.
    """
    schema, source = schema_of(row), iter(rows)
    with RollingFiles(output, table, schema=schema, names="{:05d}.unnamed", rows_per_file=rows_per_file) as files:
        while group := list(islice(source, min(SMALL_GROUP_ROWS, files.room or rows_per_file))):
            files.write(batch_of(group, row))
    return name_files(files.entries, table, schema=schema, folder=output, output=output)


def write_small_batches(
    batches: Iterable[pa.RecordBatch],
    table: str,
    schema: pa.Schema,
    *,
    output: str,
    rows_per_file: int = ROWS_PER_FILE,
) -> tuple[FileEntry, ...]:
    """Writes a table of rows in batches of any size, as ``write_small_table`` would write the rows: the same bytes."""
    held: list[pa.RecordBatch] = []
    with RollingFiles(output, table, schema=schema, names="{:05d}.unnamed", rows_per_file=rows_per_file) as files:
        room = min(SMALL_GROUP_ROWS, rows_per_file)
        for batch in batches:
            while batch.num_rows:
                held.append(batch.slice(0, room))
                batch = batch.slice(room)
                room -= held[-1].num_rows
                if not room:
                    files.write(pa.concat_batches(held))
                    held, room = [], min(SMALL_GROUP_ROWS, files.room or rows_per_file)
        if held:
            files.write(pa.concat_batches(held))
    return name_files(files.entries, table, schema=schema, folder=output, output=output)


def write_rows(
    rows: Iterable[Any],
    table: str,
    schema: pa.Schema,
    *,
    output: str,
    file: str | None = None,
    group_rows: int = GROUP_ROWS,
) -> FileEntry:
    """Writes rows as one file, and returns its entry. Rows are ``Row`` objects, or values in the order of the columns.

    Args:
        rows: the rows, of which ``group_rows`` are in memory at a time.
        file: path in the output; None if the table has only this file.
    """

    def groups() -> Iterator[pa.RecordBatch]:
        source = iter(rows)
        while group := list(islice(source, group_rows)):
            yield batch_of(group, type(group[0])) if isinstance(group[0], Row) else rows_batch(group, schema)

    return write_batches(groups(), table, schema, output=output, file=file)


def write_batches(
    batches: Iterable[pa.RecordBatch], table: str, schema: pa.Schema, *, output: str, file: str | None = None
) -> FileEntry:
    """Writes batches as ``write_rows`` does rows, each as one row group."""
    path = file or shard_path(table, 0, 1)
    with TableFile(output, path, table, schema=schema, is_plain=True) as target:
        for batch in batches:
            target.write(batch)
    return target.entry


class RejectedRows:
    """Collects rejected rows, which are later written as a table in the same order. Use it as a context manager. Beyond
    ``_SPOOLED_BYTES``, the rows are stored on disk.
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115  closed by the context
        self._encoder = msgspec.json.Encoder()
        self.reasons: Counter[str] = Counter()  #: number of rows by reason

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self.reasons.total()

    def append(self, row: BadRecord) -> None:
        """Adds a row."""
        self._file.write(self._encoder.encode(row) + b"\n")
        self.reasons[row.reason] += 1

    def __iter__(self) -> Iterator[BadRecord]:
        """Iterates over all rows. Do not append rows during the iteration."""
        decoder = msgspec.json.Decoder(BadRecord)
        self._file.seek(0)
        yield from map(decoder.decode, self._file)


def write_rejected(rejected: Iterable[BadRecord], *, output: str) -> FileEntry:
    """Writes the table ``rejected`` of a release that takes only seconds to make."""
    return write_rows(rejected, "rejected", schema_of(BadRecord), output=output)


def write_lines(lines: Iterable[bytes], file: str, *, output: str, n_rows: int | None = None) -> FileEntry:
    """Writes lines, or other segments of a file that has ``n_rows`` lines, and returns the file's entry."""
    with LinesFile(output, file) as target:
        for line in lines:
            target.write(line)
    return target.entry if n_rows is None else replace(target.entry, rows=n_rows)
