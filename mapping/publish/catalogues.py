"""Describes a published release for programs: Croissant, PROV-JSON, and the citation file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import yaml

from kbsource.release.manifest import FileEntry
from mapping.publish.configs import Config
from mapping.publish.subject import LICENCES, Part, Right, Subject, holders
from mapping.sources import all_sources
from mapping.sources.source import Ownership

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
    """Returns the content of ``croissant.json`` as JSON values."""
    entries = [entry for part in subject.parts for entry in part.entries()]
    values: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": subject.title,
        "description": subject.card.summary,
        "version": subject.version,
        "license": [LICENCES[right.licence]["url"] if right.licence else right.what for right in rights],
        "creator": [{"@type": "sc:Organization", "name": holder} for holder in holders(rights)],
        "keywords": [*subject.card.tags, "kbsource"],
        "citeAs": f"{', '.join(holders(rights))}. {subject.title}. Release {subject.whole.manifest.sha256}.",
    }
    if address := subject.url or subject.host:
        values["url"] = address
    if subject.languages:
        values["inLanguage"] = subject.languages
    if subject.day is not None:
        values["datePublished"] = subject.day
    sets = [files for config in configs for files in _file_sets(config)]
    # Files that are not part of the release.
    hub_files = (entry for config in configs if config.table is None for own in config.splits.values() for entry in own)
    values["distribution"] = [*map(_file_object, (*entries, *hub_files)), *sets]
    values["recordSet"] = [records for config in configs for records in _record_sets(config)]
    return values


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
    """Returns the name of the record set of a split."""
    return config.name if len(config.splits) == 1 else f"{config.name}-{split}"


def _file_sets(config: Config) -> Iterator[dict[str, Any]]:
    """Describes, for each split with several files, the file set that its fields are extracted from."""
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
            records["description"] = f"Without columns that only the Parquet file has: {', '.join(left_out)}."
        yield {**records, "field": [field for field in fields if field.get("subField", True)]}


def _field(column: pa.Field, record_set: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the description of a column.

    For a list of structs, the fields are listed, including fields that are lists of values. Deeper levels are named
    only in the description, because no Croissant path can address them. If no field can be listed, the column cannot be
    read.
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
        value["description"] += f" (only in the Parquet file: {', '.join(deeper)})"
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


PREFIXES = {
    "prov": "http://www.w3.org/ns/prov#",
    "sha256": "hash://sha256/",
    "release": "urn:kbsource:release:",
    "run": "urn:kbsource:run:",
    "code": "urn:kbsource:code:",
    "kbsource": "urn:kbsource:fact:",
}
"""Prefixes of names. ``sha256`` identifies files by content; ``release`` identifies a release by the sha256 that its
manifest has of itself."""


def prov_of(subject: Subject) -> dict[str, Any]:
    """Returns the content of ``prov.json`` as JSON values."""
    prov: dict[str, dict[str, Any]] = defaultdict(dict)
    for part in subject.parts:
        _add_part(prov, part)
    for part in subject.parts[1:]:
        _relate(prov, "hadMember", "prov:collection", _name(subject.whole), "prov:entity", _name(part))
    return {"prefix": PREFIXES, **prov}


def _name(part: Part) -> str:
    return f"release:{part.manifest.sha256}"


def _add_part(prov: dict[str, dict[str, Any]], part: Part) -> None:
    own, run = _name(part), f"run:{part.manifest.sha256}"
    prov["entity"][own] = {"prov:type": "prov:Collection", "prov:label": part.kind.name, "kbsource:folder": part.folder}
    options = json.dumps(part.values.get("options") or {}, ensure_ascii=False, sort_keys=True)
    prov["activity"][run] = {"prov:label": part.kind.made_by, "kbsource:options": options}
    _relate(prov, "wasGeneratedBy", "prov:entity", own, "prov:activity", run)
    code = part.values.get("code") or {}
    if "kbsource" in code:
        agent = f"code:{code['kbsource']}"
        facts = {f"kbsource:{name}": value for name, value in code.items()}
        prov["agent"][agent] = {"prov:type": "prov:SoftwareAgent", "prov:label": "kbsource", **facts}
        _relate(prov, "wasAssociatedWith", "prov:activity", run, "prov:agent", agent)
    used = {f"sha256:{file.sha256}": {"prov:label": file.name, "kbsource:bytes": file.bytes} for file in part.inputs()}
    used |= {f"release:{sha256}": {"prov:label": name} for name, sha256 in part.sources().items()}
    for name, facts in used.items():
        prov["entity"].setdefault(name, facts)
        _relate(prov, "used", "prov:activity", run, "prov:entity", name)
        _relate(prov, "wasDerivedFrom", "prov:generatedEntity", own, "prov:usedEntity", name)
    for entry in part.entries():
        name = f"sha256:{entry.sha256}"
        prov["entity"].setdefault(name, {"prov:label": entry.file, "kbsource:bytes": entry.bytes})
        _relate(prov, "hadMember", "prov:collection", own, "prov:entity", name)


def _relate(prov: dict[str, dict[str, Any]], relation: str, role: str, left: str, other: str, right: str) -> None:
    prov[relation][f"_:{relation}{len(prov[relation])}"] = {role: left, other: right}


def citation_file(subject: Subject, rights: tuple[Right, ...]) -> str:
    """Returns the content of ``CITATION.cff``."""
    cited = _cited(subject)
    owners = {owned.holder for owned in cited}  # of benchmarks, which have citations of their own
    values: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you use this data set, please cite it and what it was made from.",
        "type": "dataset",
        "title": subject.title,
        "abstract": subject.card.summary,
        "authors": [{"name": holder} for holder in holders(rights) if holder not in owners],
        "version": subject.version,
        "identifiers": [
            {
                "type": "other",
                "value": f"sha256:{subject.whole.manifest.sha256}",
                "description": "the release's manifest",
            }
        ],
        "keywords": [*subject.card.tags, "kbsource"],
    }
    # Several licences would mean that users may choose one of them.
    if len(licences := {right.licence for right in rights}) == 1 and (licence := licences.pop()) is not None:
        values["license"] = licence
    if subject.url is not None:
        values["url"] = subject.url
    if subject.day is not None:
        values["date-released"] = subject.day
    if cited:
        values["references"] = [
            {"type": "data", "title": owned.title, "authors": [{"name": owned.holder}], "url": owned.url}
            for owned in cited
        ]
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1000)
    return text


def _cited(subject: Subject) -> list[Ownership]:
    """Returns the benchmarks that the release was made from."""
    sources = (all_sources().get(name) for name in subject.datasets)
    return [source.ownership for source in sources if source is not None and source.ownership is not None]
