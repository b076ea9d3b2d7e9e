"""The texts of a page's elements in two versions -> where every piece of the old ones stands in the new ones.

Elements with the same text are matched first: those in order (equal ends, then the longest ascending chain of texts
that both have once, then their equal neighbours), then those out of order. What is left between two neighbours of that
chain is compared with each other: texts that are part of another, then texts that are alike, the most alike first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from kbsource.diff.blocks import Words, equal_blocks, likeness

PART_CHARS = 30
"""A text that is found within another has so many code points at least."""
REACH = 40
"""Elements before and behind the expected place that one without an equal is compared with."""


class Piece(NamedTuple):
    """A piece of an old element and where it stands, as ``schema.SPAN_CHANGES`` has them.

    Attributes:
        n_kept: code points of it that stand there.
    """

    old_element: int
    old_start: int
    old_end: int
    new_element: int | None
    new_start: int | None
    new_end: int | None
    outcome: str
    score: float | None
    n_kept: int


class Matches(NamedTuple):
    """What became of all old elements.

    Attributes:
        pieces: in order; those of an element cover it.
        unclaimed: new elements that no piece leads to.
    """

    pieces: list[Piece]
    unclaimed: list[int]


def match_elements(old: Sequence[str], new: Sequence[str]) -> Matches:
    """Gives where the texts of a page stand in another; the first text of each is its title."""
    chain = _in_order(old, new)
    matcher = _Matcher(old, new)
    matcher.title()
    for i, j in chain.items():
        matcher.whole(i, j, "same")
    waiting: defaultdict[str, deque[int]] = defaultdict(deque)
    for j in matcher.unclaimed():
        waiting[new[j]].append(j)
    for i in matcher.unplaced():
        if places := waiting.get(old[i]):
            matcher.whole(i, places.popleft(), "moved")
    for olds, news in _gaps(chain, matcher.unplaced(), matcher.unclaimed()):
        matcher.match_gap(olds, news)
    return Matches(matcher.pieces(), matcher.unclaimed())


def gone_elements(texts: Sequence[str]) -> list[Piece]:
    """Gives the pieces of a page that is gone."""
    return [_gone(number, 0, len(text)) for number, text in enumerate(texts)]


def _gone(element: int, start: int, end: int) -> Piece:
    return Piece(element, start, end, None, None, None, "gone", None, 0)


class _Matcher:
    """The matches of two pages as they are found."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old, self._new = old, new
        self._pieces: defaultdict[int, list[Piece]] = defaultdict(list)
        self._claimed: set[int] = {0}
        self._words = Words()

    def unplaced(self) -> list[int]:
        return [i for i in range(1, len(self._old)) if i not in self._pieces]

    def unclaimed(self) -> list[int]:
        return [j for j in range(1, len(self._new)) if j not in self._claimed]

    def title(self) -> None:
        if self._old[0] == self._new[0]:
            self.whole(0, 0, "same")
        else:
            self._edited(0, 0, likeness(*(self._words.of(texts[0]) for texts in (self._old, self._new))))

    def whole(self, i: int, j: int, outcome: str) -> None:
        size = len(self._old[i])
        self._claim(Piece(i, 0, size, j, 0, size, outcome, 1.0, size))

    def _claim(self, piece: Piece) -> None:
        assert piece.new_element is not None
        self._pieces[piece.old_element].append(piece)
        self._claimed.add(piece.new_element)

    def _edited(self, i: int, j: int, score: float) -> None:
        n_kept = sum(block.size for block in equal_blocks(self._old[i], self._new[j]))
        self._claim(Piece(i, 0, len(self._old[i]), j, 0, len(self._new[j]), "edited", score, n_kept))

    def match_gap(self, olds: Sequence[int], news: Sequence[int]) -> None:
        pairs = list(_near(olds, news))
        for i, j in pairs:
            self._match_part(i, j)
        pairs = [(i, j) for i, j in pairs if i not in self._pieces and j not in self._claimed]
        words = {
            side: {number: self._words.of(texts[number]) for number in {pair[side] for pair in pairs}}
            for side, texts in enumerate((self._old, self._new))
        }
        scored = ((likeness(words[0][i], words[1][j]), i, j) for i, j in pairs)
        for score, i, j in sorted((one for one in scored if one[0]), key=lambda one: (-one[0], *one[1:])):
            if i not in self._pieces and j not in self._claimed:
                self._edited(i, j, score)

    def _match_part(self, i: int, j: int) -> None:
        """Matches an old text that is part of a new one, or pieces of an old one that are new ones."""
        old, new = self._old[i], self._new[j]
        if min(len(old), len(new)) < PART_CHARS:
            return
        if i not in self._pieces and (at := new.find(old)) >= 0:
            self._claim(Piece(i, 0, len(old), j, at, at + len(old), "part", 1.0, len(old)))
        elif j not in self._claimed and (at := old.find(new)) >= 0:
            end = at + len(new)
            if all(end <= one.old_start or one.old_end <= at for one in self._pieces.get(i, ())):
                self._claim(Piece(i, at, end, j, 0, len(new), "part", 1.0, len(new)))

    def pieces(self) -> list[Piece]:
        """Gives all pieces in order, with what is gone between them."""
        found: list[Piece] = []
        for i, text in enumerate(self._old):
            at = 0
            for piece in sorted(self._pieces.get(i, ())):
                if at < piece.old_start:
                    found.append(_gone(i, at, piece.old_start))
                found.append(piece)
                at = piece.old_end
            if at < len(text) or not self._pieces.get(i):
                found.append(_gone(i, at, len(text)))
        return found


