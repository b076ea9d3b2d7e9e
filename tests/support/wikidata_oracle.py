"""What the tables of a release of Wikidata should hold, worked out in the plainest way, all in memory.

It takes nothing from the package, so that a fault there is not a fault here.
"""

from __future__ import annotations

import bz2
import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

Row = dict[str, Any]

VALUE_COLUMNS = (
    "value_type value language unit lower upper year month day precision calendar latitude longitude globe".split()
)
LETTER_OF = {"item": "Q", "property": "P", "lexeme": "L"}
CALENDAR_OF = {"Q1985727": "gregorian", "Q1985786": "julian"}
MAX_NUMBER = 3_999_999_999


class RefusedError(Exception):
    """An entity that is no row of any table; the argument is the reason."""


class OddError(Exception):
    """A value of another form than its type has."""


def need(condition: bool, fault: Exception) -> None:
    if not condition:
        raise fault


def lines_of(path: Path) -> list[bytes]:
    """Gives the lines of a sound dump that hold entities."""
    content = path.read_bytes()
    if content[:3] == b"BZh":
        content = bz2.decompress(content)
    elif content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    found = []
    for line in content.split(b"\n"):
        line = line.strip(b" \t\r,\xef\xbb\xbf")
        if line.startswith(b"["):
            line = line[1:].strip(b" \t\r,\xef\xbb\xbf")
        if line.endswith(b"]"):
            line = line[:-1].strip(b" \t\r,\xef\xbb\xbf")
        if line:
            found.append(line)
    return found


def parsed(line: bytes) -> Row:
    def refuse(text: str) -> Any:
        raise ValueError(text)

    def number(text: str) -> float:
        return float(text) if abs(float(text)) < float("inf") else refuse(text)

    try:
        value = json.loads(line.decode(), parse_constant=refuse, parse_float=number)
        json.dumps(value, ensure_ascii=False).encode()  # no half of a surrogate pair
    except (ValueError, RecursionError):
        raise RefusedError("malformed_json") from None
    need(isinstance(value, dict), RefusedError("malformed_json"))
    return dict(value)


def is_id(text: Any, letters: str) -> bool:
    if not isinstance(text, str) or not re.match(r"[A-Z][1-9][0-9]*\Z", text):
        return False
    return text[0] in letters and int(text[1:]) <= MAX_NUMBER


