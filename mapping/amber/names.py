"""SQL that finds the names shared by several entities, and the entities of each set, from page views and Wikidata.

The queries run in the order in which they are listed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kbsource.columns import batch_of, required, value_rows
from kbsource.rows import Row
from kbsource.runtime.database import insert, ordered_batches
from mapping.amber.records import ITEM, QUANTITY, AmberEntity, AmberOptions, AmberValue, Collection
from mapping.amber.sets import BEARERS_OF_VALUES, INSTANCE_OF, LEAST_GAP

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEYED_VIEWS = pa.schema([*required("key", of=pa.string()), *required("views")])
"""Views of a page. Keys are ``#`` and the page id, or a title that is not in the release."""
KEYED_LINKS = pa.schema([*required("key", of=pa.string()), *required("item", "page_id")])
"""Items with a sitelink, by the same keys; page is -1 without a page."""
VIEWED = pa.schema(required("item", "page_id", "views"))
"""Items with a sitelink and views; page is -1 without a page."""
TERMS = pa.schema([*required("item", "place"), *required("text", of=pa.string())])
"""Names of items. The name with place 0 is the label, or the first alias if the item has no label."""
ITEM_KIND, QUANTITY_KIND = 1, 2
FACTS = pa.schema(
    [*required("item", "place", "property", "kind"), pa.field("value", pa.string()), pa.field("unit", pa.string())]
)
"""Statements with a known item or quantity, see ``ITEM_KIND`` and ``QUANTITY_KIND``, in the order of their places."""
NAMES = pa.schema(
    [
        *required("collection"),
        *required("name", of=pa.string()),
        pa.field("outcome", pa.string()),
        *required("n_entities", "n_members"),
    ]
)
"""Names that several entities share, at least one of them in the collection; the outcome is null for a set."""
_USED = pa.schema([*required("property"), *required("name", of=pa.string())])
_SETS = pa.schema([*required("set", "collection"), *required("name", of=pa.string())])
_ENTITIES = pa.schema(
    [
        *required("set", "item", "page_id", "views"),
        pa.field("is_head", pa.bool_()),
        *required("property", "kind"),
        pa.field("value", pa.string()),
        pa.field("unit", pa.string()),
    ]
)
_UNIT = "http://www.wikidata.org/entity/"
_MOST_OBJECTS = 1024
"""A false value is chosen from this number of the property's most popular values."""
_ROWS = 1 << 14

VIEWED_ITEMS = """
with of_pages as (select key, sum(views)::bigint as views from views group by key)
select item, page_id, coalesce(of_pages.views, 0) as views from links left join of_pages using (key)
where coalesce(of_pages.views, 0) >= {least} order by item
"""
"""VIEWED, from ``views`` and ``links``."""
VIEWS_COUNTS = """
with of_pages as (select key, sum(views)::bigint as views from views group by key)
select
    (select count(*) from links) as items_with_sitelink,
    coalesce(sum(views) filter (has_item), 0)::bigint as views_with_item,
    coalesce(sum(views) filter (has_item is null), 0)::bigint as views_without_item,
    count(*) filter (has_item is null) as pages_without_item
from of_pages left join (select distinct key, true as has_item from links) using (key)
"""
"""Numbers of views by outcome, from the tables ``views`` and ``links``."""


class _TypeRow(Row):
    """A type of a collection."""

    collection: int
    type: str


_MEMBERS = f"""
create table members as
select distinct collection, item from facts join types on facts.value = types.type
where property = {INSTANCE_OF[1:]} and kind = {ITEM_KIND}
"""
"""Items of each collection."""
_BEARERS = """
create table bearers as
with
    named as (select distinct text as name, item from terms),
    shared as (select name from named group by name having count(*) > 1)
select name, item, views from named semi join shared using (name) join viewed using (item)
"""
"""Entities that share a name."""
_NAMES = f"""
create table names as
with
    of_all as (select name, count(*) as n_entities, max(views) as most_views from bearers group by name),
    of_collections as (
        select collection, name, count(*) as n_members, max(views, 2) as most
        from bearers join members using (item) group by collection, name
    ),
    scaled as (
        select *, case $gap_on when 'log10' then log10(most[1]) else most[1]::double end as high,
            case $gap_on when 'log10' then log10(most[2]) else most[2]::double end as low
        from of_collections join of_all using (name)
    )
select collection, name, n_entities, n_members,
    case $head_scope when 'all' then most_views else most[1] end as top_views,
    case
        when n_members = 1 then 'too_few_members'
        when high + low = 0 or (high - low) / ((high + low) / 2) < {LEAST_GAP} then 'small_gap'
    end as outcome
from scaled
"""
"""The outcome of each name in each collection. It is null if the name may become a set, which requires that the views
of the collection's two most popular entities differ."""
_SETS_TABLE = """
create table sets as
select row_number() over (order by collection, name) as set, collection, name, top_views
from names where outcome is null
"""
_SET_MEMBERS = """
create table set_members as
select set, item, views = top_views as is_head
from sets join bearers using (name) join members using (collection, item)
"""
_OF_VALUES = ", ".join(property_id[1:] for property_id in BEARERS_OF_VALUES)
_SET_ENTITIES = f"""
with
    of_members as (
        select distinct set, value[2:]::bigint as item from set_members join facts using (item)
        where kind = {ITEM_KIND} and property <> {INSTANCE_OF[1:]}
    ),
    of_values as (
        select set, value[2:]::bigint as item from of_members join facts using (item)
        where kind = {ITEM_KIND} and property in ({_OF_VALUES})
    ),
    entities as (
        select set, item, max(is_head) as is_head
        from (
            select set, item, is_head from set_members
            union all by name select set, item from of_members
            union all by name select set, item from of_values
        )
        group by set, item
    ),
    described as (
        select item, place, 0 as property, 0 as kind, text as value, null as unit from terms
        union all by name select * from facts
    )
select set, item, page_id, views, is_head, property, kind, value, unit
from entities join viewed using (item) join described using (item)
where is_head is not null or property in (0, {INSTANCE_OF[1:]}, {_OF_VALUES})
order by set, item, property > 0, place
"""
"""The entities of each set, and the entities that provide the names of their values. There is one row for each name
(property 0) and each statement."""
_USED_VALUES = f"""
with
    counted as (
        select property, kind, value, count(*) as n,
            case kind when {ITEM_KIND} then try_cast(value[2:] as bigint) else 0 end as number
        from facts where property in (select unnest($properties)) group by all
    ),
    ranked as (
        select *, row_number() over (partition by property order by n desc, number, value, kind) as rank from counted
    ),
    labels as (select item, text from terms where place = 0)
select property, case kind when {ITEM_KIND} then text else value end as name
from ranked left join labels on kind = {ITEM_KIND} and item = number
where rank <= {_MOST_OBJECTS} and name is not null order by property, rank
"""


