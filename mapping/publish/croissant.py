"""A published release in the form of Croissant: every file with its hash, every table with its columns.

Source: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from kbsource.release.manifest import FileEntry
from mapping.publish.configs import Config
from mapping.publish.rights import LICENCES, Right, holders
from mapping.publish.subject import Subject

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            "arrayShape citeAs column containedIn equivalentProperty extract field fileObject fileProperty fileSet "
            "format includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex "
            "repeated replace samplingRate separator source subField transform"
        ).split()
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
_FORMATS = {
    ".parquet": "application/x-parquet",
    ".jsonl": "application/jsonlines",
    ".json": "application/json",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".arrow": "application/vnd.apache.arrow.file",
}


def croissant_of(subject: Subject, configs: Sequence[Config], rights: tuple[Right, ...]) -> dict[str, Any]:
    """Gives ``croissant.json`` as JSON values."""
    entries = [entry for part in subject.parts for entry in part.entries()]
    values: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": subject.title,
        "description": subject.about.summary,
        "version": subject.version,
        "license": [LICENCES[right.licence]["url"] if right.licence else right.what for right in rights],
        "creator": [{"@type": "sc:Organization", "name": holder} for holder in holders(rights)],
        "keywords": [*subject.about.tags, "kbsource"],
        "citeAs": _cite_as(subject, rights),
    }
    if address := subject.url or subject.host:
        values["url"] = address
    if subject.languages:
        values["inLanguage"] = subject.languages
    if subject.day is not None:
        values["datePublished"] = subject.day
    sets = [files for config in configs for files in _file_sets(config)]
    values["distribution"] = [*map(_file_object, (*entries, *_hub_files(configs))), *sets]
    values["recordSet"] = [records for config in configs for records in _record_sets(config)]
    return values


def _hub_files(configs: Sequence[Config]) -> Iterator[FileEntry]:
    """Gives the files that are no part of the release."""
    for config in configs:
        if config.table is None:
            yield from (entry for entries in config.splits.values() for entry in entries)


def _cite_as(subject: Subject, rights: tuple[Right, ...]) -> str:
    return f"{', '.join(holders(rights))}. {subject.title}. Release {subject.whole.manifest.sha256}."


def _file_object(entry: FileEntry) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": entry.file,
        "name": entry.file,
        "contentUrl": entry.file,
        "contentSize": f"{entry.bytes} B",
        "encodingFormat": _FORMATS.get(PurePosixPath(entry.file).suffix, "application/octet-stream"),
        "sha256": entry.sha256,
    }


def record_name(config: Config, split: str) -> str:
    """Gives the name of the record set of a split."""
    return config.name if len(config.splits) == 1 else f"{config.name}-{split}"


def _file_sets(config: Config) -> Iterator[dict[str, Any]]:
    """Gives the files of each split that has several, as a set: fields are taken out of it."""
    for split, entries in config.splits.items():
        if len(entries) > 1:
            yield {
                "@type": "cr:FileSet",
                "@id": f"files-of-{record_name(config, split)}",
                "name": f"files of {record_name(config, split)}",
                "encodingFormat": _FORMATS[".parquet"],
                "includes": [entry.file for entry in entries],
            }


def _record_sets(config: Config) -> Iterator[dict[str, Any]]:
    assert config.schema is not None
    for split, entries in config.splits.items():
        name = record_name(config, split)
        source = (
            {"fileSet": {"@id": f"files-of-{name}"}} if len(entries) > 1 else {"fileObject": {"@id": entries[0].file}}
        )
        fields = [_field(column, name, source) for column in config.schema]
        left_out = [field["name"].rpartition("/")[2] for field in fields if not field.get("subField", True)]
        records = {"@type": "cr:RecordSet", "@id": name, "name": name}
        if left_out:
            records["description"] = f"Without what is in the Parquet file alone: {', '.join(left_out)}."
        yield {**records, "field": [field for field in fields if field.get("subField", True)]}


def _field(column: pa.Field, record_set: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """Gives a column. Of a list of structs the fields are listed, and of these those that are lists of values.

    What is nested deeper is named in the description alone: no path of Croissant leads there. Without any field that
    can be listed the column cannot be read.
    """
    name, inner, depth = f"{record_set}/{column.name}", column.type, 0
    while pa.types.is_list(inner):
        inner, depth = inner.value_type, depth + 1
    value: dict[str, Any] = {"@type": "cr:Field", "@id": name, "name": name, "description": _meaning(column)}
    taken = {**source, "extract": {"column": column.name}}
    if not pa.types.is_struct(inner):
        value |= {"dataType": _data_type(inner), "source": taken}
        return value | _array(depth)
    below, deeper = [], []
    for field in inner:
        leaf, levels = field.type, 0
        while pa.types.is_list(leaf):
            leaf, levels = leaf.value_type, levels + 1
        if depth > 1 or pa.types.is_struct(leaf):
            deeper.append(field.name)
            continue
        path = {**taken, "transform": {"jsonPath": field.name}}
        part = {"@type": "cr:Field", "@id": f"{name}/{field.name}", "name": f"{name}/{field.name}"}
        below.append(
            {**part, "description": _meaning(field), "dataType": _data_type(leaf), "source": path, **_array(levels)}
        )
    if deeper:
        value["description"] += f" (in the Parquet file alone: {', '.join(deeper)})"
    return value | {"subField": below} | _array(depth)


def _array(depth: int) -> dict[str, Any]:
    return {"isArray": True, "arrayShape": ",".join(["-1"] * depth)} if depth else {}


def _meaning(column: pa.Field) -> str:
    meaning: bytes = (column.metadata or {}).get(b"description", column.name.encode())
    return meaning.decode()


def _data_type(type_: pa.DataType) -> str:
    if pa.types.is_boolean(type_):
        return "sc:Boolean"
    if pa.types.is_integer(type_):
        return "sc:Integer"
    if pa.types.is_floating(type_):
        return "sc:Float"
    return "sc:DateTime" if pa.types.is_timestamp(type_) else "sc:Text"
