"""The parts of AmbER sets: options, collections of types read from a file, and the rows of the tables."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Any, Literal, NamedTuple, get_args

from kbsource.documents import read_json, read_yaml
from kbsource.errors import SetupError, shown_name, shown_value
from kbsource.rows import Columns, Row
from mapping.options import Checked, Choices, Language

OUTCOMES: dict[str, str] = {
    "set": "a set of the release",
    "too_few_members": "the collection has fewer than two of its entities",
    "small_gap": "the two most popular entities are too similar in popularity",
    "few_distinguished": "fewer than two entities are distinguished by a property with a named value",
    "no_head_distinguished": "the head has another type, or no property with a named value distinguishes it",
    "few_with_page": "fewer than two entities with such a property have pages",
    "no_head_with_page": "the head has no page",
    "few_found": "fewer than two entities have a page that names a value",
    "no_head_found": "the page of the head does not name a value",
    "few_accepted": "--accept rejects all entities, or all but one",
    "no_head_accepted": "--accept rejects the head",
}
"""Outcomes of names, in the order of the steps."""


Task = Literal["qa", "sf", "fc"]
TASKS: tuple[Task, ...] = get_args(Task)
GapScale = Literal["log10", "views"]
PagesPerItem = Literal["one", "all"]
HeadScope = Literal["all", "collection"]
TemplateForm = Literal["corrected", "released"]
FalseObjects = Literal["code", "wikidata"]
ITEM, QUANTITY = "wikibase-item", "quantity"
"""Kinds of values; all others are ignored."""


@dataclass(frozen=True, slots=True)
class AmberOptions(Checked):
    """Options that change the rules."""

    lang: Language = "en"
    """Language of names; numbers are written in words only in English."""
    gap_on: GapScale = "log10"
    """Scale on which the popularities of head and tail are compared. They must differ by at least 10 % of their mean.
    log10: logarithms of the views, as in the authors' code; views: views, as in the paper.
    """
    head_scope: HeadScope = "all"
    """Entities among which the head, the most popular entity, is chosen. all: every entity with the name, as in the
    authors' code; collection: only entities of the collection.
    """
    complex_types: bool = False
    """For entities of several types, use only properties that are listed for exactly one of them."""
    templates: TemplateForm = "corrected"
    """Wording of questions and claims."""
    typed_templates: bool = False
    """Word questions by the type of the value, if there are templates for it."""
    false_objects: FalseObjects = "code"
    """Facts that determine how popular the object of a false claim is. code: only the collection's own tuples, as in
    the authors' code; wikidata: all entities, as in the paper.
    """
    pages_per_item: PagesPerItem = "one"
    """Gold pages of an entity. one: the page that has the item; all: also pages that claim the item of another page, as
    in the published sets.
    """


AMBER_CHOICES: Choices = {
    "paper": {
        "gap_on": "views",
        "head_scope": "collection",
        "complex_types": False,
        "templates": "released",
        "typed_templates": False,
        "false_objects": "wikidata",
        "pages_per_item": "all",
        "deprecated": "keep",
    },
    "released": {
        "gap_on": "log10",
        "head_scope": "all",
        "complex_types": False,
        "templates": "released",
        "typed_templates": False,
        "false_objects": "code",
        "pages_per_item": "all",
        "deprecated": "keep",
    },
}
"""Settings for making AmbER sets: as in sections 3.2 to 3.4 of the paper, or as in the code at fc8415e.

The published files were made with parts of both: their wording, with several pages per item and with deprecated
statements.
"""


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of types, as read from a file of types."""

    name: str  # name of the collection, and of the folder of its files
    types: Mapping[str, tuple[str, ...]]  # the properties that can distinguish entities, by type
    labels: Mapping[str, str]  # labels of properties, by property, for slot filling
    qa_templates: Mapping[
        str, Mapping[str, tuple[str, ...]]
    ]  # questions by property, then by type of the value; ``all`` stands for any type
    fc_templates: Mapping[str, tuple[str, ...]]  # claims by property

    @property
    def property_ids(self) -> frozenset[str]:
        """The properties of all types of the collection."""
        return frozenset(stored for many in self.types.values() for stored in many)


class AmberValue(NamedTuple):
    """A value in Wikidata."""

    kind: str  # kind of the value: ``ITEM`` or ``QUANTITY``
    value: str  # id of the item, or amount with its sign
    unit: str | None = None  # unit of a quantity: ``1`` or the URL of an item; None for items


@dataclass(frozen=True, slots=True)
class AmberEntity:
    """An item of Wikidata with a page and page views."""

    qid: str
    views: int  # views of its page; at least 1
    aliases: tuple[str, ...]  # label first, then aliases, as in the dump
    types: tuple[str, ...]  # values of P31, as in the dump
    #: values that are items or quantities, as in the dump, by property; includes properties without such values
    properties: Mapping[str, tuple[AmberValue, ...]]

    @property
    def popularity(self) -> float:
        """Decimal logarithm of the views."""
        return math.log10(self.views)


class PageRef(Row):
    """A page, as in the released files."""

    wikipedia_id: Annotated[str, "page id"]
    title: Annotated[str, "title of the page"]


