"""QAMPARI for a snapshot: questions with many answers, made from a release of pages and a release of Wikidata.

One pipeline: every join is a regrouping of rows through files, and the last step commits the release.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from kbsource.columns import rows_of
from kbsource.errors import SetupError
from kbsource.files import Folder, absolute, glob, is_local, join
from kbsource.release.manifest import ListingManifest, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import check_sizes
from kbsource.runtime.chunks import read_chunk_report
from kbsource.runtime.regroup import merge_group
from kbsource.temporary import TemporaryFolder
from kbsource.wikidata.kind import WikidataTables
from mapping.entail.model import model_facts
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.list_tables import read_key_columns
from mapping.qampari.names import ItemPages, property_kinds
from mapping.qampari.questions import listed_relations, load_relations
from mapping.qampari.records import QueryRow, Question
from mapping.qampari.release import AnswerStatistics, Form, qid_of, write_release_files
from mapping.qampari.selection import PoolQuestion, QuestionDraw, draw_questions
from mapping.qampari.statements import ENDED
from mapping.write.kind import REPORT, write_report
from pipelines.jobs.shared_inputs import MadeRelease, checked_paths, named_inputs, output_folder
from pipelines.options.qampari import QampariOptions
from pipelines.primitives.group_map import groups_for, value_rows
from pipelines.primitives.page_texts import ReleasePages
from pipelines.primitives.shuffle import Collected, StepCollector, StepOutputs
from pipelines.progress import Done, Progress
from pipelines.qampari.plan import ORDER, QampariPlan
from pipelines.qampari.steps import COMPOSITIONS, SIMPLE, TABLES, Given, make_table_questions, make_wikidata_questions
from pipelines.runners.running import new_pipeline, run_pipeline

_PROVED = ("n_with_page", "n_aligned", "n_validated")


def finish_qampari(
    collected: Collected, chosen: dict[str, dict[str, str]], *, plan: QampariPlan, form: Form, values: dict[str, Any]
) -> list[str]:
    """Draws the questions, writes all files, the manifest last, and returns the folder of the release.

    Args:
        collected: see ``StepCollector``.
        chosen: see ``find_classes``.
        values: values of the manifest, except those that this function writes.
    """
    found, classes = StepOutputs(collected), chosen["classes"]
    options = plan.options
    candidates = (
        PoolQuestion(key, subset, tuple(property_ids))
        for key, subset, property_ids in value_rows(_merged(found, "candidates"))
    )
    with TemporaryFolder() as scratch:
        draws = draw_questions(
            candidates,
            plan.enabled,
            sizes=options.sizes,
            seed=options.seed,
            mixed=options.mixed,
            scratch=scratch,
        )
    questions = (
        question
        for batch in _merged(found, "questions")
        for start in range(0, batch.num_rows, 64)  # Python values take many times more memory
        for question in rows_of(batch.slice(start, 64), Question)
    )
    queries = (query for batch in _merged(found, "queries") for query in rows_of(batch, QueryRow))
    statistics, funnel = AnswerStatistics(), defaultdict[str, Counter[str]](Counter)
    files = write_release_files(
        statistics.seen(_numbered(questions, draws)),
        _counted(queries, funnel),
        form=form,
        output=plan.output,
    )
    kinds = (SIMPLE, COMPOSITIONS, *((TABLES,) if options.has_tables else ()))
    report = {
        "questions": statistics.values(),
        "funnel": {subset: dict(sorted(counts.items())) for subset, counts in funnel.items()},
        "skipped": found.counts("skipped"),
        "facts": {kind: {"found": 0, "candidates": 0, "all": 0, "searches": 0, **found.counts(kind)} for kind in kinds},
        "lists": _lists(found) if options.has_tables else {},
        "types": classes,
        "types_without_class": sorted(set(plan.relations.wanted_types) - set(classes)),
    }
    files.append(write_report(report, output=plan.output))
    manifest = QAMPARI_RELEASE.listing(files, {**values, "counts": report["questions"]})
    commit(QAMPARI_RELEASE, manifest, plan.output)
    return [plan.output]


def _merged(found: StepOutputs, name: str) -> Iterator[pa.RecordBatch]:
    """Yields the rows of one kind, step by step and in order, without the columns that define the order."""
    for chunks in found.steps(name):
        for batch in merge_group(chunks, ORDER):
            yield batch.select(batch.schema.names[len(ORDER) :])


def _counted(rows: Iterable[QueryRow], funnel: defaultdict[str, Counter[str]]) -> Iterator[QueryRow]:
    """Yields queries unchanged, and counts them by subset and outcome, with their answers."""
    for row in rows:
        counts = funnel[row.subset]
        counts.update(["queries", row.outcome])
        counts["answers"] += row.n_answers
        for name in _PROVED:
            value: Any = getattr(row, name)
            counts[f"answers_{name.removeprefix('n_')}"] += value or 0
        yield row


def _numbered(questions: Iterator[Question], draws: Iterable[QuestionDraw]) -> Iterator[Question]:
    """Yields questions with side, split and qid; numbers are consecutive in each split's file."""
    n_of: Counter[str] = Counter()
    for question, (side, split) in zip(questions, draws, strict=True):
        qid = None
        if split is not None:
            qid = qid_of(n_of[split], question.subset, split)
            n_of[split] += 1
        yield replace(question, side=side, split=split, qid=qid)


