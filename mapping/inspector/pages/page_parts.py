"""Pages in parts that a browser shows at once, however long they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kbsource.records import Page

PART_CHARS = 200_000
"""Size of a part, a quarter more at most: the characters of its texts, tables and infoboxes, and something for each."""
TABLE_ROWS = 100
"""Rows of a table that stand in its page; the others have a view of their own."""
_ELEMENT_CHARS, _LINK_CHARS = 100, 100


class Piece(NamedTuple):
    """What a part has of an element: its characters from ``start`` up to ``end``; of most elements all."""

    element: int
    start: int
    end: int


Part = tuple[Piece, ...]


def page_parts(page: Page) -> list[Part]:
    """Gives the parts of a page, at least one, whose pieces are all of its elements in order."""
    weights = [_ELEMENT_CHARS] * len(page.elements)
    for anchor in page.anchors:
        weights[anchor.element] += _LINK_CHARS
    for table in page.tables:
        cells = (cell for row in table.rows[:TABLE_ROWS] for cell in row)
        weights[table.element] += sum(len(cell.text) + _LINK_CHARS * (1 + len(cell.links)) for cell in cells)
    for infobox in page.infoboxes:
        weights[infobox.element] += sum(len(field.text) + _LINK_CHARS for field in infobox.fields)
    parts: list[Part] = []
    pieces: list[Piece] = []
    size = 0
    for number, (element, weight) in enumerate(zip(page.elements, weights, strict=True)):
        n_chars = len(element.text)
        for start in range(0, max(n_chars, 1), PART_CHARS):
            end = min(start + PART_CHARS, n_chars)
            own = end - start + (weight if end == n_chars else 0)
            if size > PART_CHARS // 4 and size + own > PART_CHARS:
                parts.append(tuple(pieces))
                pieces, size = [], 0
            pieces.append(Piece(number, start, end))
            size += own
    return [*parts, tuple(pieces)]


def part_with(parts: Sequence[Part], element: int, start: int = 0) -> int:
    """Gives the number of the part, from 0, that has a character of an element; the last one where none has."""
    for number, part in enumerate(parts):
        last = part[-1]
        if (element, start) < (last.element, max(last.end, last.start + 1)):
            return number
    return len(parts) - 1
