"""Which words of a text changed: two texts beside each other in pieces, those that differ marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rapidfuzz.distance import Indel

from mapping.search.normalise import is_void, normal_form

MOST_WORDS = 10_000
"""Words of either side that are compared, those that both begin or end with left out: 12 MB, and a tenth of a second.
Of longer ones everything in between counts as changed."""

# Scripts without spaces by the letter; elsewhere what stands between blanks, dashes and slashes.
_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s/\u2012-\u2015{_UNSPACED}]+")


class Piece(NamedTuple):
    """A piece of a text, and whether it is marked."""

    text: str
    is_marked: bool


class _Word(NamedTuple):
    form: str
    start: int
    end: int


def changed_words(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """Gives two texts in pieces, with the words marked that the other one does not have at their place.

    Words are compared as alignments compare them: case and punctuation do not count. The pieces of a text put together
    are the text.

    >>> changed_words("The big lake.", "the lake")[0]
    [Piece(text='The ', is_marked=False), Piece(text='big', is_marked=True), Piece(text=' lake.', is_marked=False)]
    """
    words = list(_words(old)), list(_words(new))
    forms = [word.form for word in words[0]], [word.form for word in words[1]]
    shortest = min(map(len, words))
    first = next((at for at in range(shortest) if forms[0][at] != forms[1][at]), shortest)
    rest = shortest - first
    last = next((at for at in range(rest) if forms[0][-1 - at] != forms[1][-1 - at]), rest)
    middles = forms[0][first : len(forms[0]) - last], forms[1][first : len(forms[1]) - last]
    changed: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
    if max(map(len, middles)) > MOST_WORDS:
        changed = [(0, len(middles[0]))], [(0, len(middles[1]))]
    else:
        for step in Indel.opcodes(*middles):
            if step.tag != "equal":
                changed[0].append((step.src_start, step.src_end))
                changed[1].append((step.dest_start, step.dest_end))
    old_marks, new_marks = (
        [(own[first + start].start, own[first + end - 1].end) for start, end in runs if start < end]
        for own, runs in zip(words, changed, strict=True)
    )
    return marked_pieces(old, old_marks), marked_pieces(new, new_marks)


def marked_pieces(text: str, spans: Sequence[tuple[int, int]]) -> list[Piece]:
    """Gives a text in pieces, with these spans marked; what of them lies outside of the text, or twice, is left out.

    >>> [piece.text for piece in marked_pieces("abcdef", [(1, 3), (2, 99)])]
    ['a', 'bc', 'def']
    """
    pieces, at = [], 0
    for start, end in sorted(spans):
        start, end = max(start, at), min(end, len(text))
        if start < end:
            pieces += [Piece(text[at:start], False), Piece(text[start:end], True)]
            at = end
    pieces.append(Piece(text[at:], False))
    return [piece for piece in pieces if piece.text]


def _words(text: str) -> Iterator[_Word]:
    for found in _WORD.finditer(text):
        if form := normal_form(found[0]):
            start, end = found.span()
            while is_void(text[start]):
                start += 1
            while is_void(text[end - 1]):
                end -= 1
            yield _Word(form, start, end)
