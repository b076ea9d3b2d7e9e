"""Facts that changed between two dates, as questions with an old and a new proof.

Statements of both dates are joined by subject and property. Each answer is searched for in the subject's page of the
same date.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from operator import itemgetter
from typing import Any

import apache_beam as beam

from kbsource.errors import SetupError
from kbsource.files import Folder, absolute, join
from kbsource.release.manifest import ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder
from kbsource.wikidata.kind import WikidataTables
from mapping.entail.model import model_facts
from mapping.facts import FACTS, SIDES, Side, load_templates
from mapping.qampari.names import TERM_COLUMNS, ValueKind, property_kinds
from mapping.qampari.statements import STATEMENT_COLUMNS
from mapping.search.tokens import tokeniser_name
from mapping.write.kind import REPORT
from pipelines.facts import (
    OF_PLACES,
    FactsPlan,
    count_statements,
    find_needed,
    finish_facts,
    look_in_pages,
    make_changed_facts,
    settle_facts,
    sum_statements,
    take_names,
    take_values,
)
from pipelines.jobs.age import in_order_of_dates
from pipelines.jobs.qampari import check_source_release, check_tables
from pipelines.jobs.shared_inputs import MadeRelease, checked_paths, named_inputs, output_folder
from pipelines.options.facts import FactsOptions
from pipelines.primitives.join_tables import collect_rows
from pipelines.primitives.page_texts import ReleasePages
from pipelines.primitives.shuffle import CollectSorted
from pipelines.progress import Done, Progress
from pipelines.qampari.facts import find_proofs
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import do
from pipelines.transforms.tables import ReadTable, find_places, read_places

Given = beam.pvalue.AsSingleton


def make_facts_release(
    pipeline: Any,
    plan: FactsPlan,
    paths: Mapping[Side, Mapping[str, tuple[str, ...]]],
    labels: Mapping[str, str],
    facts: Mapping[str, Any],
) -> None:
    """Applies all steps to a pipeline.

    Args:
        paths: paths of the files of ``items`` and ``statements`` of both releases of Wikidata.
        labels: labels of all properties.
        facts: values of the manifest, except those that the last step writes.
    """
    values, counted, named, proofs, placed = {}, {}, {}, {}, {}
    for side in SIDES:
        statements = paths[side]["statements"]
        places = pipeline | f"{side} statements to read" >> find_places(statements)
        values[side] = (
            places
            | f"read {side} statements" >> read_places(statements, STATEMENT_COLUMNS, together="entity_id")
            | f"take {side} values" >> do(take_values, plan=plan, side=side)
            | f"{side} values" >> CollectSorted()
        )
        counted[side] = (
            places
            | f"read {side} properties" >> read_places(statements, ("entity_id", "property_id"))
            | f"count {side} statements" >> beam.Map(count_statements, plan)
            | f"sum {side} statements" >> CollectSorted(sum_statements)
        )
    new_values = Given(values["new"])
    needed = values["old"] | "needed" >> do(find_needed, new_values, plan=plan)
    for side in SIDES:
        own = plan.of(side)
        of_side = Given(needed | f"{side} needed" >> beam.Map(itemgetter(side)))
        take = collect_rows(partial(take_names, plan=own), own.folder("named"), of_side)
        named[side] = (
            pipeline | f"read {side} items" >> ReadTable(paths[side]["items"], TERM_COLUMNS) | f"{side} names" >> take
        )
    join_facts = do(make_changed_facts, new_values, *(Given(named[side]) for side in SIDES), plan=plan)
    made = values["old"] | "make" >> join_facts.with_outputs(*SIDES, main="facts")
    for side in SIDES:
        own = plan.of(side)
        look = do(look_in_pages, plan=own).with_outputs(OF_PLACES, main="tried")
        looked = made[side] | f"spread {side} pages" >> beam.Reshuffle() | f"look in {side} pages" >> look
        proved = looked["tried"] | f"prove {side}" >> find_proofs(plan.options, own.folder("proofs"))
        proofs[side] = Given(proved | f"{side} proofs" >> CollectSorted())
        placed[side] = Given(looked[OF_PLACES] | f"{side} places" >> CollectSorted())
    settled = made["facts"] | "settle" >> do(settle_facts, *proofs.values(), *placed.values(), plan=plan)
    counts = (Given(counted[side]) for side in SIDES)
    _ = settled | "finish" >> do(finish_facts, *counts, plan=plan, labels=labels, values=facts)


def moved_facts(options: FactsOptions, *, flags: Sequence[str], progress: Progress) -> MadeRelease[ListingManifest]:
    """Makes a release of changed facts.

    Raises:
        DataError: the data are wrong.
        SetupError: a file, an option, a release or the output folder is wrong, or the job failed.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)  # first, because the flags configure access to stores
    output = output_folder(options.output)
    templates = load_templates(options.questions)
    ordered = in_order_of_dates((options.old, options.new))
    if ordered[0][0] != absolute(options.old):
        raise SetupError(f"{options.old} is newer than {options.new}; name the older release first.")
    releases = dict(zip(SIDES, ordered, strict=True))
    tables = dict(zip(SIDES, map(WikidataTables.open, map(absolute, options.wikidata)), strict=True))
    days = [table.manifest.date for table in tables.values()]
    if None not in days and str(days[0]) > str(days[1]):
        raise SetupError(
            f"--wikidata: {options.wikidata[0]} is newer than {options.wikidata[1]}; name the older release first."
        )
    kinds: dict[str, ValueKind] = {}
    labels: dict[str, str] = {}
    for side in SIDES:
        check_source_release(*releases[side])
        check_tables(tables[side])
        kinds |= property_kinds(tables[side])
        for batch in tables[side].batches("properties", ("property_id", "label")):
            named = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            labels |= {property_id: label for property_id, label in named if label is not None}
    asked = {name: text for name, text in templates.items() if name in kinds and name in labels}
    paths = {
        side: {name: checked_paths(table.path, table.manifest.tables[name]) for name in ("items", "statements")}
        for side, table in tables.items()
    }
    values: dict[str, Any] = {
        **{side: releases[side][1].facts() for side in SIDES},
        "inputs": {
            **{f"{side}_wikidata": list(map(asdict, input_files([table.path]))) for side, table in tables.items()},
            **named_inputs(options, "questions"),
        },
        "options": options.data_options(),
        "code": {**code_facts(), "tokeniser": tokeniser_name("en")},
        "model": None if options.model is None else model_facts(options.model),
    }
    with ReleaseFolder(output, kind=FACTS, job=values) as made_in:
        old, new = (ReleasePages.of(*releases[side]) for side in SIDES)
        plan = FactsPlan(
            options=options,
            old=old,
            new=new,
            kinds={name: kinds[name] for name in asked},
            labels={name: labels[name] for name in asked},
            templates=asked,
            staging=made_in.staging,
            output=output,
            pages=new,
        )
        make_facts_release(pipeline, plan, paths, labels, values)
        with progress.stage("facts", lambda: Done(0, 0)):
            steps = run_pipeline(pipeline, "facts")
    report = Folder.of(join(output, REPORT)).read_json()
    return MadeRelease(options.output, FACTS.read(output), time.monotonic() - started, steps, report)
