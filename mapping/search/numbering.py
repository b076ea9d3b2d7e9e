"""Converts spans of a release to paragraph and character numbers of a KILT file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kbsource.kilt import LEAD, kilt_texts, section_name
from kbsource.records import Page
from mapping.records import Place, Span

Numbering = Literal["kilt", "elements"]
"""Paragraphs and characters as in the ``kilt`` form of a release, or as in its ``elements``.

Items that begin with ``:`` and a few other elements have no paragraph in the ``kilt`` form.
"""


def numbered_elements(page: Page, numbering: Numbering) -> dict[int, tuple[int, int]]:
    """Returns the elements that have a paragraph in the numbering, each with its paragraph and the number of code
    points before the element's text in that paragraph.

    Spans in other elements cannot be written.
    """
    if numbering == "elements":
        return {index: (index, 0) for index in range(len(page.elements))}
    return kilt_texts(page)[1]


def place_of(span: Span, elements: Mapping[int, tuple[int, int]]) -> Place | None:
    """Converts a span to the numbering of the given elements; returns None if one of its ends has no paragraph."""
    if span.start_element not in elements or span.end_element not in elements:
        return None
    start, before_start = elements[span.start_element]
    end, before_end = elements[span.end_element]
    return Place(start, span.start_char + before_start, end, span.end_char + before_end)


def paragraphs_of(page: Page, numbering: Numbering) -> tuple[list[str], list[str]]:
    """Returns the texts and sections of a page's paragraphs, beginning with the title."""
    if numbering == "elements":
        return [element.text for element in page.elements], [section_name(element.section) for element in page.elements]
    texts, places = kilt_texts(page)
    sections = [LEAD] * len(texts)
    for element, (paragraph, _) in places.items():
        sections[paragraph] = section_name(page.elements[element].section)
    return texts, sections
