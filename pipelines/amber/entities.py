"""Settings and rows of AmbER sets, and the items with a page and page views: their names and statements in Wikidata."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.runtime.regroup import ByNumber, ByText
from mapping.amber.records import Collection
from mapping.amber.sets import BEARERS_OF_VALUES, INSTANCE_OF
from mapping.qampari.classes import ItemSet, item_numbers, required
from pipelines.options.amber import AmberJobOptions
from pipelines.primitives.group_map import TOLD, By, GroupWork, map_groups, value_rows
from pipelines.primitives.lookup import MapRows, read_item_set, write_item_set
from pipelines.primitives.page_texts import GroupedPagesPlan
from pipelines.primitives.shuffle import StepCollector
from pipelines.runners.workers import wired
from pipelines.transforms.tables import ReadStatements, ReadTable

Numbers = npt.NDArray[np.int64]
VIEWS_POWER = "views_2^"
"""Prefix of the counts of entities by views: each class ranges from a power of two to the next."""
SET_BITS = 32
"""Bits of a set's number for its position in its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberPlan(GroupedPagesPlan):
    """Settings shared by all steps."""

    options: AmberJobOptions
    collections: tuple[Collection, ...]  # with labels of their properties
    site: str  # database name of its wiki, as in sitelinks
    #: pages that claim the item of another page, by item; empty unless they are also gold pages
    further_pages: Mapping[str, tuple[int, ...]]


BY_SET = ByNumber("set", shift=SET_BITS)
"""Returns the group of each row: the group that numbered its set."""


KEYED = pa.schema([*required("key", of=pa.string()), *required("number", "page_id")])
"""Views or the item of a page. Keys are ``#`` and the page id, or a title that is not in the release."""
VIEWED = pa.schema(required("item", "page_id", "views"))
"""Items with a sitelink and views; page is -1 without a page."""
TERMS = pa.schema([*required("item"), *required("text", of=pa.string())])
FACTS = pa.schema(
    [*required("item", "property", "kind"), pa.field("value", pa.string()), pa.field("unit", pa.string())]
)
"""Statements with a known item or quantity; kinds 1: item, 2: quantity."""
ENTITIES = pa.schema(
    [
        *required("item", "page_id", "views"),
        *required("aliases", of=pa.list_(pa.string())),
        *required("facts", of=pa.list_(pa.struct(list(FACTS)[1:]))),
    ]
)
NAMES = pa.schema([*required("first", "second", "order", "item", "members"), *required("name", of=pa.string())])
"""Names of entities. First and second: hash of the name; order: views, negated; members: one bit per collection."""
NAME_ORDER = ("first", "second", "order", "item")
USED = pa.schema([*required("property", "kind"), *required("value", of=pa.string()), *required("n")])
"""Number of entities with a value."""
MEMBERS = pa.schema([*required("collection", "set"), *required("name", of=pa.string()), *required("item", "is_head")])
OUTCOME_ROWS = pa.schema(
    [*required("collection"), *required("name", "outcome", of=pa.string()), *required("n_bearers", "n_members")]
)
"""Outcomes of names; empty for a name that is processed further."""
WANTED = pa.schema(
    [
        *required("position", "set", "item", "collection"),
        *required("name", of=pa.string()),
        pa.field("entity", pa.binary()),
    ]
)
"""Entities of sets, sent to their pages and back."""
WANTED_ORDER, SET_ORDER = ("position", "set", "item"), ("set", "item")
SIGNALS = pa.schema(
    [
        *required("set", "item", "property", "is_found"),
        pa.field("bleu", pa.float64()),
        *(pa.field(name, pa.int64()) for name in ("start_element", "start_char", "end_element", "end_char")),
        *(pa.field(name, pa.string()) for name in ("text", "premise", "hypothesis")),
        *required("core_start", "core_end"),
    ]
)
"""Signals of a page about a tuple, besides mentioning a value."""
ANSWERS = pa.schema(
    [
        *required("set", "item", "property"),
        *(pa.field(name, pa.float64()) for name in ("entailment", "neutral", "contradiction")),
    ]
)
SETS = pa.schema([*required("collection"), *required("name", of=pa.string()), pa.field("entities", pa.binary())])
TUPLES = pa.schema(
    [*required("collection"), *required("name", "amber_id", of=pa.string()), pa.field("signals", pa.binary())]
)


