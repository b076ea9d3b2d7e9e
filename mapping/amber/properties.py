"""Properties that tell the entities of a name apart, and their values in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from mapping.amber.records import QUANTITY, AmberOptions, Collection, Entity, FullValue, Value

INSTANCE_OF = "P31"
BEARERS_OF_VALUES = ("P3095", "P1535")
"""Practised by, used by: of a guitar the guitarist."""


def distinguishing(members: Sequence[Entity], collection: Collection, options: AmberOptions) -> list[tuple[str, ...]]:
    """Gives for each entity of a name the properties that it alone has and that are listed for one of its types.

    A property counts for an entity whether or not its values can be used: what is asked by it fits that entity too.
    """
    n_with = Counter(property_id for entity in members for property_id in entity.properties)
    return [
        tuple(
            property_id
            for property_id in entity.properties
            if n_with[property_id] == 1 and _is_listed(property_id, entity, collection, options)
        )
        for entity in members
    ]


def _is_listed(property_id: str, entity: Entity, collection: Collection, options: AmberOptions) -> bool:
    types = dict.fromkeys(kind for kind in entity.types if kind in collection.types)
    n_listed = sum(property_id in collection.types[class_id] for class_id in types)
    return n_listed == 1 if options.complex_types else n_listed > 0


def full_values(values: Sequence[Value], known: Mapping[str, Entity], *, lang: str) -> tuple[FullValue, ...]:
    """Gives values with what they are called, without those that are called nothing.

    Args:
        values: of a property.
        known: entities, by id.
        lang: that things are called in.
    """
    full = (_quantity(value, lang) if value.kind == QUANTITY else _item(value, known) for value in values)
    return tuple(one for one in full if one is not None and one.aliases)


def _quantity(value: Value, lang: str) -> FullValue:
    amount = value.value[1:]
    return FullValue(*value, (amount,), number_in_words(amount) if lang == "en" else (), None)


def _item(value: Value, known: Mapping[str, Entity]) -> FullValue | None:
    entity = known.get(value.value)
    if entity is None:
        return None
    further = {
        alias
        for property_id in BEARERS_OF_VALUES
        for one in entity.properties.get(property_id, ())
        if (bearer := known.get(one.value)) is not None
        for alias in bearer.aliases
    }
    return FullValue(*value, entity.aliases, tuple(sorted(further)), entity.types)


@lru_cache(maxsize=1 << 12)
def number_in_words(amount: str) -> tuple[str, ...]:
    """Gives a number in English words, nothing for what cannot be said.

    >>> number_in_words("12"), number_in_words("1" + "0" * 40)
    (('twelve',), ())
    """
    import inflect

    try:
        return (_engine().number_to_words(amount),)
    except inflect.NumOutOfRangeError:
        return ()


@cache
def _engine() -> Any:
    import inflect  # takes a while, and few jobs need it

    return inflect.engine()
