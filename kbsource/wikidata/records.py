"""Rows of a release of Wikidata. Ids are text with their letter, as everywhere in Wikidata."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa

from kbsource.columns import schema_of
from kbsource.records import BadRecord
from kbsource.rows import Columns, Int8, Int32, Row


class Term(Row, order=True):
    """A text in a language."""

    language: Annotated[str, "language code"]
    text: Annotated[str, "the text"]


class Terms(Row):
    """What items and properties have in common."""

    label: Annotated[str | None, "label in the first chosen language that has one, else in mul"]
    label_language: Annotated[str | None, "language of the label"]
    labels: Annotated[tuple[Term, ...], "labels in the chosen languages, their variants and mul, as dumped"]
    descriptions: Annotated[tuple[Term, ...], "descriptions, likewise"]
    aliases: Annotated[tuple[Term, ...], "aliases, likewise, several a language"]
    n_statements: Annotated[Int32, "rows of statements that are about the {}"]
    revision_id: Annotated[int | None, "revision that was dumped"]


class Value(Row):
    """What a statement or a qualifier says."""

    snak: Annotated[str, "value | somevalue (unknown) | novalue (none)"]
    datatype: Annotated[str | None, "of the property, as dumped; old dumps lack it"]
    value_type: Annotated[
        str | None,
        "entity | string | time | quantity | monolingualtext | globecoordinate | other; null unless snak is value",
    ]
    value: Annotated[
        str | None,
        "entity: id; time: as dumped; quantity: amount without +; globecoordinate: latitude,longitude; string and "
        "monolingualtext: the text; other: the datavalue as JSON",
    ]
    language: Annotated[str | None, "of a monolingualtext"]
    unit: Annotated[str | None, "item of a quantity's unit; null for none"]
    lower: Annotated[str | None, "lower bound of a quantity"]
    upper: Annotated[str | None, "upper bound of a quantity"]
    year: Annotated[int | None, "of a time; -44 is 44 BC"]
    month: Annotated[Int8 | None, "of a time; null when the precision does not reach it"]
    day: Annotated[Int8 | None, "of a time; null when the precision does not reach it"]
    precision: Annotated[Int8 | None, "of a time: 11 day, 10 month, 9 year, 8 decade, 7 century, 6 millennium"]
    calendar: Annotated[str | None, "of a time: gregorian | julian | id of the item"]
    latitude: Annotated[float | None, "degrees"]
    longitude: Annotated[float | None, "degrees"]
    globe: Annotated[str | None, "item of the globe; Q2 is the Earth"]


class Qualifier(Row):
    """A qualifier of a statement."""

    property_id: Annotated[str, "property of the qualifier"]
    value: Annotated[Value, Columns()]


class Item(Row):
    """One row per item, in the order of the dump. A chosen language takes in its variants (`en-gb` with `en`)."""

    item_id: Annotated[str, "Q42; unique"]
    terms: Annotated[Terms, Columns(word="item")]
    n_sitelinks: Annotated[Int32, "sitelinks in the dump, of all wikis"]


class Property(Row):
    """One row per property, in the order of the dump."""

    property_id: Annotated[str, "P31; unique"]
    datatype: Annotated[str, "type of its values: wikibase-item, time, …"]
    terms: Annotated[Terms, Columns(word="property")]


class Sitelink(Row):
    """One row per sitelink to a chosen wiki, in the order of the dump."""

    item_id: Annotated[str, "item that the page is about"]
    site: Annotated[str, "wiki, as enwiki"]
    title: Annotated[str, "title of the page, with spaces"]


class Statement(Row):
    """One row per statement of an item or property, in the order of the dump; references are left out. The columns from
    `snak` to `globe` stand in the qualifiers again."""

    entity_id: Annotated[str, "item or property that the statement is about"]
    property_id: Annotated[str, "its property"]
    rank: Annotated[str, "preferred | normal | deprecated"]
    value: Annotated[Value, Columns()]
    qualifiers: Annotated[tuple[Qualifier, ...], "qualifiers with the chosen properties, as dumped"]


class ClassPair(Row):
    """For every class all classes above it over P279 (subclass of), by number of the class, then of the superclass.
    Deprecated statements are left out. To say whether an item is a film: join its P31 values with `class_id` where
    `superclass_id` is Q11424."""

    class_id: Annotated[str, "an item that is a class: it has P279, or is a value of P279 or P31"]
    superclass_id: Annotated[str, "the class itself, or one reached over P279"]
    distance: Annotated[Int32, "fewest P279 steps; 0 is the class itself"]


WIKIDATA_TABLES: dict[str, pa.Schema] = {
    "items": schema_of(Item),
    "properties": schema_of(Property),
    "sitelinks": schema_of(Sitelink),
    "statements": schema_of(Statement),
    "classes": schema_of(ClassPair),
    "rejected": schema_of(BadRecord),
}
