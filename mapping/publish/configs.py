"""Determines which files of a release are loaded together: those of a table, or a group of line files, which are
converted to Parquet.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import orjson
import pyarrow as pa

from kbsource.errors import DataError
from kbsource.files import Folder, join
from kbsource.release.manifest import DAMAGED_FILE, FileEntry
from kbsource.release.reader import opened_table
from kbsource.release.writer import write_batches
from mapping.publish.subject import Part, Subject

JSON_TEXT = {"description": "JSON text"}
"""Metadata of fields with JSON text."""
_JSON = "json"
_SCALARS = {bool: "bool", int: "int", float: "float", str: "string"}
_TYPES = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "string": pa.string(), _JSON: pa.string()}
_DATA_KEY = re.compile(r"[PQL]?\d+")
_MOST_KEYS = 48
_MOST_LEVELS = 16
_MOST_WRITTEN = 250
"""Maximum nesting levels that are written as JSON text: ``orjson`` writes at most 254."""
_BATCH_ROWS = 1000

Shape = str | list[Any] | dict[str, Any] | None
"""A name in ``_TYPES``, a list of one shape, fields by name, or None for a value that is always null."""


def records(paths: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Reads the records of line files: JSON objects, or the rows of tables with a header, with texts as values."""
    for path in paths:
        with Folder.of(path).open() as file:
            if path.endswith(".jsonl"):
                yield from (_record(line, f"{path}, line {number}") for number, line in enumerate(file, start=1))
            else:
                text = io.TextIOWrapper(file, "utf-8", newline="")
                yield from csv.DictReader(text, delimiter="\t" if path.endswith(".tsv") else ",")


