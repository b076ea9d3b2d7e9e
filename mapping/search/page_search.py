"""Finds the text of a piece of evidence in a page: verbatim, else with the same words, else where BLEU is highest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

from msgspec.structs import astuple, replace

from kbsource.errors import RecordError
from kbsource.kilt import LEAD, section_name
from kbsource.lookup import KnowledgeSource
from kbsource.records import Element, Page
from mapping.records import SCORED, Alignment, PageKey, Span
from mapping.search.bleu import best_span, bleu
from mapping.search.numbering import Numbering, numbered_elements, place_of
from mapping.search.resolve import Resolver, suggest_titles
from mapping.search.sentences import named_sentence
from mapping.search.text import is_void
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import Tokeniser, is_word_boundary

_TOLERANCE = 1e-9
SENTENCE = "sentence"
"""Outcome of weak evidence whose names all occur in one sentence of the page."""


def align_evidence(evidence: str, page: TokenisedPage, *, max_elements: int = 1) -> Span | None:
    """Returns the span of the page that matches the evidence best; None if there is no candidate.

    The page is searched in three passes. Each pass reads the body, the headings and the title, in this order, and
    returns the first match.

    1. ``exact``: the evidence as a case-sensitive substring that starts and ends at word boundaries. Score 1.0.
    2. ``normalised``: the same normal forms of tokens in the same order. Score 1.0.
    3. ``bleu``: the span with the highest BLEU, see ``mapping.search.bleu.best_span``. The score is sacrebleu's for the
       text of the span. It is 0.0 if the page shares no n-gram of order min(4, number of tokens of the evidence) with
       the evidence; the span is then only the most likely location.

    White space around the evidence is ignored. Spans of passes 2 and 3 may cross up to ``max_elements`` consecutive
    elements of the body. The result is None if the evidence has no token (empty, white space, only punctuation) or
    shares no token with the page.

    Raises:
        RecordError: ``self_check``: the score of the slice of text differs from the score that the search found.
            Offsets are correct by construction, so this indicates a defect, not a bad record.

    Source: these rules replace the released matcher of KILT, whose substring tests cut words and shift offsets.
    """
    evidence = evidence.strip()
    forms = page.tokeniser.forms(evidence)
    if not forms:
        return None
    span = _exact(evidence, page) or _by_tokens(forms, page, max_elements)
    return None if span is None else _scored(span, forms, page)


def matched_text(span: Span, elements: Sequence[Element]) -> str:
    """Returns the text of a span of a page. Elements that it crosses are separated by a newline."""
    texts = [element.text for element in elements[span.start_element : span.end_element + 1]]
    texts[-1] = texts[-1][: span.end_char]
    texts[0] = texts[0][span.start_char :]
    return "\n".join(texts)


def _exact(evidence: str, page: TokenisedPage) -> Span | None:
    for number in page.order:
        text = page.elements[number].text
        start = text.find(evidence)
        while start >= 0:
            end = start + len(evidence)
            if is_word_boundary(text, start) and is_word_boundary(text, end):
                return Span(number, start, number, end, 1.0, "exact")
            start = text.find(evidence, start + 1)
    return None


def _by_tokens(forms: list[str], page: TokenisedPage, max_elements: int) -> Span | None:
    first = page.find(page.ids_of(forms), max_elements=max_elements)
    if first is not None:
        return Span(*page.locate(first, first + len(forms)), 1.0, "normalised")
    best = best_span(page, forms, max_elements=max_elements)
    if best is None:
        return None
    return Span(*page.locate(best.first, best.end), best.score, "bleu")


def _scored(span: Span, forms: list[str], page: TokenisedPage) -> Span:
    """Returns a span of the page with its text's own score. If this differs from the score of the search, the search is
    wrong.
    """
    text = matched_text(span, page.elements)
    found = page.tokeniser.forms(text)
    score = 1.0 if found == forms else bleu(forms, found)
    if abs(score - span.score) > _TOLERANCE:
        raise RecordError("self_check", f"found score {span.score!r}, the slice has {score!r}: {text[:200]!r}")
    return replace(span, score=score)


class SearchSettings(NamedTuple):
    """Settings of the search for a dataset's evidence."""

    max_elements: int = 1
    """Maximum number of body elements that a span may extend over."""
    numbering: Numbering = "kilt"
    """Numbering of the output. Only elements with a paragraph in this numbering are searched, because no other span can
    be written.
    """
    locates_empty: bool = False
    """If true, empty evidence is located before the page's first character and scores 1.0, as in the matcher of the
    authors' code. If false, it has no location."""
    accept_fuzzy: float | None = None
    """Minimum similarity, 0 to 100, of a title that replaces a missing title; None to replace no title."""
    candidate_sentences: int = 0
    """Maximum number of sentences of the page that a model judges if the words of a span differ from the evidence."""


def is_blank(text: str) -> bool:
    """Returns whether a text has nothing to search for: only white space and punctuation."""
    return all(char.isspace() or is_void(char) for char in text)


