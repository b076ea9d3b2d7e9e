"""Where evidences stand in the numbering of the file that is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from kbsource.kilt import kilt_texts
from kbsource.kilt_names import LEAD, section_name
from kbsource.records import Page
from mapping.records import Alignment, EvidenceKey

Numbering = Literal["kilt", "elements"]
"""Paragraphs and characters as in the ``kilt`` form of a release, or as in its ``elements``.

Items that begin with ``:`` and a few more elements have no paragraph in the ``kilt`` form.
"""

_PLACED = ("exact", "near", "weak", "page_only")


class Place(NamedTuple):
    """A span in the numbering that is written; half-open, in code points of the paragraph."""

    start_paragraph: int
    start_char: int
    end_paragraph: int
    end_char: int


class Placed(NamedTuple):
    """All that a file says of one evidence, and that its fate depends on.

    Attributes:
        outcome: as in Alignment.
        page_id, title: the page; None where there is none.
        section: KILT's section, without newline; None without a span.
        place: where the text stands; None without a span, and where the numbering has no such paragraph.
        score: BLEU; None without a span.
        is_accepted: whether the rule of --accept takes the span; None where the threshold decides.
    """

    outcome: str
    page_id: int | None
    title: str | None
    section: str | None = None
    place: Place | None = None
    score: float | None = None
    is_accepted: bool | None = None

    @property
    def fault(self) -> str | None:
        """Why the evidence cannot be written, None where it can; a low score is no fault here."""
        if self.outcome not in _PLACED:
            return self.outcome
        if self.outcome == "page_only" or self.place is not None:
            return None
        return "no_match" if self.score is None else "no_kilt_paragraph"


def numbered_elements(page: Page, numbering: Numbering) -> frozenset[int]:
    """Gives the elements that the numbering has paragraphs for; spans elsewhere cannot be written."""
    if numbering == "elements":
        return frozenset(range(len(page.elements)))
    return frozenset(kilt_texts(page)[1])


def paragraphs_of(page: Page, numbering: Numbering) -> tuple[list[str], list[str]]:
    """Gives texts and sections of a page's paragraphs, the title in front."""
    if numbering == "elements":
        return [one.text for one in page.elements], [section_name(one.section) for one in page.elements]
    texts, places = kilt_texts(page)
    sections = [LEAD] * len(texts)
    for element, (paragraph, _) in places.items():
        sections[paragraph] = section_name(page.elements[element].section)
    return texts, sections


def place_alignments(
    alignments: Mapping[EvidenceKey, Alignment], page: Page | None, numbering: Numbering
) -> dict[EvidenceKey, Placed]:
    """Gives the places of evidences that were all looked for in one page (None for no page)."""
    places: dict[int, tuple[int, int]] = {}
    if page is not None and any(aligned.span for aligned in alignments.values()):
        if numbering == "kilt":
            places = kilt_texts(page)[1]
        else:
            places = {index: (index, 0) for index in range(len(page.elements))}
    return {key: _placed(alignment, places) for key, alignment in alignments.items()}


def _placed(alignment: Alignment, places: Mapping[int, tuple[int, int]]) -> Placed:
    span = alignment.span
    if span is None:
        return Placed(alignment.outcome, alignment.page_id, alignment.title)
    place = None
    if span.start_element in places and span.end_element in places:
        start, before_start = places[span.start_element]
        end, before_end = places[span.end_element]
        place = Place(start, span.start_char + before_start, end, span.end_char + before_end)
    return Placed(alignment.outcome, alignment.page_id, alignment.title, alignment.section, place, score=span.score)