_ITEM, _QUANTITY = 1, 2
_STATEMENTS = ("entity_id", "property_id", "rank", "value_type", "value", "unit")
_ROWS = 1 << 14


@wired
def find_entities(
    pipeline: Any, plan: AmberPlan, paths: Mapping[str, tuple[str, ...]], made: StepCollector
) -> dict[str, Any]:
    """Pipeline -> ``entities``, ``names``, ``used``: ((0, group), ``BatchRef``) of these rows.

    Args:
        paths: paths of the files ``pageviews``, ``sitelinks``, ``items`` and ``statements``.
        made: receives the ``counts``.
    """
    by_key = By(ByText("key", plan.n_groups))
    by_item = By(ByNumber("item", plan.n_groups))

    def read(name: str, columns: tuple[str, ...], function: Any, *given: Any) -> Any:
        take = MapRows(partial(function, plan=plan), opens=read_item_set if given else None)
        reader = ReadStatements if name == "statements" else ReadTable
        rows = pipeline | f"read {name}" >> reader(paths[name], columns)
        return rows | f"take {name}" >> beam.ParDo(take, *given)

    keyed = {
        "views": read("pageviews", ("title", "page_id", "views"), key_views),
        "links": read("sitelinks", ("item_id", "site", "title"), key_links),
    }
    joined = keyed | "join" >> map_groups(
        partial(join_views, least=plan.options.min_views),
        plan.folder("viewed"),
        outputs={"viewed": VIEWED},
        by=dict.fromkeys(keyed, by_key),
        step=made.step(counts="counts"),
    )
    needed = beam.pvalue.AsSingleton(joined["viewed"] | "set" >> write_item_set(plan.folder("viewed.npy")))
    inputs = {
        "viewed": joined["viewed"],
        "terms": read("items", ("item_id", "labels", "aliases"), take_terms, needed),
        "facts": read("statements", _STATEMENTS, take_facts, needed),
    }
    entities = inputs | "make" >> map_groups(
        partial(make_entities, plan=plan),
        plan.folder("entities"),
        outputs={"entities": ENTITIES, "names": NAMES, "used": USED},
        by=dict.fromkeys(inputs, by_item),
        plain=("entities",),
        step=made.step(counts="counts"),
    )
    for step in (joined, entities):
        made.take(step[TOLD])
    return {name: entities[name] for name in ("entities", "names", "used")}


def key_views(batch: pa.RecordBatch, *, plan: AmberPlan) -> pa.RecordBatch:
    """Returns views of pages as rows of KEYED."""
    pages, page_ids = plan.pages.of_items(), pc.fill_null(batch["page_id"], -1).to_numpy()
    _, is_there = pages.positions(page_ids)
    keys = [
        _key(page_id if there else pages.resolve(title), title)
        for title, page_id, there in zip(batch["title"].to_pylist(), page_ids.tolist(), is_there, strict=True)
    ]
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.string()), batch["views"], pa.array(page_ids)], schema=KEYED)


def key_links(batch: pa.RecordBatch, *, plan: AmberPlan) -> pa.RecordBatch:
    """Returns sitelinks to pages of the wiki as rows of KEYED."""
    batch = batch.filter(pc.equal(batch["site"], plan.site))
    items = item_numbers(batch["item_id"])
    page_ids = plan.pages.of_items().page_ids(items)
    keys = [
        _key(None if page_id < 0 else page_id, title)
        for title, page_id in zip(batch["title"].to_pylist(), page_ids.tolist(), strict=True)
    ]
    columns = [pa.array(keys, pa.string()), pa.array(items), pa.array(page_ids)]
    return pa.RecordBatch.from_arrays(columns, schema=KEYED)


def _key(page_id: int | None, title: str) -> str:
    return title if page_id is None else f"#{page_id}"  # no title starts with this character


