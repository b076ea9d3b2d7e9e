"""Evidence text -> where it stands in a page: as it is, else as the same words, else where BLEU is highest."""

from __future__ import annotations

from dataclasses import replace

from kbsource.errors import RecordError
from kbsource.kilt_names import section_name
from mapping.records import Span
from mapping.search.bleu import best_span, bleu
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import is_word_boundary

THRESHOLD = 0.5
_TOLERANCE = 1e-9


def align_evidence(evidence: str, page: TokenisedPage, *, max_elements: int = 1) -> Span | None:
    """Gives the span of the page that matches the evidence best; None where there is no place to name.

    Three passes, each over body, headings and title in this order, the earliest place first:

    1. ``exact``: the evidence as a substring, letter case and all, that cuts no word. Score 1.0.
    2. ``normalised``: the same normal forms of tokens in the same order. Score 1.0.
    3. ``bleu``: the span with the highest BLEU, see ``mapping.search.bleu.best_span``. The score is sacrebleu's of the
       slice of text, and 0.0 where the page shares no n-gram of order min(4, tokens) with the evidence; the span then
       is the likeliest place.

    None stands for an evidence without a token (empty, blank, punctuation alone) and for a page that shares no
    token with it.

    Args:
        evidence: text as the dataset has it; white space around it does not count.
        page: the page.
        max_elements: how many consecutive elements of the body a span of passes 2 and 3 may cross.

    Raises:
        RecordError: ``self_check``: the score of the slice of text is not what the search found. The offsets are
            true by construction, so this means a defect, not a bad record.

    Source: the rules in place of the released matcher of KILT, whose substring tests cut words and shift offsets.
    """
    evidence = evidence.strip()
    forms = page.tokeniser.forms(evidence)
    if not forms:
        return None
    span = _exact(evidence, page) or _by_tokens(forms, page, max_elements)
    return None if span is None else _scored(span, forms, page)


def outcome(span: Span | None, *, threshold: float = THRESHOLD) -> str:
    """Gives the outcome of an evidence that has tokens and whose page is there.

    ``exact`` for the first two passes, ``near`` from the threshold on, ``weak`` below it and without a span.
    """
    if span is None or (span.match == "bleu" and span.score < threshold):
        return "weak"
    return "near" if span.match == "bleu" else "exact"


def matched_text(span: Span, page: TokenisedPage) -> str:
    """Gives the text of a span; elements that it crosses are parted by a newline."""
    texts = [element.text for element in page.elements[span.start_element : span.end_element + 1]]
    texts[-1] = texts[-1][: span.end_char]
    texts[0] = texts[0][span.start_char :]
    return "\n".join(texts)


def section_of(span: Span, page: TokenisedPage) -> str:
    """Gives KILT's name of the section where a span begins, without the trailing newline."""
    return section_name(page.elements[span.start_element].section)


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
    """Gives the span with the score of its slice of text in place of the search's own."""
    text = matched_text(span, page)
    found = page.tokeniser.forms(text)
    score = 1.0 if found == forms else bleu(forms, found)
    if abs(score - span.score) > _TOLERANCE:
        raise RecordError("self_check", f"found score {span.score!r}, the slice has {score!r}: {text[:200]!r}")
    return replace(span, score=score)
