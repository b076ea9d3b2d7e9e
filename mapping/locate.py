"""All evidences of one page, searched together: what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kbsource.records import Page
from mapping.align import align_evidence, matched_text, outcome, section_of
from mapping.normalise import is_void
from mapping.places import Numbering, numbered_elements
from mapping.records import Alignment
from mapping.resolve import Resolved
from mapping.tokenised_page import TokenisedPage
from mapping.tokens import Tokeniser


class SearchOptions(NamedTuple):
    """How a page is searched.

    Attributes:
        threshold: lowest score of a near match.
        max_elements: elements of the body that a span may cross.
        numbering: only elements that have a paragraph in it are searched, for no other span can be written.
    """

    threshold: float
    max_elements: int = 1
    numbering: Numbering = "elements"


class Wanted(NamedTuple):
    """An evidence whose page was found; ``text`` None where only the page is wanted."""

    found: Resolved
    text: str | None


def is_blank(text: str) -> bool:
    """Says whether a text has nothing that could be looked for: white space and punctuation alone."""
    return all(char.isspace() or is_void(char) for char in text)


def locate_in_page(
    page: Page, wanted: Sequence[Wanted], *, tokeniser: Tokeniser, options: SearchOptions
) -> list[Alignment]:
    """Gives what became of each evidence of one page, in order; the page is tokenised once.

    Raises:
        RecordError: ``self_check``, see ``align_evidence``.
    """
    tokenised: TokenisedPage | None = None
    result = []
    for one in wanted:
        if page.is_disambiguation:
            result.append(without_span("page_ambiguous", one.found))
        elif one.text is not None and is_blank(one.text):
            result.append(without_span("empty_evidence", one.found))
        elif one.text is None:
            result.append(without_span("page_only", one.found))
        else:
            if tokenised is None:
                tokenised = _tokenised(page, tokeniser, options.numbering)
            result.append(_located(one.text, one.found, tokenised, options))
    return result


def locate_nowhere(found: Resolved, text: str | None) -> Alignment:
    """Gives what became of an evidence whose page was not found."""
    names_nothing = found.asked == "" and text is not None and is_blank(text)
    return without_span("empty_evidence" if names_nothing else "page_missing", found)


def without_span(kind: str, found: Resolved) -> Alignment:
    """Gives an outcome that names no place."""
    return Alignment(kind, found.page_id, found.title, found.found_by, found.hops, None, None, None)


def _tokenised(page: Page, tokeniser: Tokeniser, numbering: Numbering) -> TokenisedPage:
    numbered = numbered_elements(page, numbering)
    elements = [
        element if number in numbered else element._replace(text="") for number, element in enumerate(page.elements)
    ]
    return TokenisedPage(elements, tokeniser)


def _located(text: str, found: Resolved, page: TokenisedPage, options: SearchOptions) -> Alignment:
    span = align_evidence(text, page, max_elements=options.max_elements)
    kind = outcome(span, threshold=options.threshold)
    if span is None:
        return without_span(kind, found)
    return Alignment(
        kind,
        found.page_id,
        found.title,
        found.found_by,
        found.hops,
        section_of(span, page),
        span,
        matched_text(span, page),
    )
