"""Two versions of a paragraph: how alike they are, and which pieces of them are the same."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from operator import attrgetter
from typing import NamedTuple

from rapidfuzz.distance import Indel, Levenshtein

LEAST_ALIKE = 0.5
"""Share of words that two versions of an element have in common at least; elements about other things reach a third."""
# Scripts without blanks between words: each letter counts as a word.
_WORD = re.compile(r"[^\W\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+|\S")


class Block(NamedTuple):
    """Equal pieces of two texts: ``old[old_start:old_start + size] == new[new_start:new_start + size]``."""

    old_start: int
    new_start: int
    size: int


class Words:
    """The words of texts as numbers, the same number for the same word; marks and punctuation are words too."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)

    def of(self, text: str) -> list[int]:
        """Gives the words of a text in order."""
        return [self._numbers[word] for word in _WORD.findall(text)]


def likeness(old: Sequence[int], new: Sequence[int]) -> float:
    """Gives the share of words that stand in both versions in the same order, 0.0 where it is below ``LEAST_ALIKE``."""
    return float(Indel.normalized_similarity(old, new, score_cutoff=LEAST_ALIKE))


def equal_blocks(old: str, new: str) -> list[Block]:
    """Gives the pieces that two versions of a text have in common, in order: whole words, with the blanks between them.

    >>> [tuple(block) for block in equal_blocks("It opened in 1901.", "It was opened in 1902.")]
    [(0, 0, 2), (3, 7, 9), (17, 21, 1)]
    """
    if old == new:
        return [Block(0, 0, len(old))]
    words = Words()
    spans = [[match.span() for match in _WORD.finditer(text)] for text in (old, new)]
    blocks: list[Block] = []
    # Levenshtein's, since that of Indel takes as many bits as there are pairs of words.
    for operation in Levenshtein.opcodes(words.of(old), words.of(new)):
        if operation.tag != "equal":
            continue
        old_words = spans[0][operation.src_start : operation.src_end]
        new_words = spans[1][operation.dest_start : operation.dest_end]
        is_first = True
        for (old_start, old_end), (new_start, _) in zip(old_words, new_words, strict=True):
            before = Block(old_start, new_start, 0) if is_first else blocks[-1]
            # The same blanks stand before the word in both, else it begins a block of its own.
            gap = old[before.old_start + before.size : old_start], new[before.new_start + before.size : new_start]
            if is_first or gap[0] != gap[1]:
                blocks.append(Block(old_start, new_start, old_end - old_start))
            else:
                blocks[-1] = before._replace(size=old_end - before.old_start)
            is_first = False
    return blocks


def move_piece(old: str, new: str, start: int, end: int) -> tuple[int, int]:
    """Gives where a piece of the old version stands in the new one, or else what came instead of it, without the blanks
    around it; nothing is given as an empty piece.

    Args:
        old, new: the versions.
        start, end: of the piece, half-open.
    """
    blocks, new_start, new_end = equal_blocks(old, new), 0, len(new)
    if number := bisect_right(blocks, start, key=attrgetter("old_start")):
        before = blocks[number - 1]
        new_start = before.new_start + min(start - before.old_start, before.size)
    if (number := bisect_left(blocks, end, key=lambda block: block.old_start + block.size)) < len(blocks):
        after = blocks[number]
        new_end = after.new_start + max(end - after.old_start, 0)
    while new_start < new_end and new[new_start].isspace() and not old[start:end][:1].isspace():
        new_start += 1
    while new_start < new_end and new[new_end - 1].isspace() and not old[start:end][-1:].isspace():
        new_end -= 1
    return new_start, max(new_start, new_end)
