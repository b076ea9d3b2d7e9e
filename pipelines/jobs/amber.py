"""AmbER sets for a snapshot: names shared by several entities, and queries that each fit one of the entities."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import apache_beam as beam
import msgspec

from kbsource.columns import value_rows
from kbsource.errors import SetupError
from kbsource.files import Folder, absolute, join
from kbsource.pageviews import PAGEVIEWS_RELEASE
from kbsource.release.manifest import ListingManifest, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.reader import check_sizes
from kbsource.release.writer import write_rows
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_chunk_report, read_stored
from kbsource.wikidata.kind import WikidataTables
from mapping.acceptance import check_signals
from mapping.amber.kind import AMBER_SETS, further_pages
from mapping.amber.records import OUTCOMES, TASKS, AmberSet, Collection, NameRow, SetEntity, load_collections
from mapping.amber.release import TABLES, ValueCounts, query_rows, set_row, tuple_rows, write_collection
from mapping.entail.model import model_facts
from mapping.search.tokens import tokeniser_name
from mapping.write.kind import REPORT, write_report
from pipelines.amber.entities import (
    VIEWS_POWER,
    AmberPlan,
    join_views,
    key_links,
    key_views,
    table_reader,
    take_facts,
    take_terms,
)
from pipelines.amber.sets import (
    OF_PAGES,
    OF_SIGNALS,
    align_pages,
    answers_of,
    choose_sets,
    names_path,
    pairs_of,
    settle_sets,
)
from pipelines.jobs.shared_inputs import MadeRelease, checked_paths, named_inputs, output_folder
from pipelines.options.amber import AmberJobOptions
from pipelines.primitives.join_tables import Chunks, collect_rows
from pipelines.primitives.lookup import write_item_set
from pipelines.primitives.page_texts import ReleasePages
from pipelines.primitives.shuffle import Checkpoint, CollectSorted
from pipelines.progress import Done, Progress
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import do
from pipelines.transforms.verify_entailment import VerifyEntailment

Given = beam.pvalue.AsSingleton


def make_amber_release(
    pipeline: Any, plan: AmberPlan, paths: Mapping[str, tuple[str, ...]], values: Mapping[str, Any]
) -> Any:
    """Applies all steps to a pipeline; returns the folder of the release, once it is complete.

    Args:
        paths: paths of the files ``pageviews``, ``sitelinks``, ``items`` and ``statements``.
        values: values of the manifest, except those that the last step writes.
    """

    def rows(name: str, function: Any, *needed: Any) -> Any:
        select = collect_rows(partial(function, plan=plan), plan.folder(name), *needed)
        return pipeline | f"read {name}" >> table_reader(name, paths) | name >> select

    links = Given(rows("sitelinks", key_links))
    viewed = rows("pageviews", key_views) | "join views" >> do(join_views, links, plan=plan)
    needed = Given(viewed | "viewed" >> write_item_set(plan.folder("viewed.npy")))
    terms, facts = rows("items", take_terms, needed), Given(rows("statements", take_facts, needed))
    all_viewed = Given(viewed | "all viewed" >> CollectSorted())
    wanted = terms | "choose" >> do(choose_sets, facts, all_viewed, plan=plan)
    align = do(align_pages, plan=plan).with_outputs(OF_SIGNALS, main=OF_PAGES)
    searched = wanted | "spread pages" >> beam.Reshuffle() | "align" >> align
    signals = searched[OF_SIGNALS]
    answers = []
    if plan.options.verify is not None:
        judged = (
            signals
            | "spread signals" >> beam.Reshuffle()
            | "pairs" >> do(pairs_of)
            | "judge" >> VerifyEntailment(plan.options.verify)
            | "answers" >> beam.MapTuple(answers_of)
            | "keep answers" >> Checkpoint(plan.folder("answers"))
        )
        answers = [Given(judged | "all answers" >> CollectSorted())]
    settled = (
        searched[OF_PAGES]
        | "all pages" >> CollectSorted()
        | "settle" >> do(settle_sets, Given(signals | "all signals" >> CollectSorted()), *answers, plan=plan)
    )
    return settled | "commit" >> do(commit_sets, all_viewed, plan=plan, values=values)


def commit_sets(
    element: tuple[ChunkKey, BatchRef], viewed: Chunks, *, plan: AmberPlan, values: Mapping[str, Any]
) -> Iterator[str]:
    """Writes all files of the release, the manifest last.

    (key, ``BatchRef`` of SETTLED) -> the folder of the release.

    Holds in memory the names of all values, and a few sets at a time.
    """
    settled = BatchRef(*element[1])
    names, found = read_chunk_report(names_path(plan))
    rules = plan.options.rules
    entries, collections, all_objects = [], {}, []
    for number, collection in enumerate(plan.collections):
        if rules.false_objects == "wikidata":
            objects = found.facts["used"]
        else:
            counts = ValueCounts()
            for amber_set, _ in _sets(settled, number):
                counts.add(amber_set)
            objects = counts.ranked()
        all_objects.append(objects)
        sets = (amber_set for amber_set, _ in _sets(settled, number))
        files, statistics = write_collection(collection, sets, objects, rules, output=plan.output)
        entries += files
        collections[collection.name] = {"statistics": statistics, "signals": _crossed(settled, collection.name)}

    def of_all() -> Iterator[tuple[Collection, AmberSet, list[Any]]]:
        for number, collection in enumerate(plan.collections):
            for amber_set, signals in _sets(settled, number):
                yield collection, amber_set, signals

    outcomes: Counter[tuple[int, str]] = Counter()
    rows = {
        "sets": (set_row(own.name, amber_set) for own, amber_set, _ in of_all()),
        "tuples": (
            row for own, amber_set, signals in of_all() for row in tuple_rows(own.name, amber_set, iter(signals))
        ),
        "set_queries": (
            row
            for number, collection in enumerate(plan.collections)
            for amber_set, _ in _sets(settled, number)
            for task in TASKS
            for row in query_rows(collection, amber_set, task, rules, all_objects[number])
        ),
        "names": (NameRow(plan.collections[number].name, *rest) for number, *rest in _names(names, settled, outcomes)),
    }
    for table, own in rows.items():
        entries.append(write_rows(own, table, TABLES[table], output=plan.output))
    for number, collection in enumerate(plan.collections):
        collections[collection.name]["names"] = {outcome: outcomes[number, outcome] for outcome in OUTCOMES}
    of_job = {**found.counts, **read_chunk_report(viewed[0][1][0])[1].counts}
    by_power = {int(name.removeprefix(VIEWS_POWER)): of_job.pop(name) for name in list(of_job) if VIEWS_POWER in name}
    report = {
        "collections": collections,
        "entities": dict(sorted(of_job.items())),
        "popularity": {
            str(1 << power): sum(n for own, n in by_power.items() if own >= power) for power in sorted(by_power)
        },
    }
    entries.append(write_report(report, output=plan.output))
    commit(AMBER_SETS, AMBER_SETS.listing(entries, {**values, "counts": report}), plan.output)
    yield plan.output


def _sets(settled: BatchRef, number: int) -> Iterator[tuple[AmberSet, list[Any]]]:
    """Reads the sets of a collection, each with the signals of its tuples in the order of their ids."""
    decode = msgspec.json.Decoder(tuple[SetEntity, ...]).decode
    for collection, name, _, entities, signals in value_rows(read_stored(settled)):
        if collection == number and entities is not None:
            yield AmberSet(name, decode(entities)), msgspec.json.decode(signals)


def _names(names: BatchRef, settled: BatchRef, counts: Counter[tuple[int, str]]) -> Iterator[tuple[Any, ...]]:
    """Iterates over the names with their outcomes, and counts the outcomes. The rows of SETTLED have the outcomes of
    the names that have none yet, in the same order.
    """
    of_settled = value_rows(read_stored(settled))
    for number, name, outcome, *n_entities in value_rows(read_stored(names)):
        if outcome is None:
            outcome = next(of_settled)[2]
        counts[number, outcome] += 1
        yield number, name, outcome, *n_entities


def _crossed(settled: BatchRef, collection: str) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    """Returns the numbers of tuples by property, whether they were found, BLEU and verdict."""
    crossed: dict[str, Any] = {}
    for key, n in sorted(read_chunk_report(settled.path)[1].counts.items()):
        own, property_id, is_found, band, verdict = key.split(" ")
        if own == collection:
            crossed.setdefault(property_id, {}).setdefault(is_found, {}).setdefault(band, {})[verdict] = n
    return crossed


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
