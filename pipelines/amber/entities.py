"""Settings of AmbER sets, and the items with a page and page views: their names and statements in Wikidata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, keep_chunk, read_chunk_report, write_chunk
from kbsource.runtime.database import ordered_batches
from kbsource.runtime.warehouse import warehouse
from mapping.amber.names import (
    FACTS,
    ITEM_KIND,
    KEYED_LINKS,
    KEYED_VIEWS,
    QUANTITY_KIND,
    TERMS,
    VIEWED,
    VIEWED_ITEMS,
    VIEWS_COUNTS,
)
from mapping.amber.records import Collection
from mapping.amber.sets import BEARERS_OF_VALUES, INSTANCE_OF
from mapping.qampari.classes import ItemSet, Numbers, item_numbers
from pipelines.options.amber import AmberJobOptions
from pipelines.primitives.join_tables import ONLY, Chunks, stored_table
from pipelines.primitives.page_texts import PagesPlan
from pipelines.runners.counters import count
from pipelines.transforms.tables import ReadStatements, ReadTable

VIEWS_POWER = "views_2^"
"""Prefix of the counts of entities by views: each class ranges from a power of two to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberPlan(PagesPlan):
    """Settings shared by all steps."""

    options: AmberJobOptions
    collections: tuple[Collection, ...]  # collections with the labels of their properties
    site: str  # database name of the wiki, such as enwiki, as in sitelinks
    #: pages that claim the item of another page, by item; empty unless they are also gold pages
    further_pages: Mapping[str, tuple[int, ...]]


_COLUMNS = {
    "pageviews": ("title", "page_id", "views"),
    "sitelinks": ("item_id", "site", "title"),
    "items": ("item_id", "labels", "aliases"),
    "statements": ("entity_id", "property_id", "rank", "value_type", "value", "unit"),
}


def table_reader(name: str, paths: Mapping[str, tuple[str, ...]]) -> ReadTable:
    """Returns the reader of a table; ``paths`` maps the name of every table to the paths of its files."""
    return (ReadStatements if name == "statements" else ReadTable)(paths[name], _COLUMNS[name])


def key_views(batch: pa.RecordBatch, *, plan: AmberPlan) -> pa.RecordBatch:
    """Returns views of pages as rows of KEYED_VIEWS."""
    pages, page_ids = plan.pages.of_items(), pc.fill_null(batch["page_id"], -1).to_numpy()
    _, is_there = pages.positions(page_ids)
    keys = [
        _key(page_id if there else pages.resolve(title), title)
        for title, page_id, there in zip(batch["title"].to_pylist(), page_ids.tolist(), is_there, strict=True)
    ]
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.string()), batch["views"]], schema=KEYED_VIEWS)


def key_links(batch: pa.RecordBatch, *, plan: AmberPlan) -> pa.RecordBatch:
    """Returns sitelinks to pages of the wiki as rows of KEYED_LINKS."""
    batch = batch.filter(pc.equal(batch["site"], plan.site))
    items = item_numbers(batch["item_id"])
    page_ids = plan.pages.of_items().page_ids(items)
    keys = [
        _key(None if page_id < 0 else page_id, title)
        for title, page_id in zip(batch["title"].to_pylist(), page_ids.tolist(), strict=True)
    ]
    columns = [pa.array(keys, pa.string()), pa.array(items), pa.array(page_ids)]
    return pa.RecordBatch.from_arrays(columns, schema=KEYED_LINKS)


def _key(page_id: int | None, title: str) -> str:
    return title if page_id is None else f"#{page_id}"  # no title starts with this character


