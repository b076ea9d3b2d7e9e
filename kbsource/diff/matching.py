"""Matches two versions of a page: the new positions of the old page's elements, segments and sections."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, product
from operator import attrgetter
from typing import NamedTuple

from rapidfuzz.distance import Indel, Levenshtein

from kbsource.diff.page_texts import ComparedPage

LEAST_ALIKE = 0.5
"""Minimum share of words that two versions of an element must have in common. Unrelated elements have up to a third in
common.
"""
# Scripts without spaces between words: each letter counts as a word.
_WORD = re.compile(r"[^\W\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+|\S")


class EqualRun(NamedTuple):
    """Equal parts of two texts: ``old[old_start:old_start + size] == new[new_start:new_start + size]``."""

    old_start: int
    new_start: int
    size: int


class Words:
    """The words of texts as numbers, with equal numbers for equal words; symbols and punctuation count as words too."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)

    def of(self, text: str) -> list[int]:
        """Returns the words of a text in order."""
        return [self._numbers[word] for word in _WORD.findall(text)]


def likeness(old: Sequence[int], new: Sequence[int]) -> float:
    """Returns the share of words that both versions have in the same order; 0.0 if it is below ``LEAST_ALIKE``."""
    return float(Indel.normalized_similarity(old, new, score_cutoff=LEAST_ALIKE))


def equal_blocks(old: str, new: str) -> list[EqualRun]:
    """Returns the parts that two versions of a text have in common, in order: whole words, with the spaces between
    them.

    >>> [tuple(block) for block in equal_blocks("It opened in 1901.", "It was opened in 1902.")]
    [(0, 0, 2), (3, 7, 9), (17, 21, 1)]
    """
    if old == new:
        return [EqualRun(0, 0, len(old))]
    words = Words()
    spans = [[match.span() for match in _WORD.finditer(text)] for text in (old, new)]
    blocks: list[EqualRun] = []
    # Levenshtein, because Indel takes as many bits as there are pairs of words.
    for operation in Levenshtein.opcodes(words.of(old), words.of(new)):
        if operation.tag != "equal":
            continue
        old_words = spans[0][operation.src_start : operation.src_end]
        new_words = spans[1][operation.dest_start : operation.dest_end]
        is_first = True
        for (old_start, old_end), (new_start, _) in zip(old_words, new_words, strict=True):
            before = EqualRun(old_start, new_start, 0) if is_first else blocks[-1]
            # If the spaces before the word differ, the word begins a new block.
            gap = old[before.old_start + before.size : old_start], new[before.new_start + before.size : new_start]
            if is_first or gap[0] != gap[1]:
                blocks.append(EqualRun(old_start, new_start, old_end - old_start))
            else:
                blocks[-1] = before._replace(size=old_end - before.old_start)
            is_first = False
    return blocks