def join_views(work: GroupWork, *, least: int) -> None:
    """Writes the items whose page has enough views. Inputs: ``views``, ``links``. Output: ``viewed``."""
    views: Counter[str] = Counter()
    for batch in work.rows("views"):
        for key, n in zip(batch["key"].to_pylist(), batch["number"].to_pylist(), strict=True):
            views[key] += n
    joined: Counter[str] = Counter()
    for key, item, page_id in value_rows(work.rows("links")):
        work.counts["items_with_sitelink"] += 1
        n = joined[key] = views.get(key, 0)
        if n >= least:
            work.add("viewed", (item, page_id, n))
            work.counts["items_viewed"] += 1
    work.counts["views_joined"] += joined.total()
    work.counts["views_of_no_item"] += views.total() - joined.total()
    work.counts["pages_of_no_item"] += len(views.keys() - joined.keys())


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
    columns = [pa.array(np.concatenate(items)), pa.concat_arrays(texts)]
    return pa.RecordBatch.from_arrays(columns, schema=TERMS).take(pa.array(order))


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
    kind = pc.if_else(pc.equal(batch["value_type"], "quantity"), _QUANTITY, _ITEM).cast(pa.int64())
    columns = [item_numbers(batch["entity_id"]), item_numbers(batch["property_id"]), kind]
    return pa.RecordBatch.from_arrays([*map(pa.array, columns), batch["value"], batch["unit"]], schema=FACTS)


def make_entities(work: GroupWork, *, plan: AmberPlan) -> None:
    """Writes the entities of a group, their names, and how often values are used.

    Inputs: ``viewed``, ``terms``, ``facts``. Outputs: ``entities``, by number; ``names``; ``used``, only if it affects
        the result.
    """
    viewed = work.table("viewed", VIEWED).sort_by("item").combine_chunks()
    items = viewed["item"].to_numpy()
    tables = (work.table(name, schema) for name, schema in (("terms", TERMS), ("facts", FACTS)))
    terms, facts = (
        table.take(np.argsort(table["item"].to_numpy(), kind="stable")).combine_chunks() for table in tables
    )
    rows = pa.StructArray.from_arrays([_array(facts[name]) for name in FACTS.names[1:]], fields=list(FACTS)[1:])
    columns = [
        *(_array(column) for column in viewed.columns),
        pa.ListArray.from_arrays(_offsets(items, terms), _array(terms["text"])),
        pa.ListArray.from_arrays(_offsets(items, facts), rows),
    ]
    for batch in pa.Table.from_arrays(columns, schema=ENTITIES).to_batches(max_chunksize=_ROWS):
        work.write("entities", batch)
    members = _members(items, facts, plan)
    at = np.searchsorted(items, terms["item"].to_numpy())
    work.counts["entities"] += len(np.unique(at))
    powers, n_of = np.unique(np.frexp(viewed["views"].to_numpy())[1] - 1, return_counts=True)
    for power, n in zip(powers.tolist(), n_of.tolist(), strict=True):
        work.counts[f"{VIEWS_POWER}{power}"] += n
    work.counts["names"] += len(at)
    for start in range(0, len(at), _ROWS):
        part = at[start : start + _ROWS]
        texts = terms["text"].slice(start, _ROWS)
        work.write("names", name_rows(items[part], viewed["views"].to_numpy()[part], members[part], texts))
    if plan.options.rules.false_objects == "wikidata":
        numbers = {int(property_id[1:]) for own in plan.collections for property_id in own.property_ids}
        asked = facts.filter(pc.is_in(facts["property"], pa.array(sorted(numbers))))
        counts = asked.group_by(["property", "kind", "value"], use_threads=False).aggregate([("item", "count")])
        for batch in counts.rename_columns(USED.names).cast(USED).to_batches():
            work.write("used", batch)


def name_rows(items: Numbers, views: Numbers, members: Numbers, texts: pa.ChunkedArray | pa.Array) -> pa.RecordBatch:
    """Returns rows of NAMES."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts.to_pylist())
    hashes = np.frombuffer(digests, "<i8").reshape(-1, 2)
    columns = [
        *(pa.array(np.ascontiguousarray(column)) for column in (*hashes.T, -views, items, members)),
        _array(texts),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=NAMES)


def _array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _offsets(items: Numbers, table: pa.Table) -> pa.Array:
    starts = np.searchsorted(table["item"].to_numpy(), items)
    return pa.array(np.append(starts, table.num_rows).astype(np.int32))


def _members(items: Numbers, facts: pa.Table, plan: AmberPlan) -> Numbers:
    """Returns the collections of items, one bit each."""
    bits = np.zeros(len(items), np.int64)
    is_type = (facts["property"].to_numpy() == int(INSTANCE_OF[1:])) & (facts["kind"].to_numpy() == _ITEM)
    for number, collection in enumerate(plan.collections):
        is_in = pc.is_in(facts["value"], pa.array(sorted(collection.types))).fill_null(False)
        is_own = is_type & is_in.to_numpy()
        np.bitwise_or.at(bits, np.searchsorted(items, facts["item"].to_numpy()[is_own]), 1 << number)
    return bits
