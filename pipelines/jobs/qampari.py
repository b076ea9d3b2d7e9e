"""QAMPARI for a snapshot: questions with many answers, made from a release of pages and a release of Wikidata.

One pipeline, ``pipelines.qampari.steps``: in turn, one worker joins tables with SQL, and all workers search pages or
ask the model. The last step writes the release.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from kbsource.errors import SetupError
from kbsource.files import Folder, absolute, glob, is_local, join
from kbsource.release.manifest import FileEntry, ListingManifest, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import check_sizes
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_chunk_report
from kbsource.wikidata.kind import WikidataTables
from mapping.entail.model import model_facts
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.list_tables import read_key_columns
from mapping.qampari.names import ItemPages, property_kinds
from mapping.qampari.questions import listed_relations, load_relations
from mapping.qampari.records import QueryRow, Question
from mapping.qampari.release import AnswerStatistics, Form, qid_of, write_release_files
from mapping.qampari.selection import QuestionDraw, draw_questions
from mapping.qampari.statements import ENDED
from mapping.write.kind import REPORT, write_report
from pipelines.jobs.shared_inputs import MadeRelease, checked_paths, named_inputs, output_folder
from pipelines.options.qampari import QampariOptions
from pipelines.primitives.join_tables import JOINED, TableJoin
from pipelines.primitives.page_texts import ReleasePages
from pipelines.progress import Done, Progress
from pipelines.qampari.joins import FIND_QUERIES, decide_compositions
from pipelines.qampari.plan import QampariPlan
from pipelines.qampari.questions import (
    candidates,
    considered_queries,
    joined_questions,
    rows_of_chunks,
    table_candidates,
)
from pipelines.qampari.steps import COMPOSITIONS, N_JOINS, N_JOINS_OF_TABLES, SIMPLE, TABLES, QampariSteps
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import do

_NO_FACTS = {"found": 0, "candidates": 0, "all": 0, "searches": 0, "timed_out": 0}
_PROVED = ("n_with_page", "n_aligned", "n_validated")


def write_files(
    work: TableJoin,
    types_path: str,
    chosen: dict[str, dict[str, str]],
    counts: Sequence[tuple[tuple[str, str], Mapping[str, int]]],
    *of_lists: Sequence[tuple[ChunkKey, BatchRef]],
    plan: QampariPlan,
    form: Form,
) -> None:
    """Draws the questions, and writes all files but the manifest; adds these files and the counts to the facts.

    Args:
        work: the tables of all joins.
        types_path: path of the types of all classes.
        chosen: see ``find_classes``.
        counts: (kind and step, counts) of the joins.
        of_lists: chunks of the lists, of the questions of both subsets, and of the queries; nothing without tables.
    """
    options, classes = plan.options, chosen["classes"]
    read, simple, composed, considered = map(_in_order, of_lists or ((), (), (), ()))
    statistics, funnel = AnswerStatistics(), defaultdict[str, Counter[str]](Counter)
    with work.open() as db:
        decide_compositions(db, plan, types_path)
        draws = draw_questions(
            chain(candidates(db, plan), table_candidates([*simple, *composed])),
            plan.enabled,
            sizes=options.sizes,
            seed=options.seed,
            mixed=options.mixed,
        )
        every_question = chain(joined_questions(db, plan), rows_of_chunks([*simple, *composed], Question))
        queries = chain(considered_queries(db, plan), rows_of_chunks(considered, QueryRow))
        files = write_release_files(
            statistics.seen(_numbered(every_question, draws)),
            _counted(queries, funnel),
            form=form,
            output=plan.output,
        )
    of_kinds = defaultdict[str, Counter[str]](Counter)
    for (kind, step), own in counts:
        of_kinds["skipped" if step == FIND_QUERIES.function.__name__ else kind].update(own)
    for proved in work.reports("value_proofs"):
        of_kinds[COMPOSITIONS].update(proved.counts)
    kinds = (SIMPLE, COMPOSITIONS, *((TABLES,) if options.has_tables else ()))
    report = {
        "questions": statistics.values(),
        "funnel": {subset: dict(sorted(counts.items())) for subset, counts in funnel.items()},
        "skipped": dict(sorted(of_kinds["skipped"].items())),
        "facts": {kind: {**_NO_FACTS, **dict(sorted(of_kinds[kind].items()))} for kind in kinds},
        "lists": _lists(read) if options.has_tables else {},
        "types": classes,
        "types_without_class": sorted(set(plan.relations.wanted_types) - set(classes)),
    }
    files.append(write_report(report, output=plan.output))
    timed_out = {kind: of_kinds[kind]["timed_out"] for kind in kinds}
    work.facts.update(files=[asdict(file) for file in files], counts={**statistics.values(), "timed_out": timed_out})


def _commit(done: tuple[Any, dict[str, Any]], *, output: str, values: dict[str, Any]) -> Iterator[str]:
    """Writes the manifest.

    Facts of ``write_files`` -> the folder of the release.
    """
    _, facts = done
    files = [FileEntry(**file) for file in facts["files"]]
    commit(QAMPARI_RELEASE, QAMPARI_RELEASE.listing(files, {**values, "counts": facts["counts"]}), output)
    yield output


def _in_order(chunks: Sequence[tuple[ChunkKey, BatchRef]]) -> list[BatchRef]:
    return [BatchRef(*ref) for _, ref in sorted(chunks, key=itemgetter(0))]


def _counted(rows: Iterable[QueryRow], funnel: defaultdict[str, Counter[str]]) -> Iterator[QueryRow]:
    """Passes on queries unchanged, and counts them and their answers by subset and outcome."""
    for row in rows:
        counts = funnel[row.subset]
        counts.update(["queries", row.outcome])
        counts["answers"] += row.n_answers
        for name in _PROVED:
            value: Any = getattr(row, name)
            counts[f"answers_{name.removeprefix('n_')}"] += value or 0
        yield row


def _numbered(questions: Iterable[Question], draws: Iterable[QuestionDraw]) -> Iterator[Question]:
    """Adds eligible split, split and qid to questions. The numbers in the qids are consecutive within a split."""
    n_of: Counter[str] = Counter()
    for question, (side, split) in zip(questions, draws, strict=True):
        qid = None
        if split is not None:
            qid = qid_of(n_of[split], question.subset, split)
            n_of[split] += 1
        yield replace(question, eligible_split=side, split=split, qid=qid)


def _lists(chunks: Iterable[BatchRef]) -> dict[str, dict[str, int]]:
    """Returns the numbers of list pages and tables, and the number of skipped tables for each reason."""
    counts: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
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
            pages=ReleasePages.of(options.kb, release),
        )
        graph = QampariSteps(pipeline, plan, paths, property_kinds(tables))
        written = graph.make_questions(write_files, form=form)
        _ = written | "commit" >> do(_commit, output=output, values=values)
        with progress.stage("questions", _joins_done(plan)):
            steps = run_pipeline(pipeline, "qampari")
    report = Folder.of(join(output, REPORT)).read_json()
    if n_unknown := len(keys) - report["lists"].get("counts", {}).get("key_columns", 0):
        progress.note(f"{n_unknown:,} of {len(keys):,} key columns belong to no table of a list page")
    return MadeRelease(options.output, QAMPARI_RELEASE.read(output), time.monotonic() - started, steps, report)


def _joins_done(plan: QampariPlan) -> Callable[[], Done]:
    """Returns a function that counts the joins that are done; a store is not polled."""
    n_all, n_done = N_JOINS - (0 if plan.options.has_tables else N_JOINS_OF_TABLES), 0

    def poll() -> Done:
        nonlocal n_done
        if is_local(plan.staging):
            n_done = max(n_done, len(glob(plan.folder("*", "*", JOINED))))
        return Done(n_done, n_all, unit="joins")

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
