"""What an NLI model is asked about the alignments of a chunk, and which text stands for them by its answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from kbsource.runtime.chunks import Stored
from kbsource.runtime.regroup import merge_group
from mapping.decide.acceptance import Rule, check_signals
from mapping.entail.hypotheses import Hypothesis
from mapping.entail.model import model_facts
from mapping.entail.premises import PageSentence, Premise
from mapping.entail.signal import Pair, Refused, Verdict
from mapping.entail.verification import NOT_VERIFIED, EntailmentQuestion, Verified, choose
from pipelines.alignment.rows import OUTCOMES, batch_rows
from pipelines.options.map import MapOptions
from pipelines.stores.storage import storage_for

JUDGED_TOGETHER = 512
"""Questions in a list that a model gets as a whole: enough to sort by length, few enough to be held by the dozen."""

ORDER = ("position", "ordinal", "output", "evidence")
"""Columns that outcomes of a chunk are in the order of."""
_COLUMNS = ["ordinal", "output", "evidence", "questions"]
_SCORE = OUTCOMES.get_field_index("score") - OUTCOMES.get_field_index("section")
_SPAN = 6
"""Where the columns of the span begin in a question."""

_Key = tuple[int, int, int]


class Standing(NamedTuple):
    """What stands for an evidence after its verification.

    Attributes:
        verified: what came of it.
        span_columns: when a sentence took the place of the span; else None.
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


def read_pairs(outcomes: Sequence[Stored]) -> Iterator[tuple[Pair, ...]]:
    """Gives the questions about a chunk, page by page in the order of the release, in lists for a model.

    Args:
        outcomes: pieces of rows of ``OUTCOMES``, each in the order of ``ORDER``.
    """
    pairs = (
        Pair(premise, hypothesis, (start, end))
        for _, asked in _asked(outcomes)
        for hypothesis, _, _, premise, start, end in (question[:_SPAN] for question in asked)
    )
    while together := tuple(islice(pairs, JUDGED_TOGETHER)):
        yield together


def _asked(outcomes: Sequence[Stored]) -> Iterator[tuple[_Key, list[tuple[Any, ...]]]]:
    """Gives the questions about each evidence that there are any about."""
    if not outcomes:
        return
    for batch in merge_group(outcomes, storage_for(outcomes[0].path), ORDER):
        for *key, questions in batch_rows(batch.select(_COLUMNS)):
            if questions:
                yield tuple(key), [tuple(question.values()) for question in questions]


def read_standing(
    outcomes: Sequence[Stored],
    answers: Iterable[Verdict | Refused],
    *,
    scores: Mapping[_Key, float | None],
    rule: Rule | None,
) -> Iterator[tuple[_Key, Standing]]:
    """Gives what stands for the evidences of a chunk that questions were asked about.

    Args:
        outcomes: as for ``read_pairs``.
        answers: to what it gave, in that order.
        scores: BLEU of the spans that were found.
        rule: says which spans are kept; None without.
    """
    answer = iter(answers)
    for key, asked in _asked(outcomes):
        yield key, _standing([(question, next(answer)) for question in asked], scores[key], rule)


def _standing(
    group: list[tuple[tuple[Any, ...], Verdict | Refused]], score: float | None, rule: Rule | None
) -> Standing:
    judged = [(_question(one), None if isinstance(answer, Refused) else answer) for one, answer in group]
    verified = [
        Verified(
            question.hypothesis,
            verdict,
            answer.reason if isinstance(answer, Refused) else None,
            question.sentence is not None,
        )
        for (question, verdict), (_, answer) in zip(judged, group, strict=True)
    ]
    taken = None
    if rule is not None:
        of_each = (
            one[_SPAN + _SCORE] if judgement.is_rescued else score
            for judgement, (one, _) in zip(verified, group, strict=True)
        )
        taken = [rule.holds(one.signals(bleu)) for one, bleu in zip(verified, of_each, strict=True)]
    place = choose(judged, taken)
    if place is None:
        # Sentences were asked about alone, and none says it.
        return Standing(NOT_VERIFIED._replace(hypothesis=judged[0][0].hypothesis), None)
    return Standing(verified[place], group[place][0][_SPAN:] if verified[place].is_rescued else None)


def _question(row: tuple[Any, ...]) -> EntailmentQuestion:
    hypothesis, kind, expects, premise, start, end = row[:_SPAN]
    _, element, start_char, _, end_char, *_, text = row[_SPAN : _SPAN + 8]
    sentence = None if element is None else PageSentence(element, start_char, end_char, text)
    return EntailmentQuestion(Hypothesis(hypothesis, kind, expects), Premise(premise, (start, end)), sentence)
