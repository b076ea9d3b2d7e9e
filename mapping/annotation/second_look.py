"""Tasks for a second judgement: answers judged incorrect, some judged correct, and some paraphrases.

Source: QAMPARI (2022), section 3.6 and appendix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from typing import Annotated, Any

from cyclopts import Parameter

from kbsource.errors import DataError
from kbsource.identity import stable_sha256
from kbsource.release.manifest import DAMAGED
from mapping.annotation.crowd import ANSWER_SHEET, INSTRUCTIONS_TEXT, POOL, ValidationTask, task_line, validation_record
from mapping.annotation.tasks import (
    CROWD_TASKS,
    INSTRUCTIONS,
    PARAPHRASE,
    PARAPHRASE_CHECK,
    VALIDATION_KEY,
    Reject,
    TaskForm,
    named_in,
    write_task_folder,
)
from mapping.annotation.verdicts import WorkerOptions, read_answers
from mapping.options import Checked, Name, Share
from mapping.qampari.release import read_questions
from mapping.sources.raw_records import Json


@dataclass(frozen=True, slots=True)
class LookOptions(Checked):
    """Options of the second look."""

    correct_share: Share = 0.05
    """Share of the answers judged correct that is drawn for a second look; all answers judged incorrect are
    included."""
    paraphrase_share: Share = 0.5
    """Share of each annotator's paraphrases that is drawn to be checked."""
    seed: Name = "qampari"
    """Seed of every draw."""
    form: Annotated[TaskForm, Parameter("--format")] = "jsonl"
    """Format of the tasks: jsonl, csv or label-studio, as for kbsource qampari-tasks export."""


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
    """Writes tasks for a second judgement into an empty folder: all answers judged incorrect, some of those judged
    correct, those without a valid judgement, and some paraphrases of each annotator; returns counts.

    Tasks keep their ids, and do not reveal why they are included. Pass the results to ``apply_crowd`` after the first
    verdicts. Memory: development and test set.

    Raises:
        SetupError: as ``read_answers``.
    """
    answers = read_answers(
        release, tasks_folder, output, verdicts=verdicts, paraphrases=paraphrases, workers=workers, reject=reject
    )
    manifest, form, _, key, tasks, paraphrase_tasks, excluded, judged, every = answers
    final = judged.final
    written = {qid: paraphrase for qid, paraphrase in every.items() if paraphrase.worker not in excluded}
    correct = [task_id for task_id, is_right in final.items() if is_right and not tasks[task_id].is_wrong]
    incorrect = {task_id for task_id, is_right in final.items() if not is_right and not tasks[task_id].is_wrong}
    drawn = _random_subset(correct, options.correct_share, options.seed, "second")
    unjudged = tasks.keys() - final.keys()
    again = incorrect | drawn | unjudged
    by_worker: defaultdict[str, list[str]] = defaultdict(list)
    for qid, paraphrase in written.items():
        by_worker[paraphrase.worker].append(qid)
    checked = {
        qid
        for qids in by_worker.values()
        for qid in _random_subset(qids, options.paraphrase_share, options.seed, "check")
    }
    unwritten = [record for qid, record in paraphrase_tasks.items() if qid not in written] if paraphrases else []
    questions = {
        str(question.qid): question for question in read_questions(release, manifest) if question.split in POOL
    }
    counts = {
        "incorrect": len(incorrect),
        "correct": len(drawn),
        "unjudged": len(unjudged),
        "paraphrases_to_check": len(checked),
        "paraphrases_to_write": len(unwritten),
        "rejected_workers": len(excluded),
    }

    def records() -> Iterator[Json]:
        for task_id, entry in key.items():
            if task_id in again:
                owner, _, number = tasks[task_id].aid.rpartition("__")
                answers = named_in(questions, owner, tasks_folder, "question").answers
                if int(number) >= len(answers):
                    raise DataError(f"{tasks_folder}: {owner} has no answer {number}; {DAMAGED}")
                about = named_in(questions, entry["qid"], tasks_folder, "question")
                task = ValidationTask(task_id, about, answers[int(number)], entry["aid"], entry["is_wrong"])
                yield validation_record(task, form)

    write_task_folder(
        CROWD_TASKS,
        records(),
        ANSWER_SHEET,
        options.form,
        hidden={
            VALIDATION_KEY: (task_line(entry) for task_id, entry in key.items() if task_id in again),
            PARAPHRASE: map(task_line, unwritten),
            PARAPHRASE_CHECK: (
                task_line(
                    {
                        "qid": qid,
                        "question_text": paraphrase_tasks[qid]["question_text"],
                        "paraphrase": written[qid].text,
                    }
                )
                for qid in paraphrase_tasks
                if qid in checked
            ),
            INSTRUCTIONS: INSTRUCTIONS_TEXT.encode().splitlines(keepends=True),
        },
        facts={
            "qampari": {"manifest_sha256": manifest.sha256},
            "options": {**asdict(options), "rejected_workers": sorted(excluded)},
            "counts": counts,
        },
        output=output,
    )
    return counts


def _random_subset(ids: Sequence[str], share: float, seed: str, what: str) -> set[str]:
    """Returns a random subset of ids whose size is closest to ``share``, with at least one id unless the share is 0."""
    n_drawn = max(round(share * len(ids)), 1 if ids and share else 0)
    return set(nsmallest(n_drawn, ids, key=lambda item_id: stable_sha256(seed, what, item_id)))
