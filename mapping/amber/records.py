"""What AmbER sets are made of, and the records of the released files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from mapping.options import Checked, option

Task = Literal["qa", "sf", "fc"]
TASKS: tuple[Task, ...] = get_args(Task)
GapScale = Literal["log10", "views"]
HeadScope = Literal["all", "collection"]
TemplateForm = Literal["corrected", "released"]
FalseObjects = Literal["code", "wikidata"]
ITEM, QUANTITY = "wikibase-item", "quantity"
"""Kinds of values; others do not count."""


@dataclass(frozen=True, slots=True)
class AmberOptions(Checked):
    """Rules that can be chosen."""

    lang: str = option(
        "en", "language of names; numbers are said in words in English alone", form=r"[a-z]{2,3}(-[a-z-]+)?", like="de"
    )
    gap_on: GapScale = option(
        "log10",
        "popularities that head and tail must differ in by a tenth",
        choices={"log10": "logarithms of the views, as the authors' code", "views": "views, as the paper"},
    )
    head_scope: HeadScope = option(
        "all",
        "entities of which the most popular is the head",
        choices={"all": "all that have the name, as the authors' code", "collection": "those of the collection"},
    )
    complex_types: bool = option(
        False, "of an entity of several types, properties count that are listed for exactly one of them"
    )
    templates: TemplateForm = option("corrected", "wording of questions and claims", choices=("corrected", "released"))
    typed_templates: bool = option(False, "questions by the type of the value, where there are templates for it")
    false_objects: FalseObjects = option(
        "code",
        "where the objects of false claims are most popular",
        choices={"code": "in the collection's own tuples, as the authors' code", "wikidata": "in all entities"},
    )


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of types, as a file of types has it.

    Attributes:
        name: folder of its files.
        types: properties that tell entities of a type apart, by type.
        labels: what properties are called, by property, for slot filling.
        qa_templates: by property, then by type of the value; ``all`` for any.
        fc_templates: by property.
    """

    name: str
    types: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, str]
    qa_templates: Mapping[str, Mapping[str, tuple[str, ...]]]
    fc_templates: Mapping[str, tuple[str, ...]]

    @property
    def property_ids(self) -> frozenset[str]:
        """Properties of any of its types."""
        return frozenset(stored for many in self.types.values() for stored in many)


class Value(NamedTuple):
    """A value as Wikidata has it.

    Attributes:
        kind: ``ITEM`` or ``QUANTITY``.
        value: id of the item, or amount with its sign.
        unit: of a quantity, ``1`` or the URL of an item; None for items.
    """

    kind: str
    value: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """An item of Wikidata with a page and page views.

    Attributes:
        qid: its id.
        views: of its page; at least 1.
        aliases: label first, then aliases, as dumped.
        types: values of P31, as dumped.
        properties: values of items and quantities, as dumped, by property; also properties that have none of these.
    """

    qid: str
    views: int
    aliases: tuple[str, ...]
    types: tuple[str, ...]
    properties: Mapping[str, tuple[Value, ...]]

    @property
    def popularity(self) -> float:
        """Decimal logarithm of the views."""
        return math.log10(self.views)


class PageRef(NamedTuple):
    """A page, as released."""

    wikipedia_id: str
    title: str


class Document(NamedTuple):
    """A page with its text: KILT's paragraphs joined by blanks."""

    page: PageRef
    text: str


class FullValue(NamedTuple):
    """A value with what it is called.

    Attributes:
        kind, value, unit: see ``Value``.
        aliases: label first; of a quantity the amount without its sign.
        additional_aliases: of those who practise or use it; of a quantity the number in words.
        entity_types: P31 of an item; None for a quantity.
        is_found: whether a page of the entity names it.
    """

    kind: str
    value: str
    unit: str | None
    aliases: tuple[str, ...]
    additional_aliases: tuple[str, ...]
    entity_types: tuple[str, ...] | None
    is_found: bool = False


class AmberTuple(NamedTuple):
    """A property of an entity of a set.

    Attributes:
        property_id: of Wikidata.
        property: its label.
        amber_id: id of name, entity and property.
        provenance: pages that name a value.
        values: in the order of Wikidata.
    """

    property_id: str
    property: str
    amber_id: str
    provenance: tuple[PageRef, ...]
    values: tuple[FullValue, ...]


class SetEntity(NamedTuple):
    """An entity of a set.

    Attributes:
        qid: its id.
        popularity: decimal logarithm of its page views.
        is_head: whether it is the most popular one.
        aliases, entity_types: see ``Entity``.
        pages: its pages in the knowledge source.
        tuples: what tells it apart; may be none.
    """

    qid: str
    popularity: float
    is_head: bool
    aliases: tuple[str, ...]
    entity_types: tuple[str, ...]
    pages: tuple[PageRef, ...]
    tuples: tuple[AmberTuple, ...]


class AmberSet(NamedTuple):
    """A name and the entities that share it, in numerical order."""

    name: str
    entities: tuple[SetEntity, ...]


class Query(NamedTuple):
    """A query of a task.

    Attributes:
        query_id: ``amber_id=hash``.
        input: question, slot or claim.
        answer: names of the values; of a claim ``SUPPORTS`` or ``REFUTES``.
        tuple: that it asks for.
    """

    query_id: str
    input: str
    answer: tuple[str, ...] | str
    tuple: AmberTuple