def find_names(db: DuckDBPyConnection, collections: Iterable[Collection], options: AmberOptions) -> None:
    """Makes the tables ``names``, ``sets`` and ``set_members`` from ``viewed``, ``terms`` and ``facts``.

    A name is used if its two most popular entities of a collection differ in popularity. All of its entities in the
    collection are then members; those with the most views are heads.
    """
    rows = [_TypeRow(number, type_) for number, collection in enumerate(collections) for type_ in collection.types]
    batch = batch_of(rows, _TypeRow)
    insert(db, "types", [batch], batch.schema)
    db.execute(_MEMBERS)
    db.execute(_BEARERS)
    db.execute(_NAMES, {"gap_on": options.gap_on, "head_scope": options.head_scope})
    db.execute(_SETS_TABLE)
    db.execute(_SET_MEMBERS)


class NamedSet(NamedTuple):
    """A name that several entities share."""

    number: int  # sets are numbered by collection and name
    collection: int
    name: str
    members: list[tuple[AmberEntity, bool]]  # entities of the collection, by number; true for heads
    page_ids: list[int]  # ids of the pages of these entities; -1 for an entity without a page
    known: dict[str, AmberEntity]  # by id: the members, and the entities that provide the names of their values


def named_sets(db: DuckDBPyConnection) -> Iterator[NamedSet]:
    """Reads the sets that ``find_names`` made, in order, with their entities. Memory: one set and some rows."""
    sets = value_rows(ordered_batches(db.cursor(), "select set, collection, name from sets order by set", _SETS))
    entities = value_rows(ordered_batches(db.cursor(), _SET_ENTITIES, _ENTITIES, n_rows=_ROWS))
    for (number, collection, name), (_, of_set) in zip(sets, groupby(entities, key=itemgetter(0)), strict=True):
        amber_set = NamedSet(number, collection, name, [], [], {})
        for (_, item, page_id, views, is_head), rows in groupby(of_set, key=itemgetter(slice(5))):
            entity = _entity(item, views, (row[5:] for row in rows))
            amber_set.known[entity.qid] = entity
            if is_head is not None:
                amber_set.members.append((entity, is_head))
                amber_set.page_ids.append(page_id)
        yield amber_set


def _entity(item: int, views: int, described: Iterable[tuple[int, int, str, str | None]]) -> AmberEntity:
    aliases: list[str] = []
    properties: dict[str, list[AmberValue]] = {}
    for property_, kind, value, unit in described:
        if property_:
            properties.setdefault(f"P{property_}", []).append(_value(kind, value, unit))
        else:
            aliases.append(value)
    types = tuple(value.value for value in properties.pop(INSTANCE_OF, ()) if value.kind == ITEM)
    own = {name: tuple(values) for name, values in properties.items()}
    return AmberEntity(f"Q{item}", views, tuple(aliases), types, own)


def _value(kind: int, value: str, unit: str | None) -> AmberValue:
    if kind == ITEM_KIND:
        return AmberValue(ITEM, value)
    sign = "" if value.startswith("-") else "+"
    return AmberValue(QUANTITY, sign + value, "1" if unit is None else _UNIT + unit)


def used_values(db: DuckDBPyConnection, collections: Iterable[Collection]) -> dict[str, list[str]]:
    """Returns the names of the most used values of each property in ``facts``, the most used first, then by number."""
    numbers = sorted({int(property_id[1:]) for collection in collections for property_id in collection.property_ids})
    objects: dict[str, dict[str, None]] = {}
    for property_, name in db.execute(_USED_VALUES, {"properties": numbers}).fetchall():
        objects.setdefault(f"P{property_}", {})[name] = None
    return {property_id: list(names) for property_id, names in objects.items()}
