"""Queries over facts, and the questions that say them in English of a fixed form.

A query is worked out over triples (subject, property, value). A simple one asks for subjects, an intersection for the
subjects of two simple ones, a composition for the values that the subjects of a simple one have.

Source: QAMPARI (2022), section 3. For compositions the paper's formula has subjects as answers; its examples and the
released code have values, and so it is here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kbsource.errors import SetupError
from mapping.qampari.relations import Relations

SIMPLE, COMPOSITION, INTERSECTION = "wikidata_simple", "wikidata_comp", "wikidata_intersection"
TABLE_SIMPLE, TABLE_COMPOSITION = "wikitables_simple", "wikitables_composition"
SUBSETS = (SIMPLE, COMPOSITION, INTERSECTION, TABLE_SIMPLE, TABLE_COMPOSITION)
"""Kinds of questions, by the names that released ones have."""

# What the released code changes.
_PLURAL = {"is": "are", "was": "were", "has": "have"}


class SimpleQuery(NamedTuple):
    """Which subjects have this property with this value?

    Attributes:
        property_id: a simple relation.
        entity_id: the value.
        type_label: class of the answers, for typed relations.
    """

    property_id: str
    entity_id: str
    type_label: str | None = None

    @property
    def key(self) -> str:
        """Names the query among all."""
        return "__".join(part for part in self if part is not None)

    @property
    def property_ids(self) -> tuple[str, ...]:
        """The relations that an answer rests on."""
        return (self.property_id,)


class IntersectionQuery(NamedTuple):
    """Which subjects answer both?

    Attributes:
        first: comes before ``second`` in the order of ``order_key``.
        second: not the same property with the same value.
    """

    first: SimpleQuery
    second: SimpleQuery

    @property
    def key(self) -> str:
        """Names the query among all."""
        return f"{self.first.key}__{self.second.key}"

    @property
    def property_ids(self) -> tuple[str, ...]:
        """The relations that an answer rests on."""
        return (self.first.property_id, self.second.property_id)


class CompositionQuery(NamedTuple):
    """Which values do the answers of a simple query have?

    Attributes:
        property_id: a composition relation, other than that of the base.
        base: gives the subjects.
    """

    property_id: str
    base: SimpleQuery

    @property
    def key(self) -> str:
        """Names the query among all."""
        return f"{self.property_id}__{self.base.key}"

    @property
    def property_ids(self) -> tuple[str, ...]:
        """The relations that an answer rests on, that of the base first."""
        return (self.base.property_id, self.property_id)


Query = SimpleQuery | IntersectionQuery | CompositionQuery


def order_key(query: Query) -> tuple[int | str, ...]:
    """Gives what queries of one kind are ordered by: numbers of properties and entities, then types."""
    if isinstance(query, SimpleQuery):
        return int(query.property_id[1:]), int(query.entity_id[1:]), query.type_label or ""
    if isinstance(query, CompositionQuery):
        return int(query.property_id[1:]), *order_key(query.base)
    return *order_key(query.first), *order_key(query.second)


FAMILY_BITS = 8
"""Of a query's number: those of its type."""
_ENTITY_BITS = 35


class QueryNumbers:
    """Numbers of simple queries, which are in the order of ``order_key``: property, entity, type.

    Args:
        labels: of all types.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = (None, *sorted(set(labels)))
        self._places = {label: place for place, label in enumerate(self._labels)}
        if len(self._labels) > 1 << FAMILY_BITS:
            raise SetupError(f"{len(self._labels) - 1} types of answers: give at most {(1 << FAMILY_BITS) - 1}.")

    def number(self, query: SimpleQuery) -> int:
        """Gives the number of a query."""
        property_, entity = int(query.property_id[1:]), int(query.entity_id[1:])
        return (property_ << _ENTITY_BITS | entity) << FAMILY_BITS | self._places[query.type_label]

    def query(self, number: int) -> SimpleQuery:
        """Gives the query of a number."""
        pair, place = number >> FAMILY_BITS, number % (1 << FAMILY_BITS)
        entity = pair % (1 << _ENTITY_BITS)
        return SimpleQuery(f"P{pair >> _ENTITY_BITS}", f"Q{entity}", self._labels[place])


def simple_question(relations: Relations, query: SimpleQuery, entity: str) -> str:
    """Gives the question of a simple query.

    Args:
        relations: hold the words.
        query: what is asked; with a type exactly where the relation is typed.
        entity: what the value is called.
    """
    return f"{_head(relations, query)} {_predicate(relations, query, entity)}?"


def intersection_question(relations: Relations, query: IntersectionQuery, first: str, second: str) -> str:
    """Gives the question of an intersection: that of the first query, and the second's predicate.

    Args:
        relations: hold the words.
        query: what is asked.
        first: what the value of the first query is called.
        second: what the value of the second query is called.
    """
    predicates = _predicate(relations, query.first, first), _predicate(relations, query.second, second)
    return f"{_head(relations, query.first)} {' and '.join(predicates)}?"


def composition_question(
    relations: Relations, query: CompositionQuery, entity: str, *, as_released: bool = False
) -> str:
    """Gives the question of a composition, the verb behind "that" in the plural.

    Args:
        relations: hold the words.
        query: what is asked.
        entity: what the value of the base query is called.
        as_released: of the verbs only is, was and has are put in the plural ("persons that works for X").
    """
    asked = relations.composition[query.property_id]
    relation = relations.simple[query.base.property_id]
    subjects = relation.plural if query.base.type_label is None else relations.word_for(query.base.type_label)
    predicate = relation.of_many
    if predicate is None or as_released:
        # Before the name is filled in, so that nothing of a name is taken for the verb.
        verb, space, rest = relation.predicate.partition(" ")
        predicate = f"{_PLURAL.get(verb, verb)}{space}{rest}"
    said = predicate.replace("{entity}", entity)
    return f"{asked.ask} are the {asked.noun} {asked.link} {subjects} that {said}?"


def _head(relations: Relations, query: SimpleQuery) -> str:
    relation = relations.simple[query.property_id]
    noun = relation.noun if query.type_label is None else relations.word_for(query.type_label)
    return relation.ask if noun is None else f"{relation.ask} {noun}"


def _predicate(relations: Relations, query: SimpleQuery, entity: str) -> str:
    return relations.simple[query.property_id].predicate.replace("{entity}", entity)
