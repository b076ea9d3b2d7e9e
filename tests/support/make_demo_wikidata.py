"""The mini-Wikidata's JSON dump, from its hand-written TOML; ``make`` writes it beside the mini-wiki.

What real dumps get wrong is in it on purpose: a line that is cut, an entity that comes twice, empty arrays where
objects belong, an entity that is neither item nor property, a value of a type that nobody knows.
"""

from __future__ import annotations

import bz2
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from kbsource.errors import SetupError

SOURCE = Path(__file__).parents[2] / "kbsource" / "demo" / "miniwikidata.toml"
WIKIDATA = "miniwikidata-20260101-all.json.bz2"

_REVISIONS_FROM = 70_000_000
_ENTITY = "http://www.wikidata.org/entity/"
_GREGORIAN, _JULIAN = "Q1985727", "Q1985786"
_EARTH = "Q2"
_CLAIM = re.compile(r"(?P<rank>[+-]?)(?P<property>P\d+) (?P<value>.+)")
_RANKS = {"+": "preferred", "-": "deprecated", "": "normal"}
_TIME = re.compile(r"(?P<year>-?\d+)(?:-(?P<month>\d\d))?(?:-(?P<day>\d\d))?(?P<julian> julian)?")
_QUANTITY = re.compile(r"(?P<amount>[\d.]+)(?:\.\.(?P<upper>[\d.]+))?(?: (?P<unit>Q\d+))?")
_SNAKTYPES = {"?": "somevalue", "!": "novalue"}
# Older than the item itself, and not whole.
_REPEATED, _CUT = "Q9000012", "Q9600033"


def wikidata_dump(toml: str | None = None) -> bytes:
    """Gives the dump of a text like ``miniwikidata.toml``, by default of that, compressed.

    Raises:
        SetupError: a claim of the TOML is not of its form; names it.
    """
    source = tomllib.loads(SOURCE.read_text("utf-8") if toml is None else toml)
    datatypes = {name: entry[0] for name, entry in source["properties"].items()}
    lines = [_json(_property(name, entry)) for name, entry in source["properties"].items()]
    lines += [_json(_class(name, entry, datatypes)) for name, entry in source["classes"].items()]
    lines.append(_json({"type": "lexeme", "id": "L212", "lemmas": {"en": {"language": "en", "value": "stair"}}}))
    lines.append(_json({**_entity(_REPEATED, "item", "Halvane"), "lastrevid": 1, "claims": []}))
    items = [_json(_item(name, entry, datatypes, source["site"])) for name, entry in source["items"].items()]
    middle = len(items) // 2
    lines += [*items[:middle], _json(_entity(_CUT, "item", "a line that is cut"))[:-40], *items[middle:]]
    return bz2.compress(b"[\n" + ",\n".join(lines).encode() + b"\n]\n")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _entity(entity_id: str, kind: str, label: str, *aliases: str) -> dict[str, Any]:
    return {
        "type": kind,
        "id": entity_id,
        "labels": {"en": _term("en", label)},
        "descriptions": [],
        "aliases": {"en": [_term("en", alias) for alias in aliases]} if aliases else [],
        "claims": [],
        "lastrevid": _REVISIONS_FROM + int(entity_id[1:]),
    }


def _term(language: str, text: str) -> dict[str, str]:
    return {"language": language, "value": text}


def _property(name: str, entry: list[str]) -> dict[str, Any]:
    datatype, *labels = entry
    return {**_entity(name, "property", *labels), "datatype": datatype}


def _class(name: str, entry: list[str], datatypes: dict[str, str]) -> dict[str, Any]:
    label, *superclasses = entry
    claims = [f"P279 {superclass}" for superclass in superclasses]
    return {**_entity(name, "item", label), "claims": _claims(name, claims, datatypes), "sitelinks": []}


