"""QAMPARI for a snapshot: questions with many answers out of a knowledge source and a release of Wikidata.

One pipeline: every join is a regrouping of rows through files, and the last step commits the release.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import apache_beam as beam

from kbsource.errors import SetupError
from kbsource.files import is_local, join, read_json
from kbsource.release.intact import check_sizes
from kbsource.release.layout import check_output
from kbsource.release.manifest import code_facts, input_files
from kbsource.release.output import ReleaseFolder
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.wikidata.reader import WikidataTables
from mapping.entail.model import model_facts
from mapping.qampari.facts.names import ItemPages
from mapping.qampari.facts.statements import ENDED
from mapping.qampari.facts.value_names import property_kinds
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.lists.key_columns import read_key_columns
from mapping.qampari.relations import load_relations
from mapping.qampari.released import Form
from mapping.write.kind import REPORT
from pipelines.options.qampari import QampariOptions
from pipelines.primitives.gather import Made
from pipelines.primitives.group_map import groups_for
from pipelines.progress import Done, Progress
from pipelines.qampari.finish import FinishRelease
from pipelines.qampari.plan import Plan
from pipelines.qampari.steps import Given, make_table_questions, make_wikidata_questions
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.stores.storage import absolute, storage_for

_TABLES = ("items", "statements", "classes")


@dataclass(frozen=True, slots=True)
class QampariSummary:
    """What was made.

    Attributes:
        output: folder of the release.
        report: as written to ``report.json``.
        seconds: wall time.
    """

    output: str
    report: dict[str, Any]
    seconds: float


def make_qampari(options: QampariOptions, *, flags: Sequence[str], progress: Progress) -> QampariSummary:
    """Makes a QAMPARI release.

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
    release = PAGES_RELEASE.read(options.kb, storage_for(options.kb))
    relations = load_relations(options.relations)
    tables = WikidataTables.open(absolute(options.wikidata), storage_for(options.wikidata))
    _check_tables(tables)
    _check_release(options.kb, release)
    for name in _TABLES:
        check_sizes(options.wikidata, tables.manifest.tables[name], tables.storage)
    keys = (
        () if options.key_columns is None else read_key_columns(options.key_columns, storage_for(options.key_columns))
    )
    form = Form(release.site.host, options.with_meta, options.is_released_case, options.seed)
    values: dict[str, Any] = {
        "release": release.facts(),
        "inputs": _inputs(options),
        "options": options.data_options(),
        "form": form._asdict(),
        "code": asdict(code_facts()),
        # A model that is not there ends the job before hours of work.
        "model": None if options.model is None else model_facts(options.model),
    }
    with ReleaseFolder(output, storage_for(output), kind=QAMPARI_RELEASE, job=values) as made_in:
        plan = Plan(
            options,
            absolute(options.kb),
            values["release"]["manifest_sha256"],
            tuple(entry.file for entry in release.tables["pages"]),
            tuple(entry.rows or 0 for entry in release.tables["pages"]),
            relations,
            keys,
            made_in.staging,
            output,
            groups_for(tables.n_rows("statements")),
        )
        made = Made()
        paths = {
            name: tuple(join(tables.path, entry.file) for entry in tables.manifest.tables[name]) for name in _TABLES
        }
        chosen = make_wikidata_questions(pipeline, plan, paths, property_kinds(tables), made)
        if options.has_tables:
            make_table_questions(pipeline, plan, made)
        _ = made.gathered() | "finish" >> beam.ParDo(FinishRelease(plan, form, values), Given(chosen))
        with progress.stage("questions", _settled(plan)):
            run_pipeline(pipeline, "qampari")
    report = read_json(storage_for(output), join(output, REPORT))
    if n_unknown := len(keys) - report["lists"].get("counts", {}).get("key_columns", 0):
        progress.note(f"lists: {n_unknown:,} of {len(keys):,} key columns are of no table of a list page")
    return QampariSummary(options.output, report, time.monotonic() - started)


def _settled(plan: Plan) -> Callable[[], Done]:
    """Gives a poll of the groups of queries that are settled, of all that there may be; in a store it is not looked."""
    n_all, n_done = 3 * plan.n_groups + (len(plan.pages) if plan.options.has_tables else 0), 0

    def poll() -> Done:
        nonlocal n_done
        if is_local(plan.staging):
            n_done = max(n_done, len(storage_for(plan.staging).glob(plan.folder("*", "settled", "*.json"))))
        return Done(n_done, n_all, unit="groups settled")

    return poll


def _inputs(options: QampariOptions) -> dict[str, list[dict[str, Any]]]:
    given = {"kb": options.kb, "wikidata": options.wikidata}
    given |= {name: path for name in ("relations", "key_columns") if (path := getattr(options, name)) is not None}
    return {
        name: [asdict(input_file) for input_file in input_files([path], storage_for(path))]
        for name, path in given.items()
    }


def _check_release(kb: str, release: PagesManifest) -> None:
    """Raises where a release lacks what questions are made of.

    Raises:
        SetupError: it knows no items, or a file is cut off.
    """
    if not ItemPages(kb, release, storage_for(kb)).n_items:
        raise SetupError(
            f"{kb} does not know the Wikidata items of its pages; build it with --wikidata, or with --page-props."
        )
    check_sizes(kb, release.tables["pages"], storage_for(kb))


def _check_tables(tables: WikidataTables) -> None:
    """Raises where a release of Wikidata lacks what questions are made of.

    Raises:
        SetupError: names what is missing.
    """
    languages, qualifiers = tables.manifest.options["languages"], tables.manifest.options["qualifiers"]
    if "en" not in languages:
        raise SetupError(
            f"{tables.path} has names in {', '.join(languages)}; questions are in English, so make it with "
            "kbsource wikidata --languages en."
        )
    if qualifiers is not None and ENDED not in qualifiers:
        raise SetupError(
            f"{tables.path} lacks the qualifier {ENDED} (end time), which says what no longer holds; make it with "
            f"kbsource wikidata --qualifiers {','.join([*qualifiers, ENDED])}."
        )
