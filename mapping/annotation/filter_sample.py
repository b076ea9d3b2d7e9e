"""Measures QAMPARI's NLI filter: draws a sample of sentences, has them judged, and computes which shares the filter
removes.

::

    validation.jsonl     as for verdicts on answers: task_id, question_text, answer_text, links, proofs; or CSV, Label
                         Studio
    filter_key.jsonl     hidden: task_id, premise, hypothesis, where the sentence starts
    instructions.txt     what counts

The sample is drawn from a release that was made without a model; its proofs are the inputs of the filter.

Source: QAMPARI (2022), section 3.2: the filter removes 70 % of the false positives and 7.5 % of the correct alignments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from math import floor, inf, nextafter
from typing import Annotated, Any, NamedTuple, Protocol

from cyclopts import Parameter
from cyclopts.validators import Number

from kbsource.errors import DataError, SetupError
from kbsource.identity import stable_sha256
from kbsource.release.layout import check_output
from kbsource.release.manifest import DAMAGED
from kbsource.release.reader import check_hashes
from mapping.annotation.crowd import CORRECT, INCORRECT, INSTRUCTIONS_TEXT, shown_answer
from mapping.annotation.tasks import (
    CROWD_TASKS,
    FILTER_KEY,
    INSTRUCTIONS,
    VALIDATION,
    Reject,
    TaskForm,
    TaskSheet,
    checked_folder,
    write_task_folder,
)
from mapping.annotation.verdicts import Task, judge, read_verdicts
from mapping.entail.signal import Pair, UnjudgedPair, Verdict
from mapping.options import AtLeast1, Checked, Name
from mapping.passages.forms import json_line
from mapping.qampari.evidence import LEAST_ENTAILMENT
from mapping.qampari.kind import read_form
from mapping.qampari.records import ProofText, Question, QuestionAnswer
from mapping.qampari.release import read_questions
from mapping.sources.raw_records import Json

PUBLISHED = {"incorrect_removed": 0.7, "correct_removed": 0.075}
"""Shares reported in the paper."""
MOST_LOST = 0.075
_SHEET = TaskSheet(
    VALIDATION,
    "Does this text state that this is an answer to the question?",
    ("question_text", "answer_text", "links"),
    "proofs",
    (CORRECT, INCORRECT),
    help="Judge only by the text that is shown.",
)
_ID_CHARS = 16


@dataclass(frozen=True, slots=True)
class FilterSampleOptions(Checked):
    """Options of the sample."""

    answers: Annotated[AtLeast1, Parameter("--sample")] = 200
    """Number of proofs to sample."""
    seed: Name = "qampari"
    """Seed of the draw."""
    form: Annotated[TaskForm, Parameter("--format")] = "jsonl"
    """Format of the tasks: jsonl, csv or label-studio, as for kbsource qampari-tasks export."""


@dataclass(frozen=True, slots=True)
class AnswerFilterOptions(Checked):
    """Options of the filter."""

    least_entailment: Annotated[float, Parameter(metavar="P", validator=Number(gte=0, lt=1))] = LEAST_ENTAILMENT
    """A text is kept only if its entailment probability is above this value."""


class Model(Protocol):
    """A model that judges pairs."""

    def judge(self, pairs: Sequence[Pair]) -> Sequence[Verdict | UnjudgedPair]:
        """Returns an answer to each pair."""


class _DrawnProof(NamedTuple):
    task_id: str
    question: Question
    answer: QuestionAnswer
    proof: ProofText


def export_filter_sample(release: str, output: str, options: FilterSampleOptions) -> dict[str, int]:
    """Writes tasks about sampled proofs into an empty folder; returns their number.

    Raises:
        SetupError: ``release`` is not a finished QAMPARI release, was made with a model, or has no proof of a fact; or
            ``output`` is not empty.
    """
    manifest, form = read_form(release)
    check_output(output)
    check_hashes(release, manifest.entries())
    if manifest.facts.get("model") is not None:
        raise SetupError(
            f"{release} was made with a model, so it contains only proofs that passed the filter. Use a release that "
            f"was made with kbsource qampari --model none."
        )
    n_proofs = 0

    def proofs() -> Iterator[_DrawnProof]:
        nonlocal n_proofs
        for question in read_questions(release, manifest):
            for answer in question.answers:
                for proof in answer.proofs:
                    if proof.hypothesis is not None:
                        n_proofs += 1
                        place = (str(proof.page_id), str(proof.element), str(proof.sentence_char))
                        named = (question.subset, question.key, answer.text, proof.hypothesis, *place)
                        yield _DrawnProof(
                            stable_sha256(options.seed, "filter", *named)[:_ID_CHARS], question, answer, proof
                        )

    drawn = nsmallest(options.answers, proofs(), key=lambda task: task.task_id)
    if not drawn:
        raise SetupError(f"{release} has no proofs of Wikidata facts, so there is nothing to sample.")
    counts = {"proofs": n_proofs, "sampled": len(drawn)}
    write_task_folder(
        CROWD_TASKS,
        (
            {
                "task_id": task.task_id,
                "question_text": task.question.released_text,
                **shown_answer(task.answer, (task.proof,), form),
            }
            for task in drawn
        ),
        _SHEET,
        options.form,
        hidden={
            FILTER_KEY: (
                json_line(
                    {
                        "task_id": task.task_id,
                        "premise": task.proof.text,
                        "hypothesis": task.proof.hypothesis,
                        "sentence_char": task.proof.sentence_char - task.proof.start_char,
                    }
                )
                for task in drawn
            ),
            INSTRUCTIONS: INSTRUCTIONS_TEXT.encode().splitlines(keepends=True),
        },
        facts={"qampari": {"manifest_sha256": manifest.sha256}, "options": asdict(options), "counts": counts},
        output=output,
    )
    return counts


def report_filter(
    tasks: str, verdicts: Sequence[str], model: Model, options: AnswerFilterOptions, *, reject: Reject
) -> dict[str, Any]:
    """Returns the effect of the filter on the sample: the shares of correct and incorrect proofs that it removes, and
    the highest threshold that removes at most 7.5 % of the correct ones.

    Raises:
        SetupError: the tasks are not such a sample, a file is not of the expected kind, or no proof was judged.
    """
    manifest = checked_folder(CROWD_TASKS, tasks)
    key = {line["task_id"]: line for line in CROWD_TASKS.lines(tasks, manifest, FILTER_KEY)}
    known = {task_id: Task("", is_wrong=False) for task_id in key}
    final = judge(read_verdicts(verdicts, known, reject), known, ()).final
    judged = [task_id for task_id in key if task_id in final]
    if not judged:
        raise SetupError(
            f"none of the {len(key):,} proofs of {tasks} has a verdict; give files of task_id and verdict."
        )
    pairs = [_pair(key[task_id], tasks) for task_id in judged]
    # A pair that the model refuses is not a proof, as in the construction of questions.
    given = [answer.entailment if isinstance(answer, Verdict) else 0.0 for answer in model.judge(pairs)]
    correct = [value for task_id, value in zip(judged, given, strict=True) if final[task_id]]
    incorrect = [value for task_id, value in zip(judged, given, strict=True) if not final[task_id]]
    best = best_threshold(correct)
    return {
        "proofs": {
            "judged": len(judged),
            "missing": len(key) - len(judged),
            "correct": len(correct),
            "incorrect": len(incorrect),
        },
        "threshold": options.least_entailment,
        **removed_shares(correct, incorrect, options.least_entailment),
        "published": PUBLISHED,
        "best": None if best is None else {"threshold": best, **removed_shares(correct, incorrect, best)},
    }


def _pair(line: Json, folder: str) -> Pair:
    premise, first = line["premise"], line["sentence_char"]
    if first > len(premise):
        raise DataError(f"{folder}: the sentence of {line['task_id']!r} begins after its text; {DAMAGED}")
    return Pair(premise, line["hypothesis"], (first, len(premise)))


def removed_shares(correct: Sequence[float], incorrect: Sequence[float], threshold: float) -> dict[str, float | None]:
    """Returns the shares of proofs that are not above a threshold, and the share of correct ones before and after.

    >>> removed_shares([0.9, 0.5, 0.1], [0.05, 0.4], 0.1)["correct_removed"]
    0.3333333333333333
    """
    gone, left = ([value <= threshold for value in own] for own in (incorrect, correct))
    n_left = left.count(False) + gone.count(False)
    return {
        "incorrect_removed": sum(gone) / len(gone) if gone else None,
        "correct_removed": sum(left) / len(left) if left else None,
        "correct_before": len(correct) / (len(correct) + len(incorrect)) if correct or incorrect else None,
        "correct_after": left.count(False) / n_left if n_left else None,
    }


def best_threshold(correct: Sequence[float]) -> float | None:
    """Returns the highest threshold below 1 that removes at most ``MOST_LOST`` of the correct proofs; None if there are
    none.

    >>> best_threshold([0.5, 0.2, 0.9]) < 0.2, best_threshold([])
    (True, None)
    """
    if not correct:
        return None
    ordered = sorted(correct)
    kept = ordered[min(floor(MOST_LOST * len(ordered)), len(ordered) - 1)]
    return max(nextafter(kept, -inf), 0.0)
