"""Tasks for people: is this answer right, and how would you ask this?

Answers of development and test questions are judged one by one, among them wrong ones that come from other questions:
who calls those right does not read the texts. Questions of the fixed form are written anew, all of development and test
set and some for training.

::

    validation.jsonl        one answer a line: task_id, qid, question_text, answer_text, links, proofs; or
                            validation.csv, or validation.json and validation.xml for Label Studio
    validation_key.jsonl    which answer each task is about, and whether it is a wrong one; not for those who judge
    paraphrase.jsonl        one question a line: qid, question_text, entities, answers
    manifest.json           names the release

A task's id stays the same in later releases as long as query, answer and seed do.

Source: QAMPARI (2022), section 3.6 and appendix.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from heapq import nsmallest
from typing import NamedTuple

from kbsource.files import Storage
from kbsource.identity import stable_sha256
from kbsource.release.intact import check_hashes
from kbsource.release.kind import ListingKind
from kbsource.release.layout import check_output
from kbsource.release.manifest import code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import read_table
from kbsource.release.writer import write_lines
from mapping.options import Checked, option
from mapping.qampari.kind import read_form
from mapping.qampari.question_rows import DrawnQuestion, question_of_row
from mapping.qampari.records import QuestionAnswer, QuestionEntity
from mapping.qampari.released import Form, page_url
from mapping.qampari.selection import PoolQuestion, draw_key
from mapping.sources.forms.task_files import TASK_FORMS, TaskForm, TaskSheet, task_names, write_tasks
from mapping.sources.reading.fields import Json

VALIDATION, KEY, PARAPHRASE = "validation", "validation_key.jsonl", "paraphrase.jsonl"
CROWD_TASKS = ListingKind(
    name="folder of tasks",
    format="kbsource-qampari-tasks-1",
    made_by="kbsource qampari-tasks export",
    tables={},
    files=(*(name for form in TASK_FORMS for name in task_names(VALIDATION, form)), KEY, PARAPHRASE),
)
CORRECT, INCORRECT = "correct", "incorrect"
_SHEET = TaskSheet(
    VALIDATION,
    "Do these texts say that this is an answer?",
    ("question_text", "answer_text", "links"),
    "proofs",
    (CORRECT, INCORRECT),
)
POOL = ("dev", "test")
"""Splits whose answers people judge."""

_ID_CHARS = 16


@dataclass(frozen=True, slots=True)
class TaskOptions(Checked):
    """Which tasks are made."""

    wrong_share: float = option(
        0.1,
        "export: wrong answers among those to judge",
        metavar="X",
        lowest=0,
        below=1,
        remedy="give a share from 0 on and below 1",
    )
    n_train_paraphrases: int = option(
        3000,
        "export: training questions to write anew, beside all of dev and test",
        flag="--train-paraphrases",
        lowest=0,
    )
    seed: str = option("qampari", "export: of every draw", metavar="TEXT")
    form: TaskForm = option("jsonl", "export: form of the answers to judge", metavar="FORM", choices=TASK_FORMS)


class ValidationTask(NamedTuple):
    """An answer to judge.

    Attributes:
        task_id: tells nothing of whether it is a wrong one.
        asked: the question.
        answer: shown as its answer.
        aid: of the answer where it comes from: of this question, or of another one.
        is_wrong: comes from another question.
    """

    task_id: str
    asked: DrawnQuestion
    answer: QuestionAnswer
    aid: str
    is_wrong: bool


def candidate_of(drawn: DrawnQuestion) -> PoolQuestion:
    """Gives what a question is drawn by."""
    question = drawn.question
    return PoolQuestion(question.key, question.subset, question.property_ids)


def read_questions(release: str, storage: Storage) -> Iterator[DrawnQuestion]:
    """Gives the questions of a release in the order of the table."""
    return (question_of_row(row) for row in read_table(release, "questions", storage))


def validation_tasks(pool: Sequence[DrawnQuestion], options: TaskOptions) -> list[ValidationTask]:
    """Gives the answers to judge: question by question, within one in an order that tells nothing.

    Answers are drawn, in rounds, until ``wrong_share`` of all tasks are wrong ones: for each, one of another question
    of the subset is added to its question, as long as there is any, that shares neither name nor page with any right
    one, nor with what is asked about.

    Args:
        pool: drawn questions of development and test set.
        options: which.
    """
    tasks = [
        ValidationTask(
            _task_id(options, question, question, answer), question, answer, f"{question.qid}__{number}", False
        )
        for question in pool
        for number, answer in enumerate(question.question.answers)
    ]
    n_wrong = round(len(tasks) * options.wrong_share / (1 - options.wrong_share))
    by_subset: defaultdict[str, list[DrawnQuestion]] = defaultdict(list)
    for one in pool:
        by_subset[one.question.subset].append(one)
    wrong: dict[str, ValidationTask] = {}
    drawn = sorted(tasks, key=lambda one: stable_sha256(options.seed, "wrong", one.task_id))
    while drawn and len(wrong) < n_wrong:
        able = []
        for task in drawn:
            if len(wrong) == n_wrong:
                break
            added = _wrong_answer(task, by_subset[task.asked.question.subset], options, wrong)
            if added is not None:
                wrong[added.task_id] = added
                able.append(task)
        drawn = able
    order = {one.qid: number for number, one in enumerate(pool)}
    return sorted([*tasks, *wrong.values()], key=lambda one: (order[one.asked.qid], one.task_id))


def _task_id(options: TaskOptions, asked: DrawnQuestion, owner: DrawnQuestion, answer: QuestionAnswer) -> str:
    named = (asked.question.subset, asked.question.key, owner.question.subset, owner.question.key)
    what = (answer.item_id or "", answer.title or "", answer.text)
    return stable_sha256(options.seed, "task", *named, *what)[:_ID_CHARS]


def _wrong_answer(
    task: ValidationTask, others: Sequence[DrawnQuestion], options: TaskOptions, given: Container[str]
) -> ValidationTask | None:
    asked = task.asked
    things: list[QuestionAnswer | QuestionEntity] = [*asked.question.answers, *asked.question.entities]
    right = {name.casefold() for thing in things for name in (thing.text, *thing.aliases)}
    pages = {thing.title for thing in things if thing.title is not None}
    start = int(stable_sha256(options.seed, "other", task.task_id), 16)
    for step in range(len(others)):
        other = others[(start + step) % len(others)]
        if other.question.key == asked.question.key:
            continue
        answers = other.question.answers
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
    """Gives what those who judge are shown."""
    address = partial(_link, form.host)
    titles = [task.answer.title, *(proof.title for proof in task.answer.proofs)]
    return {
        "task_id": task.task_id,
        "qid": task.asked.qid,
        "question_text": _shown_text(task.asked),
        "answer_text": task.answer.text,
        "links": [address(title) for title in dict.fromkeys(titles) if title is not None],
        "proofs": [{"text": proof.text, "url": address(proof.title)} for proof in task.answer.proofs],
    }


def _link(host: str, title: str) -> str:
    """Gives an address that a browser opens; that of a release ends for it at a question mark."""
    return page_url(host, title).replace("%", "%25").replace("?", "%3F")


def key_record(task: ValidationTask) -> Json:
    """Gives what those who judge are not shown."""
    return {"task_id": task.task_id, "qid": task.asked.qid, "aid": task.aid, "is_wrong": task.is_wrong}


def paraphrase_record(drawn: DrawnQuestion) -> Json:
    """Gives a question to write anew, with what it is about and its answers."""
    return {
        "qid": drawn.qid,
        "question_text": _shown_text(drawn),
        "entities": [entity.text for entity in drawn.question.entities],
        "answers": [answer.text for answer in drawn.question.answers],
    }


def _shown_text(drawn: DrawnQuestion) -> str:
    return drawn.question.text if drawn.paraphrase is None else drawn.paraphrase


def export_tasks(release: str, output: str, storage: Storage, options: TaskOptions) -> dict[str, int]:
    """Writes the tasks of a release into an empty folder and gives how many there are of each kind.

    Memory: development and test set, and the training questions that are written anew.

    Raises:
        SetupError: ``release`` is no finished QAMPARI release, or not as it was written; ``output`` is not empty.
    """
    manifest, form = read_form(release, storage)
    check_output(output, storage)
    check_hashes(release, manifest.entries(), storage)
    pool = [question for question in read_questions(release, storage) if question.split in POOL]
    train = nsmallest(
        options.n_train_paraphrases,
        (question for question in read_questions(release, storage) if question.split == "train"),
        key=lambda n_train_paraphrase: (
            draw_key(candidate_of(n_train_paraphrase), options.seed, "paraphrase"),
            n_train_paraphrase.question.subset,
        ),
    )
    tasks = validation_tasks(pool, options)
    records = {
        KEY: map(key_record, tasks),
        PARAPHRASE: map(paraphrase_record, [*pool, *train]),
    }
    n_wrong = sum(task.is_wrong for task in tasks)
    counts = {"answers": len(tasks) - n_wrong, "wrong_answers": n_wrong, "paraphrases": len(pool) + len(train)}
    facts = {
        "qampari": {"manifest_sha256": manifest.sha256},
        "options": asdict(options),
        "counts": counts,
        "code": asdict(code_facts()),
    }
    with ReleaseFolder(output, storage, kind=CROWD_TASKS):
        shown = (validation_record(task, form) for task in tasks)
        files = write_tasks(shown, _SHEET, options.form, output=output, storage=storage)
        files += [write_lines(map(_line, own), name, output=output, storage=storage) for name, own in records.items()]
        commit(CROWD_TASKS, CROWD_TASKS.listing(files, facts), output, storage)
    return counts


def _line(record: Json) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"
