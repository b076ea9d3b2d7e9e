"""The words that two texts have in common, against a slow and obvious way to count them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.errors import RecordError
from kbsource.html import common_words as module
from kbsource.html.common_words import common_words

TEXTS = st.lists(st.sampled_from("abcde"), max_size=40)


def longest(old: Sequence[str], new: Sequence[str]) -> int:
    """The length of a longest common subsequence, from a table of all beginnings."""
    row = [0] * (len(new) + 1)
    for word in old:
        before, row = row, [0]
        for at, own in enumerate(new):
            row.append(before[at] + 1 if own == word else max(before[at + 1], row[-1]))
    return row[-1]


def is_common(pairs: Sequence[tuple[int, int]], old: Sequence[str], new: Sequence[str]) -> bool:
    ascends = all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    return ascends and all(old[i] == new[j] for i, j in pairs)


@given(old=TEXTS, new=TEXTS)
def test_no_common_words_are_overlooked(old: list[str], new: list[str]) -> None:
    pairs = common_words(old, new)
    assert is_common(pairs, old, new)
    assert len(pairs) == longest(old, new)


@pytest.mark.parametrize(("block", "at_once"), [(8, 1 << 28), (8, 16), (16, 64), (1 << 13, 1)])
@settings(max_examples=60)
@given(old=TEXTS, new=TEXTS)
def test_long_texts_are_compared_in_parts(block: int, at_once: int, old: list[str], new: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        patch.setattr(module, "_FULL", (1 << block) - 1)
        patch.setattr(module, "_PAIRS_AT_ONCE", at_once)
        pairs = common_words(old, new)
    assert is_common(pairs, old, new)
    assert len(pairs) == longest(old, new)


def test_more_words_than_a_block() -> None:
    chance = random.Random(3)
    old = [str(chance.randrange(2000)) for _ in range(9000)]
    new = [word for word in old if chance.random() < 0.97]
    pairs = common_words(old, new)
    assert is_common(pairs, old, new)
    assert len(pairs) == len(new)


def test_too_many_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PAIRS", 8)
    assert len(common_words("x a b c d y".split(), "x b a d c y".split()[:2])) == 2  # 1 word each is left to compare
    with pytest.raises(RecordError, match=r"page_too_large.*3 and 3 words"):
        common_words("a b c".split(), "c a b".split())
