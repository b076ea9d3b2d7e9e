"""Answers to QAMPARI's crowd tasks: verdicts on answers and paraphrases, paraphrases, and which annotators to exclude.

Returned files have ``task_id``, ``verdict`` or ``label`` (``correct`` or ``incorrect``) and optionally ``worker`` or
``worker_id``; or ``qid`` and ``paraphrase``. If a task has several verdicts, the last one counts: second judgements are
made by more trusted annotators.

Source: QAMPARI (2022), section 3.6 and appendix.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from kbsource.errors import RecordError, SetupError
from kbsource.release.layout import check_output
from kbsource.release.manifest import ListingManifest
from kbsource.release.reader import check_hashes
from mapping.annotation.crowd import (
    CORRECT,
    INCORRECT,
)
from mapping.annotation.tasks import (
    CROWD_TASKS,
    PARAPHRASE,
    VALIDATION_KEY,
    Reject,
    read_annotations,
)
from mapping.options import AtLeast1, Checked, Share, Words
from mapping.qampari.kind import read_form
from mapping.qampari.release import Form
from mapping.sources.raw_records import FAULTS, Json, text_at

REASONS: dict[str, str] = {
    **FAULTS,
    "control_character": "a paraphrase with a character that is not text, such as NUL or escape",
    "duplicate_paraphrase": "the question was rewritten before in this file",
    "empty_paraphrase": "a paraphrase without a letter or digit, or with several lines",
    "unknown_question": "a paraphrase of a question that is not among the tasks",
    "unknown_task": "a verdict on something that is not a task",
    "unknown_verdict": "a verdict that is neither correct nor incorrect",
}
"""Reasons for ignoring a line: reason -> meaning."""

_NAMES = {"label": "verdict", "worker_id": "worker"}
_WORD = re.compile(r"[^\W_]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Task(NamedTuple):
    """The subject of a task: an answer to the question, or a wrong answer that was taken from another question."""

    aid: str
    is_wrong: bool


@dataclass(slots=True)
class JudgedTasks:
    """The results of the verdicts on all tasks."""

    #: last verdict of each judged task: whether the answer is correct
    final: dict[str, bool] = field(default_factory=dict)
    #: tasks with a verdict that differs from an earlier verdict
    overturned: set[str] = field(default_factory=set)
    #: number of removed verdicts, by excluded annotator
    n_taken_out: Counter[str] = field(default_factory=Counter)
    #: by annotator ("" if unnamed): ``verdicts``, and for wrong answers ``wrong_judged`` and ``wrong_accepted``
    workers: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


@dataclass(frozen=True, slots=True)
class WorkerOptions(Checked):
    """Options for excluding annotators."""

    reject_worker: Annotated[Words, Parameter("--reject-worker")] = ()
    """Annotators whose verdicts and paraphrases are removed."""
    most_wrong: Annotated[Share | None, Parameter("--most-wrong-accepted")] = None
    """Exclude annotators who accepted more than this share of the wrong answers that they judged."""
    least_wrong: Annotated[AtLeast1, Parameter("--least-wrong-judged")] = 5
    """Minimum number of wrong answers that an annotator must have judged before --most-wrong-accepted can exclude them.
    """


class AnnotatorVerdict(NamedTuple):
    """An annotator's verdict on a task."""

    task_id: str
    is_right: bool
    worker: str  # name of the annotator; empty if unnamed


def read_verdicts(paths: Sequence[str], tasks: dict[str, Task], reject: Reject) -> list[AnnotatorVerdict]:
    """Reads verdicts on tasks, in file order.

    Raises:
        SetupError: a file cannot be read, or is not of the expected kind.
    """
    said: list[AnnotatorVerdict] = []
    for path in paths:
        for record in _read_checked(path, ("task_id", "verdict"), partial(_check_verdict, tasks), reject):
            verdict = AnnotatorVerdict(record["task_id"], record["verdict"] == CORRECT, record.get("worker") or "")
            if not said or verdict != said[-1]:  # a Label Studio export has one row per highlight
                said.append(verdict)
    return said


def rejected_workers(
    verdicts: Iterable[AnnotatorVerdict], tasks: Mapping[str, Task], options: WorkerOptions
) -> frozenset[str]:
    """Returns the excluded annotators: those named, and those who accept too many wrong answers."""
    judged: defaultdict[str, list[bool]] = defaultdict(list)
    for task_id, is_right, worker in verdicts:
        if tasks[task_id].is_wrong and worker:
            judged[worker].append(is_right)
    careless = (
        worker
        for worker, accepted in judged.items()
        if options.most_wrong is not None
        and len(accepted) >= options.least_wrong
        and sum(accepted) / len(accepted) > options.most_wrong
    )
    return frozenset((*options.reject_worker, *careless))


def judge(verdicts: Iterable[AnnotatorVerdict], tasks: Mapping[str, Task], rejected: Collection[str]) -> JudgedTasks:
    """Returns the results of the verdicts; verdicts of excluded annotators do not count."""
    judged = JudgedTasks()
    for task_id, is_right, name in verdicts:
        if name in rejected:
            judged.n_taken_out[name] += 1
            continue
        if judged.final.get(task_id, is_right) != is_right:
            judged.overturned.add(task_id)
        judged.final[task_id] = is_right
        worker = judged.workers[name]
        worker["verdicts"] += 1
        if tasks[task_id].is_wrong:
            worker["wrong_judged"] += 1
            worker["wrong_accepted"] += is_right
    return judged


