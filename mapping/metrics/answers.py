"""Compares predicted answers with gold answers, singly and in lists.

Source: QAMPARI (2022) for lists; Petroni et al., KILT (2021), and its released evaluation for single answers.
"""

from __future__ import annotations

import re
import string
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from mapping.metrics.evaluation import Matching

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")

_ROUGE_L = "rouge-l"

NOT_RELEVANT = "not relevant"
"""The normal form of the output of QAMPARI's passage-independent generator for a passage without an answer."""


class GoldNames(NamedTuple):
    """The names of a gold answer."""

    text: str  # display text of the answer
    aliases: tuple[str, ...] = ()  # further names; may repeat the display text


class ListScore(NamedTuple):
    """The counts of a question that determine all its scores."""

    covered: int  # number of gold answers that a prediction covers
    predicted: int  # number of distinct predictions
    gold: int  # number of gold answers; at least one

    @property
    def precision(self) -> float:
        """Covered answers divided by distinct predictions; 0 without predictions."""
        return self.covered / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Covered answers divided by gold answers."""
        return self.covered / self.gold

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if either is 0."""
        return 2 * self.covered / (self.predicted + self.gold)

    @property
    def has_half_f1(self) -> bool:
        """F1 >= 0.5, computed with integers."""
        return 4 * self.covered >= self.predicted + self.gold

    @property
    def has_high_recall(self) -> bool:
        """Recall >= 0.8, computed with integers."""
        return 5 * self.covered >= 4 * self.gold


READER_METRICS: Mapping[str, tuple[str, Callable[[ListScore], float]]] = {
    "recall": ("recall", attrgetter("recall")),
    "precision": ("precision", attrgetter("precision")),
    "f1": ("F1", attrgetter("f1")),
    "f1_above": ("F1 >= 0.5", attrgetter("has_half_f1")),
    "rec_above": ("recall >= 0.8", attrgetter("has_high_recall")),
}
"""Metrics of a list of answers by their released names: a readable name, and a function for the value."""


