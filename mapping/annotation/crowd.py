"""QAMPARI's questions before people: is this answer right, and how would you ask this? And the release made anew.

Answers of development and test questions are judged one by one, among them wrong ones that come from other questions:
who calls those right does not read the texts. Questions of the fixed form are written anew, all of development and test
set and some for training.

::

    validation.jsonl        one answer a line: task_id, qid, question_text, answer_text, links, proofs; or
                            validation.csv, or validation.json and validation.xml for Label Studio
    validation_key.jsonl    which answer each task is about, and whether it is a wrong one; not for those who judge
    paraphrase.jsonl        one question a line: qid, question_text, entities, answers
    manifest.json           names the release

A task's id stays the same in later releases as long as query, answer and seed do. What comes back has ``task_id``,
``verdict`` or ``label`` (``correct`` or ``incorrect``) and perhaps ``worker`` or ``worker_id``, or ``qid`` and
``paraphrase``. Of several verdicts on a task the last one counts: what is judged again is judged by someone who is
trusted more.

Source: QAMPARI (2022), section 3.6 and appendix.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from heapq import nsmallest
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec.structs import replace

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, join
from kbsource.identity import stable_sha256
from kbsource.records import BadRecord
from kbsource.release.layout import check_output
from kbsource.release.manifest import ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from kbsource.release.writer import write_rejected
from mapping.annotation.tasks import (
    CROWD_TASKS,
    INSTRUCTIONS,
    PARAPHRASE,
    PARAPHRASE_CHECK,
    VALIDATION,
    VALIDATION_KEY,
    Reject,
    TaskForm,
    TaskSheet,
    checked_folder,
    read_said,
    write_task_folder,
)
from mapping.options import AtLeast0, AtLeast1, Checked, FolderPath, Name, Share, Words
from mapping.qampari.kind import QAMPARI_RELEASE, read_form
from mapping.qampari.questions import SIMPLE
from mapping.qampari.records import ProofText, QueryRow, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.release import Form, page_url, parse_qid, qid_of, read_questions, read_rows, write_release_files
from mapping.qampari.selection import PoolQuestion, draw_key
from mapping.sources.raw_records import FAULTS, Json, iter_lines, text_at
from mapping.write.kind import write_report

CORRECT, INCORRECT = "correct", "incorrect"
_SHEET = TaskSheet(
    VALIDATION,
    "Do these texts say that this is an answer?",
    ("question_text", "answer_text", "links"),
    "proofs",
    (CORRECT, INCORRECT),
    help="Only running text counts, of the proofs or of the linked pages: no infobox and no table.",
)
INSTRUCTIONS_TEXT = f"""Answers: for each task say whether the answer is right.

- {CORRECT}: the running text of a linked page says that this is an answer to the question. The proofs are parts of such
  texts. You may read on in the pages.
- {INCORRECT}: it does not. Infoboxes and tables do not count, nor what you know from elsewhere.
- Some answers are wrong on purpose.

Paraphrases: ask each question as you would ask it, in one line.

