"""What an NLI model is asked about the alignments of a chunk, what it answers, and which text then stands for them.

Between the search and the writing of a chunk two more steps leave files in the staging folder::

    questions/00012.arrow    hypotheses and premises of a chunk, and where sentences stand that may be named instead
    answers/00012.arrow      what the model says, a row a question
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from kbsource.files import Storage
from kbsource.staging import read_batches, staged_rows
from mapping.acceptance import Rule, check_signals
from mapping.entailment import ModelOptions, Pair, Refused, Verdict
from mapping.entailment_model import model_facts, open_model
from mapping.hypotheses import Hypothesis
from mapping.premises import PageSentence, Premise
from mapping.verification import NOT_VERIFIED, Question, Verified, choose
from pipelines.alignment.staging import SETTLED, staged
from pipelines.options_map import MapOptions
from pipelines.storage import storage_for

JUDGED_TOGETHER = 512
"""Questions in a list that a model gets as a whole: enough to sort by length, few enough to be held by the dozen."""

FIRST_SPAN_COLUMN, END_SPAN_COLUMN = SETTLED.get_field_index("section"), SETTLED.get_field_index("end_in") + 1
"""Columns of ``SETTLED`` that another span replaces."""

QUESTIONS = pa.schema(
    [
        *(SETTLED.field(name) for name in ("ordinal", "output", "evidence")),
        *(pa.field(name, pa.string(), nullable=False) for name in ("hypothesis", "kind", "expects", "premise")),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("core_start", "core_end")),
        *(SETTLED.field(number) for number in range(FIRST_SPAN_COLUMN, END_SPAN_COLUMN)),
    ]
)
"""The columns of the span are null where the question is about the span that was found."""
_N_FIXED = 9
_SCORE = QUESTIONS.get_field_index("score")
ANSWERS = pa.schema([*(pa.field(name, pa.float64()) for name in Verdict._fields), pa.field("refusal", pa.string())])


class Standing(NamedTuple):
    """What stands for an evidence after its verification.

    Attributes:
        verified: what came of it.
        span_columns: of ``SETTLED``, when a sentence took the place of the span; else None.
    """

    verified: Verified
    span_columns: tuple[Any, ...] | None


def check_model(options: MapOptions) -> None:
    """Looks for the model of --verify, if there is to be one, and whether it tells all that --accept looks at.

    Raises:
        SetupError: it is not there, or does not.
    """
    if options.verify is None:
        return
    facts = model_facts(options.verify.model)
    if options.accept is not None:
        check_signals(options.accept, facts["labels"], model=options.verify.model.model)


def question_row(
    key: tuple[int, int, int], question: Question, span_columns: tuple[Any, ...] | None
) -> tuple[Any, ...]:
    """Gives a row of schema ``QUESTIONS``; the columns of the span belong to the question's sentence."""
    n_span = END_SPAN_COLUMN - FIRST_SPAN_COLUMN
    return (
        *key,
        *question.hypothesis,
        question.premise.text,
        *question.premise.core,
        *(span_columns or (None,) * n_span),
    )


def write_questions(rows: Iterable[tuple[Any, ...]], staging: str, chunk: int) -> None:
    """Writes the questions of a chunk, in batches of those that are judged together."""
    with staged_rows(storage_for(staging), staged(staging, "questions", chunk), QUESTIONS) as sink:
        for row in rows:
            sink.add(row)
            if sink.n_pending == JUDGED_TOGETHER:
                sink.flush()


def read_pairs(staging: str, chunk: int) -> Iterator[tuple[tuple[int, int], tuple[Pair, ...]]]:
    """Gives (chunk, number of the list) and the list, for all questions of a chunk."""
    for number, batch in enumerate(read_batches(storage_for(staging), staged(staging, "questions", chunk))):
        names = ("premise", "hypothesis", "core_start", "core_end")
        columns = (batch[name].to_pylist() for name in names)
        yield (
            (chunk, number),
            tuple(
                Pair(premise, hypothesis, (start, end))
                for premise, hypothesis, start, end in zip(*columns, strict=True)
            ),
        )


def write_answers(staging: str, chunk: int, lists: Mapping[int, Iterable[Verdict | Refused]]) -> None:
    """Writes the answers to a chunk's questions, given by number of the list."""
    with staged_rows(storage_for(staging), staged(staging, "answers", chunk), ANSWERS) as sink:
        for number in sorted(lists):
            for answer in lists[number]:
                sink.add((None, None, None, answer.reason) if isinstance(answer, Refused) else (*answer, None))
            if sink.n_pending:
                sink.flush()


def judge_here(staging: str, n_chunks: int, options: ModelOptions) -> None:
    """Answers the questions of all chunks in this process.

    Raises:
        SetupError: the model cannot be opened.
    """
    model = open_model(options)
    for chunk in range(n_chunks):
        write_answers(staging, chunk, {number: model.judge(pairs) for (_, number), pairs in read_pairs(staging, chunk)})


def read_standing(
    staging: str,
    chunk: int,
    storage: Storage,
    *,
    scores: Mapping[tuple[int, int, int], float | None],
    rule: Rule | None,
) -> dict[tuple[int, int, int], Standing]:
    """Gives what stands for the evidences of a chunk that questions were asked about.

    Args:
        staging: folder.
        chunk: its number.
        storage: of the folder.
        scores: BLEU of the spans that were found.
        rule: says which spans are kept; None without.
    """
    questions = (
        row
        for batch in read_batches(storage, staged(staging, "questions", chunk))
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    answers = (
        row
        for batch in read_batches(storage, staged(staging, "answers", chunk))
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    answered = zip(questions, answers, strict=True)
    return {
        key: _standing(list(group), scores[key], rule) for key, group in groupby(answered, key=lambda one: one[0][:3])
    }


def _standing(group: list[tuple[tuple[Any, ...], tuple[Any, ...]]], score: float | None, rule: Rule | None) -> Standing:
    judged = [(_question(row), None if answer[3] is not None else Verdict(*answer[:3])) for row, answer in group]
    verified = [
        Verified(question.hypothesis, verdict, answer[3], question.sentence is not None)
        for (question, verdict), (_, answer) in zip(judged, group, strict=True)
    ]
    taken = None
    if rule is not None:
        of_each = (row[_SCORE] if one.is_rescued else score for one, (row, _) in zip(verified, group, strict=True))
        taken = [rule.holds(one.signals(bleu)) for one, bleu in zip(verified, of_each, strict=True)]
    place = choose(judged, taken)
    if place is None:
        # Sentences were asked about alone, and none says it.
        return Standing(NOT_VERIFIED._replace(hypothesis=judged[0][0].hypothesis), None)
    return Standing(verified[place], group[place][0][_N_FIXED:] if verified[place].is_rescued else None)


def _question(row: tuple[Any, ...]) -> Question:
    hypothesis, kind, expects, premise, start, end = row[3:_N_FIXED]
    _, element, start_char, _, end_char, *_, text = row[_N_FIXED : _N_FIXED + 8]
    sentence = None if element is None else PageSentence(element, start_char, end_char, text)
    return Question(Hypothesis(hypothesis, kind, expects), Premise(premise, (start, end)), sentence)
