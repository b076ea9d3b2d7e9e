"""What became of the sections of a page, by what became of the pieces of its elements."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kbsource.diff.elements import Piece, longest_ascending
from kbsource.diff.page_texts import PageText


class SectionChange(NamedTuple):
    """What became of a section, as ``schema.SECTION_CHANGES`` has it, without the pages."""

    old_number: int | None
    old_section: list[str] | None
    new_number: int | None
    new_section: list[str] | None
    outcome: str
    kept: float | None


class _Sections:
    """The sections of a page. A heading begins one; the title is in none.

    Attributes:
        of_element: number of the section of each element, -1 for the title and headings.
        paths: headings of each section.
        texts: of each section, but its heading.
        sizes: code points in these.
    """

    def __init__(self, page: PageText) -> None:
        self.of_element = [-1]
        self.paths: list[list[str]] = [[]]
        self.texts: list[list[str]] = [[]]
        for text, section, is_heading in list(zip(*page, strict=True))[1:]:
            if is_heading:
                self.paths.append(section)
                self.texts.append([])
            else:
                self.texts[-1].append(text)
            self.of_element.append(-1 if is_heading else len(self.paths) - 1)
        self.sizes = [sum(map(len, texts)) for texts in self.texts]


def match_sections(old_page: PageText, new_page: PageText, pieces: Sequence[Piece]) -> Iterator[SectionChange]:
    """Gives what became of every section, by number in the old page; then those that were added, by that in the new."""
    old, new = _Sections(old_page), _Sections(new_page)
    flows: Counter[tuple[int, int]] = Counter()
    for piece in pieces:
        if piece.new_element is not None:
            flows[old.of_element[piece.old_element], new.of_element[piece.new_element]] += piece.n_kept
    pairs = _by_path(old, new)
    in_order = {number for number, _ in _ascending(sorted(pairs.items()))}
    taken = set(pairs.values())
    for (i, j), n_kept in sorted(flows.items(), key=lambda one: (-one[1], one[0])):
        if min(i, j) >= 0 and i not in pairs and j not in taken and 0 < old.sizes[i] <= 2 * n_kept:
            pairs[i] = j
            taken.add(j)
    for i, path in enumerate(old.paths):
        if i not in pairs:
            yield SectionChange(i, path, None, None, "gone", 0.0)
            continue
        j = pairs[i]
        if path == new.paths[j]:
            is_same = old.texts[i] == new.texts[j]
            outcome = "moved" if i not in in_order else "same" if is_same else "changed"
        else:
            outcome = "moved" if path[-1:] == new.paths[j][-1:] else "renamed"
        kept = flows[i, j] / old.sizes[i] if old.sizes[i] else 1.0
        yield SectionChange(i, path, j, new.paths[j], outcome, kept)
    for j in range(len(new.paths)):
        if j not in taken:
            yield SectionChange(None, None, j, new.paths[j], "added", None)


def _by_path(old: _Sections, new: _Sections) -> dict[int, int]:
    """Gives the sections of the same headings; of several the first for the first."""
    waiting: defaultdict[tuple[str, ...], deque[int]] = defaultdict(deque)
    for j, path in enumerate(new.paths):
        waiting[tuple(path)].append(j)
    return {i: places.popleft() for i, path in enumerate(old.paths) if (places := waiting.get(tuple(path)))}


def _ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [pairs[number] for number in longest_ascending([j for _, j in pairs])]
