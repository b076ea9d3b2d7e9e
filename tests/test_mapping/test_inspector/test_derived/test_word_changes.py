"""Words that changed are marked on both sides, and nothing of a text is lost."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.inspector.derived.word_changes import MOST_WORDS, changed_words, marked_pieces


def marks(old: str, new: str) -> tuple[list[str], list[str]]:
    before, after = changed_words(old, new)
    return [piece.text for piece in before if piece.is_marked], [piece.text for piece in after if piece.is_marked]


@pytest.mark.parametrize(
    ("old", "new", "gone", "come"),
    [
        pytest.param("the big lake", "the lake", ["big"], [], id="a word gone"),
        pytest.param("the lake", "the big lake", [], ["big"], id="a word come"),
        pytest.param("27 m high", "89 ft high", ["27 m"], ["89 ft"], id="words beside each other are one mark"),
        pytest.param("The sea , and Rain .", "the sea, and rain", [], [], id="case and punctuation do not count"),
        pytest.param("in (1901).", "in (1902).", ["1901"], ["1902"], id="punctuation around a word is not marked"),
        pytest.param("北京是城市", "北京是大城市", [], ["大"], id="scripts without blanks by the letter"),
        pytest.param("war—peace", "war — love", ["peace"], ["love"], id="dashes part words"),
        pytest.param("नमस्ते दुनिया", "नमस्ते भारत", ["दुनिया"], ["भारत"], id="marks stay with their letters"),
        pytest.param("", "a b", [], ["a b"], id="an empty text"),
        pytest.param("a x b", "a y b", ["x"], ["y"], id="replaced"),
    ],
)
def test_changed_words(old: str, new: str, gone: list[str], come: list[str]) -> None:
    assert marks(old, new) == (gone, come)


_TEXTS = st.text("ab ,.—(北É\u200b\n", max_size=30)


@given(_TEXTS, _TEXTS)
def test_pieces_are_the_texts_and_what_is_not_marked_is_the_same(old: str, new: str) -> None:
    before, after = changed_words(old, new)
    assert "".join(piece.text for piece in before) == old
    assert "".join(piece.text for piece in after) == new
    kept = [" ".join(piece.text for piece in side if not piece.is_marked) for side in (before, after)]
    assert marks(*kept) == ([], [])


def test_long_texts_take_a_bounded_time() -> None:
    old = [f"w{number % 997}" for number in range(3 * MOST_WORDS)]
    new = [f"w{number % 991}" for number in range(3 * MOST_WORDS)]
    start = time.process_time()
    changed_words(" ".join(old), " ".join(new))
    assert time.process_time() - start < 5
    # Where only little in the middle differs, length does not matter.
    assert marks(" ".join(old), " ".join([*old[:20_000], "new", *old[20_000:]])) == ([], ["new"])


def test_marked_pieces_leave_out_what_overlaps_or_lies_outside() -> None:
    pieces = marked_pieces("abcdef", [(4, 99), (1, 3), (2, 4), (9, 12)])
    assert [(piece.text, piece.is_marked) for piece in pieces] == [
        ("a", False),
        ("bc", True),
        ("d", True),
        ("ef", True),
    ]
