"""Finds the span of a page with the highest BLEU against a piece of evidence. The search is exact.

The evidence is the hypothesis and the span the reference. With Q tokens of evidence and L tokens of span,

    score = exp(min(0, 1 - L / Q)) * (product over n = 1..N of m_n / (Q - n + 1)) ** (1 / N),    N = min(4, Q)

where m_n is the number of n-grams they share, each counted as often as it occurs in both. There is no smoothing. A
larger span never shares fewer n-grams, and only spans longer than the evidence are penalised. The best of all spans of
up to Q tokens is therefore one of the windows of exactly Q tokens, and one pass over the few elements of a page that
share an N-gram with the evidence finds it.

Source: Petroni et al., KILT (2021), section 4, as its released matcher computes it; Papineni et al., BLEU (2002).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mapping.search.tokenised_page import TokenisedPage
from mapping.search.windows import MARGIN, Best, Grams, Hits, WindowUnit, offer_long, offer_short

MAX_ORDER = 4
DECIMALS = 12
"""Decimals of a score. The last bits of logarithms are noise: without rounding, a full match scores 1.0000000000000004,
and a half slightly less than 0.5."""


class TokenSpan(NamedTuple):
    """The best span: half-open token indices of the page, its BLEU score, and the order of the n-grams that were
    counted.

    ``order`` is min(4, Q) if a span shares an n-gram of this order with the evidence. Otherwise ``score`` is 0.0,
    ``order`` is the longest order of which an n-gram is shared, and the span is the best under BLEU of this order.
    """

    first: int
    end: int
    score: float
    order: int


def bleu(evidence: Sequence[str], span: Sequence[str]) -> float:
    """Returns the BLEU of a piece of evidence against a span, as sacrebleu computes it, from 0.0 to 1.0; 0.0 if either
    is empty.

    N-grams of up to min(4, tokens of the evidence) are counted.

    Args:
        evidence: normal forms of the evidence's tokens (the hypothesis).
        span: normal forms of the span's tokens (the reference).

    >>> bleu("a b c d".split(), "a b c d e".split())
    0.778800783071
    >>> bleu("a b c d".split(), "a b c".split())
    0.0
    """
    from sacrebleu import BLEU  # the import takes a fifth of a second; processes that score nothing avoid it

    n_evidence, n_span = len(evidence), len(span)
    if not n_evidence or not n_span:
        return 0.0
    orders = range(1, min(MAX_ORDER, n_evidence) + 1)
    shared = [(_ngrams(evidence, order) & _ngrams(span, order)).total() for order in orders]
    possible = [n_evidence - order + 1 for order in orders]
    found = BLEU.compute_bleu(shared, possible, n_evidence, n_span, max_ngram_order=len(orders))
    return round(found.score / 100, DECIMALS)


def _ngrams(tokens: Sequence[str], length: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(length)), strict=False))


def best_span(page: TokenisedPage, evidence: Sequence[str], *, max_elements: int = 1) -> TokenSpan | None:
    """Returns the span of the page with the highest BLEU; None if page and evidence share no token.

    Of spans with the same score, the one with the fewest tokens is returned; of these, the first in the search order
    (body, headings, title). If every score is zero, the result is the best span for the longest order of n-grams that
    page and evidence share.

    Args:
        page: the page.
        evidence: normal forms of the evidence's tokens.
        max_elements: maximum number of consecutive elements of the body that a span may extend over; the border between
            elements is not a token.
    """
    ids = page.ids_of(evidence)
    top = min(MAX_ORDER, len(ids))
    for order in range(top, 0, -1):
        units = _units(page, ids, order=order, max_elements=max_elements)
        if units:
            best = _search(page, ids, units, order)
            return TokenSpan(best.first, best.end, best.score if order == top else 0.0, order)
    return None


def _units(page: TokenisedPage, ids: list[int], *, order: int, max_elements: int) -> list[tuple[int, WindowUnit]]:
    """Returns the places whose spans share an n-gram of that order with the evidence, each with its number of shared
    n-grams, in descending order."""
    n_shared: Counter[int] = Counter()
    reach = page.reach(max_elements)
    distinct = {tuple(ids[start : start + order]) for start in range(len(ids) - order + 1)}
    for gram in distinct:
        for position in page.occurrences(gram):
            place, end = page.place_of(position), position + order
            while place >= 0 and reach[place] >= end:
                n_shared[place] += 1
                place -= 1
    bounds = page.bounds
    return [
        (count, WindowUnit(bounds[place], bounds[place + 1], reach[place]))
        for place, count in sorted(n_shared.items(), key=lambda item: (-item[1], item[0]))
    ]


def _search(page: TokenisedPage, ids: list[int], units: list[tuple[int, WindowUnit]], order: int) -> Best:
    grams = Grams(ids, order=order, n_page_ids=len(page.vocabulary))
    best = Best(grams)
    n_lower = math.prod(grams.possible[:-1])
    visited: list[Hits] = []
    for n_shared, unit in units:
        # Upper bound of a score: all n-grams of lower orders are shared, and all of this order that occur in the unit.
        bound = n_lower * min(n_shared, grams.possible[-1])
        if grams.score(bound, 1) < best.score * (1 - MARGIN):
            break
        hits = Hits(page.ids, unit, grams)
        offer_short(hits, grams, best)
        visited.append(hits)
    for hits in visited:
        offer_long(hits, grams, best)
    best.break_ties()
    return best