- Keep what is asked for: the same answers must be right, and no others.
- Keep the names of what the question is about.
"""
"""What people are told. Source: QAMPARI (2022), section 3.6: answers count by the text of a page alone."""
POOL = ("dev", "test")
"""Splits whose answers people judge."""

_ID_CHARS = 16


@dataclass(frozen=True, slots=True)
class TaskOptions(Checked):
    """Which tasks are made."""

    wrong_share: Annotated[Share, Parameter(validator=Number(gte=0, lt=1))] = 0.1
    """Wrong answers among those to judge."""
    n_train_paraphrases: Annotated[AtLeast0, Parameter("--train-paraphrases")] = 3000
    """Training questions to write anew, beside all of dev and test."""
    seed: Name = "qampari"
    """Of every draw."""
    not_in: Annotated[tuple[FolderPath, ...], Parameter("--not-in", metavar="DIR")] = ()
    """Folders of earlier tasks: questions that none of them asks about, such as those that came in place of others."""
    form: TaskForm = "jsonl"
    """Of the answers to judge: jsonl: one JSON object a line; csv: a row a task, with empty columns for what is said of
    it; label-studio: tasks for its import, beside the labelling interface."""


class ValidationTask(NamedTuple):
    """An answer to judge."""

    task_id: str  # tells nothing of whether it is a wrong one
    asked: Question
    answer: QuestionAnswer  # shown as its answer
    aid: str  # of the answer where it comes from: of this question, or of another one
    is_wrong: bool  # comes from another question


def candidate_of(drawn: Question) -> PoolQuestion:
    """What a question is drawn by."""
    return PoolQuestion(drawn.key, drawn.subset, drawn.property_ids)


def validation_tasks(
    pool: Sequence[Question], options: TaskOptions, *, others: Sequence[Question] | None = None
) -> list[ValidationTask]:
    """The answers to judge of some questions: by question, within one in an order that tells nothing.

    Answers are drawn, in rounds, until ``wrong_share`` of all tasks are wrong ones: for each, one of another question
    of the subset is added to its question, as long as there is any, that shares neither name nor page with any right
    one, nor with what is asked about.

    Args:
        others: questions that wrong answers come from; by default the same.
    """
    tasks = [
        ValidationTask(
            _task_id(options, question, question, answer), question, answer, f"{question.qid}__{number}", False
        )
        for question in pool
        for number, answer in enumerate(question.answers)
    ]
    n_wrong = round(len(tasks) * options.wrong_share / (1 - options.wrong_share))
    by_subset: defaultdict[str, list[Question]] = defaultdict(list)
    for one in pool if others is None else others:
        by_subset[one.subset].append(one)
    wrong: dict[str, ValidationTask] = {}
    drawn = sorted(tasks, key=lambda one: stable_sha256(options.seed, "wrong", one.task_id))
    while drawn and len(wrong) < n_wrong:
        able = []
        for task in drawn:
            if len(wrong) == n_wrong:
                break
            added = _wrong_answer(task, by_subset[task.asked.subset], options, wrong)
            if added is not None:
                wrong[added.task_id] = added
                able.append(task)
        drawn = able
    order = {one.qid: number for number, one in enumerate(pool)}
    return sorted([*tasks, *wrong.values()], key=lambda one: (order[one.asked.qid], one.task_id))


def _task_id(options: TaskOptions, asked: Question, owner: Question, answer: QuestionAnswer) -> str:
    named = (asked.subset, asked.key, owner.subset, owner.key)
    what = (answer.item_id or "", answer.title or "", answer.text)
    return stable_sha256(options.seed, "task", *named, *what)[:_ID_CHARS]


def _wrong_answer(
    task: ValidationTask, others: Sequence[Question], options: TaskOptions, given: Container[str]
) -> ValidationTask | None:
    asked = task.asked
    things: list[QuestionAnswer | QuestionEntity] = [*asked.answers, *asked.entities]
    right = {name.casefold() for thing in things for name in (thing.text, *thing.aliases)}
    pages = {thing.title for thing in things if thing.title is not None}
    start = int(stable_sha256(options.seed, "other", task.task_id), 16)
    for step in range(len(others)):
        other = others[(start + step) % len(others)]
        if other.key == asked.key:
            continue
        answers = other.answers
        for place in range(len(answers)):
            number = (start + place) % len(answers)
            answer = answers[number]
            if answer.title not in pages and right.isdisjoint(
                name.casefold() for name in (answer.text, *answer.aliases)
            ):
                task_id = _task_id(options, asked, other, answer)
                if task_id not in given:
                    return ValidationTask(task_id, asked, answer, f"{other.qid}__{number}", True)
    return None


def validation_record(task: ValidationTask, form: Form) -> Json:
    """What those who judge are shown."""
    return {
        "task_id": task.task_id,
        "qid": task.asked.qid,
        "question_text": task.asked.released_text,
        **shown_answer(task.answer, task.answer.proofs, form),
    }


def shown_answer(answer: QuestionAnswer, proofs: Sequence[ProofText], form: Form) -> Json:
    """An answer with addresses of its page and of those of some proofs."""
    address = partial(_link, form.host)
    titles = [answer.title, *(proof.title for proof in proofs)]
    return {
        "answer_text": answer.text,
        "links": [address(title) for title in dict.fromkeys(titles) if title is not None],
        "proofs": [{"text": proof.text, "url": address(proof.title)} for proof in proofs],
    }


def _link(host: str, title: str) -> str:
    """An address that a browser opens; that of a release ends for it at a question mark."""
    return page_url(host, title).replace("%", "%25").replace("?", "%3F")


def paraphrase_record(drawn: Question) -> Json:
    """A question to write anew, with what it is about and its answers."""
    return {
        "qid": drawn.qid,
        "question_text": drawn.released_text,
        "entities": [entity.text for entity in drawn.entities],
        "answers": [answer.text for answer in drawn.answers],
    }


def export_tasks(release: str, output: str, options: TaskOptions) -> dict[str, int]:
    """Writes the tasks of a release into an empty folder and gives how many there are of each kind.

    Memory: development and test set, and the training questions that are written anew.

    Raises:
        SetupError: ``release`` is no finished QAMPARI release, or not as it was written; ``output`` is not empty.
    """
    manifest, form = read_form(release)
    check_output(output)
    check_hashes(release, manifest.entries())
    every = [question for question in read_questions(release, manifest) if question.split in POOL]
    former = {place for folder in options.not_in for place in _asked_before(folder)}
    pool = [question for question in every if _place(question) not in former]
    train = nsmallest(
        0 if options.not_in else options.n_train_paraphrases,
        (question for question in read_questions(release, manifest) if question.split == "train"),
        key=lambda drawn: (draw_key(candidate_of(drawn), options.seed, "paraphrase"), drawn.subset),
    )
    tasks = validation_tasks(pool, options, others=every)
    n_wrong = sum(task.is_wrong for task in tasks)
    counts = {"answers": len(tasks) - n_wrong, "wrong_answers": n_wrong, "paraphrases": len(pool) + len(train)}
    write_task_folder(
        CROWD_TASKS,
        (validation_record(task, form) for task in tasks),
        _SHEET,
        options.form,
        hidden={
            VALIDATION_KEY: (
                _line(
                    {
                        "task_id": one.task_id,
                        "qid": one.asked.qid,
                        "aid": one.aid,
                        "is_wrong": one.is_wrong,
                        "subset": one.asked.subset,
                        "key": one.asked.key,
                    }
                )
                for one in tasks
            ),
            PARAPHRASE: map(_line, map(paraphrase_record, [*pool, *train])),
            INSTRUCTIONS: INSTRUCTIONS_TEXT.encode().splitlines(keepends=True),
        },
        facts={
            "qampari": {"manifest_sha256": manifest.sha256},
            "options": {**asdict(options), "not_in": len(options.not_in)},
            "counts": counts,
        },
        output=output,
    )
    return counts


def _asked_before(folder: str) -> Iterator[tuple[str, str]]:
    """Subset and key of the questions that a folder of tasks asks about."""
    checked_folder(CROWD_TASKS, folder)
    yield from (
        (text_at(record, "subset"), text_at(record, "key")) for record in _records(join(folder, VALIDATION_KEY))
    )


def _line(record: Json) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


REASONS: dict[str, str] = {
    **FAULTS,
    "control_character": "a paraphrase with a character that is no text, such as NUL or escape",
    "duplicate_paraphrase": "the question was written anew before in this file",
    "empty_paraphrase": "a paraphrase without a letter or digit, or of several lines",
    "unknown_question": "a paraphrase of a question that was not among the tasks",
    "unknown_task": "a verdict about no task",
    "unknown_verdict": "a verdict that is neither correct nor incorrect",
}
"""Why a line is left out: reason -> meaning."""

_NAMES = {"label": "verdict", "worker_id": "worker"}
_WORD = re.compile(r"[^\W_]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Task(NamedTuple):
    """What a task is about: an answer, or one that comes from another question."""

    aid: str
    is_wrong: bool


@dataclass(slots=True)
class Judged:
    """What people said."""

    #: last verdict of each task that was judged: whether the answer is right
    final: dict[str, bool] = field(default_factory=dict)
    #: tasks that a later verdict said something else of than the one before
    overturned: set[str] = field(default_factory=set)
    #: by worker who is rejected: verdicts that were taken out
    n_taken_out: Counter[str] = field(default_factory=Counter)
    #: by worker ("" where no one is named): ``verdicts``, and of wrong answers ``wrong_judged`` and ``wrong_accepted``
    workers: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


@dataclass(frozen=True, slots=True)
class WorkerOptions(Checked):
    """Whose verdicts and paraphrases do not count."""

    reject_worker: Annotated[Words, Parameter("--reject-worker")] = ()
    """People whose verdicts and paraphrases are taken out."""
    most_wrong: Annotated[Share | None, Parameter("--most-wrong-accepted")] = None
    """Of the wrong answers that a person judged, the share that they may accept; who accepts more is rejected too."""
    least_wrong: Annotated[AtLeast1, Parameter("--least-wrong-judged")] = 5
    """Wrong answers that a person must have judged to be rejected by --most-wrong-accepted."""


class Verdict(NamedTuple):
    """What somebody said of a task."""

    task_id: str
    is_right: bool
    worker: str  # empty where no one is named


def read_verdicts(paths: Sequence[str], tasks: dict[str, Task], reject: Reject) -> list[Verdict]:
    """What people said of tasks, in the order of the files.

    Raises:
        SetupError: a file cannot be read, or is one of something else.
    """
    said: list[Verdict] = []
    for path in paths:
        for record in _said(path, ("task_id", "verdict"), partial(_check_verdict, tasks), reject):
            verdict = Verdict(record["task_id"], record["verdict"] == CORRECT, record.get("worker") or "")
            if not said or verdict != said[-1]:  # an export of Label Studio has a row for each highlight
                said.append(verdict)
    return said


def rejected_workers(said: Iterable[Verdict], tasks: Mapping[str, Task], options: WorkerOptions) -> frozenset[str]:
    """The people whose word does not count: those named, and those who accept too many wrong answers."""
    judged: defaultdict[str, list[bool]] = defaultdict(list)
    for task_id, is_right, worker in said:
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


def judge(said: Iterable[Verdict], tasks: Mapping[str, Task], rejected: Collection[str]) -> Judged:
    """What comes of verdicts, without those of people who are rejected."""
    judged = Judged()
    for task_id, is_right, name in said:
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
    """What somebody wrote for a question."""

    text: str  # with single blanks
    worker: str  # empty where no one is named


def read_paraphrases(paths: Sequence[str], asked: Collection[str], reject: Reject) -> dict[str, Paraphrase]:
    """The paraphrase of each question that has one.

    Raises:
        SetupError: a file cannot be read, or is one of something else.
    """
    found: dict[str, Paraphrase] = {}
    for path in paths:
        for record in _said(path, ("qid", "paraphrase"), partial(_check_paraphrase, asked, found), reject):
            text = " ".join(record["paraphrase"].split())
            found[record["qid"]] = Paraphrase(text, record.get("worker") or "")
    return found


def read_checks(path: str | None, asked: Collection[str], reject: Reject) -> dict[str, bool]:
    """Whether the paraphrase of each question that was looked at is right; the last verdict counts.

    Raises:
        SetupError: the file cannot be read, or is one of something else.
    """
    paths = () if path is None else (path,)
    return {
        record["qid"]: record["verdict"] == CORRECT
        for one in paths
        for record in _said(one, ("qid", "verdict"), partial(_check_of_paraphrase, asked), reject)
    }


def _check_of_paraphrase(asked: Collection[str], record: Json) -> None:
    qid, verdict = text_at(record, "qid"), text_at(record, "verdict")
    if qid not in asked:
        raise RecordError("unknown_question", f"{qid!r}")
    if verdict not in (CORRECT, INCORRECT):
        raise RecordError("unknown_verdict", f"{verdict!r}; give {CORRECT} or {INCORRECT}")


def _check_paraphrase(asked: Collection[str], found: Mapping[str, Paraphrase], record: Json) -> None:
    if record.get("worker") is not None:
        text_at(record, "worker")
    qid, paraphrase = text_at(record, "qid"), text_at(record, "paraphrase")
    if qid not in asked:
        raise RecordError("unknown_question", f"{qid!r}")
    if qid in found:
        raise RecordError("duplicate_paraphrase", f"{qid!r}")
    if len(paraphrase.strip().splitlines()) != 1 or _WORD.search(paraphrase) is None:
        raise RecordError("empty_paraphrase", f"{qid!r}: {paraphrase[:80]!r}")
    if _CONTROL.search(" ".join(paraphrase.split())) is not None:
        raise RecordError("control_character", f"{qid!r}: {paraphrase[:80]!r}")


def _said(path: str, keys: tuple[str, ...], check: Callable[[Json], None], reject: Reject) -> Iterator[Json]:
    def checked(record: Json) -> Json | None:
        renamed = _renamed(record)
        if renamed.get("verdict") == "":  # a row of a sheet that was not filled in
            return None
        check(renamed)
        return renamed

    return read_said(
        (path,),
        checked,
        fits=lambda record: {*keys} <= _renamed(record).keys(),
        expected=f"JSON Lines with {' and '.join(keys)}",
        stage="crowd",
        reject=reject,
    )


def _renamed(record: Json) -> Json:
    """A record of any form under the names that are read here."""
    return {_NAMES.get(name, name): value for name, value in record.items()}


@dataclass(frozen=True, slots=True)
class LookOptions(Checked):
    """What is asked again."""

    correct_share: Share = 0.05
    """Of the answers judged correct, the share that is drawn for a second look; all judged incorrect are looked at."""
    paraphrase_share: Share = 0.5
    """Of each person's paraphrases, the share that is drawn to be checked."""
    seed: Name = "qampari"
    """Of every draw."""
    form: TaskForm = "jsonl"
    """Of the answers to judge: jsonl, csv or label-studio, as for kbsource qampari-tasks export."""


