"""Parquet files of a release: pages shard by shard, and the smaller tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.files import HashingWriter, Storage, atomic_write, join
from kbsource.records import Page
from kbsource.release.columns import pages_to_batch, rows_to_batch, timestamp_seconds
from kbsource.release.laws import check_page
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.schema import ALL_TABLES, SCHEMA_VERSION

GROUP_ROWS = 512
GROUP_CHARS = 512 << 10
"""A row group holds at most so many pages and about so much text. Smaller groups give one page sooner, larger ones
cost less to write: most of both is fixed, for the number of columns. A file's footer, which is held whole by who writes
or reads the file, grows by 6 KB a group."""

_ENCODING_FAULTS = (ArithmeticError, TypeError, ValueError, pa.ArrowException)
SMALL_GROUP_ROWS = 1 << 16
_ROWS_AT_ONCE = 1 << 12
ROWS_PER_FILE = 2_000_000
"""Rows per file of the smaller tables, about 100 MB of redirects."""

COMPRESSION_LEVEL = 1
"""Level 3 writes a fifth slower for 7 % less, 6 half as fast for 13 % less."""

# Statistics where a reader can prune by them. On text and nested columns they cost a tenth of the time and
# a quarter of the footer, and no query can use them.
_STATISTICS = ["page_id", "title", "qid", "revision_id", "timestamp", "class_id"]

# Columns whose values repeat within a row group; a dictionary for the others costs reading and writing a tenth of
# the time.
_DICTIONARY = frozenset(
    [
        "kind",
        "level",
        "ordinal",
        "marker",
        "section",
        "element",
        "target_fragment",
        "categories",
        "caption",
        "header",
        "is_header",
        "colspan",
        "rowspan",
        "name",
        "outcome",
        "uses",
        "pieces",
        "parse_status",
        "is_disambiguation",
        "status",
        "hops",
        "fragment",
        "stage",
        "reason",
        "file",
        "entity_id",
        "property_id",
        "rank",
        "snak",
        "datatype",
        "value_type",
        "language",
        "unit",
        "year",
        "month",
        "day",
        "precision",
        "calendar",
        "globe",
        "label_language",
        "site",
        "n_statements",
        "class_id",
        "distance",
        "agreement",
    ]
)


def _leaves(name: str, path: str, type_: pa.DataType) -> Iterator[tuple[str, str, pa.DataType]]:
    """Gives nearest name, Parquet path and type of every leaf below a column."""
    if pa.types.is_list(type_):
        yield from _leaves(name, f"{path}.list.element", type_.value_type)
    elif pa.types.is_struct(type_):
        for field in type_:
            yield from _leaves(field.name, f"{path}.{field.name}", field.type)
    else:
        yield name, path, type_


def parquet_schema(table: str) -> pa.Schema:
    """Gives a table's schema with its version in the metadata, as it is written."""
    return ALL_TABLES[table].with_metadata({"kbsource.table": table, "kbsource.schema_version": str(SCHEMA_VERSION)})


def _open(sink: HashingWriter, table: str) -> pq.ParquetWriter:
    """Opens a file. Text is compressed; numbers are packed (dictionary or deltas) and left as they are.

    To set up a decompressor costs a reader more than the numbers of a row group take to read: one page comes 40 %
    faster, writing takes a quarter less, and files are 4 % larger than with everything compressed.
    """
    schema = parquet_schema(table)
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
        write_statistics=[name for name in _STATISTICS if name in schema.names],
        write_page_index=True,
        use_content_defined_chunking=True,
        data_page_version="1.0",
        store_schema=True,
    )


