"""Finds the sentence of a page that paraphrases the evidence: it must have all names of the evidence."""

from __future__ import annotations

from collections import Counter
from math import log
from typing import NamedTuple

from kbsource.sentences import sentence_spans
from mapping.records import Span
from mapping.search.bleu import bleu
from mapping.search.details import has_capital
from mapping.search.tokenised_page import TokenisedPage

LEAST_SHARE = 0.5
"""Minimum share of the evidence's words, other than names, that the sentence must contain."""
MATCH = "names"


class _Sentence(NamedTuple):
    element: int
    start: int
    end: int
    forms: list[str]


def named_sentence(evidence: str, page: TokenisedPage, title: str) -> Span | None:
    """Returns the sentence of the body that has all names of a piece of evidence and most of its other words, or None.

    A name is a word that has a digit, or a capital where the page never writes the word without one. The first word of
    the evidence is a name only if the page capitalises it inside a sentence. Words of the page's title count as
    present. Of the other words, at least ``LEAST_SHARE`` must occur in the sentence; words that occur in few sentences
    weigh more. Ties go to the shortest sentence, then to the first. Evidence without names, or with names only from the
    title, has no sentence.
    """
    sentences: list[_Sentence] = []
    plain: set[str] = set()
    inner: set[str] = set()
    for number in page.order[: page.n_body]:
        text = page.elements[number].text
        for start, end in sentence_spans(text):
            tokens = page.tokeniser.tokens(text[start:end])
            capital = [has_capital(text[start:end], token) for token in tokens]
            plain.update(token.form for token, is_capital in zip(tokens, capital, strict=True) if not is_capital)
            inner.update(token.form for token, is_capital in list(zip(tokens, capital, strict=True))[1:] if is_capital)
            sentences.append(_Sentence(number, start, end, [token.form for token in tokens]))
    asked = page.tokeniser.tokens(evidence)
    said = set(page.tokeniser.forms(title))
    names = {
        token.form
        for number, token in enumerate(asked)
        if any(char.isdigit() for char in token.form)
        or (has_capital(evidence, token) and token.form not in plain and (number or token.form in inner))
    } - said
    others = {token.form for token in asked} - names - said
    n_with = Counter(form for sentence in sentences for form in {*sentence.forms} & others)
    weights = {form: log(1 + len(sentences) / (1 + n_with[form])) for form in others}
    best: tuple[float, int, int] | None = None
    for number, sentence in enumerate(sentences) if names else ():
        there = names.union(others).intersection(sentence.forms)
        share = sum(weights[form] for form in there - names) / sum(weights.values()) if others else 1.0
        if names <= there and share >= LEAST_SHARE:
            best = max(best or (0.0, 0, 0), (share, -len(sentence.forms), -number))
    if best is None:
        return None
    found = sentences[-best[2]]
    score = bleu([token.form for token in asked], found.forms)
    return Span(found.element, found.start, found.element, found.end, score, MATCH)
