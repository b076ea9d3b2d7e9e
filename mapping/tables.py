"""The Parquet tables of alignments and of QAMPARI: written whole or not at all, the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.files import HashingWriter, Storage, atomic_write, join
from kbsource.release.manifest import FileEntry
from mapping.schema import SCHEMA_VERSION, TABLES

GROUP_ROWS = 1 << 14
_ROWS_AT_ONCE = 32
"""Rows as Python has them, many times as large as in a batch."""
_COMPRESSION_LEVEL = 3


def table_path(table: str, number: int, n_files: int) -> str:
    """Gives a file's path in the output: ``alignments/alignments-00000-of-00012.parquet``."""
    return f"{table}/{table}-{number:05d}-of-{n_files:05d}.parquet"


def write_table(
    rows: Iterable[Sequence[Any]],
    table: str,
    *,
    output: str,
    file: str,
    storage: Storage,
    further: Sequence[pa.Field] = (),
    schema: pa.Schema | None = None,
    group_rows: int = GROUP_ROWS,
) -> FileEntry:
    """Writes rows, values in the order of the table's columns, and gives the manifest's entry of the file.

    Args:
        rows: taken one group after the other, so memory holds ``group_rows`` of them.
        table: its name.
        output: folder of the alignment.
        file: path in it.
        further: columns behind those of the table.
        schema: the table's columns; None for those that ``TABLES`` has under its name.
        group_rows: rows in a row group.
    """
    metadata = {"kbsource.table": table, "kbsource.schema_version": str(SCHEMA_VERSION)}
    columns = TABLES[table] if schema is None else schema
    written = pa.schema([*columns, *further], metadata=metadata)
    n_rows = 0
    with atomic_write(storage, join(output, file)) as raw:
        sink = HashingWriter(raw)
        with pq.ParquetWriter(sink, written, compression="zstd", compression_level=_COMPRESSION_LEVEL) as writer:
            source = iter(rows)
            while n_written := _write_group(islice(source, group_rows), writer, written):
                n_rows += n_written
    return FileEntry(file, n_rows, sink.n_bytes, sink.hexdigest())


def _groups(rows: Iterable[Sequence[Any]], n_rows: int) -> Iterator[list[Sequence[Any]]]:
    source = iter(rows)
    while group := list(islice(source, n_rows)):
        yield group


def _write_group(rows: Iterator[Sequence[Any]], writer: pq.ParquetWriter, schema: pa.Schema) -> int:
    """Writes rows as a row group, if there are any; gives their number."""
    pieces = [_batch(piece, schema) for piece in _groups(rows, _ROWS_AT_ONCE)]
    if not pieces:
        return 0
    batch = pa.concat_batches(pieces)
    del pieces
    writer.write_batch(batch, row_group_size=batch.num_rows)
    return int(batch.num_rows)


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schema.types, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(*one) for one in columns], schema=schema)


def read_table(output: str, table: str, storage: Storage) -> Iterator[dict[str, Any]]:
    """Gives the rows of a table of an alignment in order, one row group in memory."""
    for path in storage.glob(join(output, table, f"{table}-*.parquet")):
        with storage.open_read(path) as file, pq.ParquetFile(file) as parquet:
            for group in range(parquet.metadata.num_row_groups):
                yield from parquet.read_row_group(group, use_threads=False).to_pylist()