def second_look(
    release: str,
    tasks_folder: str,
    output: str,
    options: LookOptions,
    *,
    verdicts: Sequence[str],
    paraphrases: Sequence[str] = (),
    workers: WorkerOptions | None = None,
    reject: Reject,
) -> dict[str, Any]:
    """Writes tasks again into an empty folder: all answers judged incorrect, some of those judged correct, those that
    nobody judged whose word counts, and some paraphrases of each person; gives counts.

    Tasks keep their ids, and tell nothing of why they are there. ``apply_crowd`` takes what comes back behind the first
    verdicts. Memory: development and test set.

    Raises:
        SetupError: as ``apply_crowd``.
    """
    manifest, form = read_form(release)
    check_output(output)
    own = checked_folder(CROWD_TASKS, tasks_folder)
    if own.facts["qampari"]["manifest_sha256"] != manifest.sha256:
        raise SetupError(f"{tasks_folder}: tasks of another release than {release}; give the one they are of.")
    check_hashes(release, manifest.entries())
    key = {text_at(record, "task_id"): record for record in _records(join(tasks_folder, VALIDATION_KEY))}
    tasks = {task_id: Task(text_at(one, "aid"), bool(one["is_wrong"])) for task_id, one in key.items()}
    asked = {text_at(record, "qid"): record for record in _records(join(tasks_folder, PARAPHRASE))}
    said = read_verdicts(verdicts, tasks, reject)
    refused = rejected_workers(said, tasks, WorkerOptions() if workers is None else workers)
    final = judge(said, tasks, refused).final
    written = {
        qid: one for qid, one in read_paraphrases(paraphrases, asked, reject).items() if one.worker not in refused
    }
    correct = [task_id for task_id, is_right in final.items() if is_right and not tasks[task_id].is_wrong]
    incorrect = {task_id for task_id, is_right in final.items() if not is_right and not tasks[task_id].is_wrong}
    drawn = _drawn(correct, options.correct_share, options.seed, "second")
    unjudged = tasks.keys() - final.keys()
    again = incorrect | drawn | unjudged
    by_worker: defaultdict[str, list[str]] = defaultdict(list)
    for qid, one in written.items():
        by_worker[one.worker].append(qid)
    checked = {
        qid for qids in by_worker.values() for qid in _drawn(qids, options.paraphrase_share, options.seed, "check")
    }
    unwritten = [record for qid, record in asked.items() if qid not in written] if paraphrases else []
    questions = {str(one.qid): one for one in read_questions(release, manifest) if one.split in POOL}
    counts = {
        "incorrect": len(incorrect),
        "correct": len(drawn),
        "unjudged": len(unjudged),
        "paraphrases_to_check": len(checked),
        "paraphrases_to_write": len(unwritten),
        "rejected_workers": len(refused),
    }

    def records() -> Iterator[Json]:
        for task_id, one in key.items():
            if task_id in again:
                owner, _, number = tasks[task_id].aid.rpartition("__")
                answer = questions[owner].answers[int(number)]
                task = ValidationTask(task_id, questions[one["qid"]], answer, one["aid"], one["is_wrong"])
                yield validation_record(task, form)

    write_task_folder(
        CROWD_TASKS,
        records(),
        _SHEET,
        options.form,
        hidden={
            VALIDATION_KEY: (_line(one) for task_id, one in key.items() if task_id in again),
            PARAPHRASE: map(_line, unwritten),
            PARAPHRASE_CHECK: (
                _line({"qid": qid, "question_text": asked[qid]["question_text"], "paraphrase": written[qid].text})
                for qid in asked
                if qid in checked
            ),
            INSTRUCTIONS: INSTRUCTIONS_TEXT.encode().splitlines(keepends=True),
        },
        facts={
            "qampari": {"manifest_sha256": manifest.sha256},
            "options": {**asdict(options), "rejected_workers": sorted(refused)},
            "counts": counts,
        },
        output=output,
    )
    return counts


