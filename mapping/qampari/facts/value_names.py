"""What the values of compositions are called: items, years, numbers, texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Context, Decimal
from typing import Literal, NamedTuple

import numpy as np

from kbsource.wikidata.reader import WikidataTables
from mapping.qampari.facts.evidence import number_names, text_names, year_names
from mapping.qampari.facts.names import ItemNames

ValueKind = Literal["item", "year", "number", "text"]
_KINDS: dict[str, ValueKind] = {"wikibase-item": "item", "entity": "item", "time": "year", "quantity": "number"}
"""By datatype of the property or type of the value."""
_TYPES: dict[ValueKind, tuple[str, ...]] = {
    "item": ("entity",),
    "year": ("time",),
    "number": ("quantity",),
    "text": ("string", "monolingualtext"),
}
"""Types of the values of a kind."""


_DIGITS = 127
"""Most digits of a number in Wikibase."""


class ValueName(NamedTuple):
    """What a value is called.

    Attributes:
        names: best first; none for a value that pages are full of, such as a number of two digits.
        page_id, title: of its page; None without one.
        item_id: of Wikidata; None for values of other kinds.
    """

    names: tuple[str, ...]
    page_id: int | None = None
    title: str | None = None
    item_id: str | None = None


def answer_key(kind: ValueKind, value: str) -> str:
    """Gives what values of a kind are told apart by: numbers as such, however they are written, others as they are.

    >>> answer_key("number", "1250.0") == answer_key("number", "1.25E+3"), answer_key("text", "1250.0")
    (True, '1250.0')
    """
    if kind != "number":
        return value
    context = Context(prec=_DIGITS, traps=[])
    return str(context.create_decimal(value).normalize(context) or Decimal())


class Values:
    """What values are called.

    Args:
        names: of the values that are items.
        kinds: of the properties.
    """

    def __init__(self, names: ItemNames, kinds: Mapping[str, ValueKind]) -> None:
        self._names = names
        self._kinds = kinds

    def keys(self, property_id: str, values: Sequence[str]) -> list[str]:
        """Gives the ``answer_key`` of each value of a property."""
        kind = self._kinds.get(property_id, "text")
        return [answer_key(kind, value) for value in values]

    def take(self, values: Sequence[tuple[str, str]]) -> list[ValueName]:
        """Gives what values are called, each given with its property; in their order."""
        kinds = [self._kinds.get(property_id, "text") for property_id, _ in values]
        items = [int(value[1:]) for kind, (_, value) in zip(kinds, values, strict=True) if kind == "item"]
        named = self._names.rows(np.array(items, np.int64))
        found = []
        for kind, (_, value) in zip(kinds, values, strict=True):
            if kind == "item":
                found.append(ValueName(*named[int(value[1:])], value))
            elif kind == "year":
                found.append(ValueName(year_names(int(value))))
            else:
                found.append(ValueName(number_names(value) if kind == "number" else text_names(value)))
        return found


def property_kinds(tables: WikidataTables) -> dict[str, ValueKind]:
    """Gives the kind of the values of the properties that a release has, by their datatype."""
    kinds: dict[str, ValueKind] = {}
    for batch in tables.batches("properties", ("property_id", "datatype")):
        for property_id, datatype in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            kinds[property_id] = _KINDS.get(datatype, "text")
    return kinds


def kinds_of_types(types: Mapping[str, str]) -> dict[str, ValueKind]:
    """Gives the kind of the values of properties, by the type of one of them."""
    return {property_id: _KINDS.get(type_, "text") for property_id, type_ in types.items()}


def types_of_values(kinds: Mapping[str, ValueKind], property_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Gives the types that the values of properties have, of those whose kind is known.

    A dump can hold others, such as what is left of a property's former datatype.
    """
    return {name: _TYPES[kinds[name]] for name in property_ids if name in kinds}