class TableFile:
    """One Parquet file, hashed while it is written, that appears under its name only once it is whole."""

    def __init__(self, output: str, file: str, table: str, storage: Storage) -> None:
        self._output, self._file, self._table, self._storage = output, file, table, storage
        self._entry: FileEntry | None = None
        self.n_rows = 0

    def __enter__(self) -> TableFile:
        with ExitStack() as stack:
            raw = stack.enter_context(atomic_write(self._storage, join(self._output, self._file)))
            self._sink = HashingWriter(raw)
            self._writer = stack.enter_context(_open(self._sink, self._table))
            self._stack = stack.pop_all()
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes a batch as one row group."""
        self._writer.write_batch(batch, row_group_size=batch.num_rows)
        self.n_rows += batch.num_rows

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


class PageFaultError(Exception):
    """A page that keeps the laws cannot be encoded; ``number`` is the one that it was added with."""

    def __init__(self, number: int, detail: str) -> None:
        super().__init__(f"page {number}: {detail}")
        self.number = number


class PageGroups:
    """Pages on their way into row groups: the same pages give the same groups. Memory: one group."""

    def __init__(self) -> None:
        self._pending: list[Page] = []
        self._numbers: list[int] = []
        self._pending_chars = 0

    @staticmethod
    def check(page: Page) -> None:
        """Checks every law that a page of a release keeps.

        Raises:
            RecordError: ``offset_law``, ``page_law``, ``bad_text`` or ``bad_timestamp``.
        """
        check_page(page)
        timestamp_seconds(page.timestamp)

    def add(self, page: Page, number: int = 0) -> pa.RecordBatch | None:
        """Takes a page that ``check`` has passed; gives the group before it where that is full.

        Args:
            page: the next one.
            number: names it in a ``PageFaultError``.

        Raises:
            PageFaultError: a page of the group cannot be encoded.
        """
        n_chars = sum(len(element.text) for element in page.elements)
        full = None
        if len(self._pending) == GROUP_ROWS or (self._pending and self._pending_chars + n_chars > GROUP_CHARS):
            full = self.rest()
        self._pending.append(page)
        self._numbers.append(number)
        self._pending_chars += n_chars
        return full

    def rest(self) -> pa.RecordBatch | None:
        """Gives what is pending, None when nothing is; call it once more after the last page.

        Raises:
            PageFaultError: a page cannot be encoded.
        """
        if not self._pending:
            return None
        try:
            batch = pages_to_batch(self._pending)
        except _ENCODING_FAULTS:
            for number, page in zip(self._numbers, self._pending, strict=True):
                try:
                    pages_to_batch([page])
                except _ENCODING_FAULTS as error:
                    raise PageFaultError(number, str(error)) from error
            raise
        self._pending, self._numbers, self._pending_chars = [], [], 0
        return batch


def write_small_table(
    rows: Iterable[Any], output: str, table: str, *, storage: Storage, rows_per_file: int = ROWS_PER_FILE
) -> tuple[FileEntry, ...]:
    """Writes dataclass rows, whose fields are the table's columns in order, and gives the files; at least
    one.

    Streams: memory holds ``SMALL_GROUP_ROWS`` rows. The files get their final names once their number is
        known. What ``rows`` raises passes through and leaves no file under a final name.
    """
    schema = parquet_schema(table)
    written: list[FileEntry] = []
    source = iter(rows)
    pending = _take(source, min(SMALL_GROUP_ROWS, rows_per_file), schema)
    while pending.num_rows or not written:
        with TableFile(output, f"{table}/{len(written):05d}.unnamed", table, storage) as target:
            while pending.num_rows and target.n_rows < rows_per_file:
                target.write(pending)
                room = rows_per_file - target.n_rows or rows_per_file
                pending = _take(source, min(SMALL_GROUP_ROWS, room), schema)
        written.append(target.entry)
    entries = []
    for number, entry in enumerate(written):
        file = shard_path(table, number, len(written))
        storage.rename(join(output, entry.file), join(output, file))
        entries.append(FileEntry(file, entry.rows, entry.bytes, entry.sha256))
    return tuple(entries)


def _take(source: Iterator[Any], n_rows: int, schema: pa.Schema) -> pa.RecordBatch:
    """Gives the next rows as one batch; as objects, which take many times as much memory, only some of them at once."""
    parts = []
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        parts.append(rows_to_batch(list(islice(source, min(_ROWS_AT_ONCE, n_rows - start))), schema))
        if not parts[-1].num_rows:
            break
    return pa.concat_batches(parts)