def _drawn(ids: Sequence[str], share: float, seed: str, what: str) -> set[str]:
    """So many of some ids that their share is nearest to ``share``; at least one of them, unless it is 0."""
    n_drawn = max(round(share * len(ids)), 1 if ids and share else 0)
    return set(nsmallest(n_drawn, ids, key=lambda one: stable_sha256(seed, what, one)))


Dropped = Mapping[str, Collection[int]]
"""By qid the numbers of answers that people judged wrong."""
Moved = Mapping[tuple[str, str], tuple[str, str] | None]
"""By subset and key split and qid of questions that come into the pool; None for those that leave it."""


def find_replacements(release: str, manifest: ListingManifest, *, dropped: Dropped, seed: str, least: int) -> Moved:
    """The questions that have too few answers without those dropped, and what comes in their place.

    What comes gets the numbers behind those that its split has.
    """
    short: defaultdict[tuple[str, str], list[Question]] = defaultdict(list)
    numbers: Counter[str] = Counter()
    for question in read_questions(release, manifest):
        if question.split in POOL and question.qid is not None:
            numbers[str(question.split)] = max(numbers[str(question.split)], parse_qid(question.qid).n)
            if _n_distinct(_without(question, dropped)) < least:
                short[_hand(question)].append(question)
    hands: defaultdict[tuple[str, str], list[Question]] = defaultdict(list)
    for question in read_questions(release, manifest) if short else ():
        hand = _hand(question)
        if hand in short and question.side == "test" and question.split is None and _n_distinct(question) >= least:
            hands[hand].append(question)
            if len(hands[hand]) >= 2 * len(short[hand]) + 64:
                hands[hand] = _first_drawn(hands[hand], seed)[: len(short[hand])]
    moved: dict[tuple[str, str], tuple[str, str] | None] = {}
    for hand, leaving in sorted(short.items()):
        moved |= dict.fromkeys(map(_place, leaving))
        for gone, new in zip(_first_drawn(leaving, seed), _first_drawn(hands[hand], seed), strict=False):
            assert gone.split is not None
            numbers[gone.split] += 1
            moved[_place(new)] = gone.split, qid_of(numbers[gone.split], new.subset, gone.split)
    return moved


