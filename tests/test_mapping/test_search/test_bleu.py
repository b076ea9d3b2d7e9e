"""The score against sacrebleu; the search against every span there is."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from kbsource.records import Element
from mapping.search.bleu import DECIMALS, TokenSpan, best_span, bleu
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import Tokeniser
from tests.support.examples import examples

WORDS = "abcdefgh"
words = st.lists(st.sampled_from(WORDS), max_size=12)
evidences = st.lists(st.sampled_from(WORDS + "z"), max_size=9)
elements = st.lists(st.tuples(st.sampled_from(["paragraph", "list_item", "heading"]), words), max_size=4)


@cache
def tokeniser() -> Tokeniser:
    return Tokeniser("xx")


def make_page(*texts: str | tuple[str, str]) -> TokenisedPage:
    """A page of (kind, text); a bare text is a paragraph."""
    pairs = [("paragraph", content) if isinstance(content, str) else content for content in texts]
    return TokenisedPage([Element(kind, 0, None, "", (), text) for kind, text in pairs], tokeniser())


def plain_bleu(evidence: Sequence[str], span: Sequence[str], *, order: int) -> float:
    """BLEU by its formula; spans of one length with the same n-grams have the very same score."""
    product = Fraction(1)
    for length in range(1, order + 1):
        grams = [
            Counter(tuple(tokens[start : start + length]) for start in range(len(tokens) - length + 1))
            for tokens in (evidence, span)
        ]
        product *= Fraction((grams[0] & grams[1]).total(), len(evidence) - length + 1)
    return float(math.exp(min(0.0, 1 - len(span) / len(evidence))) * product ** (1 / order))


def slow_best_span(page: TokenisedPage, evidence: Sequence[str], *, max_elements: int) -> TokenSpan | None:
    """Scores every span of the page."""
    form_of = {number: form for form, number in page.vocabulary.items()}
    tokens = [form_of[number] for number in page.ids]
    top = min(4, len(evidence))
    for order in range(top, 0, -1):
        ranked = []
        for first in range(len(tokens)):
            for end in range(first + 1, len(tokens) + 1):
                if may_cross(page, first, end, max_elements=max_elements):
                    score = plain_bleu(evidence, tokens[first:end], order=order)
                    if score > 0:
                        ranked.append((-score, end - first, first))
        if ranked:
            score, n_span, first = min(ranked)
            return TokenSpan(first, first + n_span, -score if order == top else 0.0, order)
    return None


def may_cross(page: TokenisedPage, first: int, end: int, *, max_elements: int) -> bool:
    numbers = [page.order[page.place_of(token)] for token in (first, end - 1)]
    if numbers[0] == numbers[1]:
        return True
    between = page.elements[numbers[0] : numbers[1] + 1]
    return 0 < len(between) <= max_elements and all(element.kind in ("paragraph", "list_item") for element in between)


def check_search(page: TokenisedPage, evidence: list[str], *, max_elements: int = 1) -> None:
    expected = slow_best_span(page, evidence, max_elements=max_elements)
    found = best_span(page, evidence, max_elements=max_elements)
    assert (found is None) == (expected is None)
    if found and expected:
        assert (found.first, found.end, found.order) == (expected.first, expected.end, expected.order)
        assert math.isclose(found.score, expected.score, abs_tol=1e-12)


@given(
    evidence=st.lists(st.sampled_from(WORDS[:4]), min_size=1, max_size=40),
    span=st.lists(st.sampled_from(WORDS[:4]), max_size=60),
)
def test_score_is_sacrebleus(evidence: list[str], span: list[str]) -> None:
    order = min(4, len(evidence))
    oracle = BLEU(tokenize="none", smooth_method="none", max_ngram_order=order, effective_order=False, force=True)
    expected = oracle.sentence_score(" ".join(evidence), [" ".join(span)]).score / 100 if span else 0.0
    assert bleu(evidence, span) == round(expected, DECIMALS)
    assert bleu(evidence, span) == pytest.approx(plain_bleu(evidence, span, order=order), abs=1e-12)


def test_sacrebleu_is_imported_by_the_first_score_only() -> None:
    code = "import sys; from mapping.search.bleu import bleu; print('sacrebleu' in sys.modules); bleu('a', 'a')"
    code += "; print('sacrebleu' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.slow  # a long property
@given(elements=elements, evidence=evidences, max_elements=st.integers(1, 3))
@example(elements=[("paragraph", list("abcdxabcdx"))], evidence=list("abcdx"), max_elements=1)
@settings(max_examples=examples(250))
def test_search_finds_the_best_of_all_spans(
    elements: list[tuple[str, list[str]]], evidence: list[str], max_elements: int
) -> None:
    page = make_page(("title", "a b"), *((kind, " ".join(text)) for kind, text in elements))
    check_search(page, evidence, max_elements=max_elements)


@pytest.mark.slow  # a long property
@given(
    data=st.data(), text=st.lists(st.sampled_from(WORDS[:5]), min_size=4, max_size=40), max_elements=st.integers(1, 3)
)
@settings(max_examples=examples(250))
def test_search_finds_changed_pieces_of_the_page(data: st.DataObject, text: list[str], max_elements: int) -> None:
    first = data.draw(st.integers(0, len(text) - 1))
    evidence = text[first : data.draw(st.integers(first + 1, len(text)))]
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(evidence)))
        evidence[place : place + data.draw(st.integers(0, 1))] = data.draw(st.lists(st.sampled_from("abz"), max_size=2))
    cut = data.draw(st.integers(0, len(text)))
    check_search(make_page(" ".join(text[:cut]), " ".join(text[cut:])), evidence, max_elements=max_elements)


@given(text=st.lists(st.sampled_from("ab"), max_size=30), evidence=st.lists(st.sampled_from("ab"), max_size=14))
@settings(max_examples=examples(150))
def test_search_counts_repeated_tokens_as_often_as_both_have_them(text: list[str], evidence: list[str]) -> None:
    check_search(make_page(" ".join(text)), evidence)


@pytest.mark.parametrize(
    ("evidence", "score", "order"),
    [("a b c d", 0.0, 3), ("a b c", 1.0, 3), ("a b", 1.0, 2), ("b a x", 0.0, 1), ("a b c z z z", 0.0, 3)],
)
def test_lower_orders_locate_and_score_nothing(evidence: str, score: float, order: int) -> None:
    found = best_span(make_page("a b c", "x"), evidence.split())
    assert found is not None
    assert (found.score, found.order) == (score, order)


def test_body_goes_before_headings_and_headings_before_the_title() -> None:
    kinds = ["title", "heading", "paragraph"]
    for n_kinds in (3, 2, 1):
        page = make_page(*((kind, "a b c d") for kind in kinds[:n_kinds]))
        found = best_span(page, list("abcd"))
        assert found is not None
        assert page.elements[page.order[page.place_of(found.first)]].kind == kinds[n_kinds - 1]


def test_spans_cross_elements_only_where_asked_and_never_a_heading() -> None:
    evidence = list("abcdefgh")
    page = make_page("a b c d", "e f g h")
    assert best_span(page, evidence) == TokenSpan(0, 4, pytest.approx(bleu(evidence, list("abcd"))), 4)
    assert best_span(page, evidence, max_elements=2) == TokenSpan(0, 8, 1.0, 4)
    parted = make_page("a b c d", ("heading", "x"), "e f g h")
    assert best_span(parted, evidence, max_elements=3) == best_span(page, evidence)
    three = make_page("a b c", "d e", "f g h")
    assert best_span(three, evidence, max_elements=3) == TokenSpan(0, 8, 1.0, 4)
    assert best_span(three, evidence, max_elements=2) == TokenSpan(
        0, 5, pytest.approx(bleu(evidence, list("abcde"))), 4
    )
