"""Pieces that two versions of a paragraph have in common."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.diff.matching import (
    Words,
    equal_blocks,
    gone_elements,
    likeness,
    longest_ascending,
    match_elements,
    match_sections,
    move_segment,
)
from kbsource.diff.page_texts import ComparedPage

_WORDS = st.sampled_from(["the", "river", "Tey", "1901", "北京", "é", ".", ",", "town"])
_TEXTS = st.lists(st.tuples(_WORDS, st.sampled_from([" ", "", "  "])), max_size=12).map(
    lambda words: "".join(word + blank for word, blank in words)
)


@given(_TEXTS, _TEXTS)
def test_blocks_are_equal_apart_and_in_order(old: str, new: str) -> None:
    at = (0, 0)
    for block in equal_blocks(old, new):
        old_end, new_end = block.old_start + block.size, block.new_start + block.size
        assert old[block.old_start : old_end] == new[block.new_start : new_end]
        assert block.old_start >= at[0]
        assert block.new_start >= at[1]
        at = (old_end, new_end)
    assert at <= (len(old), len(new))


@given(_TEXTS, _TEXTS, st.data())
def test_a_piece_within_a_block_is_the_same_and_any_other_lies_in_the_text(
    old: str, new: str, data: st.DataObject
) -> None:
    start, end = sorted((data.draw(st.integers(0, len(old))), data.draw(st.integers(0, len(old)))))
    new_start, new_end = move_segment(old, new, start, end)
    assert 0 <= new_start <= new_end <= len(new)
    if start < end and any(
        equal_block.old_start <= start and end <= equal_block.old_start + equal_block.size
        for equal_block in equal_blocks(old, new)
    ):
        assert new[new_start:new_end] == old[start:end]


@pytest.mark.parametrize(
    ("old", "new", "piece", "moved"),
    [
        ("It opened in 1901.", "It was opened in 1901.", "opened in 1901", "opened in 1901"),
        ("It opened in 1901.", "It opened in 1902.", "in 1901", "in 1902"),
        ("It opened in 1901.", "It opened in 1902.", "1901", "1902"),
        ("The old mill burnt.", "The mill burnt.", "old ", ""),
        ("A b c.", "A b c.", "b", "b"),
    ],
)
def test_a_piece_moves_to_what_came_instead_of_it(old: str, new: str, piece: str, moved: str) -> None:
    start = old.index(piece)
    new_start, new_end = move_segment(old, new, start, start + len(piece))
    assert new[new_start:new_end] == moved


def test_texts_about_other_things_are_not_alike() -> None:
    words = Words()
    old = words.of("The river Tey rises in the hills and flows through the town.")
    assert likeness(old, words.of("The river Tey rises in low hills and flows through the old town.")) > 0.8
    assert likeness(old, words.of("Goats of the island are kept for their milk, which is sold in spring.")) == 0.0
    assert likeness(words.of("北京是城市"), words.of("北京是首都")) == 0.6


def test_a_word_keeps_its_number() -> None:
    words = Words()
    assert words.of("a b a") == [0, 1, 0]
    assert words.of("b, c") == [1, 2, 3]


FIRST = "The river Tey rises in the hills and flows to the sea."
SECOND = "Goats of the island are kept for milk, which is sold in spring."
_PAGES = st.lists(
    st.sampled_from(["a", "b", "c", "", FIRST, SECOND, f"{FIRST} {SECOND}", FIRST.replace("sea", "lake")]), max_size=9
).map(lambda texts: ["Title", *texts])


@given(_PAGES, _PAGES)
def test_pieces_cover_the_old_texts_and_what_is_said_to_be_the_same_is(old: list[str], new: list[str]) -> None:
    pieces, unclaimed = match_elements(old, new)
    assert "".join(old[piece.old_element][piece.old_start : piece.old_end] for piece in pieces) == "".join(old)
    assert [piece[:2] for piece in pieces] == sorted(piece[:2] for piece in pieces)
    assert {piece.old_element for piece in pieces} == set(range(len(old)))
    for piece in pieces:
        text = old[piece.old_element][piece.old_start : piece.old_end]
        if piece.new_element is None:
            assert (piece.outcome, piece.n_kept) == ("gone", 0)
            continue
        if piece.outcome != "edited":
            assert new[piece.new_element][piece.new_start : piece.new_end] == text
            assert piece.n_kept == len(text)
        assert 0 <= piece.n_kept <= len(text)
    claimed = {piece.new_element for piece in pieces}
    assert unclaimed == [number for number in range(1, len(new)) if number not in claimed]


@given(_PAGES, _PAGES)
def test_equal_texts_are_matched_as_often_as_both_pages_have_them(old: list[str], new: list[str]) -> None:
    pieces = match_elements(old, new).segments
    matched = [piece for piece in pieces if piece.outcome in ("same", "moved") and piece.old_element]
    assert len({piece.new_element for piece in matched}) == len(matched)
    assert Counter(old[piece.old_element] for piece in matched) == Counter(old[1:]) & Counter(new[1:])
    in_order = [piece.new_element or 0 for piece in matched if piece.outcome == "same"]
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
    pieces = match_elements(["T", *old], ["T", *new]).segments
    assert [(piece.outcome, piece.new_element, piece.new_start) for piece in pieces[1:]] == wanted


def test_a_title_is_edited_however_it_is_called_now() -> None:
    [title] = match_elements(["Tey"], ["Sorn"]).segments
    assert title[3:8] == (0, 0, 4, "edited", 0.0)


def test_of_a_page_that_is_gone_all_is_gone() -> None:
    assert [tuple(gone_element[:4]) for gone_element in gone_elements(["T", "", "ab"])] == [
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
    pieces = match_elements(old, new).segments
    assert {piece.outcome for piece in pieces[1:]} == {"edited"}
    assert all(piece.old_element == piece.new_element for piece in pieces)


LONG = "The river Tey rises in the hills and flows to the sea."
OTHER = "Goats of the island are kept for milk, which is sold in spring."


def _page(*parts: str) -> ComparedPage:
    """Gives a page of paragraphs, and of headings, which begin with ``=``: as many as its level."""
    page = ComparedPage(["T"], [[]], [False])
    path: list[str] = []
    for part in parts:
        head = part.lstrip("=")
        level = len(part) - len(head)
        path = [*path[: level - 1], head] if level else path
        for column, value in zip(page, (head, path, level > 0), strict=True):
            column.append(value)  # type: ignore[arg-type]  # each its own
    return page


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (["a", "=B", "b"], ["a", "=B", "b"], [(0, 0, "same", 1.0), (1, 1, "same", 1.0)]),
        (["a"], ["x"], [(0, 0, "changed", 0.0)]),
        (["=A", LONG, OTHER], ["=A", LONG, "x"], [(0, 0, "same", 1.0), (1, 1, "changed", 54 / 117)]),
        (["=A", LONG], ["=B", LONG], [(0, 0, "same", 1.0), (1, 1, "renamed", 1.0)]),
        (["=A", LONG], ["=B", "==A", LONG], [(0, 0, "same", 1.0), (1, 2, "moved", 1.0), (None, 1, "added", None)]),
        (
            ["=A", "a", "=B", "b"],
            ["=B", "b", "=A", "a"],
            [(0, 0, "same", 1.0), (1, 2, "moved", 1.0), (2, 1, "same", 1.0)],
        ),
        (["=A", "a"], ["=B", "b"], [(0, 0, "same", 1.0), (1, None, "gone", 0.0), (None, 1, "added", None)]),
        (["=A", "a", "=A", "b"], ["=A", "a"], [(0, 0, "same", 1.0), (1, 1, "same", 1.0), (2, None, "gone", 0.0)]),
    ],
)
def test_sections_become(old: list[str], new: list[str], wanted: list[tuple[object, ...]]) -> None:
    before, after = _page(*old), _page(*new)
    found = match_sections(before, after, match_elements(before.texts, after.texts).segments)
    assert [
        (section.old_number, section.new_number, section.outcome, section.kept_share) for section in found
    ] == wanted