def _hand(question: Question) -> tuple[str, str]:
    """What a question is drawn within, as ``selection.draw_pool`` deals."""
    return question.subset, question.property_ids[0] if question.subset == SIMPLE else ""


def _place(question: Question) -> tuple[str, str]:
    return question.subset, question.key


def _first_drawn(hand: Sequence[Question], seed: str) -> list[Question]:
    return sorted(hand, key=lambda one: draw_key(candidate_of(one), seed, "pool"))


def _n_distinct(question: Question) -> int:
    return len({answer.text.casefold() for answer in question.answers})


def _without(question: Question, dropped: Dropped) -> Question:
    gone = dropped.get(question.qid or "", set())
    left = tuple(answer for number, answer in enumerate(question.answers) if number not in gone)
    return replace(question, answers=left, n_dropped=question.n_dropped + len(gone))


def revise_questions(
    release: str,
    manifest: ListingManifest,
    dropped: Dropped,
    paraphrases: Mapping[str, str],
    moved: Moved,
    counts: Counter[str],
) -> Iterator[Question]:
    """The questions as they are now, in the order of the table, and counts what was changed."""
    for question in read_questions(release, manifest):
        revised = _without(question, dropped)
        counts["answers_dropped"] += revised.n_dropped - question.n_dropped
        if (place := _place(question)) in moved:
            split, qid = moved[place] or (None, None)
            yield replace(revised, split=split, qid=qid, paraphrase=None)
        elif question.qid is not None and (paraphrase := paraphrases.get(question.qid)) is not None:
            counts["paraphrases_used"] += 1
            counts["without_entity"] += any(about.text not in paraphrase for about in question.entities)
            yield replace(revised, paraphrase=paraphrase)
        else:
            yield revised


