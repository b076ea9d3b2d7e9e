"""Pages in parts: nothing is left out, and none is too large."""

from __future__ import annotations

from dataclasses import replace

from kbsource.records import Element
from mapping.inspector.pages.page_parts import PART_CHARS, Part, page_parts, part_with
from tests.support.pages import synthetic_pages


def _parts(*sizes: int) -> list[Part]:
    page = next(synthetic_pages(1))
    elements = tuple(Element("paragraph", 0, None, "", (), "x" * size) for size in sizes)
    return page_parts(replace(page, elements=elements, anchors=(), tables=(), infoboxes=()))


def test_a_page_of_usual_size_is_one_part() -> None:
    (part,) = _parts(10, 0, 5_000)
    assert part == ((0, 0, 10), (1, 0, 0), (2, 0, 5_000))


def test_long_elements_are_cut_and_nothing_is_left_out() -> None:
    sizes = (7, 2 * PART_CHARS + 1, 0, 150_000, 150_000)
    parts = _parts(*sizes)
    pieces = [piece for part in parts for piece in part]
    for number, size in enumerate(sizes):
        own = [(start, end) for element, start, end in pieces if element == number]
        assert [start for start, _ in own] == [0, *(end for _, end in own[:-1])]
        assert own[-1][1] == size
    assert max(sum(end - start for _, start, end in part) for part in parts) <= 1.25 * PART_CHARS


def test_a_place_is_found_in_its_part() -> None:
    parts = _parts(7, 2 * PART_CHARS + 1, 9)
    for number, part in enumerate(parts):
        for element, start, end in part:
            assert part_with(parts, element, start) == number
            assert part_with(parts, element, max(end - 1, start)) == number
    assert part_with(parts, 99) == len(parts) - 1