def _in_order(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Gives old elements and new ones with the same text, both ascending."""
    chain: dict[int, int] = {}
    start, shorter = 1, min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        chain[start] = start
        start += 1
    n_last = 0
    while n_last < shorter - start and old[-1 - n_last] == new[-1 - n_last]:
        n_last += 1
    ends = len(old) - n_last, len(new) - n_last
    chain |= zip(range(ends[0], len(old)), range(ends[1], len(new)), strict=True)
    times = Counter(old[start : ends[0]]), Counter(new[start : ends[1]])
    places = {new[j]: j for j in range(start, ends[1]) if times[1][new[j]] == 1}
    both = [(i, places[old[i]]) for i in range(start, ends[0]) if times[0][old[i]] == 1 and old[i] in places]
    middle = dict(both[number] for number in longest_ascending([j for _, j in both]))
    for step, pairs in ((1, sorted(middle.items())), (-1, sorted(middle.items(), reverse=True))):
        taken = set(middle.values())
        for i, j in pairs:
            while (
                start <= i + step < ends[0]
                and start <= j + step < ends[1]
                and i + step not in middle
                and j + step not in taken
                and old[i + step] == new[j + step]
            ):
                i, j = i + step, j + step
                middle[i] = j
                taken.add(j)
    return dict(sorted((chain | middle).items()))


def longest_ascending(numbers: Sequence[int]) -> list[int]:
    """Gives the positions of a longest ascending run among distinct numbers, others left out.

    >>> longest_ascending([2, 9, 3, 1, 4])
    [0, 2, 4]
    """
    ends: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    for position, number in enumerate(numbers):
        length = bisect_left(tails, number)
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [position]
        tails[length : length + 1] = [number]
    found = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(at)
        at = before[at]
    return found[::-1]


def _gaps(chain: dict[int, int], olds: Iterable[int], news: Iterable[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Gives the old and the new elements that stand between the same two neighbours of a chain."""
    edges = list(chain), list(chain.values())
    gaps: defaultdict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, numbers in enumerate((olds, news)):
        for number in numbers:
            gaps[bisect_left(edges[side], number)][side].append(number)
    return (gap for _, gap in sorted(gaps.items()) if all(gap))


def _near(olds: Sequence[int], news: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Gives the pairs of elements of a gap that are compared."""
    for rank, i in enumerate(olds):
        expected = rank * len(news) // len(olds)
        yield from product((i,), news[max(0, expected - REACH) : expected + REACH])
