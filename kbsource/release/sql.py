"""The tables of releases, asked by SQL: DuckDB over their Parquet files, in memory that is bounded.

>>> with connected(memory_mb=500) as db:  # doctest: +SKIP
...     add_release(db, PAGES_RELEASE, "releases/enwiki-20261001")
...     db.sql("select title, len(anchors) from pages where page_id = 12").fetchall()

A release has a view for every table, with the columns of its schema. Several are told apart by schemas:
``add_release(db, kind, folder, schema="old")`` makes ``old.pages``. The tables of releases inside a release (the
alignments of a folder of alignments) are one view each, over all of them. ``places=True`` adds four columns: ``_part``
(folder of the inner release, empty for the release's own), ``_file`` (path in the release), ``_file_number`` (in the
table) and ``_row`` (number of the row in its file). Rows have no order that nobody asked for: order by a key, or by
``_file_number, _row``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from kbsource.files import Folder, is_local, join
from kbsource.release.kind import Kind
from kbsource.runtime.database import MEMORY_MB as MEMORY_MB
from kbsource.runtime.database import connected as connected

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PART = "regexp_extract(_file, '^(.*)/[^/]+/[^/]+$', 1)"


def add_release(
    db: DuckDBPyConnection, kind: Kind[Any], folder: str, *, schema: str = "main", places: bool = False
) -> None:
    """Adds a view for every table that a release and the releases inside it have.

    Args:
        schema: that the views stand in; made where it is missing.

    Raises:
        SetupError: there is no such release.
    """
    tables: dict[str, list[str]] = {}
    whole = kind.read(folder)
    releases = {"": whole}
    if kind.parts is not None:
        releases |= {part.folder: kind.parts.read(join(folder, part.folder)) for part in whole.parts}
    for part, manifest in releases.items():
        for table, entries in manifest.tables.items():
            tables.setdefault(table, []).extend(join(part, entry.file) for entry in entries)
    add_tables(db, tables, folder, schema=schema, places=places)


def add_tables(
    db: DuckDBPyConnection,
    tables: Mapping[str, Iterable[str]],
    folder: str,
    *,
    schema: str = "main",
    places: bool = False,
    schemas: Mapping[str, pa.Schema] | None = None,
) -> None:
    """Adds a view for each of some tables; the rest as ``add_release``.

    Args:
        tables: paths in the folder of the files of each table.
        schemas: columns of tables, for those that have no file: their views are empty.
    """
    prefix = folder.rstrip("/") + "/"
    root = readable_path(db, prefix)
    further = ""
    if places:
        named = f"filename[{len(root) + 1}:] as _file, {_PART} as _part"
        further = f", {named}, file_index::integer as _file_number, file_row_number as _row"
    db.execute(f'create schema if not exists "{schema}"')
    for table, names in tables.items():
        view, files = f'"{schema}"."{table}"', [quoted(root + name) for name in names]
        if files:
            # Alignments that were verified have columns that others have not.
            source = f"read_parquet([{', '.join(files)}], union_by_name = {len(files) > 1}, hive_partitioning = false)"
            db.execute(f"create or replace view {view} as select *{further} from {source}")
        elif schemas is not None and table in schemas:
            db.register("_empty", schemas[table].empty_table())
            nowhere = "'' as _file, '' as _part, 0 as _file_number, 0 as _row"
            db.execute(f"create or replace table {view} as select *, {nowhere} from _empty")
            db.unregister("_empty")


def readable_path(db: DuckDBPyConnection, path: str) -> str:
    """A file or folder as DuckDB is to be asked for it: a local one by its path, any other through its store."""
    if is_local(path):
        return path
    files = _stored_files()()
    if files.protocol not in db.list_filesystems():
        db.register_filesystem(files)
    return f"{files.protocol}://{path}"


def _stored_files() -> type[Any]:
    """The files of stores as a file system of fsspec, which DuckDB takes."""
    import fsspec  # which few need

    class StoredFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]  # it has no types
        """Files of stores, to be read here and there."""

        cachable = False

        def __init__(self) -> None:
            super().__init__()
            self.protocol = "kbsource"

        def _path(self, path: str) -> str:
            return path.removeprefix(f"{self.protocol}://")

        def open(self, path: str, mode: str = "rb", **_: Any) -> BinaryIO:
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


def quoted(text: str) -> str:
    """Text as SQL has it.

    >>> quoted("Côte d'Ivoire")
    "'Côte d''Ivoire'"
    """
    return "'" + text.replace("'", "''") + "'"


def lock(db: DuckDBPyConnection, folders: Iterable[str]) -> None:
    """Lets a connection open no file but those below these folders from here on, and change no setting.

    Queries of strangers must go through ``kbsource.release.queries`` besides, which lets nothing write.
    """
    paths = (quoted(readable_path(db, f"{path.rstrip('/')}/")) for path in folders)
    db.execute(f"set allowed_directories = [{', '.join(paths)}]")
    db.execute("set enable_external_access = false")
    db.execute("set lock_configuration = true")
