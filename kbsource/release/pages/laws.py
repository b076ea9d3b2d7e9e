"""The laws that every page of a release keeps, checked before it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kbsource.errors import RecordError
from kbsource.records import CellLink, Page

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f]")
"""What no XML holds, and so no page: where one is, a mark of the parser has leaked."""
MAX_INT = (1 << 31) - 1
"""Offsets, ordinals and spans are stored as 32-bit integers."""


def check_page(page: Page) -> None:
    """Raises where a page breaks a law.

    Element 0 alone is of kind ``title``; no element holds a newline; for every anchor
    ``elements[a.element].text[a.start:a.end] == a.text``; anchors are ordered by element and start; tables
    and infoboxes name an element; links in cells and infobox values lie within their text; categories that templates
    give are among the categories.

    Raises:
        RecordError: ``offset_law`` for a span that does not hold what it claims, ``page_law`` for every
            other law, ``bad_text`` for text that is not Unicode (a lone surrogate).
    """
    elements = page.elements
    if not elements or elements[0].kind != "title":
        raise RecordError("page_law", "element 0 is not the title")
    texts = [element.text for element in elements]
    joined = "\n".join(texts)
    if joined.count("\n") != len(texts) - 1:
        raise RecordError("page_law", "an element holds a newline")
    for text in (joined, "\n".join(_other_texts(page))):
        if (control := CONTROLS.search(text)) is not None:
            around = text[max(control.start() - 20, 0) : control.end() + 20]
            raise RecordError("page_law", f"a control character in {around!r}")
    if not joined.isascii():
        try:
            joined.encode()
        except UnicodeEncodeError as error:
            raise RecordError("bad_text", str(error)) from error
    for number, element in enumerate(elements):
        if number and element.kind == "title":
            raise RecordError("page_law", f"element {number} is a second title")
        if element.ordinal is not None and not 0 <= element.ordinal <= MAX_INT:
            raise RecordError("page_law", f"element {number} has ordinal {element.ordinal}")
    if not set(page.template_categories) <= set(page.categories):
        raise RecordError("page_law", "a category of a template is no category of the page")
    _check_anchors(page, texts)
    for table in page.tables:
        _check_place(table.element, "table", len(texts))
        for row in table.rows:
            for cell in row:
                if not (0 < cell.colspan <= MAX_INT and 0 < cell.rowspan <= MAX_INT):
                    raise RecordError("page_law", f"cell spans {cell.colspan} x {cell.rowspan}")
                if cell.links:
                    _check_links(cell.links, len(cell.text))
    for infobox in page.infoboxes:
        _check_place(infobox.element, "infobox", len(texts))
        for field in infobox.fields:
            if field.links:
                _check_links(field.links, len(field.text))


def _other_texts(page: Page) -> Iterator[str]:
    """Gives what is stored of a page beside its elements, but what repeats their text or is a title of the index."""
    yield from page.categories
    for use in page.templates:
        yield use.name
    for table in page.tables:
        yield table.caption or ""
        yield from table.header
        for row in table.rows:
            for cell in row:
                yield cell.text
    for infobox in page.infoboxes:
        yield infobox.name
        for field in infobox.fields:
            yield field.name
            yield field.text


def _check_anchors(page: Page, texts: list[str]) -> None:
    n_texts = len(texts)
    last = (0, 0)
    for anchor in page.anchors:
        number, start, end, text = anchor[:4]
        if not 0 <= number < n_texts:
            raise RecordError("offset_law", f"anchor {text!r} in element {number} of {n_texts}")
        # A slice forgives offsets out of range; the law does not.
        if texts[number][start:end] != text or not 0 <= start <= end <= len(texts[number]):
            raise RecordError("offset_law", f"anchor {text!r} at [{start}, {end}) of element {number}")
        if (number, start) < last:
            raise RecordError("page_law", f"anchor {text!r} at [{start}, {end}) of element {number} is out of order")
        last = (number, start)


def _check_place(element: int, what: str, n_elements: int) -> None:
    if not 0 <= element < n_elements:
        raise RecordError("page_law", f"{what} after element {element} of {n_elements}")


def _check_links(links: Sequence[CellLink], length: int) -> None:
    for link in links:
        if not 0 <= link.start <= link.end <= length:
            raise RecordError("offset_law", f"link to {link.target_title!r} at [{link.start}, {link.end}) of {length}")
