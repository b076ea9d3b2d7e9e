"""Pieces that two versions of a paragraph have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.diff.blocks import Words, equal_blocks, likeness, move_piece

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
    new_start, new_end = move_piece(old, new, start, end)
    assert 0 <= new_start <= new_end <= len(new)
    if start < end and any(
        one.old_start <= start and end <= one.old_start + one.size for one in equal_blocks(old, new)
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
    new_start, new_end = move_piece(old, new, start, start + len(piece))
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
