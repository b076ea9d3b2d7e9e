"""Finds published proofs in the pages of a release, either verbatim or where a page has a similar sentence."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kbsource.records import Page
from kbsource.sentences import sentence_spans
from mapping.contexts.gold import ProofSpot
from mapping.decide import THRESHOLD, with_outcome
from mapping.passages.cut import TITLE_KINDS, count_words
from mapping.records import Alignment, PageKey
from mapping.search.page_search import Locator, PageSearch
from mapping.search.text import find_whole, fold_case

_WIKI = "/wiki/"
_MOST = 0.8
"""Minimum share of a near match that must lie in one sentence for the match to become that sentence."""
_FEWEST_WORDS = 4
"""Minimum number of words of a sentence that is searched without its preceding sentences. Shorter sentences occur
anywhere."""


class ReleaseProofs(Locator):
    """Finds proofs in the pages of a release.

    A proof is a sentence, preceded by the sentences before it. It is searched in three steps. First, the whole proof is
    searched in paragraphs and list items, ignoring case, because published proofs are in lower case. Then only its last
    sentence is searched. Then a near match of the last sentence is searched (BLEU of at least 0.5), as for evidence of
    other datasets. Only the last sentence is matched approximately, because a page may have kept the preceding
    sentences but dropped the fact.
    """

    def facts(self) -> dict[str, Any]:
        """Returns the facts that identify the release in manifests."""
        return self.source.manifest.facts()

    def find(self, url: str, text: str) -> ProofSpot | str:
        """Returns the location of a proof, or the reason why it was not found: ``no_page``, ``no_text`` or
        ``no_running_text``."""
        # Published URLs are not percent-encoded: "?" and "#" may be parts of titles.
        title = PageKey("title", url.partition(_WIKI)[2].replace("_", " "))
        found = self.resolver.resolve(title, fallback=PageKey("url", url))
        if found.page_id is None:
            return "no_page"
        searched = self.page(found.page_id)
        # Published proofs are in lower case; the lower case of "İ" has two code points.
        text = " ".join(text.split()).replace("i\u0307", "i")
        spans = sentence_spans(text)
        if not spans:
            return "no_text"
        if (spot := _word_for_word(text, searched)) is not None:
            return spot
        sentence = text[slice(*spans[-1])]
        if count_words(sentence) < _FEWEST_WORDS:
            return "no_text"
        return _word_for_word(sentence, searched) or _near(sentence, searched)


@lru_cache(maxsize=1)
def _folded(searched: PageSearch) -> dict[int, str]:
    """Returns the case-folded running text of a page, by element."""
    elements = enumerate(searched.page.elements)
    return {number: fold_case(element.text) for number, element in elements if element.kind not in TITLE_KINDS}


def _word_for_word(wanted: str, searched: PageSearch) -> ProofSpot | None:
    """Returns the last sentence of the first occurrence of a text, ignoring case."""
    folded = fold_case(wanted)
    for number, text in _folded(searched).items():
        whole = searched.page.elements[number].text
        for at in find_whole(folded, whole, text):
            end = at + len(wanted)
            last = max(start for start, _ in sentence_spans(whole) if start < end)
            return _spot(searched.page, number, max(at, last), end)
    return None


def _near(wanted: str, searched: PageSearch) -> ProofSpot | str:
    sought = Alignment(PageKey("title", searched.page.title), wanted)
    found = with_outcome(searched.locate(sought), THRESHOLD)
    span = found.span
    if span is None or found.outcome not in ("exact", "near"):
        return "no_text"
    if searched.page.elements[span.start_element].kind in TITLE_KINDS:
        return "no_running_text"
    text = searched.page.elements[span.start_element].text
    parts = [(max(a, span.start_char), min(b, span.end_char)) for a, b in sentence_spans(text)]
    # A near match often includes some words of the neighbouring sentence.
    start, end = max(parts, key=lambda part: part[1] - part[0])
    if end - start < _MOST * (span.end_char - span.start_char):
        start, end = span.start_char, span.end_char
    return _spot(searched.page, span.start_element, start, end)


def _spot(page: Page, element: int, start: int, end: int) -> ProofSpot:
    return ProofSpot(page.page_id, page.title, element, start, end, page.elements[element].text[start:end])
