"""What holds of the columns of a value, in statements and qualifiers of a release of Wikidata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.wikidata.values import ID_NUMBER, OWN_COLUMNS, SNAKS, VALUE_ID, VALUE_TYPES

_PROPERTY_ID = f"^P{ID_NUMBER}$"
_VALUE_ID = f"^{VALUE_ID}$"
_MONTH_PRECISION, _DAY_PRECISION = 10, 11
_ALWAYS = frozenset({"language", "year", "precision", "calendar", "latitude", "longitude", "globe"})
"""Columns that every value of their type fills."""
_WITHIN = {
    "month": (1, 12),
    "day": (1, 31),
    "precision": (0, 14),
    "latitude": (-360, 360),
    "longitude": (-360, 360),
}


def broken_values(columns: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Gives for every law in which rows it is broken, where null is not broken, and what is wrong with these.

    Args:
        columns: ``property_id`` and those of ``schema.VALUE``, as Arrow arrays.
    """
    type_, precision = columns["value_type"], columns["precision"]
    yield pc.invert(pc.match_substring_regex(columns["property_id"], _PROPERTY_ID)), "not a property"
    yield pc.invert(pc.is_in(columns["snak"], pa.array(SNAKS))), "not a kind of snak"
    yield pc.and_(pc.is_valid(type_), pc.invert(pc.is_in(type_, pa.array(VALUE_TYPES)))), "not a type of value"
    yield pc.not_equal(pc.is_valid(type_), pc.equal(columns["snak"], "value")), "a value where none is, or none"
    yield pc.not_equal(pc.is_valid(type_), pc.is_valid(columns["value"])), "a type without value"
    is_id = pc.match_substring_regex(columns["value"], _VALUE_ID)
    yield pc.and_(pc.equal(type_, "entity"), pc.invert(is_id)), "a value that is no id"
    for value_type, names in OWN_COLUMNS.items():
        is_own = pc.fill_null(pc.equal(type_, value_type), False)
        for name in names:
            yield pc.and_(pc.is_valid(columns[name]), pc.invert(is_own)), f"{name} of another type of value"
            if name in _ALWAYS:
                yield pc.and_(is_own, pc.is_null(columns[name])), f"no {name}"
    for name, (least, most) in _WITHIN.items():
        is_within = pc.and_(pc.greater_equal(columns[name], least), pc.less_equal(columns[name], most))
        yield pc.invert(is_within), f"{name} not from {least} to {most}"
    for name, least in (("month", _MONTH_PRECISION), ("day", _DAY_PRECISION)):
        yield pc.and_(pc.is_valid(columns[name]), pc.less(precision, least)), f"a {name} beyond the precision"