def apply_crowd(
    release: str,
    tasks_folder: str,
    output: str,
    *,
    verdicts: Sequence[str] = (),
    paraphrases: Sequence[str] = (),
    checks: str | None = None,
    least: int = 5,
    workers: WorkerOptions | None = None,
) -> dict[str, Any]:
    """Writes a release without the answers that people judged wrong and with their paraphrases; gives the report.

    A question of development or test set with fewer than ``least`` answers of different text left goes back among those
    not drawn. In its place, in the same split, comes the next one of the test side in the order of the draw: of its
    subset, of simple ones also of its relation. Where there is none the split gets smaller. Memory: development and
    test set.

    Args:
        release: folder of the release that the tasks were made from.
        tasks_folder: folder that ``export_tasks`` wrote.
        verdicts, paraphrases: files of what people said, a second look behind the first.
        checks: file of verdicts on paraphrases; those that are wrong are not taken.
        workers: whose word does not count.

    Raises:
        SetupError: an input is not what it should be, the tasks are of another release, ``output`` is not empty, or
            ``least`` is below 1.
    """
    if least < 1:
        raise SetupError(f"{least} answers that a question needs: for --least-answers give a number from 1 on.")
    manifest, form = read_form(release)
    check_output(output)
    own = CROWD_TASKS.read(tasks_folder)
    if own.facts["qampari"]["manifest_sha256"] != manifest.sha256:
        raise SetupError(f"{tasks_folder}: tasks of another release than {release}; give the one they are of.")
    check_hashes(tasks_folder, own.entries())
    check_hashes(release, manifest.entries())
    tasks = {
        text_at(record, "task_id"): Task(text_at(record, "aid"), bool(record["is_wrong"]))
        for record in _records(join(tasks_folder, VALIDATION_KEY))
    }
    asked = {text_at(record, "qid") for record in _records(join(tasks_folder, PARAPHRASE))}
    rejected: list[BadRecord] = []
    said = read_verdicts(verdicts, tasks, rejected.append)
    refused = rejected_workers(said, tasks, WorkerOptions() if workers is None else workers)
    judged = judge(said, tasks, refused)
    every = read_paraphrases(paraphrases, asked, rejected.append)
    is_right = read_checks(checks, asked, rejected.append)
    written = {qid: one.text for qid, one in every.items() if one.worker not in refused and is_right.get(qid, True)}
    dropped: defaultdict[str, set[int]] = defaultdict(set)
    for task_id, is_correct in judged.final.items():
        if not is_correct and not tasks[task_id].is_wrong:
            qid, _, number = tasks[task_id].aid.rpartition("__")
            dropped[qid].add(int(number))
    moved = find_replacements(release, manifest, dropped=dropped, seed=form.seed, least=least)
    counts: Counter[str] = Counter()
    questions = revise_questions(release, manifest, dropped, written, moved, counts)
    given = {"verdicts": verdicts, "paraphrases": paraphrases, "checks": () if checks is None else (checks,)}
    facts = {
        **({"release": manifest.facts["release"]} if "release" in manifest.facts else {}),
        "form": form._asdict(),
        "qampari": {"manifest_sha256": manifest.sha256},
        "tasks": {"manifest_sha256": own.sha256},
        "inputs": {name: list(map(asdict, input_files(paths))) for name, paths in given.items() if paths},
        "options": {"least": least, "rejected_workers": sorted(refused)},
        "code": code_facts(),
    }
    with ReleaseFolder(output, kind=QAMPARI_RELEASE):
        queries = read_rows(release, manifest, "queries", QueryRow)
        entries = write_release_files(questions, queries, form=form, output=output)
        report = _report(tasks, judged, asked, written, moved, counts, rejected)
        report["paraphrase_checks"] = {
            "checked": len(every.keys() & is_right.keys()),
            "rejected": sum(not right for qid, right in is_right.items() if qid in every),
        }
        report["rejected_workers"] = {
            name: {
                "verdicts": judged.n_taken_out[name],
                "paraphrases": sum(one.worker == name for one in every.values()),
            }
            for name in sorted(refused)
        }
        entries.append(write_rejected(rejected, output=output))
        entries.append(write_report(report, output=output))
        commit(QAMPARI_RELEASE, QAMPARI_RELEASE.listing(entries, facts), output)
    return report


