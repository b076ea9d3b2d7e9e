"""The relations behind the questions, queries over facts, and English questions generated from templates.

A query is evaluated over triples (subject, property, value). A simple query asks for subjects, an intersection for the
subjects of two simple queries, and a composition for the values of the subjects of a simple query.

Source: QAMPARI (2022), section 3. In the paper's formula for compositions the answers are subjects; in its examples and
in the released code they are values, and so they are here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal, NamedTuple, NoReturn

from kbsource.documents import read_toml
from kbsource.errors import SetupError, shown_name, shown_value
from mapping.qampari.records import QueryRow, Question, QuestionAnswer, QuestionEntity

_PROPERTY = re.compile(r"P[1-9]\d*")
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_TABLES = {"wanted_types", "simple", "types", "composition"}
_OPTIONAL = {"type_words", "classes"}
_ITEM = re.compile(r"Q[1-9]\d*")
_PERSONS = "persons"
_OWN = "mapping/qampari/relations.toml"


@dataclass(frozen=True, slots=True)
class SimpleRelation:
    """A relation for questions about its subjects, such as "which subjects have this property with that value?"."""

    property_id: str
    label: str  # the name of the relation; not unique
    ask: str  # the first words of the question: Who, Which, What, …
    noun: str | None  # noun for the answers, such as ``books``; None for persons and for types
    plural: str | None  # noun for the answers in a question about their values; None for types
    predicate: str  # the rest of the question, with ``{entity}``
    claim: str  # predicate of the hypothesis, with ``{entity}``; its subject is the answer
    #: labels of the classes used as types of answers, tried in this order; each makes a separate question. Empty for
    #: untyped relations
    types: tuple[str, ...] = ()
    is_enabled: bool = True  # true if questions are made from it
    #: the predicate for several answers, with ``{entity}``; None if it only differs in is, was or has at its beginning
    of_many: str | None = None

    def hypothesis(self, answer: str, entity: str) -> str:
        """Returns the sentence stating that an answer is correct."""
        return f"{answer} {self.claim.replace('{entity}', entity)}."


@dataclass(frozen=True, slots=True)
class CompositionRelation:
    """A relation for questions about its values, for the subjects that answer a simple question."""

    property_id: str
    noun: str  # noun for the values, such as ``dates of birth``
    ask: str  # the first word of the question: Who or What
    link: str  # the word between noun and subjects, such as ``of``
    sentence: str  # the hypothesis, with ``{entity}`` for the subject and ``{value}``
    is_enabled: bool = True  # true if questions are made from it

    def hypothesis(self, value: str, entity: str) -> str:
        """Returns the sentence stating that an entity has this value."""
        names = {"value": value, "entity": entity}
        return _PLACEHOLDER.sub(lambda found: names[found[1]], self.sentence)


@dataclass(frozen=True, slots=True)
class Relations:
    """All relations: as a mapping from property to relation, and as a list in the order of the file."""

    simple: Mapping[str, SimpleRelation]  # relations for questions about subjects
    composition: Mapping[str, CompositionRelation]  # relations for questions about values
    wanted_types: tuple[str, ...]  # labels of the classes that may serve as types of answers
    #: the word for a class in questions, if it is not its label
    type_words: Mapping[str, str] = field(default_factory=dict)
    #: the Wikidata item of a class, if it is not to be found by its label
    classes: Mapping[str, str] = field(default_factory=dict)

    def word_for(self, label: str) -> str:
        """Returns the word in questions for answers of a type."""
        return self.type_words.get(label, label)


RelationList = Literal["corrected", "paper", "released"]
NOT_IN_PAPER = frozenset({"P54", "P61", "P306"})
"""Simple relations of the released code that are not in the table of the paper's appendix."""


def listed_relations(relations: Relations, wanted: RelationList) -> Relations:
    """Returns the relations of the list that questions are made from.

    Args:
        relations: the package's relations.
        wanted: ``corrected`` leaves out relations that are disabled in the file; ``released`` uses all, like the
            released code; ``paper`` uses all except the simple relations that the paper's table does not
            name.
    """
    if wanted == "corrected":
        return relations
    left_out = NOT_IN_PAPER if wanted == "paper" else frozenset()
    return replace(
        relations,
        simple={
            name: replace(relation, is_enabled=name not in left_out) for name, relation in relations.simple.items()
        },
        composition={name: replace(relation, is_enabled=True) for name, relation in relations.composition.items()},
    )


