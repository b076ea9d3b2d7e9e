"""The Parquet tables of alignments and of QAMPARI: written whole or not at all, the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.files import HashingWriter, Storage, atomic_write, join
from kbsource.release.manifest import FileEntry
from kbsource.runtime.chunks import rows_batch
from mapping.schema import SCHEMA_VERSION, TABLES

GROUP_ROWS = 1 << 14
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
    columns = pa.schema([*(TABLES[table] if schema is None else schema), *further])
    groups = _groups(rows, columns, group_rows)
    return write_batches(groups, table, output=output, file=file, storage=storage, schema=columns)


def write_batches(
    batches: Iterable[pa.RecordBatch], table: str, *, output: str, file: str, storage: Storage, schema: pa.Schema
) -> FileEntry:
    """Writes batches, each as a row group, and gives the manifest's entry of the file; the rest as ``write_table``."""
    metadata = {"kbsource.table": table, "kbsource.schema_version": str(SCHEMA_VERSION)}
    n_rows = 0
    with atomic_write(storage, join(output, file)) as raw:
        sink = HashingWriter(raw)
        written = schema.with_metadata(metadata)
        with pq.ParquetWriter(sink, written, compression="zstd", compression_level=_COMPRESSION_LEVEL) as writer:
            for batch in batches:
                writer.write_batch(batch.replace_schema_metadata(metadata), row_group_size=batch.num_rows)
                n_rows += batch.num_rows
    return FileEntry(file, n_rows, sink.n_bytes, sink.hexdigest())


def _groups(rows: Iterable[Sequence[Any]], schema: pa.Schema, n_rows: int) -> Iterator[pa.RecordBatch]:
    source = iter(rows)
    while (batch := rows_batch(islice(source, n_rows), schema)).num_rows:
        yield batch


def read_table(output: str, table: str, storage: Storage) -> Iterator[dict[str, Any]]:
    """Gives the rows of a table of an alignment in order, one row group in memory."""
    for path in storage.glob(join(output, table, f"{table}-*.parquet")):
        with storage.open_read(path) as file, pq.ParquetFile(file) as parquet:
            for group in range(parquet.metadata.num_row_groups):
                yield from parquet.read_row_group(group, use_threads=False).to_pylist()