def answer_form(text: str) -> str:
    """Returns an answer as it is compared: lower case, no ASCII punctuation, no articles, single spaces.

    Source: the evaluation script of SQuAD 1.1, which QAMPARI's follows.

    >>> answer_form("The  U.S. of A.!")
    'us of'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def score_list(
    predictions: Sequence[str],
    answers: Sequence[GoldNames],
    *,
    matching: Matching = "greedy",
    raw_predictions: bool = False,
    listed_names: bool = False,
    last_owner: bool = False,
) -> ListScore:
    """Returns the counts of a question.

    A prediction covers a gold answer if it has the same normal form as one of the answer's names. Each prediction
    covers at most one answer, and each answer counts once. A name shared by two answers therefore covers both only if
    another of their names is predicted too. Predictions with the same form count once. A prediction without a form
    (punctuation, articles) is ignored, and so is "Not Relevant", unless an answer has this name. Answers are identified
    by position, not by text.

    ``matching`` determines which answer a prediction covers if several have its name; it has no effect with
    ``last_owner``. ``QAMPARI_QUIRKS`` describes the other flags.

    Source: QAMPARI (2022), section 5; its released evaluation script for the flags.
    """
    forms = list(dict.fromkeys(map(answer_form, predictions)) if raw_predictions else _predicted(predictions, answers))
    n_predicted = len(set(predictions)) if raw_predictions else len(forms)
    named = [(answer.text, answer.aliases if listed_names else (answer.text, *answer.aliases)) for answer in answers]
    if last_owner:
        sole = _sole_owners(named)
        return ListScore(len({sole[form] for form in forms if form in sole}), n_predicted, len(answers))
    owners: defaultdict[str, list[int]] = defaultdict(list)
    for number, (_, names) in enumerate(named):
        for form in dict.fromkeys(map(answer_form, names)):
            owners[form].append(number)
    choices = [owners[form] for form in forms if form in owners]
    n_covered = _most_covered(choices) if matching == "maximum" else _covered_in_order(choices)
    return ListScore(n_covered, n_predicted, len(answers))


def is_exact(predictions: Sequence[str], answer: GoldNames) -> bool:
    """Returns whether a single answer was predicted: all predictions have the same normal form, and one of its names
    has it too.

    Predicting two answers where there is one does not count. Predictions that ``score_list`` ignores are ignored here
    too.

    Source: the exact match of the evaluation script of SQuAD 1.1, as QAMPARI (2022) uses it for Natural Questions.

    >>> is_exact(["The Beatles!"], GoldNames("Beatles")), is_exact(["Beatles", "Kinks"], GoldNames("Beatles"))
    (True, False)
    """
    forms = _predicted(predictions, [answer])
    return len(forms) == 1 and _has_form(answer, *forms)


def _predicted(predictions: Iterable[str], answers: Iterable[GoldNames]) -> dict[str, None]:
    """Returns the distinct forms of predictions, in order."""
    forms = dict.fromkeys(form for text in predictions if (form := answer_form(text)))
    if NOT_RELEVANT in forms and not any(_has_form(answer, NOT_RELEVANT) for answer in answers):
        del forms[NOT_RELEVANT]
    return forms


def _has_form(answer: GoldNames, form: str) -> bool:
    return form in map(answer_form, (answer.text, *answer.aliases))


def _sole_owners(named: Sequence[tuple[str, Sequence[str]]]) -> dict[str, str]:
    """Returns the display text that each form belongs to in the released script.

    If answers have the same display text, the script knows only the names of the last one. A name, as written, belongs
    to the last answer that has it. If several names have the same form, the first one is found.
    """
    by_text = dict(named)
    by_name = {name: text for text, names in by_text.items() for name in names}
    sole: dict[str, str] = {}
    for name, text in by_name.items():
        sole.setdefault(answer_form(name), text)
    return sole


def _covered_in_order(choices: Sequence[Sequence[int]]) -> int:
    covered: set[int] = set()
    for numbers in choices:
        still_open = next((number for number in numbers if number not in covered), None)
        if still_open is not None:
            covered.add(still_open)
    return len(covered)


def _most_covered(choices: Sequence[Sequence[int]]) -> int:
    """Returns the size of a maximum matching, found with augmenting paths (breadth-first, so long paths cause no deep
    recursion)."""
    held: dict[int, int] = {}  # prediction -> answer
    holder: dict[int, int] = {}  # answer -> prediction
    for start in range(len(choices)):
        reached_from: dict[int, int] = {}
        queue = [start]
        for prediction in queue:
            fresh = [number for number in choices[prediction] if number not in reached_from]
            reached_from.update(dict.fromkeys(fresh, prediction))
            end = next((number for number in fresh if number not in holder), None)
            if end is not None:
                _reassign(end, reached_from, held, holder)
                break
            queue += [holder[number] for number in fresh]
    return len(held)


def _reassign(end: int, reached_from: dict[int, int], held: dict[int, int], holder: dict[int, int]) -> None:
    answer: int | None = end
    while answer is not None:
        prediction = reached_from[answer]
        before = held.get(prediction)
        held[prediction], holder[answer] = answer, prediction
        answer = before


class AnswerScores(NamedTuple):
    """Values from 0 to 1, each the maximum over the gold answers."""

    accuracy: float
    em: float
    f1: float
    rougel: float


NOTHING = AnswerScores(0.0, 0.0, 0.0, 0.0)


def score_answer(answer: str, gold: Sequence[str]) -> AnswerScores:
    """Returns the scores of an answer; all are 0 for an empty answer or without gold answers."""
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
    """Returns the F1 over the tokens of two normalised answers; 0 if they share none.

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
    """Returns ROUGE-L (F) as computed by the ``rouge`` package, which produced the published numbers.

    It is computed at summary level over distinct words, with sentences split at full stops, on unnormalised texts. It
    is 0 for a text that consists only of full stops.

    >>> rouge_l("Ullane", "Ullane")
    0.999999995
    """
    # The package traverses the longest common subsequence by recursion, one call per word.
    limit = sys.getrecursionlimit()
    from rouge import Rouge  # command options are read without it

    sys.setrecursionlimit(limit + len(answer) + len(gold))
    try:
        return float(Rouge(metrics=[_ROUGE_L]).get_scores(answer, gold)[0][_ROUGE_L]["f"])
    except ValueError:
        return 0.0
    finally:
        sys.setrecursionlimit(limit)


def stripped(texts: Iterable[str | None]) -> tuple[str, ...]:
    """Returns the distinct non-empty texts, stripped, in order."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text and text.strip()))