def load_relations(path: str | None = None) -> Relations:
    """Reads relations from a TOML file; None for those that come with the package.

    Raises:
        SetupError: the file cannot be read, or an entry does not follow the rules at the beginning of the package's
            file. The message names the file, the entry and the expected value.
    """
    if path is not None:
        return _Reader(path).relations(read_toml(path, remedy=f"compare it with {_OWN}"))
    own = resources.files("mapping.qampari").joinpath("relations.toml").read_text("utf-8")
    return _Reader(_OWN).relations(tomllib.loads(own))


class _Reader:
    """Reads a file of relations and checks every value, so that no mistake in the file results in a wrong question."""

    def __init__(self, file: str) -> None:
        self._file = file

    def relations(self, data: dict[str, Any]) -> Relations:
        if data.keys() - _OPTIONAL != _TABLES:
            expected = f"the tables {', '.join(sorted(_TABLES))}, and optionally {', '.join(sorted(_OPTIONAL))}"
            self._fail("", expected, ", ".join(data) or "none")
        wanted = self._strings("wanted_types", data["wanted_types"])
        words = self._table("type_words", data.get("type_words", {}))
        for label, word in words.items():
            self._known_type(f"type_words.{label}", label, wanted)
            self._string(f"type_words.{label}", word)
        classes = self._table("classes", data.get("classes", {}))
        for label, item in classes.items():
            self._known_type(f"classes.{label}", label, wanted)
            if not isinstance(item, str) or not _ITEM.fullmatch(item):
                self._fail(f"classes.{label}", "a Wikidata item like Q11424", item)
        types = {
            name: self._strings(f"types.{name}", entry) for name, entry in self._table("types", data["types"]).items()
        }
        simple = {
            name: self._simple(name, entry, types.get(name, ()), wanted)
            for name, entry in self._entries("simple", data["simple"])
        }
        if stray := sorted(types.keys() - simple.keys()):
            self._fail(f"types.{stray[0]}", "a relation of [simple]", stray[0])
        composition = {
            name: self._composition(name, entry, simple.get(name))
            for name, entry in self._entries("composition", data["composition"])
        }
        return Relations(simple, composition, wanted, words, classes)

    def _entries(self, place: str, table: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, entry in self._table(place, table).items():
            if not _PROPERTY.fullmatch(name):
                self._fail(f"{place}.{name}", "a property such as P50", name)
            yield name, self._table(f"{place}.{name}", entry)

    def _simple(
        self, name: str, entry: dict[str, Any], types: tuple[str, ...], wanted: tuple[str, ...]
    ) -> SimpleRelation:
        place = f"simple.{name}"
        self._keys(place, entry, {"label", "ask", "noun", "plural", "predicate", "of_many", "claim", "enabled"})
        for label in types:
            self._known_type(f"types.{name}", label, wanted)
        ask = self._string(f"{place}.ask", entry.get("ask"))
        noun = self._string(f"{place}.noun", entry["noun"]) if "noun" in entry else None
        if types and noun is not None:
            self._fail(f"{place}.noun", "none, since the relation has types", noun)
        plural = self._string(f"{place}.plural", entry["plural"]) if "plural" in entry else noun
        if plural is None and not types:
            if ask != "Who":
                self._fail(place, "noun, plural or types, since the question does not begin with only Who", ask)
            plural = _PERSONS
        predicate = self._template(f"{place}.predicate", entry.get("predicate"), {"entity"})
        claim = self._template(f"{place}.claim", entry["claim"], {"entity"}) if "claim" in entry else predicate
        of_many = self._template(f"{place}.of_many", entry["of_many"], {"entity"}) if "of_many" in entry else None
        label = self._string(f"{place}.label", entry.get("label"))
        is_enabled = self._enabled(place, entry)
        return SimpleRelation(name, label, ask, noun, plural, predicate, claim, types, is_enabled, of_many)

    def _composition(self, name: str, entry: dict[str, Any], simple: SimpleRelation | None) -> CompositionRelation:
        place = f"composition.{name}"
        self._keys(place, entry, {"noun", "ask", "link", "claim", "enabled"})
        noun, ask, link = (self._string(f"{place}.{key}", entry.get(key)) for key in ("noun", "ask", "link"))
        if "claim" in entry:
            sentence = f"{self._template(f'{place}.claim', entry['claim'], {'entity', 'value'})}."
        elif simple is not None:
            sentence = simple.hypothesis("{entity}", "{value}")
        else:
            self._fail(place, "a claim, since it is not a simple relation", "none")
        return CompositionRelation(name, noun, ask, link, sentence, self._enabled(place, entry))

    def _known_type(self, place: str, label: str, wanted: tuple[str, ...]) -> None:
        if label not in wanted:
            self._fail(place, "a label of wanted_types", label)

    def _enabled(self, place: str, entry: dict[str, Any]) -> bool:
        value = entry.get("enabled", True)
        return value if isinstance(value, bool) else self._fail(f"{place}.enabled", "true or false", value)

    def _template(self, place: str, value: Any, names: set[str]) -> str:
        text = self._string(place, value)
        if sorted(_PLACEHOLDER.findall(text)) != sorted(names):
            self._fail(place, " and ".join(f"{{{name}}} once" for name in sorted(names)), text)
        return text

    def _keys(self, place: str, entry: dict[str, Any], known: set[str]) -> None:
        if unknown := sorted(entry.keys() - known):
            self._fail(f"{place}.{unknown[0]}", f"one of {', '.join(sorted(known))}", unknown[0])

    def _strings(self, place: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not value or len({*map(str, value)}) < len(value):
            self._fail(place, "a list of strings, each once", value)
        return tuple(self._string(place, part) for part in value)

    def _string(self, place: str, value: Any) -> str:
        return value if isinstance(value, str) and value.strip() else self._fail(place, "a text", value)

    def _table(self, place: str, value: Any) -> dict[str, Any]:
        return value if isinstance(value, dict) else self._fail(place, "a table", value)

    def _fail(self, place: str, expected: str, found: Any) -> NoReturn:
        place = shown_name(place) or "top level"
        raise SetupError(f"{self._file}: {place}: expected {expected}; found {shown_value(found)}.")


SIMPLE, COMPOSITION, INTERSECTION = "wikidata_simple", "wikidata_comp", "wikidata_intersection"
TABLE_SIMPLE, TABLE_COMPOSITION = "wikitables_simple", "wikitables_composition"
SUBSETS = (SIMPLE, COMPOSITION, INTERSECTION, TABLE_SIMPLE, TABLE_COMPOSITION)
"""Kinds of questions, named as in the published questions."""

# The verbs that the published code puts in the plural: singular -> plural.
_PLURAL = {"is": "are", "was": "were", "has": "have"}


class SimpleQuery(NamedTuple):
    """A query for the subjects that have a property with a given value."""

    property_id: str  # property of the simple relation
    entity_id: str
    type_label: str | None = None  # label of the class of the answers; None for untyped relations

    @property
    def key(self) -> str:
        """The text that identifies the query: no two queries of a release have the same key."""
        return "__".join(part for part in self if part is not None)

    @property
    def property_ids(self) -> tuple[str, ...]:
        """The relations that an answer depends on."""
        return (self.property_id,)


class IntersectionQuery(NamedTuple):
    """A query for the subjects that are answers to both of two simple queries."""

    first: SimpleQuery  # sorts before ``second`` by number of property, then of entity, then type
    second: SimpleQuery  # differs from ``first`` in property or value

    @property
    def key(self) -> str:
        """The text that identifies the query: no two queries of a release have the same key."""
        return f"{self.first.key}__{self.second.key}"

    @property
    def property_ids(self) -> tuple[str, ...]:
        """The relations that an answer depends on."""
        return (self.first.property_id, self.second.property_id)


class CompositionQuery(NamedTuple):
    """A query for the values that the answers to a simple query have for another property."""

    property_id: str  # property of the composition relation, which differs from the property of ``base``
    base: SimpleQuery  # query that selects the subjects

    @property
    def key(self) -> str:
        """The text that identifies the query: no two queries of a release have the same key."""
        return f"{self.property_id}__{self.base.key}"

    @property
    def property_ids(self) -> tuple[str, ...]:
        """The ids of the two relations that an answer depends on, first that of the inner question."""
        return (self.base.property_id, self.property_id)


Query = SimpleQuery | IntersectionQuery | CompositionQuery
_SUBSETS = {SimpleQuery: SIMPLE, CompositionQuery: COMPOSITION, IntersectionQuery: INTERSECTION}


def query_row(query: Query, counts: tuple[int, int | None, int | None, int | None], outcome: str) -> QueryRow:
    """Returns the row for a query.

    Args:
        counts: number of all answers, of answers with a page, of answers with a sentence that may prove them, and of
            validated answers.
    """
    bases = _bases(query)
    entity_ids = tuple(base.entity_id for base in bases)
    about = (_SUBSETS[type(query)], query.key, query.property_ids, entity_ids, bases[0].type_label)
    return QueryRow(*about, *counts, outcome)


def question_of(
    query: Query,
    text: str,
    entities: tuple[QuestionEntity, ...],
    answers: tuple[QuestionAnswer, ...],
    *,
    n_answers: int,
    n_validated: int,
) -> Question:
    """Returns the question for a query, before the draw."""
    about = (_SUBSETS[type(query)], query.key, text, None, query.property_ids, _bases(query)[0].type_label)
    return Question(*about, entities, answers, n_answers, n_validated)


def _bases(query: Query) -> tuple[SimpleQuery, ...]:
    if isinstance(query, SimpleQuery):
        return (query,)
    return (query.base,) if isinstance(query, CompositionQuery) else (query.first, query.second)


FAMILY_BITS = 8
"""Number of bits in a query's number for its type."""
ENTITY_BITS = 35
"""Number of bits in a query's number for its entity."""


class QueryNumbers:
    """Numbers of simple queries, ordered by property, entity and type."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._labels = (None, *sorted(set(labels)))
        self._places = {label: place for place, label in enumerate(self._labels)}
        if len(self._labels) > 1 << FAMILY_BITS:
            raise SetupError(f"{len(self._labels) - 1} types of answers: give at most {(1 << FAMILY_BITS) - 1}.")

    def type_place(self, label: str | None) -> int:
        """Returns the last bits of the number of a query with this type."""
        return self._places[label]

    def number(self, query: SimpleQuery) -> int:
        """Returns the number of a query."""
        property_, entity = int(query.property_id[1:]), int(query.entity_id[1:])
        return (property_ << ENTITY_BITS | entity) << FAMILY_BITS | self._places[query.type_label]

    def query(self, number: int) -> SimpleQuery:
        """Returns the query with a number."""
        pair, place = number >> FAMILY_BITS, number % (1 << FAMILY_BITS)
        entity = pair % (1 << ENTITY_BITS)
        return SimpleQuery(f"P{pair >> ENTITY_BITS}", f"Q{entity}", self._labels[place])


def simple_question(relations: Relations, query: SimpleQuery, entity: str) -> str:
    """Returns the question for a simple query.

    Args:
        query: the query; it has a type if and only if the relation is typed.
    """
    return f"{_head(relations, query)} {_predicate(relations, query, entity)}?"


def intersection_question(relations: Relations, query: IntersectionQuery, first: str, second: str) -> str:
    """Returns the question for an intersection: the question for the first query, joined with the predicate of the
    second."""
    predicates = _predicate(relations, query.first, first), _predicate(relations, query.second, second)
    return f"{_head(relations, query.first)} {' and '.join(predicates)}?"


def composition_question(
    relations: Relations, query: CompositionQuery, entity: str, *, as_released: bool = False
) -> str:
    """Returns the question for a composition, with the verb after "that" in the plural.

    Args:
        entity: the name of the value of the base query.
        as_released: puts only the verbs is, was and has in the plural ("persons that works for X").
    """
    asked = relations.composition[query.property_id]
    relation = relations.simple[query.base.property_id]
    subjects = relation.plural if query.base.type_label is None else relations.word_for(query.base.type_label)
    predicate = relation.of_many
    if predicate is None or as_released:
        # Before the name is inserted, so that no part of a name is mistaken for the verb.
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
