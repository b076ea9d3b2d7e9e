"""Published releases as other tools read them, row by row in one form, beside what kbsource reads."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from kbsource.release.reader import row_groups
from mapping.kinds import KINDS
from mapping.publish.configs import configs_of, records
from mapping.publish.subject import Subject, read_parts

Rows = list[dict[str, Any]]


def plain(value: Any) -> Any:
    """A value in one form, whatever tool gave it."""
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NaTType":
        return None
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value


def card_metadata(folder: Path) -> dict[str, Any]:
    """The metadata of a dataset card."""
    head = (folder / "README.md").read_text("utf-8").split("---\n")[1]
    # In Python it would take a tenth of a second.
    values: dict[str, Any] = yaml.load(head, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return values


def tables(folder: Path) -> Iterator[Path]:
    """The folder of every table."""
    yield from sorted({path.parent for path in folder.rglob("*.parquet") if path.relative_to(folder).parts[0] != "hub"})


def own_rows(files: Iterable[Path]) -> Rows:
    """The rows of files as kbsource reads them."""
    groups = (group for path in sorted(files) for group in row_groups(str(path)))
    return [plain(row) for group in groups for row in group.to_pylist()]


def rows_of_duckdb(table: Path) -> Rows:
    with duckdb.connect() as connection:
        connection.execute("set threads = 1; set TimeZone = 'UTC'")
        found: pa.Table = connection.sql(f"select * from '{table}/*.parquet'").to_arrow_table()
    return [plain(row) for row in found.to_pylist()]


def rows_of_polars(table: Path) -> Rows:
    import polars as pl

    return [plain(row) for row in pl.scan_parquet(table / "*.parquet").collect().to_dicts()]


def rows_of_pandas(table: Path) -> Rows:
    import pandas as pd

    frame = pd.read_parquet(table, dtype_backend="pyarrow")
    return [plain(row) for row in pa.Table.from_pandas(frame, preserve_index=False).to_pylist()]


def rows_of_datasets(folder: Path, config: str, cache: Path) -> dict[str, Rows]:
    """The rows of every split; streamed where there is none, which ``datasets`` loads in no other way."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # read when datasets is imported
    import datasets

    datasets.disable_progress_bars()
    (config_of,) = (
        configuration for configuration in card_metadata(folder)["configs"] if configuration["config_name"] == config
    )
    paths = [
        data_file["path"] if isinstance(data_file["path"], str) else data_file["path"][0]
        for data_file in config_of["data_files"]
    ]
    has_rows = all(any(pq.read_metadata(file).num_rows for file in folder.glob(path)) for path in paths)
    loaded = datasets.load_dataset(str(folder), config, cache_dir=str(cache), streaming=not has_rows)
    return {split: [plain(row) for row in rows] for split, rows in loaded.items()}


def rows_of_croissant(folder: Path) -> dict[str, Rows]:
    """The records of every record set of a valid ``croissant.json``."""
    import mlcroissant

    dataset = mlcroissant.Dataset(str(folder / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    return {
        record_set.id: [plain(row) for row in dataset.records(record_set.id)]
        for record_set in dataset.metadata.record_sets
    }


def as_croissant_says(rows: Rows, record_set: str, described: Mapping[str, Any]) -> Rows:
    """Rows as a record set is described: without what is nested deeper."""

    def named(value: Any, field: Mapping[str, Any]) -> Any:
        parts = {sub_field["@id"].rpartition("/")[2]: sub_field["@id"] for sub_field in field.get("subField", ())}
        if value is None and parts:  # as mlcroissant gives it
            nothing = dict.fromkeys(parts.values())
            return [nothing] if field.get("isArray") else nothing
        if isinstance(value, list) and parts:
            return [named(inner, field) for inner in value]
        return {parts[name]: inner for name, inner in value.items() if name in parts} if parts else value

    return [
        {field["@id"]: named(row[field["@id"].removeprefix(f"{record_set}/")], field) for field in described["field"]}
        for row in rows
    ]


def check_published(folder: Path, cache: Path) -> None:
    """Checks that every table and configuration is read as it is, by every tool."""
    found = rows_of_croissant(folder)
    croissant = json.loads((folder / "croissant.json").read_text("utf-8"))
    files = {resource["@id"]: resource.get("includes", [resource["@id"]]) for resource in croissant["distribution"]}
    for described in croissant["recordSet"]:
        source = described["field"][0]["source"]
        paths = files[(source.get("fileObject") or source["fileSet"])["@id"]]
        rows = own_rows(folder / path for path in paths)
        assert found[described["@id"]] == as_croissant_says(rows, described["@id"], described)
    for table in tables(folder):
        rows = own_rows(table.iterdir())
        assert rows_of_duckdb(table) == rows_of_polars(table) == rows_of_pandas(table) == rows, table
    subject = Subject(parts=read_parts(str(folder), KINDS))
    lines = {config.name: config for config in configs_of(subject, str(folder)) if config.table is None}
    for config in card_metadata(folder).get("configs", ()):
        name = config["config_name"]
        loaded = rows_of_datasets(folder, name, cache)
        assert list(loaded) == [files["split"] for files in config["data_files"]]
        for part in config["data_files"]:
            named = [part["path"]] if isinstance(part["path"], str) else part["path"]
            paths = [path for pattern in named for path in sorted(folder.glob(pattern))]
            rows = own_rows(paths)
            assert loaded[part["split"]] == rows, name
            if name in lines:
                files_of_lines = [str(folder / entry.file) for entry in lines[name].splits[part["split"]]]
                schema = pq.read_schema(paths[0])
                found_rows = [{field.name: without_json(row[field.name], field) for field in schema} for row in rows]
                assert without_nulls(found_rows) == without_nulls([*records(files_of_lines)]), name


def without_json(value: Any, field: pa.Field) -> Any:
    """What JSON text in a value says."""
    if value is None:
        return None
    if (field.metadata or {}).get(b"description") == b"JSON text":
        return json.loads(value)
    if pa.types.is_list(field.type):
        return [without_json(inner, field.type.value_field) for inner in value]
    return (
        {sub_field.name: without_json(value[sub_field.name], sub_field) for sub_field in field.type}
        if pa.types.is_struct(field.type)
        else value
    )


def without_nulls(value: Any) -> Any:
    """A value without nulls, which ``datasets`` has where a record of a file lacks a field."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value
