"""Rows of a release of Wikidata. Ids are strings such as ``Q42`` and ``P31``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import pyarrow as pa

from kbsource.columns import schema_of
from kbsource.records import BadRecord
from kbsource.release.manifest import Count, InputCounts
from kbsource.rows import Columns, Int8, Int32, Row


class Term(Row, order=True):
    """A text in a language."""

    language: Annotated[str, "language code"]
    text: Annotated[str, "the text"]


class Terms(Row):
    """The columns that items and properties share."""

    label: Annotated[
        str | None, "label in the first chosen language that has one, otherwise the label for all languages (mul)"
    ]
    label_language: Annotated[str | None, "language of the label"]
    labels: Annotated[tuple[Term, ...], "labels in the chosen languages, their variants and mul, as in the dump"]
    descriptions: Annotated[tuple[Term, ...], "descriptions in the same languages"]
    aliases: Annotated[tuple[Term, ...], "aliases in the same languages, several per language"]
    n_statements: Annotated[Int32, "number of statements about the {} in the table statements"]
    revision_id: Annotated[int | None, "id of the revision in the dump"]


class Value(Row):
    """The content of a statement or a qualifier."""

    snak: Annotated[str, "value | somevalue (unknown value) | novalue (no value)"]
    datatype: Annotated[str | None, "datatype of the property, as in the dump; null in old dumps"]
    value_type: Annotated[
        str | None,
        "entity | string | time | quantity | monolingualtext | globecoordinate | other; null unless snak is value",
    ]
    value: Annotated[
        str | None,
        "entity: id; time: as in the dump; quantity: amount without +; globecoordinate: latitude,longitude; string and "
        "monolingualtext: the text; other: the datavalue as JSON",
    ]
    language: Annotated[str | None, "language of a monolingualtext"]
    unit: Annotated[str | None, "item of a quantity's unit; null without a unit"]
    lower: Annotated[str | None, "lower bound of a quantity"]
    upper: Annotated[str | None, "upper bound of a quantity"]
    year: Annotated[int | None, "year of a time; -44 is 44 BC"]
    month: Annotated[Int8 | None, "month of a time; null if the precision is coarser"]
    day: Annotated[Int8 | None, "day of a time; null if the precision is coarser"]
    precision: Annotated[
        Int8 | None, "precision of a time: 11 day, 10 month, 9 year, 8 decade, 7 century, 6 millennium"
    ]
    calendar: Annotated[str | None, "calendar of a time: gregorian | julian | id of the item"]
    latitude: Annotated[float | None, "latitude of a globecoordinate, in degrees"]
    longitude: Annotated[float | None, "longitude of a globecoordinate, in degrees"]
    globe: Annotated[str | None, "item of the globe; Q2 is the Earth"]


class Qualifier(Row):
    """A qualifier of a statement."""

    property_id: Annotated[str, "property of the qualifier"]
    value: Annotated[Value, Columns()]


class Item(Row):
    """One row per item, in the order of the dump. A chosen language includes its variants (`en` includes `en-gb`)."""

    item_id: Annotated[str, "Q42; unique"]
    terms: Annotated[Terms, Columns(word="item")]
    n_sitelinks: Annotated[Int32, "number of sitelinks in the dump, to all wikis"]


class Property(Row):
    """One row per property, in the order of the dump."""

    property_id: Annotated[str, "P31; unique"]
    datatype: Annotated[str, "type of its values: wikibase-item, time, …"]
    terms: Annotated[Terms, Columns(word="property")]


class Sitelink(Row):
    """One row per sitelink to a chosen wiki, in the order of the dump."""

    item_id: Annotated[str, "item that the page is about"]
    site: Annotated[str, "wiki, such as enwiki"]
    title: Annotated[str, "title of the page, with spaces"]


class Statement(Row):
    """One row per statement of an item or property, in the order of the dump, without references. Qualifiers also have
    the columns from `snak` to `globe`.
    """

    entity_id: Annotated[str, "item or property that the statement is about"]
    property_id: Annotated[str, "property of the statement"]
    rank: Annotated[str, "preferred | normal | deprecated"]
    value: Annotated[Value, Columns()]
    qualifiers: Annotated[tuple[Qualifier, ...], "qualifiers with the chosen properties, in the order of the dump"]


class ClassPair(Row):
    """One row per pair of a class and a superclass that it reaches over any number of P279 statements (subclass of),
    sorted by the numbers of class and superclass. Deprecated statements are ignored. To find out whether an item is a
    film, join its values of P31 with `class_id` where `superclass_id` is Q11424.
    """

    class_id: Annotated[str, "item that is a class: it has a P279 statement, or is a value of P279 or P31"]
    superclass_id: Annotated[str, "the class itself, or a class that it reaches over P279"]
    distance: Annotated[Int32, "smallest number of P279 statements between them; 0 for the class itself"]


WIKIDATA_TABLES: dict[str, pa.Schema] = {
    "items": schema_of(Item),
    "properties": schema_of(Property),
    "sitelinks": schema_of(Sitelink),
    "statements": schema_of(Statement),
    "classes": schema_of(ClassPair),
    "rejected": schema_of(BadRecord),
}


@dataclass(frozen=True, slots=True)
class EntityCounts(InputCounts):
    """Counts of the lines read by outcome. The invariant is lines_read = items + properties + other_entities +
    rejected.
    """

    lines_read: Count = 0
    items: Count = 0
    properties: Count = 0
    other_entities: Count = 0
    rejected: dict[str, Count] = field(default_factory=dict)