def _lists(found: StepOutputs) -> dict[str, dict[str, int]]:
    """Returns the numbers of list pages and tables, and the reasons for skipping tables."""
    counts: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for chunks in found.steps("lists"):
        for chunk in chunks:
            _, report = read_chunk_report(chunk.path)
            counts.update(report.counts)
            left_out.update(report.facts["left_out"])
    return {"counts": dict(sorted(counts.items())), "left_out": dict(sorted(left_out.items()))}


_TABLES = ("items", "statements", "classes")


def make_qampari(options: QampariOptions, *, flags: Sequence[str], progress: Progress) -> MadeRelease[ListingManifest]:
    """Makes a QAMPARI release.

    Raises:
        DataError: the data are wrong.
        SetupError: a file, an option or the output folder is wrong, or the job failed.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)  # first, because the flags configure access to stores
    output = output_folder(options.output)
    release = PAGES_RELEASE.read(options.kb)
    relations = listed_relations(load_relations(options.relations), options.relation_list)
    tables = WikidataTables.open(absolute(options.wikidata))
    check_tables(tables)
    check_source_release(options.kb, release)
    paths = {name: checked_paths(tables.path, tables.manifest.tables[name]) for name in _TABLES}
    keys = () if options.key_columns is None else read_key_columns(options.key_columns)
    form = Form(release.site.host, options.with_meta, options.is_released_case, options.seed)
    values: dict[str, Any] = {
        "release": release.facts(),
        "inputs": named_inputs(options, "kb", "wikidata", "relations", "key_columns"),
        "options": options.data_options(),
        "form": form._asdict(),
        "code": code_facts(),
        # A missing model ends the job before hours of work.
        "model": None if options.model is None else model_facts(options.model),
    }
    with ReleaseFolder(output, kind=QAMPARI_RELEASE, job=values) as made_in:
        plan = QampariPlan(
            options=options,
            relations=relations,
            key_columns=keys,
            staging=made_in.staging,
            output=output,
            n_groups=groups_for(tables.n_rows("statements")),
            pages=ReleasePages.of(options.kb, release),
        )
        made = StepCollector()
        chosen = make_wikidata_questions(pipeline, plan, paths, property_kinds(tables), made)
        if options.has_tables:
            make_table_questions(pipeline, plan, made)
        made.finish(partial(finish_qampari, plan=plan, form=form, values=values), Given(chosen))
        with progress.stage("questions", _settled(plan)):
            steps = run_pipeline(pipeline, "qampari")
    report = Folder.of(join(output, REPORT)).read_json()
    if n_unknown := len(keys) - report["lists"].get("counts", {}).get("key_columns", 0):
        progress.note(f"lists: {n_unknown:,} of {len(keys):,} key columns are of no table of a list page")
    return MadeRelease(options.output, QAMPARI_RELEASE.read(output), time.monotonic() - started, steps, report)


def _settled(plan: QampariPlan) -> Callable[[], Done]:
    """Returns a function that counts the resolved groups of queries out of all possible ones; a store is not polled."""
    n_all, n_done = 2 * plan.n_groups + (len(plan.pages.files) if plan.options.has_tables else 0), 0

    def poll() -> Done:
        nonlocal n_done
        if is_local(plan.staging):
            n_done = max(n_done, len(glob(plan.folder("*", "settled", "*.json"))))
        return Done(n_done, n_all, unit="groups settled")

    return poll


def check_source_release(kb: str, release: PagesManifest) -> None:
    """Checks that a release has the data for making questions.

    Raises:
        SetupError: it has no items, or a file is truncated.
    """
    if not ItemPages(kb, release).n_items:
        raise SetupError(f"{kb} has no Wikidata items of its pages; build it with --wikidata, or with --page-props.")
    check_sizes(kb, release.tables["pages"])


def check_tables(tables: WikidataTables) -> None:
    """Checks that a release of Wikidata has the data for making questions.

    Raises:
        SetupError: lists the missing data.
    """
    languages, qualifiers = tables.manifest.options["languages"], tables.manifest.options["qualifiers"]
    if "en" not in languages:
        raise SetupError(
            f"{tables.path} has names in {', '.join(languages)}; questions are in English, so make it with "
            "kbsource wikidata --languages en."
        )
    if qualifiers is not None and ENDED not in qualifiers:
        raise SetupError(
            f"{tables.path} lacks the qualifier {ENDED} (end time), which marks statements that no longer hold; make "
            f"it with kbsource wikidata --qualifiers {','.join([*qualifiers, ENDED])}."
        )
