"""QAMPARI for a snapshot: questions with many answers out of a knowledge source and a release of Wikidata.

Facts are worked out on one machine, in scratch files; pages are searched and models asked by tasks, each of which
leaves files of its own.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import orjson

from kbsource.errors import SetupError
from kbsource.files import HashingWriter, LocalStorage, atomic_write, join
from kbsource.release.layout import check_output
from kbsource.release.manifest import FileEntry, code_facts
from kbsource.release.sizes import check_sizes
from kbsource.wikidata.reader import WikidataTables
from mapping.entailment_model import model_facts
from mapping.output import REPORT, commit_output, input_files, release_facts
from mapping.qampari.classes import class_types, find_classes
from mapping.qampari.draw import Drawn, draw_questions
from mapping.qampari.facts import ENDED, simple_facts
from mapping.qampari.joins import simple_answers
from mapping.qampari.key_columns import read_key_columns
from mapping.qampari.names import ItemPages
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE
from mapping.qampari.records import Question
from mapping.qampari.relations import Relations, load_relations
from mapping.qampari.release_files import FORMAT, Form, write_release_files
from mapping.qampari.released import page_url, qid_of
from mapping.qampari.selection import Candidate
from mapping.qampari.specific_types import type_breadths
from mapping.qampari.statistics import AnswerStatistics
from mapping.resolve import open_manifest
from pipelines.options_qampari import QampariOptions
from pipelines.outputs import Output
from pipelines.progress import Progress
from pipelines.qampari.compositions import validate_compositions
from pipelines.qampari.considered import Considerations
from pipelines.qampari.facts import Reading, Runs
from pipelines.qampari.kept import Kept
from pipelines.qampari.lists import TableQuestions, find_lists, validate_tables
from pipelines.qampari.questions import (
    composition_questions,
    find_intersections,
    intersection_questions,
    simple_questions,
)
from pipelines.qampari.simple import validate_simple
from pipelines.qampari.staging import QampariJob
from pipelines.storage import absolute

OWNED = ("qampari_data", "questions", "queries", REPORT)
"""What lies in the folder of a QAMPARI release beside its manifest."""


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
        DataError: a task could not be done for its data.
        SetupError: a file, an option or the output folder is wrong, or a task could not be done.
    """
    started = time.monotonic()
    report = _Making(options, flags, progress).run()
    return QampariSummary(options.output, report, time.monotonic() - started)