def _record(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DataError(f"{where}: not JSON ({error}); {DAMAGED_FILE}") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: not a JSON object; {DAMAGED_FILE}")
    if line.count(b"[") + line.count(b"{") > _MOST_WRITTEN:  # a line with fewer brackets cannot be nested that deeply
        try:
            orjson.dumps(record)
        except orjson.JSONEncodeError as error:
            raise DataError(f"{where}: nested too deeply; {DAMAGED_FILE}") from error
    return record


def write_as_parquet(
    files: Mapping[str, list[FileEntry]], name: str, *, folder: str, output: str
) -> tuple[pa.Schema, dict[str, list[FileEntry]]]:
    """Writes the splits of a group of files to ``hub/NAME/SPLIT.parquet`` and returns their columns and files.

    Memory: a few thousand records.
    """
    paths = {split: [join(folder, entry.file) for entry in entries] for split, entries in files.items()}
    every = (record for split in paths for record in records(paths[split]))
    none: Shape = {}
    shape = reduce(_merged, map(_shape, every), none)
    fields = shape if isinstance(shape, dict) else {}
    schema = pa.schema([_field(key, inner) for key, inner in fields.items()])
    written = {}
    for split, own in paths.items():
        batches = _batches(records(own), fields, schema)
        path = f"hub/{name}/{split}.parquet"
        written[split] = [write_batches(batches, name, schema, output=output, file=path)]
    return schema, written


def _batches(rows: Iterable[dict[str, Any]], fields: dict[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    source = (_fitted(record, fields) for record in rows)
    while batch := [*islice(source, _BATCH_ROWS)]:
        yield pa.RecordBatch.from_pylist(batch, schema)


def _shape(value: Any, n_levels: int = _MOST_LEVELS) -> Shape:
    """Returns the shape of a value. Values nested by more than ``n_levels`` become JSON text."""
    if not n_levels and isinstance(value, (list, dict)):
        return _JSON
    if isinstance(value, list):
        return [reduce(_merged, (_shape(inner, n_levels - 1) for inner in value), None)]
    if isinstance(value, dict):
        return _checked({key: _shape(inner, n_levels - 1) for key, inner in value.items()})
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return _JSON
    return None if value is None else _SCALARS[type(value)]


def _checked(fields: dict[str, Any]) -> Shape:
    return _JSON if len(fields) > _MOST_KEYS or any(map(_DATA_KEY.fullmatch, fields)) else fields


def _merged(left: Shape, right: Shape) -> Shape:
    """Returns the shape that fits values of two shapes.

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
    """Returns a value converted to a shape."""
    if value is None:
        return None
    if shape in (_JSON, {}):
        return orjson.dumps(value).decode()
    if isinstance(shape, list):
        return [_fitted(inner, shape[0]) for inner in value]
    if isinstance(shape, dict):
        return {key: _fitted(value.get(key), inner) for key, inner in shape.items()}
    return float(value) if shape == "float" else value


_ODD = re.compile(r"[^\w.+,() -]")
UNSPLIT = "train"
"""Split name for data without splits, because tools expect a split with this name."""
_SPLITS = {"train": "train", "dev": "validation", "validation": "validation", "test": "test"}
_SPLIT = re.compile(r"(?:^|(?<=[-_/]))(train|dev|validation|test)(_without_\w+?)?(?:$|(?=[-_/]))")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_LINES = (".jsonl", ".csv", ".tsv")
_HEADS = frozenset({b"id\ttext\ttitle", b"query-id\tcorpus-id\tscore"})
"""Header lines of tables with tabs. The tables of KILT and ColBERT and the title maps have no header."""


@dataclass(frozen=True, slots=True)
class Config:
    """A set of files that are loaded together."""

    name: str  #: name by which users load the configuration
    table: str | None  #: name of the table; None for line files
    schema: pa.Schema | None  #: schema as stored; None for line files
    splits: dict[str, list[FileEntry]] = field(default_factory=dict)  #: files in order, by their path in the release

    def n_rows(self, split: str) -> int:
        """Returns the number of rows or lines of a split."""
        return sum(entry.rows or 0 for entry in self.splits[split])

    @property
    def total(self) -> int:
        """Returns the number of rows or lines of all splits."""
        return sum(map(self.n_rows, self.splits))

    def paths(self, split: str) -> str | list[str]:
        """Returns the paths of a split's files: a path, a pattern for several shards of a table, or a list."""
        files = [entry.file for entry in self.splits[split]]
        folder = {str(PurePosixPath(file).parent) for file in files}
        if len(files) == 1:
            return files[0]
        return f"{folder.pop()}/*.parquet" if self.table is not None and len(folder) == 1 else files


def configs_of(subject: Subject, path: str) -> list[Config]:
    """Returns everything that can be loaded. The configuration that is loaded by default comes first.

    Line files without lines, and tables with tabs but without a header, are left out, because nothing describes their
    content.
    """
    found: dict[str, Config] = {}
    for part in subject.parts:
        for config, split, entries in (*_tables(part, path), *_lines(part, path)):
            # If only one split was verified with a model, it has columns that the other splits lack.
            name = config.name if found.get(config.name, config).schema == config.schema else f"{config.name}-{split}"
            own = found.setdefault(name, replace(config, name=name))
            own.splits.setdefault(split, []).extend(entries)
    main = subject.card.main
    return sorted(
        found.values(),
        key=lambda config: (not (main and f"-{config.name}".endswith(f"-{main}")), config.total == 0),
    )


def _prefixed(part: Part, name: str) -> str:
    """Returns a name that is unique if several benchmarks, or several forms of one, are published together. Characters
    that end a quotation or are markup are replaced."""
    dataset = part.values.get("dataset")
    if isinstance(dataset, str):
        name = f"{part.folder.partition('/')[0] or dataset}-{name.removeprefix(f'{dataset}-')}"
    return _ODD.sub("_", name)


def _split_of(part: Part) -> str:
    split = part.values.get("split")
    return _SPLITS.get(split, UNSPLIT) if isinstance(split, str) else UNSPLIT


def _tables(part: Part, path: str) -> Iterator[tuple[Config, str, list[FileEntry]]]:
    for table, entries in part.manifest.tables.items():
        located = [part.located(entry) for entry in entries]
        with opened_table(join(path, located[0].file)) as file:
            schema = file.schema_arrow
        yield Config(_prefixed(part, table), table, schema), _split_of(part), located


def _lines(part: Part, path: str) -> Iterator[tuple[Config, str, list[FileEntry]]]:
    for entry in part.manifest.files:
        if entry.bytes and entry.file.endswith(_LINES) and _has_columns(join(path, part.located(entry).file)):
            name, split = named_lines(entry.file)
            yield Config(_prefixed(part, name), None, None), split or _split_of(part), [part.located(entry)]


def _has_columns(path: str) -> bool:
    """Returns whether a line file names its columns."""
    if not path.endswith(".tsv"):
        return True
    with Folder.of(path).open() as file:
        return file.read(max(map(len, _HEADS)) + 1).partition(b"\n")[0] in _HEADS


def named_lines(file: str) -> tuple[str, str | None]:
    """Returns the name of a line file's group, and its split; None if the file name has no split.

    >>> named_lines("qampari_data/dev_data.jsonl"), named_lines("fever-test_without_answers-kilt.jsonl")
    (('qampari_data-data', 'validation'), ('fever-kilt', 'test_without_answers'))
    >>> named_lines("human/qa/amber_sets.jsonl"), named_lines("qrels/test.tsv")
    (('human-qa-amber_sets', None), ('qrels', 'test'))
    >>> named_lines("pyserini/passages-00000-of-00002.jsonl")
    ('pyserini-passages', None)
    """
    path = PurePosixPath(file)
    stem = _SHARD.sub("", str(path.with_suffix("")))
    found = list(_SPLIT.finditer(stem))
    split = None
    if found:
        said = found[-1]
        split = _SPLITS[said[1]] + (said[2] or "")
        stem = stem[: said.start()] + stem[said.end() :]
    words = [re.sub(r"[-_]{2,}", "-", word).strip("-_") for word in stem.split("/")]
    return "-".join(word for word in words if word) or "lines", split


def hub_values(configs: Sequence[Config]) -> list[Mapping[str, object]]:
    """Returns the configurations in the form of a dataset card's metadata.

    A split without rows is left out if another split has rows: ``datasets`` cannot load tables without rows, and would
    then load none of the splits.
    """
    result: list[Mapping[str, object]] = []
    for config in configs:
        full = [split for split in config.splits if config.n_rows(split)] or list(config.splits)
        value: dict[str, object] = {"config_name": config.name}
        if not result:
            value["default"] = True
        value["data_files"] = [{"split": split, "path": config.paths(split)} for split in full]
        result.append(value)
    return result
