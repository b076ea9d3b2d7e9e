"""QAMPARI's ExtendedSet: annotators search for additional answers to sampled test questions.

::

    extended.jsonl | extended.csv    one question per line: qid, question_text, entities, answers, minutes
    instructions.txt                 what counts as an answer
    manifest.json                    names the release

Returned files have ``qid``, ``answer_text``, ``found_in_url``, ``proof_text`` and optionally ``worker``, with one line
per answer found. If nothing was found for a question, it has one line without ``answer_text``.

Source: QAMPARI (2022): 200 questions of the test set, twelve minutes for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from statistics import fmean, median
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from kbsource.errors import RecordError
from kbsource.release.layout import check_output
from kbsource.release.output import output_file
from kbsource.release.reader import check_hashes
from mapping.annotation.crowd import candidate_of, task_line
from mapping.annotation.tasks import (
    CROWD_TASKS,
    EXTENDED,
    EXTENDED_KEY,
    INSTRUCTIONS,
    Reject,
    TaskSheet,
    checked_folder,
    read_annotations,
    write_task_folder,
)
from mapping.options import AtLeast1, Checked, Name
from mapping.passages.forms import json_line
from mapping.qampari.kind import read_form
from mapping.qampari.release import read_questions
from mapping.qampari.selection import draw_key
from mapping.sources.raw_records import Json, optional_text, text_at

ExtendedForm = Literal["jsonl", "csv"]
COLUMNS = ("worker", "answer_text", "found_in_url", "proof_text")
_SHEET = TaskSheet(EXTENDED, "Which other answers does Wikipedia have?", (), "answers", (), answer_columns=COLUMNS)


@dataclass(frozen=True, slots=True)
class ExtendedOptions(Checked):
    """Options of the ExtendedSet."""

    questions: Annotated[AtLeast1, Parameter("--sample")] = 200
    """Number of test questions to sample."""
    minutes: AtLeast1 = 12
    """Time per question, in minutes."""
    seed: Name = "qampari"
    """Seed of the draw."""
    form: Annotated[ExtendedForm, Parameter("--format")] = "jsonl"
    """Format of the tasks. jsonl: one JSON object per line; csv: one row per task, with empty columns for the answers.
    """


def instructions(minutes: int) -> str:
    """Returns the instructions for annotators."""
    return f"""Find further answers to each question in the English Wikipedia. Spend about {minutes} minutes on each.

- An answer counts if the running text of a page states it. Infoboxes and tables do not count.
- Leave out answers that are already listed, even under another name.
- For each answer give its name, the address of the page, and the sentences that say it: a line or row each.
- If you find no further answer, hand in the question once, without an answer.
"""


def export_extended(release: str, output: str, options: ExtendedOptions) -> dict[str, int]:
    """Writes the tasks for sampled test questions into an empty folder; returns their number.

    Raises:
        SetupError: ``release`` is not a finished QAMPARI release, or was changed after it was written; or ``output`` is
            not empty.
    """
    manifest, _ = read_form(release)
    check_output(output)
    check_hashes(release, manifest.entries())
    drawn = nsmallest(
        options.questions,
        (question for question in read_questions(release, manifest) if question.split == "test"),
        key=lambda question: (draw_key(candidate_of(question), options.seed, "extended"), question.subset),
    )
    tasks = (
        {
            "qid": question.qid,
            "question_text": question.released_text,
            "entities": [entity.text for entity in question.entities],
            "answers": [answer.text for answer in question.answers],
            "minutes": options.minutes,
        }
        for question in drawn
    )
    names = (
        {
            "qid": question.qid,
            "names": sorted({name for answer in question.answers for name in (answer.text, *answer.aliases)}),
        }
        for question in drawn
    )
    counts = {"questions": len(drawn), "answers": sum(len(question.answers) for question in drawn)}
    write_task_folder(
        CROWD_TASKS,
        tasks,
        _SHEET,
        options.form,
        hidden={
            EXTENDED_KEY: map(json_line, names),
            INSTRUCTIONS: instructions(options.minutes).encode().splitlines(keepends=True),
        },
        facts={"qampari": {"manifest_sha256": manifest.sha256}, "options": asdict(options), "counts": counts},
        output=output,
    )
    return counts


def import_extended(tasks: str, files: Sequence[str], output: str, *, reject: Reject) -> dict[str, Any]:
    """Writes the answers added to each question that was worked on, in the format of ``kbsource evaluate qampari
    --extended``; returns the number of added answers.

    Raises:
        SetupError: the tasks were changed after they were written, or a file is not of the expected kind.
    """
    manifest = checked_folder(CROWD_TASKS, tasks)
    lines = CROWD_TASKS.lines(tasks, manifest, EXTENDED_KEY)
    known = {line["qid"]: {_form(name) for name in line["names"]} for line in lines}
    added: dict[str, dict[str, Json]] = {}

    def found(record: Json) -> tuple[str, Json | None] | None:
        qid, text = text_at(record, "qid"), (optional_text(record, "answer_text") or "").strip()
        if qid not in known:
            raise RecordError("unknown_question", f"{qid!r}")
        if not text:
            # A row of an incomplete sheet names no annotator either.
            return (qid, None) if optional_text(record, "worker") else None
        if _form(text) in known[qid]:
            raise RecordError("known_answer", f"{qid!r} has {text!r} already")
        if not (optional_text(record, "proof_text") or "").strip():
            raise RecordError("no_proof", f"{qid!r}: {text!r} has no text that proves it")
        return qid, record

    for qid, record in read_annotations(
        files,
        found,
        fits=lambda record: {"qid", "answer_text"} <= record.keys(),
        expected="answers with qid and answer_text",
        stage="extended",
        reject=reject,
    ):
        answers = added.setdefault(qid, {})
        if record is not None:
            answers.setdefault(_form(record["answer_text"]), record)
    with output_file(output) as file:
        for qid in known:
            if qid in added:
                file.write(task_line({"qid": qid, "answer_list": [_answer(answer) for answer in added[qid].values()]}))
    return {
        "questions": {"asked": len(known), "done": len(added), "missing": len(known) - len(added)},
        "added": added_answers([len(answers) for answers in added.values()]),
    }


def added_answers(numbers: Sequence[int]) -> dict[str, Any]:
    """Returns statistics of added answers: the share of questions without any, and median, mean and maximum."""
    if not numbers:
        return {"answers": 0, "share_of_none": None, "median": None, "mean": None, "most": None}
    return {
        "answers": sum(numbers),
        "share_of_none": Counter(numbers)[0] / len(numbers),
        "median": median(numbers),
        "mean": fmean(numbers),
        "most": max(numbers),
    }


def _form(name: str) -> str:
    return " ".join(name.split()).casefold()


def _answer(record: Mapping[str, Any]) -> Json:
    text = " ".join(record["answer_text"].split())
    proof = {"proof_text": record["proof_text"].strip(), "found_in_url": str(record.get("found_in_url") or "").strip()}
    return {"answer_text": text, "aliases": [text], "proof": [proof]}
