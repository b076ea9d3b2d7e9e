"""How many answers questions have."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.qampari.question_rows import DrawnQuestion
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.statistics import PUBLISHED, AnswerStatistics
from mapping.sources.reading.base import Split
from tests.support.qampari import drawn, question, undrawn

_SPLITS: tuple[Split, ...] = ("train", "dev", "test")


def _question(n: int, subset: str, n_answers: int, split: Split | None) -> DrawnQuestion:
    one = question(f"P50__Q{n}", [f"Answer {place}" for place in range(n_answers)], subset=subset)
    return undrawn(one) if split is None else drawn(one, n, split)


def _counted(questions: Iterable[DrawnQuestion]) -> dict[str, Any]:
    statistics = AnswerStatistics()
    given = [one[:4] for one in questions]
    assert list(statistics.seen(given)) == given
    return statistics.values()


def test_the_published_sets_stand_beside_what_was_made() -> None:
    values = _counted(
        [
            _question(0, SIMPLE, 5, "train"),
            _question(1, COMPOSITION, 8, "train"),
            _question(0, SIMPLE, 7, "dev"),
            _question(0, SIMPLE, 6, "test"),
            _question(1, INTERSECTION, 9, "test"),
            _question(9, SIMPLE, 99, None),
        ]
    )

    assert values["kept"] == {SIMPLE: 4, COMPOSITION: 1, INTERSECTION: 1, TABLE_SIMPLE: 0, TABLE_COMPOSITION: 0}
    assert values["drawn"] == {
        "train": {SIMPLE: 1, COMPOSITION: 1},
        "dev": {SIMPLE: 1},
        "test": {SIMPLE: 1, INTERSECTION: 1},
    }
    assert values["answers"]["train"] == {
        "questions": 2,
        "mean": 6.5,
        "median": 6.5,
        "published_mean": 13.25,
        "published_median": 8,
    }
    # Training questions are no part of the numbers by subset.
    assert [values["answers"][SIMPLE][name] for name in ("questions", "mean", "median")] == [2, 6.5, 6.5]
    assert [values["answers"]["dev and test"][name] for name in ("questions", "mean", "median")] == [3, 7.33, 7]


def test_without_questions_there_is_neither_mean_nor_median() -> None:
    values = _counted([])

    assert set(values["answers"]) == set(PUBLISHED) == {"train", "dev and test", *SUBSETS}
    for name, found in values["answers"].items():
        assert (found["questions"], found["mean"], found["median"]) == (0, None, None)
        assert (found["published_mean"], found["published_median"]) == PUBLISHED[name]


@given(
    st.lists(st.tuples(st.sampled_from(SUBSETS), st.integers(1, 12), st.sampled_from((*_SPLITS, None))), max_size=12)
)
def test_mean_and_median_are_those_of_the_answers_one_by_one(given: list[tuple[str, int, Split | None]]) -> None:
    values = _counted(_question(n, *one) for n, one in enumerate(given))

    groups: dict[str, list[int]] = {subset: [] for subset in SUBSETS}
    groups |= {"train": [], "dev and test": []}
    for subset, n_answers, split in given:
        if split is not None:
            groups["train" if split == "train" else "dev and test"].append(n_answers)
        if split in ("dev", "test"):
            groups[subset].append(n_answers)
    for name, counts in groups.items():
        found = values["answers"][name]
        assert found["questions"] == len(counts)
        if counts:
            assert found["mean"] == pytest.approx(sum(counts) / len(counts), abs=0.0051)
            assert found["median"] == median(counts)
    assert sum(values["kept"].values()) == len(given)
    assert sum(sum(one.values()) for one in values["drawn"].values()) == sum(split is not None for *_, split in given)
