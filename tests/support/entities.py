"""Lines of a Wikidata dump, made for tests."""

from __future__ import annotations

import bz2
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from kbsource.wikidata.entity import EntityReader
from kbsource.wikidata.kind import WikidataManifest
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.jobs.wikidata import make_wikidata
from pipelines.options.wikidata import WikidataOptions
from tests.support.builds import run_job


def reader(**options: Any) -> EntityReader:
    """Gives a reader of English terms, all sitelinks and all qualifiers, unless told otherwise."""
    return EntityReader(**{"languages": ("en",), "sites": None, "qualifiers": None, **options})


def snak(property_id: str, datatype: str, type_: str, value: Any) -> dict[str, Any]:
    """Gives a snak with a value."""
    datavalue = {"type": type_, "value": value}
    return {"snaktype": "value", "property": property_id, "datatype": datatype, "datavalue": datavalue}


def item_snak(property_id: str, item_id: str) -> dict[str, Any]:
    """Gives a snak whose value is an item."""
    value = {"entity-type": "item", "numeric-id": int(item_id[1:]), "id": item_id}
    return snak(property_id, "wikibase-item", "wikibase-entityid", value)


def statement(main: dict[str, Any], *, rank: str = "normal", **others: Any) -> dict[str, Any]:
    """Gives a statement."""
    return {"type": "statement", "id": "x$1", "rank": rank, "mainsnak": main, **others}


def terms(**texts: str) -> dict[str, Any]:
    """Gives labels or descriptions by language."""
    return {language: {"language": language, "value": text} for language, text in texts.items()}


def item(entity_id: str, *snaks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Gives an item with plain statements."""
    claims: dict[str, list[Any]] = {}
    for json_snak in snaks:
        claims.setdefault(json_snak["property"], []).append(statement(json_snak))
    return {"type": "item", "id": entity_id, "labels": terms(en=f"label of {entity_id}"), "claims": claims, **fields}


def array(lines: Iterable[Any]) -> bytes:
    """Gives a dump: an array with one entity a line; bytes are put in as they are."""
    written = [line if isinstance(line, bytes) else orjson.dumps(line) for line in lines]
    return b"[\n" + b",\n".join(written) + b"\n]\n"


def make(
    *dumps: Path, output: Path, runner: str = "local", workers: int | None = None, **options: Any
) -> MadeRelease[WikidataManifest]:
    """Makes a release."""
    given = WikidataOptions(dump=tuple(map(str, dumps)), output=str(output), **options)
    return run_job(make_wikidata, given, runner=runner, workers=workers)


BROKEN = b'{"type":"item","id":"Q7","labels":{"en":{"lang'
ENTITIES: list[Any] = [
    item("Q5", item_snak("P279", "Q4"), item_snak("P31", "Q3"), sitelinks={"enwiki": {"title": "Five"}}),
    item("Q4", item_snak("P279", "Q2"), item_snak("P279", "Q5")),
    BROKEN,
    {"type": "property", "id": "P31", "datatype": "wikibase-item", "labels": terms(mul="is a"), "claims": []},
    {"type": "lexeme", "id": "L1"},
    item("Q9", claims={"P279": [statement(item_snak("P279", "Q8"), rank="deprecated")]}, lastrevid=3),
    item("Q9", labels=[], lastrevid=4),
    item("Q9", lastrevid=4),
    *(item(f"Q{number}", item_snak("P31", "Q5")) for number in range(100, 140)),
]


def write_odd_dump(folder: Path) -> Path:
    """Writes a dump of these entities in several streams, and gives its path."""
    path, content = folder / "wikidata-20261001-all.json.bz2", array(ENTITIES)
    path.write_bytes(b"".join(bz2.compress(content[start : start + 1500]) for start in range(0, len(content), 1500)))
    return path
