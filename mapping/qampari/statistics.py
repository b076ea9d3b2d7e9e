"""How many answers questions have, beside the published sets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mapping.qampari.question_rows import SPLITS
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE

PUBLISHED: dict[str, tuple[float, float]] = {
    "train": (13.25, 8),
    "dev and test": (13.23, 7),
    SIMPLE: (15.69, 7.5),
    COMPOSITION: (8.77, 6),
    INTERSECTION: (8.94, 7),
    TABLE_SIMPLE: (23.84, 17),
    TABLE_COMPOSITION: (11.51, 7),
}
"""Mean and median number of answers in the published sets; of a subset in development and test set together.

Source: QAMPARI (2022), table of statistics.
"""


class AnswerStatistics:
    """Counts questions and their answers. Memory: a number for each number of answers that occurs."""

    def __init__(self) -> None:
        self._kept: Counter[str] = Counter()
        self._drawn: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)

    def seen(self, questions: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Gives (question, side, split, qid) back, and counts them."""
        for drawn in questions:
            question, _, split, _ = drawn
            self.add(question.subset, split, len(question.answers))
            yield drawn

    def add(self, subset: str, split: str | None, n_answers: int) -> None:
        """Counts a question; ``split`` is None for one that was not drawn."""
        self._kept[subset] += 1
        if split is not None:
            self._drawn[split, subset][n_answers] += 1

    def values(self) -> dict[str, Any]:
        """Gives the counts as JSON values: questions kept and drawn by subset and split, and answers of these."""
        drawn = {
            split: {subset: self._drawn[split, subset].total() for subset in SUBSETS if self._drawn[split, subset]}
            for split in SPLITS
        }
        groups = {"train": [("train", subset) for subset in SUBSETS]}
        groups["dev and test"] = [(split, subset) for split in ("dev", "test") for subset in SUBSETS]
        groups |= {subset: [(split, subset) for split in ("dev", "test")] for subset in SUBSETS}
        return {
            "kept": {subset: self._kept[subset] for subset in SUBSETS},
            "drawn": drawn,
            "answers": {name: self._answers(name, keys) for name, keys in groups.items()},
        }

    def _answers(self, name: str, keys: Iterable[tuple[str, str]]) -> dict[str, Any]:
        counts: Counter[int] = Counter()
        for key in keys:
            counts.update(self._drawn[key])
        n_questions = counts.total()
        mean, median = PUBLISHED[name]
        return {
            "questions": n_questions,
            "mean": round(sum(n * count for n, count in counts.items()) / n_questions, 2) if n_questions else None,
            "median": _median(counts) if n_questions else None,
            "published_mean": mean,
            "published_median": median,
        }


def _median(counts: Mapping[int, int]) -> float:
    """Gives the median of numbers that are given with how often they occur.

    >>> _median({5: 2, 8: 1, 9: 1}), _median({5: 1, 7: 2})
    (6.5, 7.0)
    """
    n_all = sum(counts.values())
    middle = [(n_all - 1) // 2, n_all // 2]
    found, n_before = [], 0
    for value in sorted(counts):
        found += [value for place in middle if n_before <= place < n_before + counts[value]]
        n_before += counts[value]
    return sum(found) / 2
