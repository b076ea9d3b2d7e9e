"""Tuples -> queries of the three tasks."""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from mapping.amber.collections import ANY
from mapping.amber.records import (
    QUANTITY,
    AmberOptions,
    AmberSet,
    AmberTuple,
    Collection,
    FullValue,
    Query,
    SetEntity,
    Task,
)

SUPPORTS, REFUTES = "SUPPORTS", "REFUTES"
_SEPARATOR = " [SEP] "


def choose_template(templates: Sequence[str], qid: str, property_id: str) -> str:
    """Gives the template that the digits of item and property draw.

    >>> choose_template(["a", "b", "c"], "Q91", "P607")
    'b'
    """
    return random.Random(int(qid[1:] + property_id[1:])).choice(templates)


def make_queries(
    name: str,
    entity: SetEntity,
    task: Task,
    collection: Collection,
    options: AmberOptions,
    objects: Mapping[str, Sequence[str]],
) -> Iterator[Query]:
    """Gives the queries of an entity, in the order of its tuples; of facts the true claim first.

    Args:
        name: of the set.
        entity: of the set, its pages looked into.
        task: what is asked.
        collection: has the templates.
        options: whether these go by types.
        objects: by property what values are called, the most popular first, see ``ValueCounts``.
    """
    for one in entity.tuples:
        if task == "sf":
            yield _query(f"{name}{_SEPARATOR}{one.property}", answers(one), one)
        elif task == "qa":
            templates = _qa_templates(one, collection, options)
            # A name may hold ``$object`` itself.
            question = choose_template(templates, entity.qid, one.property_id).replace("$entity", name)
            yield _query(question, answers(one), one)
        else:
            template = choose_template(collection.fc_templates[one.property_id], entity.qid, one.property_id)
            true = next(value.aliases[0] for value in one.values if value.is_found)
            yield _query(_filled(template, name, true), SUPPORTS, one)
            false = false_object(one, objects.get(one.property_id, ()))
            if false is not None:
                yield _query(_filled(template, name, false), REFUTES, one)


def answers(amber_tuple: AmberTuple) -> tuple[str, ...]:
    """Gives every name of every value, additional ones last; duplicates stay."""
    return (*value_names(amber_tuple), *additional_names(amber_tuple))


def value_names(amber_tuple: AmberTuple) -> tuple[str, ...]:
    """Gives the names of the values."""
    return tuple(alias for value in amber_tuple.values for alias in value.aliases)


def additional_names(amber_tuple: AmberTuple) -> tuple[str, ...]:
    """Gives the additional names of the values."""
    return tuple(alias for value in amber_tuple.values for alias in value.additional_aliases)


def claim(name: str, qid: str, amber_tuple: AmberTuple, value: FullValue, collection: Collection) -> str:
    """Gives the sentence that says a value, as true claims do."""
    template = choose_template(collection.fc_templates[amber_tuple.property_id], qid, amber_tuple.property_id)
    return _filled(template, name, value.aliases[0])


def _query(text: str, answer: tuple[str, ...] | str, amber_tuple: AmberTuple) -> Query:
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return Query(f"{amber_tuple.amber_id}={digest}", text, answer, amber_tuple)


def _qa_templates(amber_tuple: AmberTuple, collection: Collection, options: AmberOptions) -> Sequence[str]:
    by_type = collection.qa_templates[amber_tuple.property_id]
    types = dict.fromkeys(item for value in amber_tuple.values for item in value.entity_types or ())
    typed = [text for item in types for text in by_type.get(item, ())] if options.typed_templates else []
    return typed or by_type[ANY]


def _filled(template: str, name: str, value: str) -> str:
    return template.replace("$entity", name).replace("$object", value)


def false_object(amber_tuple: AmberTuple, objects: Iterable[str]) -> str | None:
    """Gives the first of some names of values that none of a tuple's values has, None where there is none.

    Quantities are compared as numbers.
    """
    names = set(value_names(amber_tuple))
    numbers = {_number(value.value) for value in amber_tuple.values if value.kind == QUANTITY}
    return next((text for text in objects if text not in names and not (numbers and _number(text) in numbers)), None)


def _number(text: str) -> Decimal | str:
    try:
        return number if (number := Decimal(text)).is_finite() else text
    except InvalidOperation:
        return text


class ValueCounts:
    """How often values are the value of a property, by their first names. Memory: each name once a property."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, amber_set: AmberSet) -> None:
        """Takes the values of a set, found or not."""
        for entity in amber_set.entities:
            for one in entity.tuples:
                self._counts[one.property_id].update(value.aliases[0] for value in one.values)

    def ranked(self) -> dict[str, list[str]]:
        """Gives the names by property, the most frequent first, of equal ones that which came first."""
        return {one: [text for text, _ in counts.most_common()] for one, counts in self._counts.items()}
