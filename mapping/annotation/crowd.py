"""QAMPARI's questions as crowd tasks: is this answer correct, and how would you phrase this question?

Answers to development and test questions are judged one by one. They are mixed with wrong answers from other questions:
annotators who accept these do not read the texts. Generated questions are paraphrased: all of the development and test
sets, and some training questions.

::

    validation.jsonl        one answer per line: task_id, qid, question_text, answer_text, links, proofs; or
                            validation.csv, or validation.json and validation.xml for Label Studio
    validation_key.jsonl    hidden: which answer each task is about, and whether it is a wrong one
    paraphrase.jsonl        one question per line: qid, question_text, entities, answers
    manifest.json           names the release

A task keeps its id in later releases as long as query, answer and seed stay the same.

Source: QAMPARI (2022), section 3.6 and appendix.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from heapq import nsmallest
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from kbsource.identity import stable_sha256
from kbsource.release.layout import check_output
from kbsource.release.reader import check_hashes
from mapping.annotation.tasks import (
    CROWD_TASKS,
    INSTRUCTIONS,
    PARAPHRASE,
    VALIDATION,
    VALIDATION_KEY,
    TaskForm,
    TaskSheet,
    checked_folder,
    write_task_folder,
)
from mapping.options import AtLeast0, Checked, FolderPath, Name, Share
from mapping.qampari.kind import read_form
from mapping.qampari.records import ProofText, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.release import Form, page_url, read_questions
from mapping.qampari.selection import PoolQuestion, draw_key
from mapping.sources.raw_records import Json

CORRECT, INCORRECT = "correct", "incorrect"
ANSWER_SHEET = TaskSheet(
    VALIDATION,
    "Do these texts state that this is an answer to the question?",
    ("question_text", "answer_text", "links"),
    "proofs",
    (CORRECT, INCORRECT),
    help="Only the running text of the proofs or of the linked pages counts, not infoboxes or tables.",
)
INSTRUCTIONS_TEXT = f"""Answers: decide for each task whether the answer is correct.

- {CORRECT}: the running text of a linked page states that this is an answer to the question. The proofs are excerpts
  from linked pages. If they are not enough, read the pages.
- {INCORRECT}: no linked page states it in its running text. Do not use infoboxes, tables or your own knowledge.
- Some answers are wrong on purpose.

Paraphrases: rewrite each question in your own words, in one line.

- Keep the meaning: exactly the same answers must be correct.
- Keep the names of the people, places and things in the question.
"""
"""Instructions for annotators. Source: QAMPARI (2022), section 3.6: only the text of a page counts."""
POOL = ("dev", "test")
"""Splits whose answers are judged."""

_ID_CHARS = 16


@dataclass(frozen=True, slots=True)
class TaskOptions(Checked):
    """Options of the tasks."""

    wrong_share: Annotated[Share, Parameter(validator=Number(gte=0, lt=1))] = 0.1
    """Share of the answers to be judged that are wrong on purpose."""
    n_train_paraphrases: Annotated[AtLeast0, Parameter("--train-paraphrases")] = 3000
    """Number of training questions to be paraphrased, besides all of dev and test."""
    seed: Name = "qampari"
    """Seed of every draw."""
    not_in: Annotated[tuple[FolderPath, ...], Parameter("--not-in", metavar="DIR")] = ()
    """Folders of earlier tasks. Their questions are left out. Use it to draw new questions, for example
    replacements.
    """
    form: Annotated[TaskForm, Parameter("--format")] = "jsonl"
    """Format of the tasks. jsonl: one JSON object per line; csv: one row per task, with empty columns for the verdict;
    label-studio: tasks to import into Label Studio, and its labelling interface.
    """


class ValidationTask(NamedTuple):
    """An answer to be judged."""

    task_id: str  # id of the task; does not reveal whether the answer is wrong
    question: Question
    answer: QuestionAnswer  # the answer that annotators see
    aid: str  # id of the answer in the question that it was taken from
    is_wrong: bool  # true if the answer was taken from another question


def candidate_of(drawn: Question) -> PoolQuestion:
    """Returns a question in the form in which ``selection`` samples it."""
    return PoolQuestion(drawn.key, drawn.subset, drawn.property_ids)


def validation_tasks(
    pool: Sequence[Question], options: TaskOptions, *, others: Sequence[Question] | None = None
) -> list[ValidationTask]:
    """Returns the answers to be judged for some questions, ordered by question. Within a question, the order does not
    reveal which answers are wrong.

    Answers are drawn, in rounds, until ``wrong_share`` of all tasks are wrong answers. For each drawn answer, an answer
    to another question of the subset is added to its question, provided that it shares neither name nor page with a
    correct answer or with an entity of the question.

    Args:
        others: questions whose answers serve as wrong answers; by default the same questions.
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
    for question in pool if others is None else others:
        by_subset[question.subset].append(question)
    wrong: dict[str, ValidationTask] = {}
    drawn = sorted(tasks, key=lambda task: stable_sha256(options.seed, "wrong", task.task_id))
    while drawn and len(wrong) < n_wrong:
        able = []
        for task in drawn:
            if len(wrong) == n_wrong:
                break
            added = _wrong_answer(task, by_subset[task.question.subset], options, wrong)
            if added is not None:
                wrong[added.task_id] = added
                able.append(task)
        drawn = able
    order = {question.qid: number for number, question in enumerate(pool)}
    return sorted([*tasks, *wrong.values()], key=lambda task: (order[task.question.qid], task.task_id))