def move_segment(old: str, new: str, start: int, end: int) -> tuple[int, int]:
    """Returns the new position of a part of the old version, or the position of the text that replaced it.

    Spaces around it are excluded; if nothing replaced it, the result is empty.
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


PART_CHARS = 30
"""Minimum length, in code points, of a text that is searched for inside another."""
REACH = 40
"""Number of elements before and after its expected position that an unmatched element is compared with."""


class MovedSegment(NamedTuple):
    """A segment of an old element and its new position, with the columns of ``SpanChange``."""

    old_element: int
    old_start: int
    old_end: int
    new_element: int | None
    new_start: int | None
    new_end: int | None
    outcome: str
    score: float | None
    n_kept: int  #: number of its code points that are found there


class Matches(NamedTuple):
    """The outcomes of the elements of an old page, and the new elements that no outcome covers."""

    segments: list[MovedSegment]  #: in order; the segments of an element cover it
    unclaimed: list[int]  #: new elements that no segment points to


def match_elements(old: Sequence[str], new: Sequence[str]) -> Matches:
    """Returns the positions of the texts of a page in another page. The first text of each page is its title."""
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
    return Matches(matcher.segments(), matcher.unclaimed())


def gone_elements(texts: Sequence[str]) -> list[MovedSegment]:
    """Returns a segment with the outcome ``gone`` for each element of a page."""
    return [_gone_segment(number, 0, len(text)) for number, text in enumerate(texts)]


def _gone_segment(element: int, start: int, end: int) -> MovedSegment:
    return MovedSegment(element, start, end, None, None, None, "gone", None, 0)


class _Matcher:
    """Matches the elements of two versions of a page."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old, self._new = old, new
        self._segments: defaultdict[int, list[MovedSegment]] = defaultdict(list)
        self._claimed: set[int] = {0}
        self._words = Words()

    def unplaced(self) -> list[int]:
        return [i for i in range(1, len(self._old)) if i not in self._segments]

    def unclaimed(self) -> list[int]:
        return [j for j in range(1, len(self._new)) if j not in self._claimed]

    def title(self) -> None:
        if self._old[0] == self._new[0]:
            self.whole(0, 0, "same")
        else:
            self._edited(0, 0, likeness(*(self._words.of(texts[0]) for texts in (self._old, self._new))))

    def whole(self, i: int, j: int, outcome: str) -> None:
        size = len(self._old[i])
        self._claim(MovedSegment(i, 0, size, j, 0, size, outcome, 1.0, size))

    def _claim(self, segment: MovedSegment) -> None:
        assert segment.new_element is not None
        self._segments[segment.old_element].append(segment)
        self._claimed.add(segment.new_element)

    def _edited(self, i: int, j: int, score: float) -> None:
        n_kept = sum(block.size for block in equal_blocks(self._old[i], self._new[j]))
        self._claim(MovedSegment(i, 0, len(self._old[i]), j, 0, len(self._new[j]), "edited", score, n_kept))

    def match_gap(self, olds: Sequence[int], news: Sequence[int]) -> None:
        pairs: list[tuple[int, int]] = []  # pairs to compare
        for rank, i in enumerate(olds):
            expected = rank * len(news) // len(olds)
            pairs += product((i,), news[max(0, expected - REACH) : expected + REACH])
        for i, j in pairs:
            self._match_part(i, j)
        pairs = [(i, j) for i, j in pairs if i not in self._segments and j not in self._claimed]
        words = {
            side: {number: self._words.of(texts[number]) for number in {pair[side] for pair in pairs}}
            for side, texts in enumerate((self._old, self._new))
        }
        scored = ((likeness(words[0][i], words[1][j]), i, j) for i, j in pairs)
        for score, i, j in sorted(
            (scored_pair for scored_pair in scored if scored_pair[0]),
            key=lambda scored_pair: (-scored_pair[0], *scored_pair[1:]),
        ):
            if i not in self._segments and j not in self._claimed:
                self._edited(i, j, score)

    def _match_part(self, i: int, j: int) -> None:
        """Matches an old text that is part of a new one, or segments of an old text that are new texts."""
        old, new = self._old[i], self._new[j]
        if min(len(old), len(new)) < PART_CHARS:
            return
        if i not in self._segments and (at := new.find(old)) >= 0:
            self._claim(MovedSegment(i, 0, len(old), j, at, at + len(old), "part", 1.0, len(old)))
        elif j not in self._claimed and (at := old.find(new)) >= 0:
            end = at + len(new)
            if all(end <= segment.old_start or segment.old_end <= at for segment in self._segments.get(i, ())):
                self._claim(MovedSegment(i, at, end, j, 0, len(new), "part", 1.0, len(new)))

    def segments(self) -> list[MovedSegment]:
        """Returns all segments in order, including the gone ones between matches."""
        found: list[MovedSegment] = []
        for i, text in enumerate(self._old):
            at = 0
            for segment in sorted(self._segments.get(i, ())):
                if at < segment.old_start:
                    found.append(_gone_segment(i, at, segment.old_start))
                found.append(segment)
                at = segment.old_end
            if at < len(text) or not self._segments.get(i):
                found.append(_gone_segment(i, at, len(text)))
        return found


