"""A predicted answer beside the gold answers: accuracy, exact match, F1 and ROUGE-L of one record.

Source: Petroni et al., KILT (2021), and its released evaluation.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rouge import Rouge

from mapping.metrics.answer_lists import answer_form

_ROUGE_L = "rouge-l"


class AnswerScores(NamedTuple):
    """Values from 0 to 1, each the highest over the gold answers."""

    accuracy: float
    em: float
    f1: float
    rougel: float


NOTHING = AnswerScores(0.0, 0.0, 0.0, 0.0)


def score_answer(answer: str, gold: Sequence[str]) -> AnswerScores:
    """Gives the scores of an answer; of an empty one, or without gold answers, they are 0.

    Args:
        answer: as predicted.
        gold: answers, stripped, none empty.
    """
    answer = answer.strip()
    if not answer or not gold:
        return NOTHING
    form = answer_form(answer)
    return AnswerScores(
        float(answer in gold),
        float(any(form == answer_form(text) for text in gold)),
        max(token_f1(form, answer_form(text)) for text in gold),
        max(rouge_l(answer, text) for text in gold),
    )


def token_f1(form: str, gold_form: str) -> float:
    """Gives F1 over the tokens of two texts in the form of answers; 0 where none is common.

    >>> token_f1("river ullane", "ullane")
    0.6666666666666666
    """
    tokens, gold_tokens = form.split(), gold_form.split()
    n_common = (Counter(tokens) & Counter(gold_tokens)).total()
    if not n_common:
        return 0.0
    precision, recall = n_common / len(tokens), n_common / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


def rouge_l(answer: str, gold: str) -> float:
    """Gives ROUGE-L (F) as the ``rouge`` package computes it, whose numbers are the published ones.

    It is taken on the summary level, over distinct words, sentences being cut at full stops, and of texts as they are.
    0 for a text of nothing but full stops.

    >>> rouge_l("Ullane", "Ullane")
    0.999999995
    """
    # The package steps back through the longest common subsequence by recursion, a call a word.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + len(answer) + len(gold))
    try:
        return float(Rouge(metrics=[_ROUGE_L]).get_scores(answer, gold)[0][_ROUGE_L]["f"])
    except ValueError:
        return 0.0
    finally:
        sys.setrecursionlimit(limit)


def stripped(texts: Iterable[str | None]) -> tuple[str, ...]:
    """Gives the texts that hold something, without blanks around them, each once in their order."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text and text.strip()))
