"""What people said about the tasks of ``crowd_tasks``.

Files are JSON Lines, CSV or exports of Label Studio, plain, gzip or bzip2; a line that cannot be used is rejected with
its reason.

verdicts
    ``task_id``, ``verdict`` or ``label`` (``correct`` or ``incorrect``) and, if known, ``worker`` or ``worker_id``
    (else absent or null). Of several lines about one task the last one counts: what is judged again is judged by
    someone who is trusted more.
paraphrases
    ``qid``, ``paraphrase``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from kbsource.errors import RecordError
from kbsource.files import Storage
from kbsource.records import BadRecord
from mapping.qampari.crowd.tasks import CORRECT, INCORRECT
from mapping.sources.forms.judgement_rows import judgement_rows
from mapping.sources.reading.fields import Json, text_at
from mapping.sources.reading.files_in import check_shape

REASONS: dict[str, str] = {
    "bad_encoding": "text that is not Unicode",
    "control_character": "a paraphrase with a character that is no text, such as NUL or escape",
    "duplicate_paraphrase": "the question was written anew before in this file",
    "empty_paraphrase": "a paraphrase without a letter or digit, or of several lines",
    "malformed_json": "a line that is not JSON",
    "missing_field": "a field that is needed is absent",
    "record_too_long": "a line of more than 64 MiB",
    "unknown_question": "a paraphrase of a question that was not among the tasks",
    "unknown_task": "a verdict about no task",
    "unknown_verdict": "a verdict that is neither correct nor incorrect",
    "wrong_type": "a value of another type than the field has",
}
"""Why a line is left out: reason -> meaning."""

_NAMES = {"label": "verdict", "worker_id": "worker"}
_WORD = re.compile(r"[^\W_]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

Reject = Callable[[BadRecord], None]


class Task(NamedTuple):
    """What a task is about: an answer, or one that comes from another question."""

    aid: str
    is_wrong: bool


@dataclass(slots=True)
class Judged:
    """What people said.

    Attributes:
        final: last verdict of each task that was judged: whether the answer is right.
        overturned: tasks that a later verdict said something else of than the one before.
        workers: by worker ("" where no one is named): ``verdicts``, and of wrong answers ``wrong_judged`` and
            ``wrong_accepted``.
    """

    final: dict[str, bool] = field(default_factory=dict)
    overturned: set[str] = field(default_factory=set)
    workers: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


def read_verdicts(path: str | None, tasks: dict[str, Task], storage: Storage, reject: Reject) -> Judged:
    """Gives what people said of tasks; None for a path is a file without lines.

    Raises:
        SetupError: the file cannot be read, or is one of something else.
    """
    judged = Judged()
    for record in _usable(path, storage, ("task_id", "verdict"), partial(_check_verdict, tasks), reject):
        task_id, is_right = record["task_id"], record["verdict"] == CORRECT
        if judged.final.get(task_id, is_right) != is_right:
            judged.overturned.add(task_id)
        judged.final[task_id] = is_right
        worker = judged.workers[record.get("worker") or ""]
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


def read_paraphrases(path: str | None, asked: Collection[str], storage: Storage, reject: Reject) -> dict[str, str]:
    """Gives the paraphrase of each question that has one, with single blanks; None for a path is a file without lines.

    Raises:
        SetupError: the file cannot be read, or is one of something else.
    """
    found: dict[str, str] = {}
    for record in _usable(path, storage, ("qid", "paraphrase"), partial(_check_paraphrase, asked, found), reject):
        found[record["qid"]] = " ".join(record["paraphrase"].split())
    return found


def _check_paraphrase(asked: Collection[str], found: dict[str, str], record: Json) -> None:
    qid, paraphrase = text_at(record, "qid"), text_at(record, "paraphrase")
    if qid not in asked:
        raise RecordError("unknown_question", f"{qid!r}")
    if qid in found:
        raise RecordError("duplicate_paraphrase", f"{qid!r}")
    if len(paraphrase.strip().splitlines()) != 1 or _WORD.search(paraphrase) is None:
        raise RecordError("empty_paraphrase", f"{qid!r}: {paraphrase[:80]!r}")
    if _CONTROL.search(" ".join(paraphrase.split())) is not None:
        raise RecordError("control_character", f"{qid!r}: {paraphrase[:80]!r}")


def _usable(
    path: str | None, storage: Storage, keys: tuple[str, ...], check: Callable[[Json], None], reject: Reject
) -> Iterator[Json]:
    if path is None:
        return
    expected = f"JSON Lines with {' and '.join(keys)}"
    check_shape(path, judgement_rows(path, storage), lambda one: {*keys} <= _renamed(one).keys(), expected=expected)
    for raw in judgement_rows(path, storage):
        try:
            record = _renamed(raw.parse())
            check(record)
        except RecordError as error:
            reject(raw.bad(error, stage="crowd"))
            continue
        yield record


def _renamed(record: Json) -> Json:
    """Gives a record of any form under the names that are read here."""
    return {_NAMES.get(name, name): value for name, value in record.items()}


def dropped_answers(tasks: dict[str, Task], judged: Judged) -> dict[str, set[int]]:
    """Gives by qid the numbers of the answers that were judged wrong."""
    dropped: defaultdict[str, set[int]] = defaultdict(set)
    for task_id, is_right in judged.final.items():
        task = tasks[task_id]
        if not is_right and not task.is_wrong:
            qid, _, number = task.aid.rpartition("__")
            dropped[qid].add(int(number))
    return dict(dropped)
