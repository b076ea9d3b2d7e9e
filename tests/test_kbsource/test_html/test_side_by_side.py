"""Two texts side by side, with the words marked that only one has."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.html.common_words import common_words
from kbsource.html.comparing import words_of
from kbsource.html.side_by_side import LinePair, side_by_side


def compared(shown: list[str], own: list[str], *, has_formulas: bool = False) -> list[LinePair]:
    words = partial(words_of, has_formulas=has_formulas)
    both = ([word for line in lines for word in words(line)] for lines in (shown, own))
    return [*side_by_side(shown, own, common_words(*both), words, has_formulas=has_formulas)]


def marked(pieces: tuple[tuple[str, bool], ...] | None) -> str | None:
    return None if pieces is None else "".join(f"[{text}]" if is_marked else text for text, is_marked in pieces)


@pytest.mark.parametrize(
    ("shown", "own", "expected"),
    [
        (["It is so."], ["It is so."], [("It is so.", "It is so.")]),
        (
            ["It fell on a fine Sunday."],
            ["It fell, on Sunday"],
            [("It fell on [a fine] Sunday.", "It fell, on Sunday")],
        ),
        (["a", "b c", "d"], ["a", "d e"], [("a", "a"), ("[b c]", None), ("d", "d [e]")]),
        (["a"], ["b", "a", "c d"], [(None, "[b]"), ("a", "a"), (None, "[c d]")]),
        ([], ["a"], [(None, "[a]")]),
        # a paragraph that is two: beside the longer half
        (["a b c d e"], ["a b", "c d e"], [(None, "a b"), ("a b c d e", "c d e")]),
        # no words at all
        (["–"], ["–", "…"], [("–", None), (None, "–"), (None, "…")]),
        (["10^(a b) is"], ["is"], [("[10^(a b)] is", "is")]),
    ],
)
def test_lines(shown: list[str], own: list[str], expected: list[tuple[str | None, str | None]]) -> None:
    assert [(marked(pair.shown), marked(pair.own)) for pair in compared(shown, own)] == expected


def test_a_formula_is_one_word() -> None:
    (pair,) = compared(["so $x + y$ is"], ["so is"], has_formulas=True)
    assert (marked(pair.shown), marked(pair.own)) == ("so [$x + y$] is", "so is")


LINES = st.lists(st.text("ab $^()'-\u00b4", max_size=12), max_size=5)


@given(LINES, LINES, st.booleans())
def test_no_line_and_no_character_is_lost(shown: list[str], own: list[str], has_formulas: bool) -> None:
    pairs = compared(shown, own, has_formulas=has_formulas)
    for side, lines in (("shown", shown), ("own", own)):
        found = [pieces for pair in pairs if (pieces := getattr(pair, side)) is not None]
        assert ["".join(text for text, _ in pieces) for pieces in found] == lines
        for pieces in found:
            assert all(text for text, _ in pieces) or pieces == (("", False),)
    if shown == own:
        assert not any(is_marked for pair in pairs for pieces in pair if pieces for _, is_marked in pieces)