def _in_order(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Returns pairs of old and new elements with the same text, both ascending."""
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
    """Returns the positions of a longest ascending subsequence of the numbers.

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
    """Iterates over the old and the new elements that are between the same two neighbours of a chain."""
    edges = list(chain), list(chain.values())
    gaps: defaultdict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, numbers in enumerate((olds, news)):
        for number in numbers:
            gaps[bisect_left(edges[side], number)][side].append(number)
    return (gap for _, gap in sorted(gaps.items()) if all(gap))


class SectionOutcome(NamedTuple):
    """The outcome of a section, with the columns of the table ``section_changes`` except the pages."""

    old_number: int | None
    old_section: list[str] | None
    new_number: int | None
    new_section: list[str] | None
    outcome: str
    kept_share: float | None


class _Sections:
    """The sections of a page. A heading begins a section; the title belongs to none."""

    def __init__(self, page: ComparedPage) -> None:
        self.of_element = [-1]  #: number of each element's section; -1 for the title and headings
        self.paths: list[list[str]] = [[]]  #: headings of each section
        self.texts: list[list[str]] = [[]]  #: texts of each section, without its heading
        for text, section, is_heading in list(zip(*page, strict=True))[1:]:
            if is_heading:
                self.paths.append(section)
                self.texts.append([])
            else:
                self.texts[-1].append(text)
            self.of_element.append(-1 if is_heading else len(self.paths) - 1)
        self.sizes = [sum(map(len, texts)) for texts in self.texts]  #: number of code points in these texts


def match_sections(
    old_page: ComparedPage, new_page: ComparedPage, segments: Sequence[MovedSegment]
) -> Iterator[SectionOutcome]:
    """Iterates over the outcomes of all sections, by number in the old page; then the added sections, by number in the
    new page.
    """
    old, new = _Sections(old_page), _Sections(new_page)
    flows: Counter[tuple[int, int]] = Counter()
    for segment in segments:
        if segment.new_element is not None:
            flows[old.of_element[segment.old_element], new.of_element[segment.new_element]] += segment.n_kept
    waiting: defaultdict[tuple[str, ...], deque[int]] = defaultdict(deque)
    for j, path in enumerate(new.paths):
        waiting[tuple(path)].append(j)
    # Sections with the same headings; if there are several, they are paired in order.
    pairs = {i: places.popleft() for i, path in enumerate(old.paths) if (places := waiting.get(tuple(path)))}
    numbers = list(pairs)
    in_order = {numbers[at] for at in longest_ascending(list(pairs.values()))}
    taken = set(pairs.values())
    for (i, j), n_kept in sorted(flows.items(), key=lambda flow: (-flow[1], flow[0])):
        if min(i, j) >= 0 and i not in pairs and j not in taken and 0 < old.sizes[i] <= 2 * n_kept:
            pairs[i] = j
            taken.add(j)
    for i, path in enumerate(old.paths):
        if i not in pairs:
            yield SectionOutcome(i, path, None, None, "gone", 0.0)
            continue
        j = pairs[i]
        if path == new.paths[j]:
            is_same = old.texts[i] == new.texts[j]
            outcome = "moved" if i not in in_order else "same" if is_same else "changed"
        else:
            outcome = "moved" if path[-1:] == new.paths[j][-1:] else "renamed"
        kept = flows[i, j] / old.sizes[i] if old.sizes[i] else 1.0
        yield SectionOutcome(i, path, j, new.paths[j], outcome, kept)
    for j in range(len(new.paths)):
        if j not in taken:
            yield SectionOutcome(None, None, j, new.paths[j], "added", None)
