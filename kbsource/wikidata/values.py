"""Snaks of the JSON dump -> what the columns of ``schema.VALUE`` hold.

Nothing is lost: a value of an unknown type, or not of the form that its type has, is kept as JSON under the type
``other``.

Source: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
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

FORMS = (*(("value", value_type) for value_type in VALUE_TYPES), ("somevalue", None), ("novalue", None))
"""What a snak can be: its kind and the type of its value."""
ENTITY, _STRING, _TIME, _QUANTITY, _MONOLINGUAL, _COORDINATE, _OTHER, _SOMEVALUE, _NOVALUE = range(len(FORMS))
_VALUELESS = {"somevalue": _SOMEVALUE, "novalue": _NOVALUE}
OWN_COLUMNS = {
    "monolingualtext": ("language",),
    "quantity": ("unit", "lower", "upper"),
    "time": ("year", "month", "day", "precision", "calendar"),
    "globecoordinate": ("latitude", "longitude", "globe"),
}
"""Columns of ``schema.VALUE`` that only values of one type fill."""

Snak = tuple[int, str | None, str | None, tuple[Any, ...] | None]
"""Place in ``FORMS``, ``datatype``, ``value``, and the ``OWN_COLUMNS`` of the type; None for each that is not there.

A plain tuple: a dump has billions of them.
"""

# Years have been padded to 11 digits once, and have up to 16 in cosmology.
_match_time = re.compile(r"([+-]\d{1,16})-(0\d|1[0-2])-([0-2]\d|3[01])T\d\d:\d\d:\d\dZ", re.ASCII).fullmatch
_is_amount = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII).fullmatch
_is_entity_id = re.compile(VALUE_ID, re.ASCII).fullmatch
_MONTH_PRECISION, _DAY_PRECISION = 10, 11
_NUMBERS = {f"{number:02}": number or None for number in range(32)}
"""Months and days by their two digits; 00 is none."""
_MAX_PRECISION = 14
_MAX_DEGREES = 360
"""As in Wikibase: the longitudes of some globes run from 0 to 360."""
_LETTERS = {"item": "Q", "property": "P", "lexeme": "L"}
_CALENDARS = {"Q1985727": "gregorian", "Q1985786": "julian"}
# One object for each text that every other snak repeats: of all others a row group would keep its own.
_DATATYPES = {
    name: name
    for name in (
        "commonsMedia",
        "entity-schema",
        "external-id",
        "geo-shape",
        "globe-coordinate",
        "math",
        "monolingualtext",
        "musical-notation",
        "quantity",
        "string",
        "tabular-data",
        "time",
        "url",
        "wikibase-form",
        "wikibase-item",
        "wikibase-lexeme",
        "wikibase-property",
        "wikibase-sense",
    )
}
# What a value of another form than its type has makes its reader raise.
_FORM_FAULTS = (KeyError, TypeError, ValueError, AttributeError)


def read_snak(snak: dict[str, Any]) -> Snak:
    """Gives what a snak says.

    Raises:
        RecordError: ``malformed_statement``.
    """
    try:
        kind = snak["snaktype"]
        datatype = snak.get("datatype")
        if type(datatype) is str:
            datatype = _DATATYPES.get(datatype, datatype)
        elif datatype is not None:
            raise RecordError("malformed_statement", f"datatype {brief(datatype)}")
        if kind != "value":
            if kind not in SNAKS:
                raise RecordError("malformed_statement", f"snaktype {brief(kind)}")
            return _VALUELESS[kind], datatype, None, None
        datavalue = snak["datavalue"]
        type_ = datavalue["type"]
        value = datavalue["value"]
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError("malformed_statement", f"snak without {error}: {brief(snak)}") from error
    reader = _READERS.get(type_) if type(type_) is str else None
    if reader is not None:
        try:
            return reader(datatype, value)
        except _FORM_FAULTS:
            pass
    return _OTHER, datatype, orjson.dumps(datavalue, option=orjson.OPT_SORT_KEYS).decode(), None


def _read_entity(datatype: str | None, value: dict[str, Any]) -> Snak:
    # Dumps before 2016 have no "id", entities of later types no "numeric-id".
    found = value.get("id")
    if found is None:
        number = value["numeric-id"]
        if type(number) is not int:
            raise TypeError(number)
        found = f"{_LETTERS[value['entity-type']]}{number}"
    if not _is_entity_id(found):
        raise ValueError(found)
    return ENTITY, datatype, found, None


def _read_string(datatype: str | None, value: str) -> Snak:
    if type(value) is not str:
        raise TypeError(value)
    return _STRING, datatype, value, None


def _read_time(datatype: str | None, value: dict[str, Any]) -> Snak:
    written = value["time"]
    found = _match_time(written)
    precision = value["precision"]
    if found is None or type(precision) is not int or not 0 <= precision <= _MAX_PRECISION:
        raise ValueError(written)
    year, month, day = found.groups()
    calendar = _entity_of(value["calendarmodel"])
    own = (
        int(year),
        _NUMBERS[month] if precision >= _MONTH_PRECISION else None,
        _NUMBERS[day] if precision >= _DAY_PRECISION else None,
        precision,
        _CALENDARS.get(calendar, calendar),
    )
    return _TIME, datatype, written, own


def _read_quantity(datatype: str | None, value: dict[str, Any]) -> Snak:
    unit, amount = value["unit"], _amount(value["amount"])
    own = (
        None if unit == "1" else _entity_of(unit),
        _bound(value.get("lowerBound")),
        _bound(value.get("upperBound")),
    )
    return _QUANTITY, datatype, amount, own


def _read_monolingual(datatype: str | None, value: dict[str, Any]) -> Snak:
    language, text = value["language"], value["text"]
    if type(language) is not str or type(text) is not str:
        raise TypeError(value)
    return _MONOLINGUAL, datatype, text, (language,)


def _read_coordinate(datatype: str | None, value: dict[str, Any]) -> Snak:
    latitude, longitude = _degrees(value["latitude"]), _degrees(value["longitude"])
    globe = _entity_of(value["globe"])
    return _COORDINATE, datatype, f"{latitude!r},{longitude!r}", (latitude, longitude, globe)


def _degrees(number: Any) -> float:
    if type(number) not in (int, float) or not -_MAX_DEGREES <= number <= _MAX_DEGREES:
        raise ValueError(number)
    return float(number)


def _amount(written: str) -> str:
    if not _is_amount(written):
        raise ValueError(written)
    return written.removeprefix("+")


def _bound(written: str | None) -> str | None:
    return None if written is None else _amount(written)


@lru_cache(maxsize=1 << 12)
def _entity_of(address: str) -> str:
    """Gives the id at the end of ``http://www.wikidata.org/entity/Q42``."""
    found = address.rsplit("/", 1)[-1]
    if not _is_entity_id(found):
        raise ValueError(address)
    return found


_READERS: dict[str, Callable[[str | None, Any], Snak]] = {
    "wikibase-entityid": _read_entity,
    "string": _read_string,
    "time": _read_time,
    "quantity": _read_quantity,
    "monolingualtext": _read_monolingual,
    "globecoordinate": _read_coordinate,
}
