"""Which of the typed queries with the same answers has the most specific type."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.qampari.facts.classes import N_WORDS, ClassTypes, Numbers
from mapping.qampari.facts.specific_types import type_breadths, wider_twins

# Class -> the classes directly above it; the first six are types.
ABOVE = {
    "creative work": [],
    "audiovisual work": ["creative work"],
    "film": ["audiovisual work"],
    "company": [],
    "business": [],
    "food": [],
    "short film": ["film"],
    "firm": ["company", "business"],
    "bank": ["business"],
}
TYPES = tuple(ABOVE)[:6]


def _types(above: dict[str, list[str]], labels: tuple[str, ...]) -> ClassTypes:
    """Gives the types of classes as the class closure has them, itself among them."""
    reached = {one: {one} for one in above}
    for _ in above:
        for one, others in reached.items():
            others |= {higher for other in tuple(others) for higher in above[other]}
            reached[one] = others
    masks = np.zeros((len(above), N_WORDS), np.uint64)
    for row, others in enumerate(reached.values()):
        masks[row, 0] = sum(1 << labels.index(other) for other in others if other in labels)
    return ClassTypes(labels, np.arange(1, len(above) + 1), masks)


def _left(queries: Iterable[tuple[str, list[int]]], types: ClassTypes) -> list[str]:
    given_: list[tuple[str, Numbers]] = [(label, np.array(numbers, np.int64)) for label, numbers in queries]
    is_wider = wider_twins(given_, type_breadths(types))
    return [label for (label, _), wider in zip(given_, is_wider, strict=True) if not wider]


def test_a_type_has_the_classes_below_it_and_itself() -> None:
    assert type_breadths(_types(ABOVE, TYPES)) == {
        "creative work": 4,
        "audiovisual work": 3,
        "film": 2,
        "company": 2,
        "business": 3,
        "food": 1,
    }


SAME = [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("case", "queries", "left"),
    [
        ("the lowest of a line", [("creative work", SAME), ("film", SAME), ("audiovisual work", SAME)], ["film"]),
        ("other answers", [("creative work", [*SAME, 6]), ("film", SAME)], ["creative work", "film"]),
        (
            "those with the same answers alone",
            [("creative work", [*SAME, 6]), ("audiovisual work", SAME), ("film", SAME)],
            ["creative work", "film"],
        ),
        ("as many answers, others", [("creative work", [1, 2]), ("film", [1, 3])], ["creative work", "film"]),
        ("none above the other: fewest classes", [("business", SAME), ("company", SAME)], ["company"]),
        ("as many classes: by label", [("film", SAME), ("company", SAME)], ["company"]),
        ("one alone", [("film", SAME)], ["film"]),
        ("none", [], []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_of_types_with_the_same_answers_the_most_specific_is_left(
    case: str, queries: list[tuple[str, list[int]]], left: list[str]
) -> None:
    types = _types(ABOVE, TYPES)

    assert _left(queries, types) == left
    assert sorted(_left(queries[::-1], types)) == sorted(left)


def test_of_two_types_above_each_other_one_is_left() -> None:
    types = _types({"a": ["b"], "b": ["a"], "c": ["a"]}, ("b", "a"))

    assert _left([("b", SAME), ("a", SAME)], types) == ["a"]


LABELS = "abcdefg"
GRAPHS = st.fixed_dictionaries({one: st.lists(st.sampled_from(LABELS), max_size=2) for one in LABELS})
ANSWERS = st.sampled_from([[1, 2], [1, 3], [1, 2, 3]])


@given(GRAPHS, st.dictionaries(st.sampled_from(LABELS), ANSWERS))
def test_none_that_is_left_has_a_twin_and_none_is_left_out_for_a_wider_one(
    above: dict[str, list[str]], queries: dict[str, list[int]]
) -> None:
    types = _types(above, tuple(LABELS))
    left = _left(queries.items(), types)

    assert {tuple(queries[label]) for label in left} == set(map(tuple, queries.values()))
    assert len({tuple(queries[label]) for label in left}) == len(left)
    masks = {label: int(types.masks[row, 0]) for row, label in enumerate(above)}

    def is_below(one: str, other: str) -> bool:
        return bool(masks[one] >> LABELS.index(other) & 1) and not masks[other] >> LABELS.index(one) & 1

    for label in left:
        assert not [other for other, found in queries.items() if found == queries[label] and is_below(other, label)]
