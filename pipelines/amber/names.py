"""Names that several entities share, and the sets of those whose entities can be told apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from kbsource.runtime.chunks import Key, Stored
from mapping.amber.names import Bearer, choose_members
from mapping.amber.properties import BEARERS_OF_VALUES, INSTANCE_OF, distinguishing
from mapping.amber.records import ITEM, QUANTITY, AmberOptions, Entity, PageRef, Value
from mapping.amber.released import entity_record
from mapping.amber.sets import lacking, make_set
from mapping.qampari.facts.item_sets import ItemSet
from pipelines.amber.plan import SET_BITS, Plan
from pipelines.primitives.group_map import GroupWork
from pipelines.primitives.lookup import Lookup, read_item_set

_ENTITIES_AT_ONCE = _ROWS_AT_ONCE = 4096
_UNIT = "http://www.wikidata.org/entity/"


def find_names(work: GroupWork, *, n_collections: int, options: AmberOptions) -> None:
    """Gives the names of a group that several entities share. Memory: some rows, however many bearers a name has.

    Input: ``names``, in ``NAME_ORDER``. Outputs: ``members`` of names that go on; ``outcomes``.
    """
    n_sets = 0
    for number in range(n_collections):
        for _, rows in groupby(_shared_rows(work.rows("names")), key=itemgetter(0, 1)):
            run = _Run(rows, 1 << number)
            reason, members = choose_members(run, options)
            for one, is_head in members:
                work.add("members", (number, work.group << SET_BITS | n_sets, run.name, one.item, int(is_head)))
            run.exhaust()
            n_sets += reason is None
            if run.n_bearers > 1 and run.n_members:
                work.add("outcomes", (number, run.name, reason or "", run.n_bearers, run.n_members))


def _shared_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Gives the rows of names that more than one row has; those at the ends of batches too, which may go on."""
    for batch in batches:
        is_next = np.ones(batch.num_rows + 1, np.bool_)
        is_next[1:-1] = True
        for name in ("first", "second"):
            values = batch[name].to_numpy()
            is_next[1:-1] &= values[1:] == values[:-1]
        shared = batch.filter(pa.array(is_next[1:] | is_next[:-1]))
        for start in range(0, shared.num_rows, _ROWS_AT_ONCE):
            part = shared.slice(start, _ROWS_AT_ONCE)
            yield from zip(*(column.to_pylist() for column in part.columns), strict=True)


class _Run:
    """The entities of a name, each once, counted as they are taken."""

    def __init__(self, rows: Iterator[tuple[Any, ...]], bit: int) -> None:
        self.name, self.n_bearers, self.n_members = "", 0, 0
        self._bearers = self._read(rows, bit)

    def _read(self, rows: Iterator[tuple[Any, ...]], bit: int) -> Iterator[Bearer]:
        last = -1
        for _, _, order, item, members, self.name in rows:
            if item != last:
                self.n_bearers += 1
                self.n_members += bool(members & bit)
                yield Bearer(item, -order, bool(members & bit))
            last = item

    def __iter__(self) -> Iterator[Bearer]:
        return self._bearers

    def exhaust(self) -> None:
        for _ in self._bearers:
            pass


class KnownEntities:
    """Looks entities up.

    Args:
        chunks: of rows of ENTITIES.
        items: that there are.
        n_groups: that they are in.
    """

    def __init__(self, chunks: Sequence[tuple[Key, Stored]], items: ItemSet, n_groups: int) -> None:
        self._items = items
        self._lookup = Lookup(chunks, "item", lambda numbers: numbers % n_groups)

    def take(self, qids: Iterable[str]) -> dict[str, tuple[Entity, int]]:
        """Gives the entities that there are of some items, with their pages, -1 for none."""
        numbers = np.unique(np.array([int(qid[1:]) for qid in qids], np.int64))
        numbers = numbers[self._items.has(numbers)]
        rows = self._lookup.take(numbers).to_pylist() if len(numbers) else []
        return {f"Q{row['item']}": (_entity(row), row["page_id"]) for row in rows}

    def known(self, qids: Iterable[str]) -> dict[str, Entity]:
        """Gives the entities that there are of some items."""
        return {qid: entity for qid, (entity, _) in self.take(qids).items()}