def _task_id(options: TaskOptions, question: Question, owner: Question, answer: QuestionAnswer) -> str:
    named = (question.subset, question.key, owner.subset, owner.key)
    what = (answer.item_id or "", answer.title or "", answer.text)
    return stable_sha256(options.seed, "task", *named, *what)[:_ID_CHARS]


def _wrong_answer(
    task: ValidationTask, others: Sequence[Question], options: TaskOptions, given: Container[str]
) -> ValidationTask | None:
    question = task.question
    things: list[QuestionAnswer | QuestionEntity] = [*question.answers, *question.entities]
    right = {name.casefold() for thing in things for name in (thing.text, *thing.aliases)}
    pages = {thing.title for thing in things if thing.title is not None}
    start = int(stable_sha256(options.seed, "other", task.task_id), 16)
    for step in range(len(others)):
        other = others[(start + step) % len(others)]
        if other.key == question.key:
            continue
        answers = other.answers
        for place in range(len(answers)):
            number = (start + place) % len(answers)
            answer = answers[number]
            if answer.title not in pages and right.isdisjoint(
                name.casefold() for name in (answer.text, *answer.aliases)
            ):
                task_id = _task_id(options, question, other, answer)
                if task_id not in given:
                    return ValidationTask(task_id, question, answer, f"{other.qid}__{number}", True)
    return None


def validation_record(task: ValidationTask, form: Form) -> Json:
    """Returns the task shown to annotators."""
    return {
        "task_id": task.task_id,
        "qid": task.question.qid,
        "question_text": task.question.released_text,
        **shown_answer(task.answer, task.answer.proofs, form),
    }


def shown_answer(answer: QuestionAnswer, proofs: Sequence[ProofText], form: Form) -> Json:
    """Returns an answer with URLs of its page and of the pages of some proofs."""
    address = partial(_link, form.host)
    titles = [answer.title, *(proof.title for proof in proofs)]
    return {
        "answer_text": answer.text,
        "links": [address(title) for title in dict.fromkeys(titles) if title is not None],
        "proofs": [{"text": proof.text, "url": address(proof.title)} for proof in proofs],
    }


def _link(host: str, title: str) -> str:
    """Returns a URL that a browser can open; a browser would cut a released URL at a question mark."""
    return page_url(host, title).replace("%", "%25").replace("?", "%3F")


def paraphrase_record(drawn: Question) -> Json:
    """Returns a question to be paraphrased, with its entities and answers."""
    return {
        "qid": drawn.qid,
        "question_text": drawn.released_text,
        "entities": [entity.text for entity in drawn.entities],
        "answers": [answer.text for answer in drawn.answers],
    }


def write_crowd_tasks(release: str, output: str, options: TaskOptions) -> dict[str, int]:
    """Writes the tasks for a release into an empty folder; returns their number by kind.

    Memory: development and test set, and the training questions to be paraphrased.

    Raises:
        SetupError: ``release`` is not a finished QAMPARI release, or was changed after it was written; or ``output`` is
            not empty.
    """
    manifest, form = read_form(release)
    check_output(output)
    check_hashes(release, manifest.entries())
    every = [question for question in read_questions(release, manifest) if question.split in POOL]
    former = {place for folder in options.not_in for place in _earlier_questions(folder)}
    pool = [question for question in every if question_key(question) not in former]
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
        ANSWER_SHEET,
        options.form,
        hidden={
            VALIDATION_KEY: (
                task_line(
                    {
                        "task_id": task.task_id,
                        "qid": task.question.qid,
                        "aid": task.aid,
                        "is_wrong": task.is_wrong,
                        "subset": task.question.subset,
                        "key": task.question.key,
                    }
                )
                for task in tasks
            ),
            PARAPHRASE: map(task_line, map(paraphrase_record, [*pool, *train])),
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


def _earlier_questions(folder: str) -> Iterator[tuple[str, str]]:
    """Reads subset and key of the questions in a folder of tasks."""
    manifest = checked_folder(CROWD_TASKS, folder)
    yield from ((line["subset"], line["key"]) for line in CROWD_TASKS.lines(folder, manifest, VALIDATION_KEY))


def task_line(record: Json) -> bytes:
    """Returns a record as a line of a file of tasks."""
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def question_key(question: Question) -> tuple[str, str]:
    """Returns subset and key, which identify a question in every release."""
    return question.subset, question.key
