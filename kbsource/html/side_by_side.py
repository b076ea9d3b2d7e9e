"""Arranges the lines of a page beside the lines of the text from its wikitext, and marks words that only one of them
contains.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

_TOKEN = re.compile(r"(?:\^\([^()]*\)|\S)+")
_TOKEN_WITH_TEX = re.compile(r"(?:\$[^$\n]+\$|\^\([^()]*\)|\S)+")

Pieces = tuple[tuple[str, bool], ...]
"""A text in segments, each with a flag that is true if the segment is marked."""
WordsOf = Callable[[str], list[str]]


class LinePair(NamedTuple):
    """A line of the page and the matching line of the other text. One of them is None if there is no match."""

    shown: Pieces | None
    own: Pieces | None

    @property
    def differs(self) -> bool:
        """True if a word is marked, or a line has no match."""
        return self.shown is None or self.own is None or any(is_marked for _, is_marked in self.shown + self.own)


class _Side:
    """The lines of a text, in which the words that the other text lacks are marked."""

    def __init__(self, lines: Sequence[str], found: set[int], words_of: WordsOf, token: re.Pattern[str]) -> None:
        counts = [len(words_of(line)) for line in lines]
        self._ends = [*accumulate(counts)]
        self.pieces = [
            _pieces(line, [at in found for at in range(end - count, end)], words_of, token)
            for line, count, end in zip(lines, counts, self._ends, strict=True)
        ]

    def line_of(self, word: int) -> int:
        """Returns the number of the line that contains a word."""
        return bisect_right(self._ends, word)


def side_by_side(
    shown: Sequence[str],
    own: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    words_of: WordsOf,
    *,
    has_formulas: bool,
) -> Iterator[LinePair]:
    """Yields the lines of two texts in order, in pairs. Each line is paired with the one that shares the most words
    with it.

    Args:
        shown, own: the lines.
        pairs: positions of the common words among the words of each text, ascending.
        words_of: returns the words of a text.
        has_formulas: true if text between dollar signs is one word.
    """
    token = _TOKEN_WITH_TEX if has_formulas else _TOKEN
    left = _Side(shown, {at for at, _ in pairs}, words_of, token)
    right = _Side(own, {at for _, at in pairs}, words_of, token)
    next_own = 0
    for number, partner in enumerate(_partners(len(shown), left, right, pairs)):
        if partner is None:
            yield LinePair(left.pieces[number], None)
            continue
        for alone in right.pieces[next_own:partner]:
            yield LinePair(None, alone)
        yield LinePair(left.pieces[number], right.pieces[partner])
        next_own = partner + 1
    for alone in right.pieces[next_own:]:
        yield LinePair(None, alone)


def _partners(n_lines: int, left: _Side, right: _Side, pairs: Sequence[tuple[int, int]]) -> Iterator[int | None]:
    """Yields the line that matches each line of the first text; None for a line without a match."""
    shared: dict[int, Counter[int]] = {}
    for at, other in pairs:
        shared.setdefault(left.line_of(at), Counter())[right.line_of(other)] += 1
    last = -1
    for number in range(n_lines):
        counts = shared.get(number)
        best = max(counts, key=lambda line: (counts[line], -line)) if counts else -1
        if best > last:
            last = best
            yield best
        else:
            yield None


def _pieces(line: str, is_found: Sequence[bool], words_of: WordsOf, token: re.Pattern[str]) -> Pieces:
    if all(is_found):
        return ((line, False),)
    pieces: list[tuple[str, bool]] = []
    at = start = end = 0  # index of the word; start and end of the marked run in characters
    for found in token.finditer(line):
        n_words = len(words_of(found[0]))
        is_marked = not all(is_found[at : at + n_words])
        at += n_words
        if is_marked and pieces and pieces[-1][1] and not line[end : found.start()].strip():
            start = end - len(pieces.pop()[0])
        elif is_marked:
            start = found.start()
            if end < start:
                pieces.append((line[end:start], False))
        if is_marked:
            end = found.end()
            pieces.append((line[start:end], True))
    if at != len(is_found):  # some word consists of several tokens
        return ((line, True),)
    return (*pieces, (line[end:], False)) if end < len(line) else tuple(pieces)