class PageSearch:
    """Searches a page for any number of pieces of evidence. The page is tokenised once, when a search first needs its
    tokens.
    """

    def __init__(self, page: Page, tokeniser: Tokeniser, settings: SearchSettings) -> None:
        self.page = page
        self._tokeniser = tokeniser
        self._settings = settings

    @cached_property
    def elements(self) -> dict[int, tuple[int, int]]:
        """The elements of the page that are searched, see ``numbered_elements``."""
        return numbered_elements(self.page, self._settings.numbering)

    @cached_property
    def _searched(self) -> list[Element]:
        return [
            element if number in self.elements else replace(element, text="")
            for number, element in enumerate(self.page.elements)
        ]

    @cached_property
    def _tokenised(self) -> TokenisedPage:
        return TokenisedPage(self._searched, self._tokeniser)

    def locate(self, wanted: Alignment) -> Alignment:
        """Returns the outcome of a piece of evidence of the page: ``exact``, ``scored`` with the best span, or why it
        was not searched for.

        Raises:
            RecordError: ``self_check``, see ``align_evidence``.
        """
        text = wanted.evidence_text
        if self.page.is_disambiguation:
            return replace(wanted, outcome="page_ambiguous")
        if text is None:
            return replace(wanted, outcome="page_only")
        if not text and self._settings.locates_empty:
            span = Span(0, 0, 0, 0, 1.0, "exact")
            return replace(
                wanted, outcome="exact", section=LEAD, span=span, text="", place=place_of(span, self.elements)
            )
        if is_blank(text):
            return replace(wanted, outcome="empty_evidence")
        found = align_evidence(text, self._tokenised, max_elements=self._settings.max_elements)
        if found is None:
            return replace(wanted, outcome=SCORED)
        return replace(wanted, outcome=SCORED if found.match == "bleu" else "exact", **self.location_columns(found))

    def location_columns(self, span: Span) -> dict[str, Any]:
        """Returns the columns of ``Alignment`` that locate a span."""
        return {
            "section": section_name(self.page.elements[span.start_element].section),
            "span": span,
            "text": matched_text(span, self._searched),
            "place": place_of(span, self.elements),
        }

    def with_sentence(self, weak: Alignment) -> Alignment:
        """Returns weak evidence with the outcome ``sentence`` and the span of the sentence that contains all its names;
        unchanged if there is no such sentence.
        """
        found = named_sentence(weak.evidence_text or "", self._tokenised, self.page.title)
        return weak if found is None else replace(weak, outcome=SENTENCE, **self.location_columns(found))

    def score(self, evidence: str, text: str) -> float:
        """Returns the BLEU of a piece of evidence against a text of the page."""
        return bleu(self._tokeniser.forms(evidence), self._tokeniser.forms(text))


def locate_nowhere(wanted: Alignment) -> Alignment:
    """Returns the outcome of evidence whose page was not found."""
    text = wanted.evidence_text
    names_nothing = wanted.requested == "" and text is not None and is_blank(text)
    return replace(wanted, outcome="empty_evidence" if names_nothing else "page_missing")


class Locator:
    """Finds pages and spans in a release. Create it with ``open``; as a context manager it closes the files at the end.

    The last page is cached, so request all evidence of the same page in sequence.
    """

    def __init__(self, source: KnowledgeSource, resolver: Resolver, settings: SearchSettings) -> None:
        self.source = source
        self.resolver = resolver
        self._settings = settings
        self._tokeniser = Tokeniser(source.site.lang)
        self._last: PageSearch | None = None

    @classmethod
    def open(
        cls,
        release: str,
        *,
        max_elements: int = 1,
        numbering: Numbering = "elements",
        moves: Mapping[str, str] | None = None,
    ) -> Self:
        """Opens a release; raises SetupError if the folder contains no finished release."""
        resolver = Resolver.open(release, moves=moves)
        return cls(KnowledgeSource.open(release), resolver, SearchSettings(max_elements, numbering))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def locate(self, key: PageKey, evidence: str | None) -> Alignment:
        """Returns the best location of a piece of evidence, in the numbering of the output, whatever its score. Without
        ``evidence``, only the page is resolved. If the page is missing, the result contains similar titles.
        """
        found = self.resolver.resolve(key)
        wanted = Alignment(key, evidence, **found._asdict())
        if found.page_id is None:
            similar = suggest_titles([found.requested], self.resolver.index) if found.requested else {}
            return replace(locate_nowhere(wanted), suggestions=similar.get(found.requested or "", ()))
        return _in_numbering(self.page(found.page_id).locate(wanted))

    def page(self, page_id: int) -> PageSearch:
        """Returns a page of the release, ready to be searched."""
        if self._last is None or self._last.page.page_id != page_id:
            page = self.source.by_id(page_id)
            assert page is not None  # the resolver returns only pages of the release
            self._last = PageSearch(page, self._tokeniser, self._settings)
        return self._last

    def with_sentence(self, weak: Alignment) -> Alignment:
        """Applies ``PageSearch.with_sentence`` to weak evidence of the page requested last. Returns it in the numbering
        of the output.
        """
        assert self._last is not None
        assert self._last.page.page_id == weak.page_id
        found = self._last.with_sentence(weak)
        return found if found is weak else _in_numbering(found)


def _in_numbering(located: Alignment) -> Alignment:
    if located.span is None or located.place is None:
        return located
    start, start_char, end, end_char = astuple(located.place)
    return replace(located, span=Span(start, start_char, end, end_char, located.span.score, located.span.match))
