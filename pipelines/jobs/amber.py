"""AmbER sets for a snapshot: names that several entities share, and queries that fit one of them each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kbsource.errors import SetupError
from kbsource.files import join, read_json
from kbsource.pageviews.kind import PAGEVIEWS_RELEASE
from kbsource.release.intact import check_sizes
from kbsource.release.layout import check_output
from kbsource.release.manifest import code_facts, input_files
from kbsource.release.output import ReleaseFolder
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.wikidata.reader import WikidataTables
from mapping.amber.collections import load_collections
from mapping.amber.kind import AMBER_SETS
from mapping.amber.records import Collection
from mapping.decide.acceptance import check_signals
from mapping.entail.model import model_facts
from mapping.search.tokens import tokeniser_name
from mapping.write.kind import REPORT
from pipelines.amber.plan import Plan
from pipelines.amber.steps import make_release
from pipelines.options.amber import AmberJobOptions
from pipelines.primitives.group_map import groups_for
from pipelines.progress import Done, Progress
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.stores.storage import absolute, storage_for

_TABLES = ("items", "statements", "sitelinks")


@dataclass(frozen=True, slots=True)
class AmberSummary:
    """What was made.

    Attributes:
        output: folder of the release.
        report: as written to ``report.json``.
        seconds: wall time.
    """

    output: str
    report: dict[str, Any]
    seconds: float


def make_amber(options: AmberJobOptions, *, flags: Sequence[str], progress: Progress) -> AmberSummary:
    """Makes a release of AmbER sets.

    Args:
        options: what to make.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        DataError: something could not be done for its data.
        SetupError: a file, an option or the output folder is wrong, or the work could not be done.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)  # first, since it says where stores are
    output = absolute(options.output.rstrip("/") or "/")
    check_output(output, storage_for(output))
    kb, views = absolute(options.kb), absolute(options.pageviews)
    release = PAGES_RELEASE.read(kb, storage_for(kb))
    tables = WikidataTables.open(absolute(options.wikidata), storage_for(options.wikidata))
    if options.rules.lang not in tables.manifest.options["languages"]:
        raise SetupError(
            f"{tables.path} has no names in {options.rules.lang}; make it with "
            f"kbsource wikidata --languages {options.rules.lang}."
        )
    viewed = PAGEVIEWS_RELEASE.read(views, storage_for(views))
    files = {name: (tables.path, tables.manifest.tables[name], tables.storage) for name in _TABLES}
    files["pageviews"] = (views, viewed.tables["pageviews"], storage_for(views))
    for folder, entries, storage in (*files.values(), (kb, release.tables["pages"], storage_for(kb))):
        check_sizes(folder, entries, storage)
    types = None if options.types is None else storage_for(options.types)
    collections = load_collections(options.types, types, options.collection, options.rules.templates)
    labels = _labels(tables, options.rules.lang)
    collections = tuple(_labelled(collection, labels) for collection in collections)
    model = None if options.verify is None else model_facts(options.verify)
    if model is not None and options.accept is not None and options.verify is not None:
        check_signals(options.accept, model["labels"], model=options.verify.model)
    values: dict[str, Any] = {
        "release": release.facts(),
        "inputs": _inputs(options),
        "options": options.data_options(),
        "collections": [collection.name for collection in collections],
        "code": {**asdict(code_facts()), "tokeniser": tokeniser_name(release.site.lang)},
        "model": model,
    }
    with ReleaseFolder(
        output, storage_for(output), kind=AMBER_SETS, job=values, further=values["collections"]
    ) as made_in:
        plan = Plan(
            options,
            collections,
            kb,
            values["release"]["manifest_sha256"],
            release.site.dbname,
            release.site.lang,
            tuple(entry.file for entry in release.tables["pages"]),
            tuple(entry.rows or 0 for entry in release.tables["pages"]),
            made_in.staging,
            output,
            groups_for(tables.n_rows("statements")),
        )
        if not plan.item_pages().n_items:
            raise SetupError(f"{options.kb} does not know the items of its pages; build it with --wikidata.")
        paths = {
            name: tuple(join(folder, entry.file) for entry in entries) for name, (folder, entries, _) in files.items()
        }
        make_release(pipeline, plan, paths, values)
        with progress.stage("sets", lambda: Done(0, 0)):
            run_pipeline(pipeline, "amber")
    report = read_json(storage_for(output), join(output, REPORT))
    return AmberSummary(options.output, report, time.monotonic() - started)


def _labels(tables: WikidataTables, lang: str) -> dict[str, str]:
    return {
        row["property_id"]: one["text"]
        for batch in tables.batches("properties", ("property_id", "labels"))
        for row in batch.to_pylist()
        for one in row["labels"]
        if one["language"] == lang
    }


def _labelled(collection: Collection, labels: dict[str, str]) -> Collection:
    return replace(
        collection,
        labels={property_id: labels.get(property_id, property_id) for property_id in sorted(collection.property_ids)},
    )


def _inputs(options: AmberJobOptions) -> dict[str, list[dict[str, Any]]]:
    given = {name: getattr(options, name) for name in ("kb", "wikidata", "pageviews", "types")}
    return {
        name: [asdict(input_file) for input_file in input_files([path], storage_for(path))]
        for name, path in given.items()
        if path is not None
    }