def is_any_id(text: Any) -> bool:
    if is_id(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        return True
    lexeme, dash, part = text.partition("-") if isinstance(text, str) else ("", "", "")
    return bool(dash) and is_id(lexeme, "L") and re.match(r"[FS][1-9][0-9]*\Z", part) is not None


def read_value(value_type: str, value: Any) -> Row:
    """Gives the columns that a value fills, beside ``value_type``; raises OddError, or what Python raises."""
    if value_type == "string":
        need(isinstance(value, str), OddError())
        return {"value": value}
    if value_type == "monolingualtext":
        need(isinstance(value["text"], str) and isinstance(value["language"], str), OddError())
        return {"value": value["text"], "language": value["language"]}
    if value_type == "entity":
        given = value.get("id")
        if given is None:
            need(type(value["numeric-id"]) is int, OddError())
            given = LETTER_OF[value["entity-type"]] + str(value["numeric-id"])
        need(is_any_id(given), OddError())
        return {"value": given}
    if value_type == "quantity":
        for name in ("amount", "lowerBound", "upperBound"):
            number = value["amount"] if name == "amount" else value.get(name)
            if number is not None or name == "amount":
                need(re.match(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z", number) is not None, OddError())
        bounds = {
            column: value.get(name) and value[name].lstrip("+")
            for column, name in (("lower", "lowerBound"), ("upper", "upperBound"))
        }
        unit = None if value["unit"] == "1" else end_of(value["unit"])
        return {"value": value["amount"].lstrip("+"), "unit": unit, **bounds}
    if value_type == "globecoordinate":
        degrees = [value["latitude"], value["longitude"]]
        need(all(type(degree) in (int, float) and abs(degree) <= 360 for degree in degrees), OddError())
        latitude, longitude = map(float, degrees)
        text = f"{latitude},{longitude}"
        return {"value": text, "latitude": latitude, "longitude": longitude, "globe": end_of(value["globe"])}
    written, precision = value["time"], value["precision"]
    found = re.match(r"([-+])([0-9]{1,16})-([0-9]{2})-([0-9]{2})T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z", written)
    need(found is not None and type(precision) is int and 0 <= precision <= 14, OddError())
    assert found is not None
    month, day = int(found[3]), int(found[4])
    need(month <= 12 and day <= 31, OddError())
    calendar = end_of(value["calendarmodel"])
    return {
        "value": written,
        "year": int(found[2]) * (-1 if found[1] == "-" else 1),
        "month": month if month and precision >= 10 else None,
        "day": day if day and precision >= 11 else None,
        "precision": precision,
        "calendar": CALENDAR_OF.get(calendar, calendar),
    }


def end_of(address: str) -> str:
    found = address.split("/")[-1]
    need(is_any_id(found), OddError())
    return found


def read_snak(snak: Any) -> Row:
    """Gives the columns from ``snak`` on."""
    refused = RefusedError("malformed_statement")
    need(isinstance(snak, dict) and snak.get("snaktype") in ("value", "somevalue", "novalue"), refused)
    need(snak.get("datatype") is None or isinstance(snak["datatype"], str), refused)
    row = {"snak": snak["snaktype"], "datatype": snak.get("datatype"), **dict.fromkeys(VALUE_COLUMNS)}
    if snak["snaktype"] != "value":
        return row
    given = snak.get("datavalue")
    need(isinstance(given, dict) and {"type", "value"} <= set(given), refused)
    type_ = given["type"]
    names = {"wikibase-entityid": "entity"}
    names |= {name: name for name in ("string", "time", "quantity", "monolingualtext", "globecoordinate")}
    if isinstance(type_, str) and type_ in names:
        try:
            return {**row, "value_type": names[type_], **read_value(names[type_], given["value"])}
        except (OddError, TypeError, KeyError, AttributeError):
            pass
    return {**row, "value_type": "other", "value": given}


def members(value: Any, reason: str) -> list[Any]:
    need(isinstance(value, (list, dict)), RefusedError(reason))
    return list(value.values()) if isinstance(value, dict) else value


def object_of(entity: Row, name: str) -> Row:
    value = entity.get(name)
    need(value is None or value == [] or isinstance(value, dict), RefusedError("invalid_field"))
    return value if isinstance(value, dict) else {}


def text_of(holder: Any, name: str) -> str:
    need(isinstance(holder, dict) and isinstance(holder.get(name), str), RefusedError("invalid_field"))
    return str(holder[name])


def best(terms: list[Row], languages: tuple[str, ...]) -> Row | None:
    for language in (*languages, "mul"):
        for term in terms:
            if term["language"] == language:
                return term
    return min(terms, key=lambda term: (term["language"], term["text"]), default=None)


def read_entity(
    line: bytes, languages: tuple[str, ...], sites: set[str] | None, qualifiers: set[str] | None
) -> tuple[str, Row, list[Row], list[Row]]:
    """Gives (table or type, row, sitelinks, statements)."""
    entity = parsed(line)
    need("redirect" not in entity, RefusedError("entity_redirect"))
    id_, type_ = entity.get("id"), entity.get("type")
    need(id_ is not None and type_ is not None, RefusedError("missing_field"))
    refused = RefusedError("invalid_field")
    need(isinstance(id_, str) and isinstance(type_, str), refused)
    if type_ not in ("item", "property"):
        whole, _, part = id_.partition("-")
        need(is_id(whole, "ABCDEFGHIJKLMNORSTUVWXYZ") and ("-" not in id_ or is_id(part, part[:1])), refused)
        return type_, {}, [], []
    need(is_id(id_, LETTER_OF[type_]), refused)
    revision = entity.get("lastrevid")
    need(revision is None or (type(revision) is int and 0 <= revision < 2**63), refused)
    if type_ == "property":
        need(entity.get("datatype") is not None, RefusedError("missing_field"))
        need(isinstance(entity["datatype"], str), refused)

    def is_wanted(language: str) -> bool:
        return language == "mul" or any(language == lang or language.startswith(f"{lang}-") for lang in languages)

    terms = {}
    for name in ("labels", "descriptions"):
        terms[name] = [
            {"language": language, "text": text_of(term, "value")}
            for language, term in object_of(entity, name).items()
            if is_wanted(language)
        ]
    terms["aliases"] = [
        {"language": language, "text": text_of(term, "value")}
        for language, several in object_of(entity, "aliases").items()
        if is_wanted(language)
        for term in members(several, "invalid_field")
    ]
    links = object_of(entity, "sitelinks")
    own_links = []
    for site, link in links.items():
        if sites is None or site in sites:
            title = text_of(link, "title")
            need(title != "", refused)
            own_links.append({"item_id": id_, "site": site, "title": title})
    statements = []
    wrong = RefusedError("malformed_statement")
    for property_id, several in object_of(entity, "claims").items():
        need(is_id(property_id, "P"), wrong)
        for statement in members(several, "malformed_statement"):
            need(isinstance(statement, dict), wrong)
            need(statement.get("rank") in ("preferred", "normal", "deprecated"), wrong)
            row = {"entity_id": id_, "property_id": property_id, "rank": statement["rank"]}
            row |= read_snak(statement.get("mainsnak"))
            given = statement.get("qualifiers")
            need(given is None or given == [] or isinstance(given, dict), wrong)
            row["qualifiers"] = []
            for name, snaks in (given or {}).items():
                if qualifiers is None or name in qualifiers:
                    need(is_id(name, "P"), wrong)
                    row["qualifiers"] += [
                        {"property_id": name, **read_snak(snak)} for snak in members(snaks, "malformed_statement")
                    ]
            statements.append(row)
    shown = best(terms["labels"], languages) or {"text": None, "language": None}
    row = {
        "label": shown["text"],
        "label_language": shown["language"],
        **terms,
        "n_statements": len(statements),
        "revision_id": revision,
    }
    if type_ == "item":
        return "items", {"item_id": id_, **row, "n_sitelinks": len(links)}, own_links, statements
    return "properties", {"property_id": id_, "datatype": entity["datatype"], **row}, [], statements


def expected_tables(
    lines: list[bytes],
    *,
    languages: tuple[str, ...] = ("en",),
    sites: set[str] | None = None,
    qualifiers: set[str] | None = None,
) -> tuple[dict[str, list[Row]], Counter[str]]:
    """Gives the rows of every table but ``rejected``, and the number of lines by what became of them.

    A value of the type ``other`` is given as it was parsed, not as JSON.
    """
    read: list[Any] = []
    counts: Counter[str] = Counter()
    newest: dict[str, tuple[int, int]] = {}
    for place, line in enumerate(lines):
        try:
            found = read_entity(line, languages, sites, qualifiers)
        except RefusedError as refused:
            counts[str(refused)] += 1
            continue
        if found[0] not in ("items", "properties"):
            counts[f"type_{found[0]}"] += 1
            continue
        id_ = found[1].get("item_id") or found[1]["property_id"]
        revision = found[1]["revision_id"]
        rank = (-1 if revision is None else revision, -place)
        newest[id_] = max(newest.get(id_, rank), rank)
        read.append((id_, rank, found))
    tables: dict[str, list[Row]] = {name: [] for name in ("items", "properties", "sitelinks", "statements", "classes")}
    for id_, rank, (table, row, links, statements) in read:
        if newest[id_] != rank:
            counts["duplicate_entity"] += 1
            continue
        counts[table] += 1
        tables[table].append(row)
        tables["sitelinks"] += links
        tables["statements"] += statements
    tables["classes"] = closure(tables["statements"])
    return tables, counts


def closure(statements: list[Row]) -> list[Row]:
    """Gives the table ``classes`` by walking up from every class."""
    above: dict[str, set[str]] = {}
    for row in statements:
        if row["rank"] == "deprecated" or row["value_type"] != "entity" or row["value"][0] != "Q":
            continue
        if row["property_id"] == "P31":
            above.setdefault(row["value"], set())
        elif row["property_id"] == "P279" and row["entity_id"][0] == "Q":
            above.setdefault(row["entity_id"], set()).add(row["value"])
            above.setdefault(row["value"], set())
    rows = []
    for class_id in above:
        distance = {class_id: 0}
        front = {class_id}
        while front:
            front = {up for item in front for up in above[item]} - set(distance)
            distance |= dict.fromkeys(front, 1 + max(distance.values()))
        rows += [{"class_id": class_id, "superclass_id": up, "distance": steps} for up, steps in distance.items()]
    return sorted(rows, key=lambda row: (int(row["class_id"][1:]), int(row["superclass_id"][1:])))
