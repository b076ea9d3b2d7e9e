"""AmbER sets for a snapshot: names shared by several entities, and queries that each fit one of the entities."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import apache_beam as beam
import msgspec

from kbsource.errors import SetupError
from kbsource.files import Folder, absolute, join
from kbsource.pageviews import PAGEVIEWS_RELEASE
from kbsource.release.manifest import ListingManifest, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.reader import check_sizes
from kbsource.release.writer import write_rows
from kbsource.runtime.chunks import BatchRef, read_stored
from kbsource.runtime.regroup import ByNumber, ByText
from kbsource.wikidata.kind import WikidataTables
from mapping.acceptance import check_signals
from mapping.amber.kind import AMBER_SETS, further_pages
from mapping.amber.records import (
    ITEM,
    OUTCOMES,
    QUANTITY,
    TASKS,
    AmberOptions,
    AmberSet,
    AmberValue,
    Collection,
    NameRow,
    SetEntity,
    load_collections,
)
from mapping.amber.release import TABLES, ValueCounts, query_rows, set_row, tuple_rows, write_collection
from mapping.amber.sets import full_values
from mapping.entail.model import model_facts
from mapping.search.tokens import tokeniser_name
from mapping.write.kind import REPORT, write_report
from pipelines.amber.entities import (
    MEMBERS,
    NAME_ORDER,
    OUTCOME_ROWS,
    USED,
    VIEWS_POWER,
    WANTED,
    AmberPlan,
    find_entities,
)
from pipelines.amber.sets import KnownEntities, align_sets, find_names, make_sets
from pipelines.jobs.shared_inputs import MadeRelease, checked_paths, named_inputs, output_folder
from pipelines.options.amber import AmberJobOptions
from pipelines.primitives.group_map import TOLD, By, GroupWork, groups_for, map_groups, value_rows
from pipelines.primitives.lookup import read_item_set, write_item_set
from pipelines.primitives.page_texts import ReleasePages
from pipelines.primitives.shuffle import Collected, OutputNames, StepCollector, StepOutputs
from pipelines.progress import Done, Progress
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import wired

_MOST_OBJECTS = 1024
"""Number of a property's most popular values that a false value is chosen from."""


def finish_amber(
    collected: Collected, entities: Any, items_path: str, *, plan: AmberPlan, values: Mapping[str, Any]
) -> list[str]:
    """Writes all files, the manifest last, and returns the folder of the release.

    Memory holds the names of values and some sets of each group.

    Args:
        collected: see ``StepCollector``.
        entities, items_path: see ``KnownEntities``.
        values: values of the manifest, except those that this function writes.
    """
    found, known = StepOutputs(collected), KnownEntities(entities, read_item_set(items_path), plan.n_groups)
    rules = plan.options.rules
    entries, collections, all_objects = [], {}, []
    for number, collection in enumerate(plan.collections):
        if rules.false_objects == "wikidata":
            objects = _used_values(found, known, rules.lang)
        else:
            counts = ValueCounts()
            for amber_set in _sets(found, number):
                counts.add(amber_set)
            objects = counts.ranked()
        all_objects.append(objects)
        files, statistics = write_collection(collection, _sets(found, number), objects, rules, output=plan.output)
        entries += files
        collections[collection.name] = {"statistics": statistics, "signals": _crossed(found, collection.name)}

    def of_all() -> Iterator[tuple[int, AmberSet]]:
        return ((number, amber_set) for number in range(len(plan.collections)) for amber_set in _sets(found, number))

    signals = (msgspec.json.decode(row[3]) for row in _merged(found, "tuples", 3))
    outcomes: Counter[tuple[int, str]] = Counter()
    rows = {
        "sets": (set_row(plan.collections[number].name, amber_set) for number, amber_set in of_all()),
        "tuples": (
            row
            for number, amber_set in of_all()
            for row in tuple_rows(plan.collections[number].name, amber_set, signals)
        ),
        "set_queries": (
            row
            for number, amber_set in of_all()
            for task in TASKS
            for row in query_rows(plan.collections[number], amber_set, task, rules, all_objects[number])
        ),
        "names": (NameRow(plan.collections[number].name, *rest) for number, *rest in _outcomes(found, outcomes)),
    }
    for table, own in rows.items():
        entries.append(write_rows(own, table, TABLES[table], output=plan.output))
    for number, collection in enumerate(plan.collections):
        funnel = {outcome: outcomes[number, outcome] for outcome in OUTCOMES}
        collections[collection.name]["names"] = funnel
    of_job = found.counts("counts")
    by_power = {int(name.removeprefix(VIEWS_POWER)): of_job.pop(name) for name in list(of_job) if VIEWS_POWER in name}
    report = {
        "collections": collections,
        "entities": of_job,
        "popularity": {
            str(1 << power): sum(n for own, n in by_power.items() if own >= power) for power in sorted(by_power)
        },
    }
    entries.append(write_report(report, output=plan.output))
    manifest = AMBER_SETS.listing(entries, {**values, "counts": report})
    commit(AMBER_SETS, manifest, plan.output)
    return [plan.output]


