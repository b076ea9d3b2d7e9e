"""A page searched for evidence: what became of each."""

from __future__ import annotations

from typing import NamedTuple

from kbsource.kilt_names import LEAD
from kbsource.records import Page
from mapping.records import Alignment, Span
from mapping.search.best_span import align_evidence, matched_text, outcome, section_of
from mapping.search.normalise import is_void
from mapping.search.numbering import Numbering, numbered_elements
from mapping.search.resolve import Resolved
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import Tokeniser


class SearchOptions(NamedTuple):
    """How a page is searched.

    Attributes:
        threshold: lowest score of a near match.
        max_elements: elements of the body that a span may cross.
        numbering: only elements that have a paragraph in it are searched, for no other span can be written.
        places_nothing: an evidence of no text at all stands before the page's first character and scores 1.0, as the
            matcher of the authors' code has it; else it stands nowhere.
    """

    threshold: float
    max_elements: int = 1
    numbering: Numbering = "elements"
    places_nothing: bool = False


def is_blank(text: str) -> bool:
    """Says whether a text has nothing that could be looked for: white space and punctuation alone."""
    return all(char.isspace() or is_void(char) for char in text)


class PageSearch:
    """One page, searched for any number of evidences; it is tokenised for the first that needs it."""

    def __init__(self, page: Page, tokeniser: Tokeniser, options: SearchOptions) -> None:
        self._page = page
        self._tokeniser = tokeniser
        self._options = options
        self._tokenised: TokenisedPage | None = None

    def locate(self, found: Resolved, text: str | None) -> Alignment:
        """Gives what became of an evidence.

        Args:
            found: how the page was found.
            text: of the evidence; None where only the page is wanted.

        Raises:
            RecordError: ``self_check``, see ``align_evidence``.
        """
        if self._page.is_disambiguation:
            return without_span("page_ambiguous", found)
        if text is None:
            return without_span("page_only", found)
        if not text and self._options.places_nothing:
            return _before_the_title(found)
        if is_blank(text):
            return without_span("empty_evidence", found)
        if self._tokenised is None:
            self._tokenised = _tokenised(self._page, self._tokeniser, self._options.numbering)
        return _located(text, found, self._tokenised, self._options)


def locate_nowhere(found: Resolved, text: str | None) -> Alignment:
    """Gives what became of an evidence whose page was not found."""
    names_nothing = found.asked == "" and text is not None and is_blank(text)
    return without_span("empty_evidence" if names_nothing else "page_missing", found)


def without_span(kind: str, found: Resolved) -> Alignment:
    """Gives an outcome that names no place."""
    return Alignment(kind, found.page_id, found.title, found.found_by, found.hops, None, None, None)


def _before_the_title(found: Resolved) -> Alignment:
    span = Span(0, 0, 0, 0, 1.0, "exact")
    return Alignment("exact", found.page_id, found.title, found.found_by, found.hops, LEAD, span, "")


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