class _Making:
    """One release, step by step."""

    def __init__(self, options: QampariOptions, flags: Sequence[str], progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._flags = flags
        self._storage = LocalStorage()
        self._output = absolute(options.output.rstrip("/") or "/")

    def run(self) -> dict[str, Any]:
        options = self._options
        check_output(self._output, self._storage)
        release = open_manifest(options.kb)
        reading = Reading()
        tables = replace(WikidataTables.open(options.wikidata, self._storage), on_rows=reading.see)
        relations = load_relations(options.relations)
        _check_tables(tables)
        pages = ItemPages(options.kb, release)
        if not pages.n_items:
            raise SetupError(
                f"{options.kb} does not know the Wikidata items of its pages; build it with --wikidata, or with "
                "--page-props."
            )
        check_sizes(options.kb, release.tables["pages"], self._storage)
        for name in ("items", "statements", "classes"):
            check_sizes(options.wikidata, tables.manifest.tables[name], self._storage)
        keys = () if options.key_columns is None else read_key_columns(options.key_columns, self._storage)
        if options.model is not None:
            model_facts(options.model)  # a model that is not there ends the job before hours of work
        form = Form(release.site.host, options.with_meta, options.is_released_case, options.seed)
        job = QampariJob(
            kb=os.path.abspath(options.kb),
            pages=tuple(entry.file for entry in release.tables["pages"]),
            page_rows=tuple(entry.rows for entry in release.tables["pages"]),
            n_before=options.sentences_before,
            least_entailment=options.least_entailment,
            model=options.model,
            least_rows=options.least_rows,
            key_columns=keys,
        )
        values: dict[str, Any] = {
            "release": release_facts(release),
            "inputs": self._inputs(),
            "options": options.data_options(),
            "form": form._asdict(),
            "code": asdict(code_facts()),
            "model": None if options.model is None else model_facts(options.model),
        }
        with Output(self._output, self._storage, job=values, owned=OWNED) as output:
            runs = Runs(output.staging, job, self._flags, self._progress, reading, options.worker_memory_bytes)
            os.makedirs(output.staging, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="kbsource-", dir=output.staging) as scratch:
                files, report = self._make(pages, tables, relations, runs, form, scratch)
            files.append(self._write_report(report))
            listed = [asdict(entry) for entry in sorted(files, key=lambda entry: entry.file)]
            values |= {"files": listed, "counts": report["questions"]}
            commit_output(self._output, values, files=files, storage=self._storage, form=FORMAT)
        return report

    def _inputs(self) -> dict[str, list[dict[str, Any]]]:
        options = self._options
        given = {"kb": options.kb, "wikidata": options.wikidata}
        given |= {name: path for name in ("relations", "key_columns") if (path := getattr(options, name)) is not None}
        return {name: [asdict(one) for one in input_files([path], self._storage)] for name, path in given.items()}

    def _make(
        self,
        pages: ItemPages,
        tables: WikidataTables,
        relations: Relations,
        runs: Runs,
        form: Form,
        scratch: str,
    ) -> tuple[list[FileEntry], dict[str, Any]]:
        options, note = self._options, self._progress.note
        # First, because a key column that is none ends the job.
        lists = find_lists(runs) if options.has_tables else {}
        note("classes: the types of answers")
        classes = find_classes(tables, relations.wanted_types, given=relations.classes)
        types = class_types(tables, classes)
        skipped: Counter[str] = Counter()
        with Considerations(runs.staging) as considerations:
            enabled = [one.property_id for one in relations.simple.values() if one.is_enabled]
            answers = simple_answers(
                simple_facts(tables, enabled, types),
                relations,
                types,
                scratch=scratch,
                least=options.answer_filter.least,
                most=options.most_subjects,
                tally=skipped,
            )
            shared: dict[str, Any] = {
                "answer_filter": options.answer_filter,
                "considerations": considerations,
                "runs": runs,
            }
            breadths = type_breadths(types) if options.most_specific_types else None
            simple = validate_simple(answers, relations, tables, pages, breadths=breadths, scratch=scratch, **shared)
            note(f"simple: {len(simple.kept):,} questions")
            found = validate_compositions(simple.kept, relations, tables, pages, scratch=scratch, **shared)
            note(f"compositions: {len(found.kept):,} questions")
            pairs = find_intersections(
                simple.kept,
                answer_filter=options.answer_filter,
                considerations=considerations,
                folder=os.path.join(runs.staging, "intersections"),
                scratch=scratch,
            )
            note(f"intersections: {len(pairs):,} questions")
            listed = TableQuestions(runs.staging)
            if options.has_tables:
                listed = validate_tables(pages, seed=options.seed, has_redirects=options.redirect_aliases, **shared)
                note(f"tables: {len(listed):,} questions")

        def questions() -> Iterator[Question]:
            return chain(
                simple_questions(simple, relations),
                composition_questions(
                    found, simple, relations, all_proofs=options.all_proofs, as_released=options.is_released_wording
                ),
                intersection_questions(pairs, simple, relations),
                listed,
            )

        asked: dict[str, Kept] = {SIMPLE: simple.kept, COMPOSITION: found.kept, INTERSECTION: pairs}
        candidates = (
            Candidate(one.key, subset, one.property_ids) for subset, kept in asked.items() for one in kept.queries()
        )
        draws = draw_questions(
            chain(candidates, listed.candidates()),
            enabled,
            sizes=options.sizes,
            seed=options.seed,
            mixed=options.mixed,
            scratch=scratch,
        )
        statistics = AnswerStatistics()
        files = write_release_files(
            statistics.seen(_numbered(questions(), draws)),
            considerations.rows(),
            output=self._output,
            storage=self._storage,
            page_url=partial(page_url, form.host),
            with_meta=form.with_meta,
            is_released_case=form.is_released_case,
        )
        report = {
            "questions": statistics.values(),
            "funnel": {subset: dict(sorted(counts.items())) for subset, counts in considerations.funnel.items()},
            "skipped": dict(sorted(skipped.items())),
            "facts": considerations.facts,
            "lists": lists,
            "types": classes,
            "types_without_class": sorted(set(relations.wanted_types) - set(classes)),
        }
        return files, report

    def _write_report(self, report: dict[str, Any]) -> FileEntry:
        content = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
        with atomic_write(self._storage, join(self._output, REPORT)) as raw:
            sink = HashingWriter(raw)
            sink.write(content)
        return FileEntry(REPORT, 1, sink.n_bytes, sink.hexdigest())


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


def _numbered(questions: Iterator[Question], draws: Iterable[Drawn]) -> Iterator[tuple[Any, ...]]:
    """Gives questions with side, split and qid; numbers run through each split's file."""
    n_of: Counter[str] = Counter()
    for one, (side, split) in zip(questions, draws, strict=True):
        qid = None
        if split is not None:
            qid = qid_of(n_of[split], one.subset, split)
            n_of[split] += 1
        yield one, side, split, qid
