"""Reading the tables of a release of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kbsource.files import LocalStorage, ReadableStorage, Storage, check_regular, join

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def parquet_file(source: Any, **options: Any) -> pq.ParquetFile:
    """Opens a Parquet file whose pages are compared with their checksums, where they have some, whenever they are read.

    Without them every other changed bit is read as other text, and nobody hears of it: zstd's frames have none. With
    them one of 200 is, in the headers of pages and the footer; the sha256 of ``kbsource verify`` sees those too.
    """
    import pyarrow.parquet as pq  # takes a while, and is not needed where titles are only looked up

    return pq.ParquetFile(source, page_checksum_verification=True, **options)


def open_table(path: str, storage: Storage) -> pq.ParquetFile:
    """Opens a Parquet file for reading row groups here and there: mapped where it is local, else by ranges of bytes.

    ``close(force=True)`` closes it.
    """
    if isinstance(storage, LocalStorage) and storage.maps_tables:
        check_regular(path)
        return parquet_file(path, memory_map=True)
    return parquet_file(storage.open_ranges(path), pre_buffer=True)


@contextmanager
def opened_table(path: str, storage: Storage) -> Iterator[pq.ParquetFile]:
    """Opens a file as ``open_table`` does, and closes it."""
    file = open_table(path, storage)
    try:
        yield file
    finally:
        file.close(force=True)


def row_groups(path: str, storage: ReadableStorage, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Gives the row groups of a file in order, one in memory; ``columns`` or all of them."""
    with storage.open_read(path) as file, parquet_file(file) as parquet:
        for group in range(parquet.metadata.num_row_groups):
            yield parquet.read_row_group(group, columns=columns and list(columns), use_threads=False)


def read_table(output: str, table: str, storage: Storage) -> Iterator[dict[str, Any]]:
    """Gives the rows of a table in order, one row group in memory."""
    for path in storage.glob(join(output, table, f"{table}-*.parquet")):
        for group in row_groups(path, storage):
            yield from group.to_pylist()


def rows_with(output: str, table: str, column: str, value: str | int, storage: Storage) -> Iterator[dict[str, Any]]:
    """Gives the rows of a table that have a value in a column of text or integers, in order; one row group in memory.

    Row groups whose statistics say that they have no such value are not read.
    """
    import pyarrow.compute as pc  # takes a while, and few readers need it

    for path in storage.glob(join(output, table, f"{table}-*.parquet")):
        with opened_table(path, storage) as file:
            number = [leaf.path for leaf in file.schema].index(column)
            for group in range(file.metadata.num_row_groups):
                known = file.metadata.row_group(group).column(number).statistics
                if known is not None and known.has_min_max and not known.min <= value <= known.max:
                    continue
                rows = file.read_row_group(group, use_threads=False)
                yield from rows.filter(pc.equal(rows[column], value)).to_pylist()
