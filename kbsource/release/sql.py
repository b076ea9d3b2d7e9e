"""Queries the tables of releases with SQL: DuckDB over their Parquet files, in bounded memory.

>>> folder = "releases/enwiki-20261001"
>>> with connected(reads=[folder], memory_mb=500) as db:  # doctest: +SKIP
...     add_release(db, PAGES_RELEASE, folder)
...     db.sql("select title, len(anchors) from pages where page_id = 12").fetchall()

There is a view for every table of a release. To open several releases, use a schema for each: ``add_release(db, kind,
folder, schema="old")`` creates ``old.pages``. If a release contains others, such as the alignments in a folder of
alignments, their tables of the same name are combined into one view. ``places=True`` adds four columns: ``_part``
(folder of the inner release, empty for the release itself), ``_file`` (path in the release), ``_file_number`` (number
of the file in the table) and ``_row`` (row number in the file). The order of rows is not guaranteed, so sort by a key,
or by ``_file_number, _row``.

A release is untrusted data. A table that its kind does not declare is refused, and so is a file with other columns than
declared, before DuckDB reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kbsource.errors import DataError, shown_value
from kbsource.files import join
from kbsource.release.counts import Path, add_settings, with_numbers
from kbsource.release.kind import Kind, ListingKind
from kbsource.release.manifest import FileEntry
from kbsource.release.reader import checked_schemas
from kbsource.runtime.database import MEMORY_MB as MEMORY_MB
from kbsource.runtime.database import connected as connected
from kbsource.runtime.database import identifier as identifier
from kbsource.runtime.database import quoted as quoted
from kbsource.runtime.database import readable_path

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PART = "regexp_extract(_file, '^(.*)/[^/]+/[^/]+$', 1)"


def add_release(
    db: DuckDBPyConnection, kind: Kind[Any], folder: str, *, schema: str = "main", places: bool = False
) -> None:
    """Adds a view for every table of a release and of the releases inside it.

    Args:
        db: opened with ``folder`` among its ``reads``.
        schema: schema of the views; created if missing.

    Raises:
        SetupError: the folder contains no release.
        DataError: the release does not match its kind.
    """
    add_tables(db, kind.declared, tables_of(kind, folder), folder, schema=schema, places=places)


def tables_of(kind: Kind[Any], folder: str) -> dict[str, list[str]]:
    """Returns the files of each table of a release and of the releases inside it, as paths in the folder.

    Raises:
        SetupError: as for ``add_release``.
    """
    tables: dict[str, list[str]] = {}
    whole = kind.read(folder)
    releases = {"": whole}
    if kind.parts is not None:
        releases |= {part.folder: kind.parts.read(join(folder, part.folder)) for part in whole.parts}
    for part, manifest in releases.items():
        for table, entries in manifest.tables.items():
            tables.setdefault(table, []).extend(join(part, entry.file) for entry in entries)
    return tables


def add_tables(
    db: DuckDBPyConnection,
    declared: Mapping[str, Sequence[pa.Schema]],
    tables: Mapping[str, Iterable[str]],
    folder: str,
    *,
    schema: str = "main",
    places: bool = False,
) -> None:
    """Adds a view for each table. The arguments not listed here are those of ``add_release``.

    Args:
        declared: all schemas that each table may have, as in ``Kind.declared``.
        tables: the files of each table, as paths in the folder. A table without files becomes an empty view.

    Raises:
        DataError: a table is not declared, or a file has other columns.
    """
    root = readable_path(f"{folder.rstrip('/')}/")
    further = ""
    if places:
        named = f"filename[{len(root) + 1}:] as _file, {_PART} as _part"
        further = f", {named}, file_index::integer as _file_number, file_row_number as _row"
    db.execute(f"create schema if not exists {identifier(schema)}")
    for table, files in tables.items():
        if not (schemas := declared.get(table)):
            raise DataError(
                f"{folder}: a release of this kind has no table {shown_value(table)}, but its manifest "
                f"lists it; download the release again."
            )
        view, names = f"{identifier(schema)}.{identifier(table)}", [*files]
        found = checked_schemas([join(folder, name) for name in names], schemas)
        if names:
            listed = ", ".join(quoted(root + name) for name in names)
            # Verified alignments have additional columns, so the files may differ. DuckDB then reads all footers first.
            source = f"read_parquet([{listed}], union_by_name = {len(found) > 1}, hive_partitioning = false)"
            db.execute(f"create or replace view {view} as select *{further} from {source}")
        else:
            db.register("_empty", schemas[0].empty_table())
            nowhere = "'' as _file, '' as _part, 0 as _file_number, 0 as _row"
            db.execute(f"create or replace table {view} as select *, {nowhere} from _empty")
            db.unregister("_empty")


def with_counts(
    kind: ListingKind, entries: Iterable[FileEntry], facts: Mapping[str, Any], folder: str
) -> dict[str, Any]:
    """Counts the numbers of a manifest in the tables, and returns its facts with these numbers.

    Args:
        entries: entries of the files in the folder. A table without files counts as empty.
        facts: the other fields of the manifest.
    """
    manifest = kind.listing(list(entries), facts)
    files = {table: [entry.file for entry in manifest.tables.get(table, ())] for table in kind.tables}
    with connected(reads=[folder], threads=1) as db:
        add_tables(db, kind.declared, files, folder)
        add_settings(db, {"": {} if kind.settings is None else kind.settings(manifest)})
        found: dict[Path, int] = {}
        for count in kind.counts:
            if count.path is not None:
                found |= count.counted(db, kind.tables, schema="main", part="")
    return with_numbers(facts, kind.counts, found)
