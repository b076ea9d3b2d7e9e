"""Items with a page and page views: what they are called, and what Wikidata states of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import named_faults
from kbsource.runtime.chunks import Key
from mapping.amber.properties import BEARERS_OF_VALUES, INSTANCE_OF
from mapping.qampari.facts.classes import item_numbers
from mapping.qampari.facts.item_sets import ItemSet
from pipelines.amber.plan import ENTITIES, FACTS, KEYED, NAMES, TERMS, USED, VIEWED, Numbers, Plan, groups_by_text
from pipelines.primitives.group_map import COUNTS, GroupMap, GroupWork, groups_by
from pipelines.primitives.lookup import WriteItemSet, read_item_set
from pipelines.primitives.regroup import Regroup
from pipelines.runners.workers import WorkerDoFn
from pipelines.transforms.read_table import ReadStatements, ReadTable

_OTHER, _ITEM, _QUANTITY = 0, 1, 2
_STATEMENTS = ("entity_id", "property_id", "rank", "value_type", "value", "unit")
_ROWS = 1 << 14


class MakeEntities(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Pipeline -> ``entities``, ``names``, ``used``: (Key(0, group), ``Stored``) of such rows, and ``counts``.

    Args:
        plan: of the job.
        paths: of the files ``pageviews``, ``sitelinks``, ``items`` and ``statements``.
    """

    def __init__(self, plan: Plan, paths: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._plan, self._paths = plan, paths

    def expand(self, pipeline: Any) -> Any:
        plan, n_groups = self._plan, self._plan.n_groups
        by_key = partial(groups_by_text, column="key", n_groups=n_groups)
        by_item = partial(groups_by, column="item", n_groups=n_groups)

        def read(name: str, columns: tuple[str, ...], function: WorkerDoFn, by: Any, *given: Any) -> Any:
            reader = ReadStatements if name == "statements" else ReadTable
            rows = pipeline | f"read {name}" >> reader(self._paths[name], columns)
            keyed = rows | f"take {name}" >> beam.ParDo(function, *given)
            return keyed | f"group {name}" >> Regroup(plan.folder("entities", name), by)

        keyed = {
            "views": read("pageviews", ("title", "page_id", "views"), _KeyViews(plan), by_key),
            "links": read("sitelinks", ("item_id", "site", "title"), _KeyLinks(plan), by_key),
        }
        joined = keyed | "join" >> GroupMap(
            partial(join_views, least=plan.options.min_views), plan.folder("viewed"), outputs={"viewed": VIEWED}
        )
        needed = beam.pvalue.AsSingleton(joined["viewed"] | "set" >> WriteItemSet(plan.folder("viewed.npy")))
        inputs = {
            "viewed": joined["viewed"] | "by item" >> Regroup(plan.folder("entities", "viewed"), by_item),
            "terms": read("items", ("item_id", "labels", "aliases"), _Take(plan, take_terms), by_item, needed),
            "facts": read("statements", _STATEMENTS, _Take(plan, take_facts), by_item, needed),
        }
        made = inputs | "make" >> GroupMap(
            partial(make_entities, plan=plan),
            plan.folder("entities"),
            outputs={"entities": ENTITIES, "names": NAMES, "used": USED},
            plain=("entities",),
        )
        return {**{name: made[name] for name in ("entities", "names", "used", COUNTS)}, "joined": joined[COUNTS]}


class _KeyViews(WorkerDoFn):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def process(self, element: tuple[Key, pa.RecordBatch]) -> Iterator[tuple[Key, pa.RecordBatch]]:
        key, batch = element
        with named_faults():
            pages, page_ids = self._plan.item_pages(), pc.fill_null(batch["page_id"], -1).to_numpy()
            _, is_there = pages.positions(page_ids)
            keys = [
                _key(page_id if there else pages.resolve(title), title)
                for title, page_id, there in zip(batch["title"].to_pylist(), page_ids.tolist(), is_there, strict=True)
            ]
            columns = [pa.array(keys, pa.string()), batch["views"], pa.array(page_ids)]
        yield key, pa.RecordBatch.from_arrays(columns, schema=KEYED)


class _KeyLinks(WorkerDoFn):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def process(self, element: tuple[Key, pa.RecordBatch]) -> Iterator[tuple[Key, pa.RecordBatch]]:
        key, batch = element
        with named_faults():
            batch = batch.filter(pc.equal(batch["site"], self._plan.site))
            items = item_numbers(batch["item_id"])
            page_ids = self._plan.item_pages().page_ids(items)
            keys = [
                _key(None if page_id < 0 else page_id, title)
                for title, page_id in zip(batch["title"].to_pylist(), page_ids.tolist(), strict=True)
            ]
            columns = [pa.array(keys, pa.string()), pa.array(items), pa.array(page_ids)]
        yield key, pa.RecordBatch.from_arrays(columns, schema=KEYED)


def _key(page_id: int | None, title: str) -> str:
    return title if page_id is None else f"#{page_id}"  # no title begins with that sign


def join_views(work: GroupWork, *, least: int) -> None:
    """Gives the items whose page has enough views. Inputs: ``views``, ``links``. Output: ``viewed``."""
    views: Counter[str] = Counter()
    for batch in work.rows("views"):
        for key, n in zip(batch["key"].to_pylist(), batch["number"].to_pylist(), strict=True):
            views[key] += n
    joined: Counter[str] = Counter()
    for batch in work.rows("links"):
        rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        work.counts["items_with_sitelink"] += len(rows)
        for key, item, page_id in rows:
            n = views.get(key, 0)
            joined[key] = n
            if n >= least:
                work.add("viewed", (item, page_id, n))
                work.counts["items_viewed"] += 1
    work.counts["views_joined"] += joined.total()
    work.counts["views_of_no_item"] += views.total() - joined.total()
    work.counts["pages_of_no_item"] += len(views.keys() - joined.keys())


class _Take(WorkerDoFn):
    """Rows of a table -> what ``take_terms`` or ``take_facts`` gives of needed items."""

    def __init__(self, plan: Plan, take: Any) -> None:
        super().__init__()
        self._plan, self._take = plan, take
        self._needed: ItemSet | None = None

    def process(self, element: tuple[Key, pa.RecordBatch], path: str) -> Iterator[tuple[Key, pa.RecordBatch]]:
        key, batch = element
        with named_faults():
            self._needed = self._needed or read_item_set(path)
            yield key, self._take(batch, self._needed, self._plan)


def take_terms(batch: pa.RecordBatch, needed: ItemSet, plan: Plan) -> pa.RecordBatch:
    """Gives the labels and aliases in one language, as rows of TERMS; of an item the label first."""
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


def take_facts(batch: pa.RecordBatch, needed: ItemSet, plan: Plan) -> pa.RecordBatch:
    """Gives the statements that count, as rows of FACTS, in their order."""
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
    is_quantity = pc.equal(batch["value_type"], "quantity")
    kind = np.select([_true(is_item), _true(is_quantity)], [_ITEM, _QUANTITY], _OTHER)
    columns = [item_numbers(batch["entity_id"]), item_numbers(batch["property_id"]), kind.astype(np.int64)]
    return pa.RecordBatch.from_arrays([*map(pa.array, columns), batch["value"], batch["unit"]], schema=FACTS)


def _true(flags: pa.Array) -> Any:
    return pc.fill_null(flags, False).to_numpy(zero_copy_only=False)


def make_entities(work: GroupWork, *, plan: Plan) -> None:
    """Gives the entities of a group, their names and how often values are used.

    Inputs: ``viewed``, ``terms``, ``facts``. Outputs: ``entities``, by number; ``names``; ``used``, only where it
    decides something.
    """
    viewed = work.table("viewed", VIEWED).sort_by("item").combine_chunks()
    items = viewed["item"].to_numpy()
    terms, facts = (_by_item(work.table(name, schema)) for name, schema in (("terms", TERMS), ("facts", FACTS)))
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
    work.counts["names"] += len(at)
    for start in range(0, len(at), _ROWS):
        part = at[start : start + _ROWS]
        texts = terms["text"].slice(start, _ROWS)
        work.write("names", name_rows(items[part], viewed["views"].to_numpy()[part], members[part], texts))
    if plan.options.rules.false_objects == "wikidata":
        _write_used(work, facts, plan)


def name_rows(items: Numbers, views: Numbers, members: Numbers, texts: pa.ChunkedArray | pa.Array) -> pa.RecordBatch:
    """Gives rows of NAMES."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts.to_pylist())
    hashes = np.frombuffer(digests, "<i8").reshape(-1, 2)
    columns = [*(pa.array(np.ascontiguousarray(one)) for one in (*hashes.T, -views, items, members)), _array(texts)]
    return pa.RecordBatch.from_arrays(columns, schema=NAMES)


def _array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _by_item(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.argsort(table["item"].to_numpy(), kind="stable"))).combine_chunks()


def _offsets(items: Numbers, table: pa.Table) -> pa.Array:
    starts = np.searchsorted(table["item"].to_numpy(), items)
    return pa.array(np.append(starts, table.num_rows).astype(np.int32))


def _members(items: Numbers, facts: pa.Table, plan: Plan) -> Numbers:
    """Gives the collections that items are of, a bit each."""
    bits = np.zeros(len(items), np.int64)
    is_type = (facts["property"].to_numpy() == int(INSTANCE_OF[1:])) & (facts["kind"].to_numpy() == _ITEM)
    for number, collection in enumerate(plan.collections):
        is_own = is_type & _true(_array(pc.is_in(facts["value"], pa.array(sorted(collection.types)))))
        np.bitwise_or.at(bits, np.searchsorted(items, facts["item"].to_numpy()[is_own]), 1 << number)
    return bits


def _write_used(work: GroupWork, facts: pa.Table, plan: Plan) -> None:
    numbers = {int(property_id[1:]) for own in plan.collections for property_id in own.property_ids}
    asked = facts.filter(pc.and_(pc.is_in(facts["property"], pa.array(sorted(numbers))), pc.greater(facts["kind"], 0)))
    counts = asked.group_by(["property", "kind", "value"], use_threads=False).aggregate([("item", "count")])
    for batch in counts.rename_columns(USED.names).cast(USED).to_batches():
        work.write("used", batch)
