"""Opens DuckDB with limited memory. The connection can access only the files for which it was opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from kbsource.columns import rebatched
from kbsource.errors import DataError
from kbsource.files import Folder, is_local, join
from kbsource.temporary import TemporaryFolder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_BATCH_ROWS = 1 << 16
MEMORY_MB = 1000
"""Default memory limit of a connection, in MB (10^6 bytes). Data beyond it is spilled to disk."""
ORDER_MB = 200
"""Memory limit for sorting and joining the rows of an index, in MB; the process takes up to 320 MB more."""
_PROTOCOL = "kbsource"
"""Scheme of the URLs by which DuckDB opens files of a store: ``kbsource://s3://bucket/release/…``."""


@contextmanager
def connected(
    *,
    reads: Iterable[str] = (),
    writes: Iterable[str] = (),
    memory_mb: int = MEMORY_MB,
    threads: int = 2,
    scratch: str | None = None,
    spill_mb: int | None = None,
) -> Iterator[DuckDBPyConnection]:
    """Opens a database without tables for the duration of the context.

    The connection is permanently locked down before it is used. It has no access to the network, to extensions, to
    settings, or to files outside ``reads``, ``writes`` and its temporary folder. All folders must be named here,
    because DuckDB cannot add one later. As DuckDB does not distinguish reading from writing, a statement could
    overwrite a file in ``reads``. So names from outside must always be passed through ``identifier`` and ``quoted``.

    Args:
        reads: folders of the files to read, local or in a bucket.
        writes: local folders for writing files.
        scratch: local folder for the database and for data that does not fit into memory, created if missing; None for
            a temporary folder.
        spill_mb: limit on the data spilled to disk; None to allow all free space.
    """
    import duckdb  # a slow import, which readers of releases do not need

    if scratch is not None:
        os.makedirs(scratch, exist_ok=True)
    folders = [*reads, *writes]
    with TemporaryFolder(scratch) as folder:
        config: dict[str, Any] = {
            "memory_limit": f"{memory_mb}MB",
            "threads": threads,
            "temp_directory": join(folder, "spilled"),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,  # a table name never refers to a Python variable
            "explain_output": "all",  # kbsource.release.queries reads every version of a plan
        }
        if scratch is not None:
            # Its tables are read a few times. Compressing them takes longer than reading more bytes.
            config["force_compression"] = "uncompressed"
        if spill_mb is not None:
            config["max_temp_directory_size"] = f"{spill_mb}MB"
        with duckdb.connect(join(folder, "tables.duckdb") if scratch else ":memory:", config=config) as db:
            db.execute("set parquet_metadata_cache = true")  # otherwise every query reads the footers again
            if not all(map(is_local, folders)):
                db.register_filesystem(_stored_files()())
            allowed = ", ".join(quoted(f"{readable_path(path).rstrip('/')}/") for path in folders)
            db.execute(f"set allowed_directories = [{allowed}]")
            db.execute("set enable_external_access = false")
            db.execute("set lock_configuration = true")
            yield db


def readable_path(path: str) -> str:
    """Returns the name under which DuckDB opens a file or folder: its path, or a ``kbsource://`` URL for a bucket."""
    return path if is_local(path) else f"{_PROTOCOL}://{path}"


def identifier(name: str) -> str:
    """Returns a name (of a table, a column, a schema) as an SQL identifier. Use it for every name that is not a
    literal.

    >>> identifier('the "best" one')
    '"the ""best"" one"'

    Raises:
        DataError: the name contains a NUL, which would end the statement.
    """
    return '"' + _without_nul(name).replace('"', '""') + '"'


def quoted(text: str) -> str:
    """Returns a text as an SQL string.

    >>> quoted("Côte d'Ivoire")
    "'Côte d''Ivoire'"

    Raises:
        DataError: the text contains a NUL, which would end the statement.
    """
    return "'" + _without_nul(text).replace("'", "''") + "'"


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise DataError(
            f"{text[:80]!r} contains a null character, which is not allowed in names; download the release again."
        )
    return text


@cache
def _stored_files() -> type[Any]:
    """Returns a file system class for fsspec, through which DuckDB reads the files of stores."""
    import fsspec  # only needed for stores

    class StoredFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]  # it has no types
        """Files of stores, opened for reading."""

        cachable = False

        def __init__(self) -> None:
            super().__init__()
            self.protocol = _PROTOCOL

        def _path(self, path: str) -> str:
            return path.removeprefix(f"{self.protocol}://")

        def open(self, path: str, mode: str = "rb", **_: Any) -> BinaryIO:
            if mode != "rb":
                raise PermissionError(f"{self._path(path)}: files in a bucket can only be read, not written")
            return Folder.of(self._path(path)).open_ranges()

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            return {"name": path, "size": Folder.of(self._path(path)).size(), "type": "file"}

        def exists(self, path: str, **_: Any) -> bool:
            return Folder.of(self._path(path)).exists()

        def glob(self, path: str, **_: Any) -> list[str]:
            return [path]

        def modified(self, path: str) -> Any:
            return datetime.fromtimestamp(0, UTC)

    return StoredFiles


def insert(db: DuckDBPyConnection, table: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Inserts rows into a table, which is created if missing. Memory: one batch."""
    name = identifier(table)
    db.register("_given", schema.empty_table())
    db.execute(f"create table if not exists {name} as from _given")
    for batch in batches:  # not as an Arrow stream, because DuckDB would replace the errors of the batches with its own
        db.register("_given", pa.Table.from_batches([batch]))
        db.execute(f"insert into {name} from _given")
    db.unregister("_given")


@contextmanager
def streamed(db: DuckDBPyConnection, **tables: tuple[Iterable[pa.RecordBatch], pa.Schema]) -> Iterator[None]:
    """Provides batches, each with their schema, as tables that can be read once, for the duration of the context.

    Nothing is copied, so a query that only sorts or joins them needs no more disk than it spills. An exception of the
    batches ends the query, and is raised unchanged at the end of the context.
    """
    failures: list[BaseException] = []

    def watched(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException as error:
            failures.append(error)
            raise

    for name, (batches, schema) in tables.items():
        db.register(name, pa.RecordBatchReader.from_batches(schema, watched(batches)))
    try:
        yield
    except Exception:
        if failures:
            raise failures[0] from None  # DuckDB passes on only its message
        raise
    for name in tables:
        db.unregister(name)


def ordered_batches(
    db: DuckDBPyConnection, query: str, schema: pa.Schema, *, n_rows: int = _BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a query with a total order, in batches that depend only on the rows.

    Args:
        n_rows: rows per batch; the last one may be shorter.
    """
    reader = db.sql(query).to_arrow_reader(n_rows)
    return rebatched((batch.cast(schema) for batch in reader), n_rows)
