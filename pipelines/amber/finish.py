"""The end: the sets in order of their names, their queries, and the release committed."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import orjson

from kbsource.errors import named_faults
from kbsource.release.output import commit
from kbsource.release.writer import write_rows
from kbsource.runtime.chunks import Key, Stored, read_stored
from mapping.amber.kind import AMBER_SETS
from mapping.amber.properties import full_values
from mapping.amber.queries import ValueCounts
from mapping.amber.records import ITEM, QUANTITY, TASKS, AmberSet, Value
from mapping.amber.release_files import query_rows, set_row, tuple_rows, write_collection
from mapping.amber.released import set_of
from mapping.amber.schema import OUTCOMES, TABLES
from mapping.write.kind import write_report
from pipelines.amber.names import KnownEntities
from pipelines.amber.plan import Plan
from pipelines.primitives.group_map import GroupWork
from pipelines.primitives.lookup import read_item_set
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

_MOST_OBJECTS = 1024
"""Of the most popular values of a property, of which one that is false is sought."""
Found = Sequence[tuple[Key, tuple[str, Any]]]


class FinishRelease(WorkerDoFn):
    """What ``Made`` gathered, and the entities -> the folder of the release.

    Args:
        plan: of the job.
        values: of the manifest.
    """

    def __init__(self, plan: Plan, values: Mapping[str, Any]) -> None:
        super().__init__()
        self._plan, self._values = plan, values

    def process(self, found: Found, entities: Any, items_path: str) -> Iterator[str]:
        with named_faults():
            known = KnownEntities(entities, read_item_set(items_path), self._plan.n_groups)
            finish_release(self._plan, self._values, found, known)
        yield self._plan.output


def finish_release(plan: Plan, values: Mapping[str, Any], found: Found, known: KnownEntities) -> None:
    """Writes all files, and the manifest last. Memory: names of values, and some sets of each group.

    Args:
        plan: of the job.
        values: of the manifest, without what is written here.
        found: of ``Made``.
        known: entities that values are.
    """
    storage, rules = storage_for(plan.output), plan.options.rules
    entries, collections, all_objects = [], {}, []
    for number, collection in enumerate(plan.collections):
        if rules.false_objects == "wikidata":
            objects = _used_values(found, known, rules.lang)
        else:
            counts = ValueCounts()
            for one in _sets(found, number):
                counts.add(one)
            objects = counts.ranked()
        all_objects.append(objects)
        files, statistics = write_collection(
            collection, _sets(found, number), objects, rules, output=plan.output, storage=storage
        )
        entries += files
        collections[collection.name] = {"statistics": statistics, "signals": _crossed(found, collection.name)}

    def of_all() -> Iterator[tuple[int, AmberSet]]:
        return ((number, amber_set) for number in range(len(plan.collections)) for amber_set in _sets(found, number))

    signals = (orjson.loads(row[3]) for row in _merged(found, "tuples", 3))
    outcomes: Counter[tuple[int, str]] = Counter()
    rows = {
        "sets": (set_row(plan.collections[number].name, one) for number, one in of_all()),
        "tuples": (row for number, one in of_all() for row in tuple_rows(plan.collections[number].name, one, signals)),
        "set_queries": (
            row
            for number, one in of_all()
            for task in TASKS
            for row in query_rows(plan.collections[number], one, task, rules, all_objects[number])
        ),
        "names": ((plan.collections[number].name, *rest) for number, *rest in _outcomes(found, outcomes)),
    }
    for table, own in rows.items():
        entries.append(write_rows(own, table, TABLES[table], output=plan.output, storage=storage))
    for number, collection in enumerate(plan.collections):
        funnel = {one: outcomes[number, one] for one in OUTCOMES}
        collections[collection.name]["names"] = funnel
    report = {"collections": collections, "entities": _counts(found, "counts")}
    entries.append(write_report(report, output=plan.output, storage=storage))
    manifest = AMBER_SETS.listing(entries, {**values, "counts": report})
    commit(AMBER_SETS, manifest, plan.output, storage)


def _merged(found: Found, name: str, n_keys: int) -> Iterator[tuple[Any, ...]]:
    """Gives the rows of one kind in the order of their first columns, which each chunk is in."""

    def rows(stored: Stored) -> Iterator[tuple[Any, ...]]:
        for batch in read_stored(stored, storage_for(stored.path)):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    chunks = [Stored(*chunk) for _, (kind, chunk) in found if kind == name]
    return heapq.merge(*map(rows, chunks), key=itemgetter(slice(n_keys)))


def _sets(found: Found, number: int) -> Iterator[AmberSet]:
    for collection, name, entities in _merged(found, "sets", 2):
        if collection == number:
            yield set_of({"name": name, "qids": orjson.loads(entities)})


def _outcomes(found: Found, counts: Counter[tuple[int, str]]) -> Iterator[tuple[Any, ...]]:
    """Gives what became of each name, once, and counts it."""
    for (number, name), rows in groupby(_merged(found, "outcomes", 2), key=itemgetter(0, 1)):
        steps = list(rows)
        outcome = next(row[2] for row in steps if row[2])
        counts[number, outcome] += 1
        yield number, name, outcome, max(row[3] for row in steps), max(row[4] for row in steps)


def _counts(found: Found, name: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for _, (kind, value) in found:
        if kind == name:
            counts.update(value)
    return dict(sorted(counts.items()))


def _crossed(found: Found, collection: str) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    """Gives the tuples by property, whether they were found, BLEU and verdict."""
    crossed: dict[str, Any] = {}
    for key, n in _counts(found, "signals").items():
        own, property_id, is_found, band, verdict = key.split(" ")
        if own == collection:
            crossed.setdefault(property_id, {}).setdefault(is_found, {}).setdefault(band, {})[verdict] = n
    return crossed


def rank_values(work: GroupWork) -> None:
    """Adds up how often values are used, and gives the most used. Input and output: ``used``, by property."""
    counts: Counter[tuple[int, int, str]] = Counter()
    for batch in work.rows("used"):
        for property_id, kind, value, n in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            counts[property_id, kind, value] += n
    ranked = sorted((property_id, _rank(kind, value, n)) for (property_id, kind, value), n in counts.items())
    for property_id, values in groupby(ranked, key=itemgetter(0)):
        for _, (less_n, _, value, kind) in islice(values, _MOST_OBJECTS):
            work.add("used", (property_id, kind, value, -less_n))


def _rank(kind: int, value: str, n: int) -> tuple[int, int, str, int]:
    """Gives what a value is ranked by: the most used first, of equal ones by number."""
    return -n, int(value[1:]) if kind == 1 else 0, value, kind


def _used_values(found: Found, known: KnownEntities, lang: str) -> dict[str, list[str]]:
    """Gives what values are called, by property, the most used first, of equal ones by number."""
    rows: dict[int, list[tuple[int, int, str, int]]] = {}
    for property_id, kind, value, n in _merged(found, "used", 1):
        rows.setdefault(property_id, []).append(_rank(kind, value, n))
    objects = {}
    for property_id, values in rows.items():
        most = heapq.nsmallest(_MOST_OBJECTS, values)
        named = known.known(value for _, _, value, kind in most if kind == 1)
        full = full_values(
            [Value(ITEM, value) if kind == 1 else Value(QUANTITY, f"+{value}") for _, _, value, kind in most],
            named,
            lang=lang,
        )
        objects[f"P{property_id}"] = list(dict.fromkeys(one.aliases[0] for one in full))
    return objects
