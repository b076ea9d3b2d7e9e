"""Where the elements of a page stand in a later version of it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.diff.elements import gone_elements, longest_ascending, match_elements

FIRST = "The river Tey rises in the hills and flows to the sea."
SECOND = "Goats of the island are kept for milk, which is sold in spring."
_TEXTS = st.lists(
    st.sampled_from(["a", "b", "c", "", FIRST, SECOND, f"{FIRST} {SECOND}", FIRST.replace("sea", "lake")]), max_size=9
).map(lambda texts: ["Title", *texts])


@given(_TEXTS, _TEXTS)
def test_pieces_cover_the_old_texts_and_what_is_said_to_be_the_same_is(old: list[str], new: list[str]) -> None:
    pieces, unclaimed = match_elements(old, new)
    assert "".join(old[one.old_element][one.old_start : one.old_end] for one in pieces) == "".join(old)
    assert [one[:2] for one in pieces] == sorted(one[:2] for one in pieces)
    assert {one.old_element for one in pieces} == set(range(len(old)))
    for one in pieces:
        text = old[one.old_element][one.old_start : one.old_end]
        if one.new_element is None:
            assert (one.outcome, one.n_kept) == ("gone", 0)
            continue
        if one.outcome != "edited":
            assert new[one.new_element][one.new_start : one.new_end] == text
            assert one.n_kept == len(text)
        assert 0 <= one.n_kept <= len(text)
    claimed = {one.new_element for one in pieces}
    assert unclaimed == [number for number in range(1, len(new)) if number not in claimed]


@given(_TEXTS, _TEXTS)
def test_equal_texts_are_matched_as_often_as_both_pages_have_them(old: list[str], new: list[str]) -> None:
    pieces = match_elements(old, new).pieces
    matched = [one for one in pieces if one.outcome in ("same", "moved") and one.old_element]
    assert len({one.new_element for one in matched}) == len(matched)
    assert Counter(old[one.old_element] for one in matched) == Counter(old[1:]) & Counter(new[1:])
    in_order = [one.new_element or 0 for one in matched if one.outcome == "same"]
    assert in_order == sorted(in_order)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (["a", "b"], ["b", "a"], [("moved", 2, 0), ("same", 1, 0)]),
        (["a", "a", "b"], ["x", "a", "a", "b"], [("same", 2, 0), ("same", 3, 0), ("same", 4, 0)]),
        ([f"{FIRST} {SECOND}"], [FIRST, SECOND], [("part", 1, 0), ("gone", None, None), ("part", 2, 0)]),
        ([FIRST, SECOND], [f"{FIRST} {SECOND}"], [("part", 1, 0), ("part", 1, len(FIRST) + 1)]),
        ([FIRST], [FIRST.replace("sea", "lake"), FIRST.replace("sea", "sea now")], [("edited", 2, 0)]),
        ([FIRST], [SECOND], [("gone", None, None)]),
        (["1901"], ["1902"], [("gone", None, None)]),
    ],
)
def test_elements_are_found(old: list[str], new: list[str], wanted: list[tuple[str, int, int]]) -> None:
    pieces = match_elements(["T", *old], ["T", *new]).pieces
    assert [(one.outcome, one.new_element, one.new_start) for one in pieces[1:]] == wanted


def test_a_title_is_edited_however_it_is_called_now() -> None:
    [title] = match_elements(["Tey"], ["Sorn"]).pieces
    assert title[3:8] == (0, 0, 4, "edited", 0.0)


def test_of_a_page_that_is_gone_all_is_gone() -> None:
    assert [tuple(one[:4]) for one in gone_elements(["T", "", "ab"])] == [
        (0, 0, 1, None), (1, 0, 0, None), (2, 0, 2, None)
    ]  # fmt: skip


@given(st.lists(st.integers(0, 50), unique=True, max_size=9))
def test_no_ascending_run_is_longer(numbers: list[int]) -> None:
    best = [0] * len(numbers)
    for at, number in enumerate(numbers):
        best[at] = 1 + max((best[i] for i in range(at) if numbers[i] < number), default=0)
    found = longest_ascending(numbers)
    assert [numbers[at] for at in found] == sorted(numbers[at] for at in found)
    assert len(found) == max(best, default=0)


def test_a_page_of_thousands_of_items_is_compared_near_by() -> None:
    old = ["T", *(f"Item {number} of the list of ships that were lost" for number in range(3000))]
    new = ["T", *(f"Item {number} of the long list of ships that were lost" for number in range(3000))]
    pieces = match_elements(old, new).pieces
    assert {one.outcome for one in pieces[1:]} == {"edited"}
    assert all(one.old_element == one.new_element for one in pieces)
