"""Snaks of the JSON dump -> columns of ``schema.VALUE``.

Nothing is lost: a value of an unknown type, or not of the form that its type has, is kept as JSON under the type
``other``.

Source: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from reprlib import repr as brief
from typing import Any

import orjson

from kbsource.errors import RecordError

SNAKS = ("value", "somevalue", "novalue")
VALUE_TYPES = ("entity", "string", "time", "quantity", "monolingualtext", "globecoordinate", "other")
RANKS = ("preferred", "normal", "deprecated")
ID_NUMBER = r"(?:[1-9]\d{0,8}|[1-3]\d{9})"
"""Number in an id, for regular expressions: it fits 32 bits, and Wikibase has none above 2,147,483,647."""
VALUE_ID = rf"(?:[A-Z]{ID_NUMBER}|L{ID_NUMBER}-[FS][1-9]\d*)"
"""Id of any entity; those of forms and senses begin with their lexeme's."""

Columns = tuple[Any, ...]
"""What stands in the columns of ``schema.VALUE`` from ``value_type`` on."""

NO_VALUE: Columns = (None,) * 14
_AFTER_VALUE: Columns = (None,) * 12
_AFTER_QUANTITY: Columns = (None,) * 8
_BEFORE_TIME: Columns = (None,) * 4
_AFTER_TIME: Columns = (None,) * 3
_BEFORE_GLOBE: Columns = (None,) * 9

# Years have been padded to 11 digits once, and have up to 16 in cosmology.
_TIME = re.compile(r"([+-]\d{1,16})-(0\d|1[0-2])-([0-2]\d|3[01])T\d\d:\d\d:\d\dZ", re.ASCII)
_AMOUNT = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_ENTITY_ID = re.compile(VALUE_ID, re.ASCII)
_MONTH_PRECISION, _DAY_PRECISION = 10, 11
_MAX_PRECISION = 14
_MAX_DEGREES = 360
"""As in Wikibase: the longitudes of some globes run from 0 to 360."""
_LETTERS = {"item": "Q", "property": "P", "lexeme": "L"}
_CALENDARS = {"Q1985727": "gregorian", "Q1985786": "julian"}
# What a value of another form than its type has makes its reader raise.
_FORM_FAULTS = (KeyError, TypeError, ValueError, AttributeError)


def read_snak(snak: dict[str, Any]) -> Columns:
    """Gives the columns of ``schema.VALUE`` for a snak.

    Raises:
        RecordError: ``malformed_statement``.
    """
    try:
        kind = snak["snaktype"]
        datatype = snak.get("datatype")
        if datatype is not None and type(datatype) is not str:
            raise RecordError("malformed_statement", f"datatype {brief(datatype)}")
        if kind != "value":
            if kind not in SNAKS:
                raise RecordError("malformed_statement", f"snaktype {brief(kind)}")
            return (kind, datatype, *NO_VALUE)
        datavalue = snak["datavalue"]
        type_ = datavalue["type"]
        value = datavalue["value"]
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError("malformed_statement", f"snak without {error}: {brief(snak)}") from error
    reader = _READERS.get(type_) if type(type_) is str else None
    if reader is not None:
        try:
            return ("value", datatype, *reader(value))
        except _FORM_FAULTS:
            pass
    kept = orjson.dumps(datavalue, option=orjson.OPT_SORT_KEYS).decode()
    return ("value", datatype, "other", kept, *_AFTER_VALUE)


def _read_entity(value: dict[str, Any]) -> Columns:
    # Dumps before 2016 have no "id", entities of later types no "numeric-id".
    found = value.get("id")
    if found is None:
        number = value["numeric-id"]
        if type(number) is not int:
            raise TypeError(number)
        found = f"{_LETTERS[value['entity-type']]}{number}"
    if not _ENTITY_ID.fullmatch(found):
        raise ValueError(found)
    return ("entity", found, *_AFTER_VALUE)


def _read_string(value: str) -> Columns:
    if type(value) is not str:
        raise TypeError(value)
    return ("string", value, *_AFTER_VALUE)


def _read_time(value: dict[str, Any]) -> Columns:
    written = value["time"]
    found = _TIME.fullmatch(written)
    precision = value["precision"]
    if found is None or type(precision) is not int or not 0 <= precision <= _MAX_PRECISION:
        raise ValueError(written)
    year, month, day = found.groups()
    calendar = _entity_of(value["calendarmodel"])
    return (
        "time",
        written,
        *_BEFORE_TIME,
        int(year),
        (int(month) or None) if precision >= _MONTH_PRECISION else None,
        (int(day) or None) if precision >= _DAY_PRECISION else None,
        precision,
        _CALENDARS.get(calendar, calendar),
        *_AFTER_TIME,
    )


def _read_quantity(value: dict[str, Any]) -> Columns:
    unit = value["unit"]
    return (
        "quantity",
        _amount(value["amount"]),
        None,
        None if unit == "1" else _entity_of(unit),
        _bound(value.get("lowerBound")),
        _bound(value.get("upperBound")),
        *_AFTER_QUANTITY,
    )


def _read_monolingual(value: dict[str, Any]) -> Columns:
    language, text = value["language"], value["text"]
    if type(language) is not str or type(text) is not str:
        raise TypeError(value)
    return ("monolingualtext", text, language, *_AFTER_VALUE[1:])


def _read_coordinate(value: dict[str, Any]) -> Columns:
    latitude, longitude = _degrees(value["latitude"]), _degrees(value["longitude"])
    globe = _entity_of(value["globe"])
    return ("globecoordinate", f"{latitude!r},{longitude!r}", *_BEFORE_GLOBE, latitude, longitude, globe)


def _degrees(number: Any) -> float:
    if type(number) not in (int, float) or not -_MAX_DEGREES <= number <= _MAX_DEGREES:
        raise ValueError(number)
    return float(number)


def _amount(written: str) -> str:
    if not _AMOUNT.fullmatch(written):
        raise ValueError(written)
    return written.removeprefix("+")


def _bound(written: str | None) -> str | None:
    return None if written is None else _amount(written)


def _entity_of(address: str) -> str:
    """Gives the id at the end of ``http://www.wikidata.org/entity/Q42``."""
    found = address.rsplit("/", 1)[-1]
    if not _ENTITY_ID.fullmatch(found):
        raise ValueError(address)
    return found


_READERS: dict[str, Callable[[Any], Columns]] = {
    "wikibase-entityid": _read_entity,
    "string": _read_string,
    "time": _read_time,
    "quantity": _read_quantity,
    "monolingualtext": _read_monolingual,
    "globecoordinate": _read_coordinate,
}