def _check_verdict(tasks: dict[str, Task], record: Json) -> None:
    task_id, verdict = text_at(record, "task_id"), text_at(record, "verdict")
    if record.get("worker") is not None:
        text_at(record, "worker")
    if task_id not in tasks:
        raise RecordError("unknown_task", f"{task_id!r}")
    if verdict not in (CORRECT, INCORRECT):
        raise RecordError("unknown_verdict", f"{verdict!r}; give {CORRECT} or {INCORRECT}")


class Paraphrase(NamedTuple):
    """An annotator's paraphrase of a question."""

    text: str  # the paraphrase, with single spaces
    worker: str  # name of the annotator; empty if unnamed


def read_paraphrases(paths: Sequence[str], qids: Collection[str], reject: Reject) -> dict[str, Paraphrase]:
    """Reads the paraphrase of each question that has one.

    Raises:
        SetupError: a file cannot be read, or is not of the expected kind.
    """
    found: dict[str, Paraphrase] = {}
    for path in paths:
        for record in _read_checked(path, ("qid", "paraphrase"), partial(_check_paraphrase, qids, found), reject):
            text = " ".join(record["paraphrase"].split())
            found[record["qid"]] = Paraphrase(text, record.get("worker") or "")
    return found


def read_checks(path: str | None, qids: Collection[str], reject: Reject) -> dict[str, bool]:
    """Reads whether the paraphrase of each checked question is correct; the last verdict counts.

    Raises:
        SetupError: the file cannot be read, or is not of the expected kind.
    """
    paths = () if path is None else (path,)
    return {
        record["qid"]: record["verdict"] == CORRECT
        for checks_path in paths
        for record in _read_checked(checks_path, ("qid", "verdict"), partial(_check_of_paraphrase, qids), reject)
    }


def _check_of_paraphrase(qids: Collection[str], record: Json) -> None:
    qid, verdict = text_at(record, "qid"), text_at(record, "verdict")
    if qid not in qids:
        raise RecordError("unknown_question", f"{qid!r}")
    if verdict not in (CORRECT, INCORRECT):
        raise RecordError("unknown_verdict", f"{verdict!r}; give {CORRECT} or {INCORRECT}")


def _check_paraphrase(qids: Collection[str], found: Mapping[str, Paraphrase], record: Json) -> None:
    if record.get("worker") is not None:
        text_at(record, "worker")
    qid, paraphrase = text_at(record, "qid"), text_at(record, "paraphrase")
    if qid not in qids:
        raise RecordError("unknown_question", f"{qid!r}")
    if qid in found:
        raise RecordError("duplicate_paraphrase", f"{qid!r}")
    if len(paraphrase.strip().splitlines()) != 1 or _WORD.search(paraphrase) is None:
        raise RecordError("empty_paraphrase", f"{qid!r}: {paraphrase[:80]!r}")
    if _CONTROL.search(" ".join(paraphrase.split())) is not None:
        raise RecordError("control_character", f"{qid!r}: {paraphrase[:80]!r}")


def _read_checked(path: str, keys: tuple[str, ...], check: Callable[[Json], None], reject: Reject) -> Iterator[Json]:
    def checked(record: Json) -> Json | None:
        renamed = _renamed(record)
        if renamed.get("verdict") == "":  # an incomplete row of a sheet
            return None
        check(renamed)
        return renamed

    return read_annotations(
        (path,),
        checked,
        fits=lambda record: {*keys} <= _renamed(record).keys(),
        expected=f"JSON Lines with {' and '.join(keys)}",
        stage="crowd",
        reject=reject,
    )


def _renamed(record: Json) -> Json:
    """Returns a record of any form with the key names used here."""
    return {_NAMES.get(name, name): value for name, value in record.items()}


class Answers(NamedTuple):
    """The tasks of a release, with the annotators' answers."""

    manifest: ListingManifest  # manifest of the release
    form: Form
    own: ListingManifest  # manifest of the tasks
    key: dict[str, Json]  # hidden part of the tasks, by task id
    tasks: dict[str, Task]
    paraphrase_tasks: dict[str, Json]  # questions to be paraphrased, by qid
    excluded_workers: frozenset[str]  # names of the excluded annotators
    judged_tasks: JudgedTasks
    paraphrases: dict[str, Paraphrase]  # paraphrases of all annotators


def read_answers(
    release: str,
    tasks_folder: str,
    output: str,
    *,
    verdicts: Sequence[str],
    paraphrases: Sequence[str],
    workers: WorkerOptions | None,
    reject: Reject,
) -> Answers:
    """Returns the tasks of a release with the annotators' answers; ``output`` is checked before anything is read.

    Raises:
        SetupError: an input is invalid, the tasks belong to another release, or ``output`` is not empty.
    """
    manifest, form = read_form(release)
    check_output(output)
    own = CROWD_TASKS.read(tasks_folder)
    if own.facts["qampari"]["manifest_sha256"] != manifest.sha256:
        raise SetupError(
            f"{tasks_folder}: these tasks were not made from {release}; name the release that they were made from."
        )
    check_hashes(tasks_folder, own.entries())
    check_hashes(release, manifest.entries())
    key = {line["task_id"]: line for line in CROWD_TASKS.lines(tasks_folder, own, VALIDATION_KEY)}
    tasks = {task_id: Task(line["aid"], line["is_wrong"]) for task_id, line in key.items()}
    paraphrase_tasks = {line["qid"]: line for line in CROWD_TASKS.lines(tasks_folder, own, PARAPHRASE)}
    said = read_verdicts(verdicts, tasks, reject)
    excluded = rejected_workers(said, tasks, WorkerOptions() if workers is None else workers)
    written = read_paraphrases(paraphrases, paraphrase_tasks, reject)
    return Answers(manifest, form, own, key, tasks, paraphrase_tasks, excluded, judge(said, tasks, excluded), written)
