"""Joins the rows of chunks with SQL. This is a step of a job that a single worker runs on its local disk.

If a step fails, it is run again from the chunks, which are not changed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kbsource.errors import SetupError
from kbsource.runtime.chunks import BatchRef, read_stored
from kbsource.runtime.database import connected, identifier, insert
from kbsource.runtime.machine import memory_bytes
from kbsource.temporary import TemporaryFolder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROWS_AT_ONCE = 1 << 18
"""Maximum number of rows in a range of a column that is sorted or grouped at once, see ``ranges_of``."""
_SPANS = 1 << 14
"""Number of spans of a column whose rows are counted to divide it into ranges."""
_DISK_SHARE = 4
"""Bytes needed on disk for each byte of rows, for the table and for the data spilled by grouping and sorting it."""
_PROCESS_MB = 400
"""Memory of a process that joins, in MB, in addition to the limit of its database."""


class StoredTable(NamedTuple):
    """A table as chunks; ``n_bytes`` is the size of their rows in memory."""

    schema: pa.Schema  #: columns to read
    chunks: Sequence[BatchRef]

    @property
    def n_bytes(self) -> int:
        """The bytes of all rows in memory."""
        return sum(chunk.n_bytes for chunk in self.chunks)


@contextmanager
def warehouse(tables: Mapping[str, StoredTable], *, memory_mb: int, threads: int = 1) -> Iterator[DuckDBPyConnection]:
    """Opens a database with the rows of chunks as tables, in a temporary folder, for the duration of the context.

    A query returns the same rows with any number of threads only if it determines their order completely, also inside
    aggregates such as ``list``. Read them with ``ordered_batches``. Memory: ``memory_mb``, and 400 MB for the process.

    Raises:
        SetupError: the disk or the memory of this machine is too small for the tables. This is checked before rows are
            copied.
    """
    with TemporaryFolder() as folder:
        n_bytes = sum(table.n_bytes for table in tables.values())
        _check_room(folder, n_bytes, memory_mb)
        with connected(memory_mb=memory_mb, threads=threads, scratch=folder) as db:
            import duckdb  # after ``connected``, as readers of releases do not need it

            try:
                for name, table in tables.items():
                    chunks = (read_stored(BatchRef(*chunk), table.schema.names) for chunk in table.chunks)
                    insert(db, name, (batch for batches in chunks for batch in batches), table.schema)
                yield db
            except duckdb.OutOfMemoryException as error:
                said = str(error).partition("\n")[0]
                raise SetupError(
                    f"{os.path.dirname(folder)}: joining {_mb(n_bytes):,} MB of rows needs more disk space, or more "
                    f"than {memory_mb:,} MB of memory ({said}). Set TMPDIR to a larger local disk on every worker, or "
                    "allow more memory with --memory."
                ) from error


def ranges_of(db: DuckDBPyConnection, tables: Iterable[str], column: str) -> list[tuple[int, int]]:
    """Divides the values of an integer column in some tables into ranges, and returns the first and last value of each,
    ascending.

    The rows of a range are at most ``ROWS_AT_ONCE`` in all tables together, unless all of them have the same value.
    Wide rows should be sorted or grouped one range at a time: besides its tables, DuckDB then holds only the rows of a
    range, and less of the memory that was freed remains with its allocator, which the memory limit does not count.
    """
    names = [identifier(name) for name in tables]
    values = " union all ".join(f"select {identifier(column)} as place from {name}" for name in names)
    ranges: list[tuple[int, int]] = []
    room = 0
    for first, last, n_rows in _counted_spans(db, values):
        if ranges and n_rows <= room:
            ranges[-1] = ranges[-1][0], last
        else:
            ranges.append((first, last))
            room = ROWS_AT_ONCE
        room -= n_rows
    return ranges


def _counted_spans(
    db: DuckDBPyConnection, values: str, span: tuple[int, int] | None = None
) -> Iterator[tuple[int, int, int]]:
    """Yields the first and last value of at most ``_SPANS`` spans, ascending, and the number of their rows; a span with
    more than ``ROWS_AT_ONCE`` rows and several values is divided again. Memory does not grow with the values."""
    within = "" if span is None else f" where place between {span[0]} and {span[1]}"
    first, last = span or db.execute(f"select min(place), max(place) from ({values})").fetchall()[0]
    if first is None:
        return
    width = (last - first) // _SPANS + 1
    counted = db.execute(
        f"""select min(place), max(place), count(*) from ({values}){within}
        group by (place - {first}) // {width} order by 1"""
    ).fetchall()
    for least, most, n_rows in counted:
        if n_rows > ROWS_AT_ONCE and least < most:
            yield from _counted_spans(db, values, (least, most))
        else:
            yield int(least), int(most), int(n_rows)


def _check_room(folder: str, n_bytes: int, memory_mb: int) -> None:
    needed, free = _DISK_SHARE * n_bytes, shutil.disk_usage(folder).free
    if needed > free:
        raise SetupError(
            f"{os.path.dirname(folder)}: joining {_mb(n_bytes):,} MB of rows needs {_mb(needed):,} MB of disk space, "
            f"and only {_mb(free):,} MB are free. Set TMPDIR to a larger local disk on every worker."
        )
    wanted, installed = min(memory_mb, 2 * _mb(n_bytes)) + _PROCESS_MB, _mb(memory_bytes())
    if wanted > installed:
        raise SetupError(
            f"joining {_mb(n_bytes):,} MB of rows needs {wanted:,} MB of memory, and this worker's machine has only "
            f"{installed:,} MB. Give the workers more memory, or allow less with --memory."
        )


def _mb(n_bytes: int) -> int:
    return -(-n_bytes // 1_000_000)
