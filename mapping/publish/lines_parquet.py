"""Files of lines as Parquet, so that everything of a release is loaded in one format.

The type of each field is that of all its values in all splits. What has no type in common, and objects whose keys are
data, are kept as JSON text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import islice
from typing import Any

import orjson
import pyarrow as pa

from kbsource.files import Storage, join
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import write_batches

JSON_TEXT = {"description": "JSON text"}
"""Metadata of fields that are."""
_JSON = "json"
_SCALARS = {bool: "bool", int: "int", float: "float", str: "string"}
_TYPES = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "string": pa.string(), _JSON: pa.string()}
_DATA_KEY = re.compile(r"[PQL]?\d+")
_MOST_KEYS = 48
_BATCH_ROWS = 1000

Shape = str | list[Any] | dict[str, Any] | None
"""A name in ``_TYPES``, a list of one shape, fields by name, or None for what is always null."""


def records(paths: Iterable[str], storage: Storage) -> Iterator[dict[str, Any]]:
    """Gives the records of files of lines: JSON objects, or the rows of tables with a head as texts."""
    for path in paths:
        with storage.open_read(path) as file:
            if path.endswith(".jsonl"):
                yield from map(orjson.loads, file)
            else:
                text = io.TextIOWrapper(file, "utf-8", newline="")
                yield from csv.DictReader(text, delimiter="\t" if path.endswith(".tsv") else ",")


def write_as_parquet(
    files: Mapping[str, list[FileEntry]], name: str, *, folder: str, output: str, storage: Storage
) -> tuple[pa.Schema, dict[str, list[FileEntry]]]:
    """Writes the splits of a group of files, and gives their columns and files. Memory: some thousand records.

    Args:
        files: of each split.
        name: of the group.
        folder: of the release.
        output: folder that takes ``hub/NAME/SPLIT.parquet``.
        storage: of both.
    """
    paths = {split: [join(folder, entry.file) for entry in entries] for split, entries in files.items()}
    every = (record for split in paths for record in records(paths[split], storage))
    none: Shape = {}
    shape = reduce(_merged, map(_shape, every), none)
    fields = shape if isinstance(shape, dict) else {}
    schema = pa.schema([_field(key, inner) for key, inner in fields.items()])
    written = {}
    for split, own in paths.items():
        batches = _batches(records(own, storage), fields, schema)
        path = f"hub/{name}/{split}.parquet"
        written[split] = [write_batches(batches, name, schema, output=output, storage=storage, file=path)]
    return schema, written


def _batches(rows: Iterable[dict[str, Any]], fields: dict[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    source = (_fitted(record, fields) for record in rows)
    while batch := [*islice(source, _BATCH_ROWS)]:
        yield pa.RecordBatch.from_pylist(batch, schema)


def _shape(value: Any) -> Shape:
    if isinstance(value, list):
        return [reduce(_merged, map(_shape, value), None)]
    if isinstance(value, dict):
        return _checked({key: _shape(inner) for key, inner in value.items()})
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return _JSON
    return None if value is None else _SCALARS[type(value)]


def _checked(fields: dict[str, Any]) -> Shape:
    return _JSON if len(fields) > _MOST_KEYS or any(map(_DATA_KEY.fullmatch, fields)) else fields


def _merged(left: Shape, right: Shape) -> Shape:
    """
    >>> _merged({"a": "int", "b": None}, {"a": "float", "c": ["string"]})
    {'a': 'float', 'b': None, 'c': ['string']}
    >>> _merged(["int"], ["string"]), _merged("string", ["string"])
    (['json'], 'json')
    """
    if left == right or right is None:
        return left
    if left is None:
        return right
    if isinstance(left, list) and isinstance(right, list):
        return [_merged(left[0], right[0])]
    if isinstance(left, dict) and isinstance(right, dict):
        return _checked({key: _merged(left.get(key), right.get(key)) for key in dict.fromkeys((*left, *right))})
    return "float" if {"int", "float"} == {str(left), str(right)} else _JSON


def _field(name: str, shape: Shape) -> pa.Field:
    is_json = shape == _JSON or shape == {}
    return pa.field(name, _type(shape), metadata=JSON_TEXT if is_json else None)


def _type(shape: Shape) -> pa.DataType:
    if isinstance(shape, list):
        return pa.list_(_field("element", shape[0]))
    if isinstance(shape, dict) and shape:
        return pa.struct([_field(key, inner) for key, inner in shape.items()])
    return _TYPES[shape] if isinstance(shape, str) else pa.string()


def _fitted(value: Any, shape: Shape) -> Any:
    """Gives a value as a column of that shape takes it."""
    if value is None:
        return None
    if shape in (_JSON, {}):
        return orjson.dumps(value).decode()
    if isinstance(shape, list):
        return [_fitted(inner, shape[0]) for inner in value]
    if isinstance(shape, dict):
        return {key: _fitted(value.get(key), inner) for key, inner in shape.items()}
    return float(value) if shape == "float" else value