def join_views(views: Chunks, links: Chunks, *, plan: AmberPlan) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Joins the views of pages with the sitelinks to them. The report has the counts.

    All KEYED_VIEWS and KEYED_LINKS -> (key, ``BatchRef`` of VIEWED).
    """

    def make(path: str) -> None:
        tables = {"views": stored_table(KEYED_VIEWS, views), "links": stored_table(KEYED_LINKS, links)}
        with warehouse(tables, memory_mb=plan.options.memory) as db:
            counted = db.sql(VIEWS_COUNTS).to_arrow_table().to_pylist()[0]
            report = Report(Counter(counted))
            rows = ordered_batches(db, VIEWED_ITEMS.format(least=plan.options.min_views), VIEWED)
            write_chunk(_counted(rows, report), VIEWED, report, path=path)

    viewed = keep_chunk(plan.folder("viewed"), ONLY, make)
    count(read_chunk_report(viewed.path)[1].counts)
    yield ONLY, viewed


def _counted(batches: Iterator[pa.RecordBatch], report: Report) -> Iterator[pa.RecordBatch]:
    """Passes on the rows of VIEWED, and adds to the report how many entities have each number of views."""
    for batch in batches:
        report.counts["items_viewed"] += batch.num_rows
        powers, n_of = np.unique(np.frexp(batch["views"].to_numpy())[1] - 1, return_counts=True)
        report.counts.update(
            {f"{VIEWS_POWER}{power}": n for power, n in zip(powers.tolist(), n_of.tolist(), strict=True)}
        )
        yield batch


def take_terms(batch: pa.RecordBatch, needed: ItemSet, *, plan: AmberPlan) -> pa.RecordBatch:
    """Returns the labels and aliases in one language, as rows of TERMS; an item's label comes first."""
    numbers = item_numbers(batch["item_id"])
    is_needed = needed.has(numbers)
    batch, numbers = batch.filter(pa.array(is_needed)), numbers[is_needed]
    items, texts = [], []
    for name in ("labels", "aliases"):
        terms = batch[name].flatten()
        is_own = pc.equal(terms.field("language"), plan.options.rules.lang)
        items.append(numbers[pc.list_parent_indices(batch[name]).filter(is_own).to_numpy()])
        texts.append(terms.field("text").filter(is_own))
    order = np.argsort(np.concatenate(items), kind="stable")
    of_terms = np.concatenate(items)[order]
    columns = [pa.array(of_terms), pa.array(_places(of_terms)), pa.concat_arrays(texts).take(pa.array(order))]
    return pa.RecordBatch.from_arrays(columns, schema=TERMS)


def _places(items: Numbers) -> Numbers:
    """Returns the position of each row among the consecutive rows of its item."""
    is_first = np.diff(items, prepend=-1) != 0
    positions = np.arange(len(items))
    places: Numbers = positions - positions[is_first][np.cumsum(is_first) - 1]
    return places


def take_facts(batch: pa.RecordBatch, needed: ItemSet, *, plan: AmberPlan) -> pa.RecordBatch:
    """Returns the relevant statements, as rows of FACTS, in order.

    Statements with an unknown value or no value are skipped. Source: the authors' ``extract_wikidata_entities.py``.
    """
    property_ids = {
        INSTANCE_OF,
        *BEARERS_OF_VALUES,
        *(property_id for own in plan.collections for property_id in own.property_ids),
    }
    is_wanted = pc.and_(
        pc.is_in(batch["property_id"], pa.array(sorted(property_ids))), pc.starts_with(batch["entity_id"], "Q")
    )
    if plan.options.deprecated == "drop":
        is_wanted = pc.and_(is_wanted, pc.not_equal(batch["rank"], "deprecated"))
    batch = batch.filter(is_wanted)
    batch = batch.filter(pa.array(needed.has(item_numbers(batch["entity_id"]))))
    is_item = pc.and_(pc.equal(batch["value_type"], "entity"), pc.starts_with(batch["value"], "Q"))
    batch = batch.filter(pc.or_kleene(is_item, pc.equal(batch["value_type"], "quantity")))
    items = item_numbers(batch["entity_id"])
    kinds = pc.if_else(pc.equal(batch["value_type"], "quantity"), QUANTITY_KIND, ITEM_KIND).cast(pa.int64())
    columns = [items, np.arange(len(items)), item_numbers(batch["property_id"]), kinds]
    return pa.RecordBatch.from_arrays([*map(pa.array, columns), batch["value"], batch["unit"]], schema=FACTS)
