"""What the fast forms of patterns find is what the patterns find."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.wikitext.lines import _EMPTY_BRACKETS, _without_empty_brackets
from kbsource.wikitext.markers import CUT
from tests.support.examples import examples


@given(st.text(alphabet='[]"“”«» (a.' + CUT * 3, max_size=14))
@settings(max_examples=examples(500))
def test_empty_brackets_go_wherever_the_pattern_finds_them(text: str) -> None:
    assert _without_empty_brackets(text) == _EMPTY_BRACKETS.sub(CUT, text)