def _entity(row: dict[str, Any]) -> Entity:
    properties: dict[str, list[Value]] = {}
    for one in row["facts"]:
        values = properties.setdefault(f"P{one['property']}", [])
        if one["kind"]:
            values.append(_value(one))
    types = tuple(one.value for one in properties.pop(INSTANCE_OF, ()) if one.kind == ITEM)
    own = {name: tuple(values) for name, values in properties.items()}
    return Entity(f"Q{row['item']}", row["views"], tuple(row["aliases"]), types, own)


def _value(fact: dict[str, Any]) -> Value:
    if fact["kind"] == 1:
        return Value(ITEM, fact["value"])
    sign = "" if fact["value"].startswith("-") else "+"
    return Value(QUANTITY, sign + fact["value"], "1" if fact["unit"] is None else _UNIT + fact["unit"])


def make_sets(work: GroupWork, chunks: Sequence[tuple[Key, Stored]], items_path: str, *, plan: Plan) -> None:
    """Gives the sets of a group whose entities can be told apart and have pages.

    Input: ``members``. Outputs: ``wanted``, a row an entity; ``outcomes``.
    """
    known = KnownEntities(chunks, read_item_set(items_path), plan.n_groups)
    pending: list[list[tuple[Any, ...]]] = []
    rows = (
        row
        for batch in work.rows("members")
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    for _, members in groupby(rows, key=itemgetter(1)):
        pending.append(list(members))
        if sum(map(len, pending)) >= _ENTITIES_AT_ONCE:
            _make_sets(work, pending, known, plan)
            pending = []
    _make_sets(work, pending, known, plan)


def _make_sets(work: GroupWork, sets: list[list[tuple[Any, ...]]], known: KnownEntities, plan: Plan) -> None:
    pages, rules = plan.item_pages(), plan.options.rules
    entities = known.take(f"Q{row[3]}" for rows in sets for row in rows)
    told_apart: dict[str, None] = {}
    for rows in sets:
        own = [entities[f"Q{row[3]}"][0] for row in rows]
        for entity, names in zip(own, distinguishing(own, plan.collections[rows[0][0]], rules), strict=True):
            told_apart.update(
                (value.value, None) for name in names for value in entity.properties[name] if value.kind == ITEM
            )
    values = known.known(told_apart)
    further = (
        value.value for one in values.values() for name in BEARERS_OF_VALUES for value in one.properties.get(name, ())
    )
    of_values = {**known.known(further), **values}
    for rows in sets:
        number, set_number, name = rows[0][:3]
        members = [(entities[f"Q{row[3]}"][0], bool(row[4])) for row in rows]
        made = make_set(name, members, of_values, plan.collections[number], rules)
        outcome = lacking(made, "told_apart")
        if outcome is None:
            page_ids = np.array([entities[one.qid][1] for one in made.entities], np.int64)
            positions, is_there = pages.positions(page_ids)
            at = iter(positions.tolist())
            paged = [(one, next(at)) for one, there in zip(made.entities, is_there, strict=True) if there]
            outcome = lacking(made._replace(entities=tuple(one for one, _ in paged)), "with_page")
            for one, position in () if outcome else paged:
                page = pages.page(int(one.qid[1:]))
                assert page is not None
                full = one._replace(pages=(PageRef(str(page.page_id), page.title),))
                content = orjson.dumps(entity_record(full))
                work.add("wanted", (position, set_number, int(one.qid[1:]), number, name, content))
        if outcome is not None:
            work.add("outcomes", (number, name, outcome, 0, len(members)))
