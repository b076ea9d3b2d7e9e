"""Finds the words that two texts have in common, in order: a longest common subsequence.

Source: Hyyrö, "Bit-Parallel LCS-length Computation Revisited", 2004; Hirschberg, "A linear space algorithm for
computing maximal common subsequences", 1975.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from kbsource.errors import RecordError

MOST_PAIRS = 1 << 36
"""Maximum number of pairs of words in a comparison of two texts: 262,144 words each, for which it takes half a
minute.
"""
_PAIRS_AT_ONCE = 1 << 28  # each takes one bit
_BLOCK = 1 << 13  # words of the second text that are compared in one step
_FULL = (1 << _BLOCK) - 1


def common_words(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the positions of a longest common subsequence, ascending in both texts.

    Memory: one bit for each pair of words, of which at most 268 million are compared at once. Time: one step for each
    word of one text and 8,192 words of the other.

    Raises:
        RecordError: ``page_too_large`` if there are more than ``MOST_PAIRS`` pairs of words to compare.

    >>> common_words("it fell on a Sunday".split(), "it fell on Sunday".split())
    [(0, 0), (1, 1), (2, 2), (4, 3)]
    """
    n_first = 0
    shorter = min(len(old), len(new))
    while n_first < shorter and old[n_first] == new[n_first]:
        n_first += 1
    n_last = 0
    while n_last < shorter - n_first and old[-1 - n_last] == new[-1 - n_last]:
        n_last += 1
    ends = len(old) - n_last, len(new) - n_last
    both = set(old[n_first : ends[0]]).intersection(new[n_first : ends[1]])
    places = [
        [at for at in range(n_first, end) if text[at] in both] for text, end in zip((old, new), ends, strict=True)
    ]
    if len(places[0]) * len(places[1]) > MOST_PAIRS:
        n_words = " and ".join(f"{len(own):,}" for own in places)
        raise RecordError("page_too_large", f"comparing {n_words} words would take too long")
    left, right = ([text[at] for at in own] for text, own in zip((old, new), places, strict=True))
    return [
        *((at, at) for at in range(n_first)),
        *((places[0][i], places[1][j]) for i, j in _pairs(left, right)),
        *((ends[0] + at, ends[1] + at) for at in range(n_last)),
    ]


def _pairs(old: list[str], new: list[str]) -> Iterator[tuple[int, int]]:
    """Yields the positions of a longest common subsequence. Halves the first text until the pairs of each part fit into
    memory.
    """
    waiting = [(0, len(old), 0, len(new))]
    while waiting:
        start, end, new_start, new_end = waiting.pop()
        if (end - start) * (new_end - new_start) <= _PAIRS_AT_ONCE:
            for i, j in _small_pairs(old[start:end], new[new_start:new_end]):
                yield start + i, new_start + j
            continue
        if end - start == 1:
            at = next((at for at in range(new_start, new_end) if new[at] == old[start]), None)
            if at is not None:
                yield start, at
            continue
        middle = (start + end) // 2
        own = new[new_start:new_end]
        before = _lengths(old[start:middle], own)
        after = _lengths(old[middle:end][::-1], own[::-1])[::-1]
        cut = new_start + int(np.argmax(before + after))
        waiting += [(middle, end, cut, new_end), (start, middle, new_start, cut)]


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[Iterator[int]]:
    """Yields the blocks of the second text, and for each block the words of the first text, as rows of bits. A row has
    a bit for each word of the block, which is 0 where the length of the longest common subsequence grows. Each block
    must be read to its end.
    """
    carries = bytearray(len(old))
    for start in range(0, len(new), _BLOCK):
        yield _block_rows(old, new[start : start + _BLOCK], carries)


def _block_rows(old: Sequence[str], block: Sequence[str], carries: bytearray) -> Iterator[int]:
    masks: dict[str, int] = {}
    bit = 1
    for word in block:
        masks[word] = masks.get(word, 0) | bit
        bit <<= 1
    row = _FULL
    for number, word in enumerate(old):
        matches = row & masks.get(word, 0)
        total = row + matches + carries[number]
        carries[number] = total >> _BLOCK
        row = (total & _FULL) | (row - matches)
        yield row


def _lengths(old: Sequence[str], new: Sequence[str]) -> npt.NDArray[np.int64]:
    """Returns the lengths of the longest common subsequences of the first text and every prefix of the second."""
    grows = [np.zeros(1, np.uint8)]
    for rows in _rows(old, new):
        last = _FULL
        for row in rows:
            last = row
        grows.append(
            1 - np.unpackbits(np.frombuffer(last.to_bytes(_BLOCK // 8, "little"), np.uint8), bitorder="little")
        )
    return np.cumsum(np.concatenate(grows)[: len(new) + 1], dtype=np.int64)


def _small_pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    n_bytes = min(_BLOCK, len(new) + 7 & ~7) // 8
    cut = (1 << 8 * n_bytes) - 1
    matrix = [[(row & cut).to_bytes(n_bytes, "little") for row in rows] for rows in _rows(old, new)]
    found: list[tuple[int, int]] = []
    i, j = len(old) - 1, len(new) - 1
    while i >= 0 and j >= 0:
        rows, byte, bit = matrix[j // _BLOCK], j % _BLOCK // 8, 1 << j % 8
        if rows[i][byte] & bit:
            j -= 1
            continue
        # The two words are equal if the length grows at this word in this row, but not in the row before.
        if i == 0 or rows[i - 1][byte] & bit:
            found.append((i, j))
            j -= 1
        i -= 1
    return found[::-1]