def _merged(found: StepOutputs, name: str, n_keys: int) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of one kind ordered by their first columns; each chunk is already in this order."""

    def rows(stored: BatchRef) -> Iterator[tuple[Any, ...]]:
        return value_rows(read_stored(stored))

    return heapq.merge(
        *(rows(chunk) for chunks in found.steps(name) for chunk in chunks), key=itemgetter(slice(n_keys))
    )


def _sets(found: StepOutputs, number: int) -> Iterator[AmberSet]:
    decode = msgspec.json.Decoder(tuple[SetEntity, ...]).decode
    for collection, name, entities in _merged(found, "sets", 2):
        if collection == number:
            yield AmberSet(name, decode(entities))


def _outcomes(found: StepOutputs, counts: Counter[tuple[int, str]]) -> Iterator[tuple[Any, ...]]:
    """Yields the outcome of each name once, and counts it."""
    for (number, name), rows in groupby(_merged(found, "outcomes", 2), key=itemgetter(0, 1)):
        steps = list(rows)
        outcome = next(row[2] for row in steps if row[2])
        counts[number, outcome] += 1
        yield number, name, outcome, max(row[3] for row in steps), max(row[4] for row in steps)


def _crossed(found: StepOutputs, collection: str) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    """Returns the numbers of tuples by property, whether they were found, BLEU and verdict."""
    crossed: dict[str, Any] = {}
    for key, n in found.counts("signals").items():
        own, property_id, is_found, band, verdict = key.split(" ")
        if own == collection:
            crossed.setdefault(property_id, {}).setdefault(is_found, {}).setdefault(band, {})[verdict] = n
    return crossed


def rank_values(work: GroupWork) -> None:
    """Sums how often values are used, and writes the most used ones. Input and output: ``used``, by property."""
    counts: Counter[tuple[int, int, str]] = Counter()
    for property_id, kind, value, n in value_rows(work.rows("used")):
        counts[property_id, kind, value] += n
    ranked = sorted((property_id, _rank(kind, value, n)) for (property_id, kind, value), n in counts.items())
    for property_id, values in groupby(ranked, key=itemgetter(0)):
        for _, (less_n, _, value, kind) in islice(values, _MOST_OBJECTS):
            work.add("used", (property_id, kind, value, -less_n))


def _rank(kind: int, value: str, n: int) -> tuple[int, int, str, int]:
    """Returns the sort key of a value: the most used first, then by number."""
    return -n, int(value[1:]) if kind == 1 else 0, value, kind


def _used_values(found: StepOutputs, known: KnownEntities, lang: str) -> dict[str, list[str]]:
    """Returns the names of values by property, the most used first, then by number."""
    rows: dict[int, list[tuple[int, int, str, int]]] = {}
    for property_id, kind, value, n in _merged(found, "used", 1):
        rows.setdefault(property_id, []).append(_rank(kind, value, n))
    objects = {}
    for property_id, values in rows.items():
        most = heapq.nsmallest(_MOST_OBJECTS, values)
        named = known.known(value for _, _, value, kind in most if kind == 1)
        full = full_values(
            [AmberValue(ITEM, value) if kind == 1 else AmberValue(QUANTITY, f"+{value}") for _, _, value, kind in most],
            named,
            lang=lang,
        )
        objects[f"P{property_id}"] = list(dict.fromkeys(value.aliases[0] for value in full))
    return objects


@wired
def share_names(
    names: Any, folder: str, n_groups: int, n_collections: int, options: AmberOptions, step: OutputNames
) -> Any:
    """(key, rows) of NAMES -> ``members``, ``outcomes`` and ``counts``, as returned by ``map_groups``."""
    return {"names": names} | "find" >> map_groups(
        partial(find_names, n_collections=n_collections, options=options),
        folder,
        outputs={"members": MEMBERS, "outcomes": OUTCOME_ROWS},
        by={"names": By(ByNumber("first", n_groups), NAME_ORDER)},
        sorted_by={"outcomes": 2},
        step=step,
    )


def make_amber_release(
    pipeline: Any, plan: AmberPlan, paths: Mapping[str, tuple[str, ...]], values: Mapping[str, Any]
) -> None:
    """Makes a release of AmbER sets."""
    made = StepCollector()
    entities = pipeline | "entities" >> find_entities(plan, paths, made)
    chunks = beam.pvalue.AsList(entities["entities"])
    items = beam.pvalue.AsSingleton(entities["entities"] | "items" >> write_item_set(plan.folder("items.npy")))
    names = entities["names"] | "names" >> share_names(
        plan.folder("names"),
        plan.n_groups,
        len(plan.collections),
        plan.options.rules,
        made.step(outcomes="outcomes"),
    )
    sets = {"members": names["members"]} | "sets" >> map_groups(
        partial(make_sets, plan=plan),
        plan.folder("sets"),
        outputs={"wanted": WANTED, "outcomes": OUTCOME_ROWS},
        given=(chunks, items),
        sorted_by={"outcomes": 2},
        step=made.step(outcomes="outcomes"),
    )
    of_sets = made.step(sets="sets", tuples="tuples", outcomes="outcomes", counts="signals")
    settled = sets["wanted"] | "align" >> align_sets(plan, of_sets)
    used = {"used": entities["used"]} | "rank" >> map_groups(
        rank_values,
        plan.folder("ranked"),
        outputs={"used": USED},
        by={"used": By(ByText("value", plan.n_groups))},
        step=made.step(used="used"),
    )
    for step in (names, sets, settled, used):
        made.take(step[TOLD])
    made.finish(partial(finish_amber, plan=plan, values=values), chunks, items)


_TABLES = ("items", "statements", "sitelinks")


def make_amber(options: AmberJobOptions, *, flags: Sequence[str], progress: Progress) -> MadeRelease[ListingManifest]:
    """Makes a release of AmbER sets.

    Raises:
        DataError: the data are wrong.
        SetupError: a file, an option or the output folder is wrong, or the job failed.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)  # first, because the flags configure access to stores
    output = output_folder(options.output)
    kb, views = absolute(options.kb), absolute(options.pageviews)
    release = PAGES_RELEASE.read(kb)
    tables = WikidataTables.open(absolute(options.wikidata))
    if options.rules.lang not in tables.manifest.options["languages"]:
        raise SetupError(
            f"{tables.path} has no names in {options.rules.lang}; make it with "
            f"kbsource wikidata --languages {options.rules.lang}."
        )
    viewed = PAGEVIEWS_RELEASE.read(views)
    paths = {name: checked_paths(tables.path, tables.manifest.tables[name]) for name in _TABLES}
    paths["pageviews"] = checked_paths(views, viewed.tables["pageviews"])
    check_sizes(kb, release.tables["pages"])
    collections = load_collections(options.types, options.collection, options.rules.templates)
    collections = _labelled(collections, tables, options.rules.lang)
    model = None if options.verify is None else model_facts(options.verify)
    if model is not None and options.accept is not None and options.verify is not None:
        check_signals(options.accept, model["labels"], model=options.verify.model)
    values: dict[str, Any] = {
        "release": release.facts(),
        "inputs": named_inputs(options, "kb", "wikidata", "pageviews", "types"),
        "options": options.data_options(),
        "collections": [collection.name for collection in collections],
        "code": {**code_facts(), "tokeniser": tokeniser_name(release.site.lang)},
        "model": model,
    }
    with ReleaseFolder(output, kind=AMBER_SETS, job=values, further=values["collections"]) as made_in:
        plan = AmberPlan(
            options=options,
            collections=collections,
            site=release.site.dbname,
            further_pages=further_pages(release) if options.rules.pages_per_item == "all" else {},
            staging=made_in.staging,
            output=output,
            n_groups=groups_for(tables.n_rows("statements")),
            pages=ReleasePages.of(kb, release),
        )
        if not plan.pages.of_items().n_items:
            raise SetupError(f"{options.kb} has no Wikidata items of its pages; build it with --wikidata.")
        make_amber_release(pipeline, plan, paths, values)
        with progress.stage("sets", lambda: Done(0, 0)):
            steps = run_pipeline(pipeline, "amber")
    report = Folder.of(join(output, REPORT)).read_json()
    return MadeRelease(options.output, AMBER_SETS.read(output), time.monotonic() - started, steps, report)


def _labelled(collections: Sequence[Collection], tables: WikidataTables, lang: str) -> tuple[Collection, ...]:
    """Returns collections with the labels of their properties in Wikidata."""
    labels = {
        row["property_id"]: label["text"]
        for batch in tables.batches("properties", ("property_id", "labels"))
        for row in batch.to_pylist()
        for label in row["labels"]
        if label["language"] == lang
    }
    return tuple(
        replace(
            collection,
            labels={
                property_id: labels.get(property_id, property_id) for property_id in sorted(collection.property_ids)
            },
        )
        for collection in collections
    )