class FullValue(Row):
    """A value with its names."""

    type: Annotated[str, "wikibase-item | quantity"]
    qid: Annotated[str | None, "item; null for a quantity"] = None
    amount: Annotated[str | None, "amount of a quantity, with its sign"] = None
    unit: Annotated[str | None, "unit of the amount: 1, or the URL of an item"] = None
    aliases: Annotated[tuple[str, ...], "label, then aliases; for a quantity, the amount without its sign"] = ()
    additional_aliases: Annotated[
        tuple[str, ...],
        "names of the item's practitioners or users; for a quantity, the number in words",
    ] = ()
    entity_types: Annotated[tuple[str, ...] | None, "values of P31 of an item"] = None
    found_in_passage: Annotated[bool, "true if the first 350 tokens of a page contain an alias"] = False


class AmberTuple(Row):
    """A property of an entity in a set."""

    property_id: Annotated[str, "property that only this entity of the set has"]
    property: Annotated[str, "label of the property"]
    amber_id: Annotated[str, "id made from name, entity and property; unique in the collection"]
    provenance: Annotated[tuple[PageRef, ...], "pages that name a value"]
    values: Annotated[tuple[FullValue, ...], "values of the property"]


class NamedEntity(Row):
    """One of the entities that share a name."""

    qid: Annotated[str, "Wikidata item"]
    popularity: Annotated[float, "decimal logarithm of its page views"]
    is_head: Annotated[bool, "true for the head, the most popular entity of the set"]
    aliases: Annotated[tuple[str, ...], "label, then aliases"]
    entity_types: Annotated[tuple[str, ...], "values of P31"]
    wikipedia: Annotated[tuple[PageRef, ...], "its pages in the knowledge source"]


class SetEntity(NamedEntity):
    """An entity of a set with its distinguishing tuples, which may be empty."""

    tuples: tuple[AmberTuple, ...]


class Signals(Row):
    """Signals about a tuple from the page of its entity, in addition to whether the page names a value."""

    bleu: Annotated[float | None, "BLEU of name, property and value against the span; null if there is no span"]
    start_element: Annotated[int | None, "number of the element where the span that best states the tuple starts"]
    start_char: Annotated[int | None, "first code point of the span in the element's text"]
    end_element: Annotated[int | None, "number of the element where the span ends"]
    end_char: Annotated[int | None, "end of the span in the element's text, one past its last code point"]
    text: Annotated[str | None, "text of the span"]
    hypothesis: Annotated[str, "the tuple as a sentence, with a value that was found"]
    entailment: Annotated[float | None, "probability of entailment; null if not judged"] = None
    neutral: Annotated[float | None, "probability of neutral; null if not judged"] = None
    contradiction: Annotated[float | None, "probability of contradiction; null if not judged"] = None


class SetRow(Row):
    """One row per AmbER set, sorted by collection and name."""

    collection: Annotated[str, "collection of types, such as human"]
    name: Annotated[str, "name that the entities share"]
    entities: Annotated[tuple[NamedEntity, ...], "entities that share the name"]


class TupleRow(Row):
    """One row per distinguishing property of an entity of a set, in the order of the sets."""

    collection: Annotated[str, "collection of types, such as human"]
    name: Annotated[str, "name that the entities share"]
    qid: Annotated[str, "entity"]
    tuple: Annotated[AmberTuple, Columns()]
    signals: Annotated[Signals, Columns()]


class SetQueryRow(Row):
    """One row per query about an entity of a set, by task, in the order of the sets."""

    collection: Annotated[str, "collection of types, such as human"]
    task: Annotated[str, "qa | sf | fc"]
    name: Annotated[str, "name that the entities share"]
    qid: Annotated[str, "entity that the query is about"]
    property_id: Annotated[str, "property that the query asks for"]
    query_id: Annotated[str, "id, unique in the task"]
    input: Annotated[str, "question, slot or claim"]
    answers: Annotated[tuple[str, ...], "names of the values; SUPPORTS or REFUTES for a claim"]
    provenance: Annotated[tuple[PageRef, ...], "pages that answer the query"]


class NameRow(Row):
    """One row per name that several entities share, at least one of them in the collection; sorted by collection and
    name."""

    collection: Annotated[str, "collection of types, such as human"]
    name: Annotated[str, "name of several entities, at least one of them in the collection"]
    outcome: Annotated[str, "set, or the reason why there is no set"]
    n_entities: Annotated[int, "number of entities that have the name"]
    n_members: Annotated[int, "number of entities of the collection that have the name"]


class AmberSet(NamedTuple):
    """A name and the entities that share it, in numerical order."""

    name: str
    entities: tuple[SetEntity, ...]


class AmberQuery(NamedTuple):
    """A query of a task."""

    query_id: str  # id of the query, in the form ``amber_id=hash``
    input: str  # question, slot or claim
    answer: tuple[str, ...] | str  # names of the values; ``SUPPORTS`` or ``REFUTES`` for a claim
    tuple: AmberTuple  # the property that it asks for