def _records(path: str) -> Iterator[Json]:
    """The records of a file of ours, which has no other lines; it may be empty."""
    return (raw.parse() for raw in iter_lines(path)) if Folder.of(path).size() else iter(())


def _report(
    tasks: Mapping[str, Task],
    judged: Judged,
    asked: Collection[str],
    paraphrases: Mapping[str, str],
    moved: Moved,
    counts: Counter[str],
    rejected: Sequence[BadRecord],
) -> dict[str, Any]:
    right = {task_id for task_id, task in tasks.items() if not task.is_wrong}
    wrong = set(tasks) - right
    accepted = sum(judged.final.get(task_id, False) for task_id in wrong)
    n_come = sum(place is not None for place in moved.values())
    n_left = len(moved) - n_come
    return {
        "answers": {
            "judged": len(right & judged.final.keys()),
            "missing": len(right - judged.final.keys()),
            "overturned": len(right & judged.overturned),
            "dropped": counts["answers_dropped"],
        },
        "wrong_answers": {
            "judged": len(wrong & judged.final.keys()),
            "missing": len(wrong - judged.final.keys()),
            "accepted": accepted,
        },
        "workers": {
            name: {key: one[key] for key in ("verdicts", "wrong_judged", "wrong_accepted")}
            for name, one in sorted(judged.workers.items())
        },
        "questions": {"replaced": n_come, "not_replaced": n_left - n_come},
        "paraphrases": {
            "used": counts["paraphrases_used"],
            "missing": len(asked) - len(paraphrases),
            "of_replaced": len(paraphrases) - counts["paraphrases_used"],
            "without_entity": counts["without_entity"],
        },
        "rejected": dict(sorted(Counter(bad.reason for bad in rejected).items())),
    }
