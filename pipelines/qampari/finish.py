"""The end: every settled query and question in order, drawn and written, and the release committed."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.release.output import commit
from kbsource.runtime.chunks import Key, Stored, read_chunk_report
from kbsource.runtime.regroup import merge_group
from mapping.qampari.draw import Drawn, draw_questions
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.question_rows import QueryRow, question_of_row
from mapping.qampari.records import Question
from mapping.qampari.release_files import write_release_files
from mapping.qampari.released import Form, qid_of
from mapping.qampari.selection import PoolQuestion
from mapping.qampari.statistics import AnswerStatistics
from mapping.write.kind import write_report
from pipelines.qampari.plan import ORDER, Plan
from pipelines.qampari.steps import COMPOSITIONS, SIMPLE, TABLES
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

_PROVED = ("n_with_page", "n_aligned", "n_validated")
Found = Sequence[tuple[Key, tuple[str, Any]]]


class FinishRelease(WorkerDoFn):
    """What ``steps.Made`` gathered, beside what ``FindClasses`` chose -> the folder of the release.

    Args:
        plan: of the job.
        form: how the release is written.
        values: of the manifest.
    """

    def __init__(self, plan: Plan, form: Form, values: dict[str, Any]) -> None:
        super().__init__()
        self._plan, self._form, self._values = plan, form, values

    def process(self, found: Found, chosen: dict[str, dict[str, str]]) -> Iterator[str]:
        with named_faults():
            finish_release(self._plan, self._form, self._values, found, chosen["classes"])
        yield self._plan.output


def finish_release(plan: Plan, form: Form, values: dict[str, Any], found: Found, classes: dict[str, str]) -> None:
    """Draws the questions, writes all files, and the manifest last.

    Args:
        plan: of the job.
        form: how the release is written.
        values: of the manifest, without what is written here.
        found: of ``steps.Made``.
        classes: the types of answers.
    """
    options, storage = plan.options, storage_for(plan.output)
    with tempfile.TemporaryDirectory(prefix="kbsource-") as scratch:
        draws = draw_questions(
            _candidates(found),
            plan.enabled,
            sizes=options.sizes,
            seed=options.seed,
            mixed=options.mixed,
            scratch=scratch,
        )
    statistics, funnel = AnswerStatistics(), defaultdict[str, Counter[str]](Counter)
    files = write_release_files(
        statistics.seen(_numbered(_questions(found), draws)),
        _counted(_queries(found), funnel),
        form=form,
        output=plan.output,
        storage=storage,
    )
    kinds = (SIMPLE, COMPOSITIONS, *((TABLES,) if options.has_tables else ()))
    report = {
        "questions": statistics.values(),
        "funnel": {subset: dict(sorted(counts.items())) for subset, counts in funnel.items()},
        "skipped": _counts(found, "skipped"),
        "facts": {
            kind: {"found": 0, "candidates": 0, "all": 0, "searches": 0, **_counts(found, kind)} for kind in kinds
        },
        "lists": _lists(found) if options.has_tables else {},
        "types": classes,
        "types_without_class": sorted(set(plan.relations.wanted_types) - set(classes)),
    }
    files.append(write_report(report, output=plan.output, storage=storage))
    manifest = QAMPARI_RELEASE.listing(files, {**values, "counts": report["questions"]})
    commit(QAMPARI_RELEASE, manifest, plan.output, storage)


def _merged(found: Found, name: str) -> Iterator[pa.RecordBatch]:
    """Gives the rows of one kind, step after step, those of a step in their order; without the columns of it."""
    of_steps: defaultdict[int, list[Stored]] = defaultdict(list)
    for key, (kind, chunk) in found:
        if kind == name:
            of_steps[key[0]].append(Stored(*chunk))
    for chunks in of_steps.values():
        for batch in merge_group(chunks, storage_for(chunks[0].path), ORDER):
            yield batch.select(batch.schema.names[len(ORDER) :])


def _candidates(found: Found) -> Iterator[PoolQuestion]:
    for batch in _merged(found, "candidates"):
        for key, subset, property_ids in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield PoolQuestion(key, subset, tuple(property_ids))


def _questions(found: Found) -> Iterator[Question]:
    for batch in _merged(found, "questions"):
        for start in range(0, batch.num_rows, 64):  # as Python values they take many times the room
            yield from (question_of_row(row).question for row in batch.slice(start, 64).to_pylist())


def _queries(found: Found) -> Iterator[QueryRow]:
    for batch in _merged(found, "queries"):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            subset, key, property_ids, entity_ids, *rest = row
            yield QueryRow(subset, key, tuple(property_ids), tuple(entity_ids), *rest)


def _counted(rows: Iterable[QueryRow], funnel: defaultdict[str, Counter[str]]) -> Iterator[QueryRow]:
    """Gives queries on, counted: by subset how many came how far, and answers of these."""
    for row in rows:
        counts = funnel[row.subset]
        counts.update(["queries", row.outcome])
        counts["answers"] += row.n_answers
        for name in _PROVED:
            value: Any = getattr(row, name)
            counts[f"answers_{name.removeprefix('n_')}"] += value or 0
        yield row


def _numbered(questions: Iterator[Question], draws: Iterable[Drawn]) -> Iterator[tuple[Any, ...]]:
    """Gives questions with side, split and qid; numbers run through each split's file."""
    n_of: Counter[str] = Counter()
    for one, (side, split) in zip(questions, draws, strict=True):
        qid = None
        if split is not None:
            qid = qid_of(n_of[split], one.subset, split)
            n_of[split] += 1
        yield one, side, split, qid


def _counts(found: Found, name: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for _, (kind, value) in found:
        if kind == name:
            counts.update(value)
    return dict(sorted(counts.items()))


def _lists(found: Found) -> dict[str, dict[str, int]]:
    """Gives how many list pages and tables there are, and why tables are left out."""
    counts: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for _, (kind, chunk) in found:
        if kind == "lists":
            _, report = read_chunk_report(chunk[0], storage_for(chunk[0]))
            counts.update(report.counts)
            left_out.update(report.facts["left_out"])
    return {"counts": dict(sorted(counts.items())), "left_out": dict(sorted(left_out.items()))}