ANY = "all"
"""Key of templates for values of any type."""
_KEYS = {"types", "qa_templates", "fc_templates"}
_RELEASED = "released"
_ID = {
    "item": re.compile("Q[1-9][0-9]{0,17}"),
    "property": re.compile("P[1-9][0-9]{0,17}"),
    "name": re.compile(r"[\w-]{1,100}"),
}
_OWN = "mapping/amber/collections.json"
_REMEDY = f"compare it with {_OWN}"


def load_collections(path: str | None, names: Sequence[str], templates: TemplateForm) -> tuple[Collection, ...]:
    """Reads collections from a file in JSON or YAML.

    Args:
        path: of the file; None for the package's own.
        names: the collections to read, in this order; empty for all.
        templates: ``released`` uses the wording of the published files where the file has it.

    Raises:
        SetupError: the file is invalid, or a name is unknown. The message names the file, the entry and the expected
            value.
    """
    if path is None:
        path, data = _OWN, json.loads(resources.files("mapping.amber").joinpath("collections.json").read_bytes())
    else:
        data = (read_json if path.endswith(".json") else read_yaml)(path, remedy=_REMEDY)
    reader = _Reader(path)
    found = {name: reader.collection(name, entry, templates) for name, entry in reader.entries("", data, "name")}
    if unknown := [name for name in names if name not in found]:
        raise SetupError(f"--collection {unknown[0]}: {path} has {', '.join(found)}; choose from these.")
    return tuple(found[name] for name in names or found)


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path

    def collection(self, name: str, data: Any, templates: TemplateForm) -> Collection:
        own = dict(self.entries(name, data, "name"))
        if own.keys() - {_RELEASED} != _KEYS:
            self._fail(name, f"{', '.join(sorted(_KEYS))}, and optionally {_RELEASED}", ", ".join(own))
        types = {
            type_id: self._texts(f"{name}.types.{type_id}", many, "property")
            for type_id, many in self.entries(f"{name}.types", own["types"], "item")
        }
        qa, fc = self._by_property(name, own, "qa_templates"), self._by_property(name, own, "fc_templates")
        if templates == _RELEASED and _RELEASED in own:
            place = f"{name}.{_RELEASED}"
            published = {"qa_templates": {}, "fc_templates": {}} | dict(self.entries(place, own[_RELEASED], "name"))
            for property_id, typed in self._by_property(place, published, "qa_templates").items():
                corrected = (
                    dict(self.entries(f"{name}.qa_templates.{property_id}", qa[property_id], "name"))
                    if property_id in qa
                    else {}
                )
                qa[property_id] = corrected | dict(self.entries(f"{place}.qa_templates.{property_id}", typed, "name"))
            fc |= self._by_property(place, published, "fc_templates")
        collection = Collection(
            name,
            types,
            {},
            {property_id: self._typed(f"{name}.qa_templates.{property_id}", many) for property_id, many in qa.items()},
            {
                property_id: self._templates(f"{name}.fc_templates.{property_id}", many, 2)
                for property_id, many in fc.items()
            },
        )
        for kind, known in (("qa_templates", collection.qa_templates), ("fc_templates", collection.fc_templates)):
            if missing := sorted(collection.property_ids - known.keys()):
                self._fail(f"{name}.{kind}", f"templates of {missing[0]}, which is a property of types", "none")
        return collection

    def _by_property(self, name: str, own: Mapping[str, Any], kind: str) -> dict[str, Any]:
        return dict(self.entries(f"{name}.{kind}", own[kind], "property")) if own[kind] != {} else {}

    def entries(self, place: str, data: Any, kind: str) -> Iterator[tuple[str, Any]]:
        if not isinstance(data, Mapping) or not data:
            self._fail(place, f"entries by {kind}", data)
        for key, value in data.items():
            if not isinstance(key, str) or not _ID[kind].fullmatch(key):
                self._fail(place, f"the id of a Wikidata {kind}" if kind != "name" else "a plain word", key)
            yield key, value

    def _typed(self, place: str, data: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(data, Mapping) or ANY not in data:
            self._fail(place, f"templates by type, including {ANY}", data)
        return {type_id: self._templates(f"{place}.{type_id}", many, 1) for type_id, many in data.items()}

    def _templates(self, place: str, data: Any, n_things: int) -> tuple[str, ...]:
        texts = self._texts(place, data, None)
        for text in texts:
            for thing in ("$entity", "$object")[:n_things]:
                if thing not in text:
                    self._fail(place, f"{thing} in it", text)
        return texts

    def _texts(self, place: str, data: Any, kind: str | None) -> tuple[str, ...]:
        if not isinstance(data, list) or not data:
            self._fail(place, "a list", data)
        for text in data:
            if not isinstance(text, str) or (kind is not None and not _ID[kind].fullmatch(text)):
                self._fail(place, "a text" if kind is None else f"the id of a Wikidata {kind}", text)
        return tuple(data)

    def _fail(self, place: str, expected: str, found: Any) -> None:
        place = shown_name(place) or "top level"
        raise SetupError(f"{self._path}: {place}: expected {expected}; found {shown_value(found)}; {_REMEDY}")