def _item(name: str, entry: dict[str, Any], datatypes: dict[str, str], site: str) -> dict[str, Any]:
    value = _entity(name, "item", entry.get("label", ""), *entry.get("aliases", ()))
    languages = {"en": "label", "mul": "mul", "de": "de"}
    value["labels"] = {code: _term(code, entry[key]) for code, key in languages.items() if key in entry}
    if "description" in entry:
        value["descriptions"] = {"en": _term("en", entry["description"])}
    page = entry.get("page")
    return {
        **value,
        "claims": _claims(name, entry["claims"], datatypes),
        "sitelinks": {site: {"site": site, "title": page, "badges": []}} if page else [],
    }


def _claims(name: str, claims: list[str], datatypes: dict[str, str]) -> Any:
    found: dict[str, list[Any]] = {}
    for number, claim in enumerate(claims):
        main, *qualifiers = claim.split(" | ")
        match = _CLAIM.fullmatch(main)
        if match is None:
            raise SetupError(f"{SOURCE.name}: {name}: {claim!r} is no claim; write it like 'P131 Q9000012'")
        statement = {
            "mainsnak": _snak(match["property"], match["value"], datatypes),
            "type": "statement",
            "id": f"{name}${number}",
            "rank": _RANKS[match["rank"]],
        }
        if qualifiers:
            snaks = [_snak(*qualifier.partition(" ")[::2], datatypes) for qualifier in qualifiers]
            statement["qualifiers"] = {snak["property"]: [snak] for snak in snaks}
            statement["qualifiers-order"] = [snak["property"] for snak in snaks]
        found.setdefault(match["property"], []).append(statement)
    return found or []


def _snak(name: str, value: str, datatypes: dict[str, str]) -> dict[str, Any]:
    datatype = datatypes[name]
    snak = {"snaktype": _SNAKTYPES.get(value, "value"), "property": name, "datatype": datatype}
    return snak if value in _SNAKTYPES else {**snak, "datavalue": _datavalue(datatype, value)}


def _datavalue(datatype: str, value: str) -> dict[str, Any]:
    if datatype == "wikibase-item":
        found: Any = {"entity-type": "item", "numeric-id": int(value[1:]), "id": value}
        return {"type": "wikibase-entityid", "value": found}
    if datatype == "time":
        return {"type": "time", "value": _time(value)}
    if datatype == "quantity":
        return {"type": "quantity", "value": _quantity(value)}
    if datatype == "monolingualtext":
        language, _, text = value.partition(":")
        return {"type": "monolingualtext", "value": {"text": text, "language": language}}
    if datatype == "globe-coordinate":
        latitude, longitude = map(float, value.split(","))
        found = {"latitude": latitude, "longitude": longitude, "altitude": None, "precision": 0.01}
        return {"type": "globecoordinate", "value": {**found, "globe": _ENTITY + _EARTH}}
    # An unknown datatype brings a type of value of its own.
    return {"type": "string" if datatype in ("url", "external-id") else datatype, "value": value}


def _time(written: str) -> dict[str, Any]:
    match = _TIME.fullmatch(written)
    if match is None:
        raise SetupError(f"{SOURCE.name}: {written!r} is no time; write it like 1852, 1852-09 or 1852-09-01")
    year, month, day = int(match["year"]), match["month"] or "00", match["day"] or "00"
    return {
        "time": f"{'-' if year < 0 else '+'}{abs(year):04d}-{month}-{day}T00:00:00Z",
        "timezone": 0,
        "before": 0,
        "after": 0,
        "precision": 9 + (match["month"] is not None) + (match["day"] is not None),
        "calendarmodel": _ENTITY + (_JULIAN if match["julian"] else _GREGORIAN),
    }


def _quantity(written: str) -> dict[str, Any]:
    match = _QUANTITY.fullmatch(written)
    if match is None:
        raise SetupError(f"{SOURCE.name}: {written!r} is no quantity; write it like 61, 61..63 or 61 Q9600005")
    found = {"amount": f"+{match['amount']}", "unit": _ENTITY + match["unit"] if match["unit"] else "1"}
    if match["upper"]:
        found |= {"lowerBound": f"+{match['amount']}", "upperBound": f"+{match['upper']}"}
    return found
