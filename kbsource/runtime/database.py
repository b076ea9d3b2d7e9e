"""Tables that are asked by SQL: DuckDB, in memory that is bounded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kbsource.files import join
from kbsource.temporary import TemporaryFolder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_MB = 1000
"""What a connection takes at most unless told otherwise, in MB (10^6 bytes); what needs more goes to the disk."""


@contextmanager
def connected(
    *, memory_mb: int = MEMORY_MB, threads: int = 2, scratch: str | None = None, spill_mb: int | None = None
) -> Iterator[DuckDBPyConnection]:
    """A database without tables, for as long as the context lasts; nothing is downloaded for it.

    Args:
        scratch: local folder for the database and for what does not fit into memory, which is made where there is none;
            None for a temporary one.
        spill_mb: the most that goes to the disk; None for what is free there.
    """
    import duckdb  # readers of releases do without

    if scratch is not None:
        os.makedirs(scratch, exist_ok=True)
    with TemporaryFolder(scratch) as folder:
        config: dict[str, Any] = {
            "memory_limit": f"{memory_mb}MB",
            "threads": threads,
            "temp_directory": join(folder, "spilled"),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "explain_output": "all",  # kbsource.release.queries reads every version of a plan
        }
        if spill_mb is not None:
            config["max_temp_directory_size"] = f"{spill_mb}MB"
        with duckdb.connect(join(folder, "tables.duckdb") if scratch else ":memory:", config=config) as db:
            db.execute("set parquet_metadata_cache = true")  # else every query reads the footers again
            yield db


def insert(db: DuckDBPyConnection, table: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Puts rows into a table, which is made where there is none; memory holds a batch."""
    db.register("_given", schema.empty_table())
    db.execute(f"create table if not exists {table} as from _given")
    for batch in batches:  # not as a stream of Arrow: DuckDB would make its own errors of what they raise
        db.register("_given", pa.Table.from_batches([batch]))
        db.execute(f"insert into {table} from _given")
    db.unregister("_given")
