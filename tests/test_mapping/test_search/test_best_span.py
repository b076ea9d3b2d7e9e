"""Evidence -> span: the three passes, what each accepts, and that every span's text has the score that is stored."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace
from sacrebleu.metrics import BLEU

from kbsource.errors import RecordError
from kbsource.records import Element
from mapping.records import SCORED, Alignment, PageKey, Place, Span
from mapping.search import page_search as align
from mapping.search.bleu import TokenSpan
from mapping.search.page_search import PageSearch, SearchSettings, align_evidence, matched_text
from mapping.search.tokenised_page import TokenisedPage
from mapping.search.tokens import Tokeniser
from tests.support.examples import examples
from tests.support.pages import synthetic_pages

LINCOLN = [
    ("title", (), "Abraham Lincoln"),
    ("paragraph", (), "Abraham Lincoln (February 12, 1809 – April 15, 1865) was the 16th president of the U.S."),
    ("heading", ("Early life",), "Early life"),
    ("paragraph", ("Early life",), "He was born in a one-room log cabin near Hodgenville, Kentucky. He did well."),
    ("heading", ("Early life", "Why law?"), "Why law?"),
    ("list_item", ("Early life", "Why law?"), "“It’s a well-known party,” he said—once. Art is long."),
    ("paragraph", ("Early life", "Why law?"), "Er wohnte in der STRASSE; 林肯生于肯塔基州。 Cafe\u0301 ☕ 🚀 yes."),
]  # fmt: skip


@cache
def tokeniser() -> Tokeniser:
    return Tokeniser("en")


def make_page(rows: list[tuple[str, tuple[str, ...], str]]) -> TokenisedPage:
    elements = [Element(kind, 0, None, "", section, text) for kind, section, text in rows]
    return TokenisedPage(elements, tokeniser())


def cited_bleu(evidence: str, text: str) -> float:
    """Sacrebleu's own score of the two texts, tokenised beforehand."""
    hypothesis, reference = tokeniser().forms(evidence), tokeniser().forms(text)
    metric = BLEU(tokenize="none", smooth_method="none", max_ngram_order=min(4, len(hypothesis)))
    return round(metric.sentence_score(" ".join(hypothesis), [" ".join(reference)]).score / 100, 12)


def align_lincoln(evidence: str, *, max_elements: int = 1) -> tuple[str, str, int] | None:
    """(Match, matched text, element), after checking score and offsets."""
    page = make_page(LINCOLN)
    span = align_evidence(evidence, page, max_elements=max_elements)
    if span is None:
        return None
    text = matched_text(span, page.elements)
    assert span.score == cited_bleu(evidence, text)
    if span.start_element == span.end_element:
        assert text == page.elements[span.start_element].text[span.start_char : span.end_char]
    return span.match, text, span.start_element


EXACT = {
    "as it is": ("He was born", "He was born", 3),
    "white space around it does not count": ("  He was born\n", "He was born", 3),
    "punctuation at its ends stays": ("April 15, 1865)", "April 15, 1865)", 1),
    "body before title": ("Abraham Lincoln", "Abraham Lincoln", 1),
    "heading": ("Early life", "Early life", 2),
    "Chinese has no words to cut": ("肯塔基", "肯塔基", 6),
    "decomposed letters": ("Cafe\u0301 ☕", "Cafe\u0301 ☕", 6),
    "emoji": ("☕ 🚀", "☕ 🚀", 6),
    "first place that cuts no word": ("He", "He", 3),
}
NORMALISED = {
    "letter case": ("he WAS born", "He was born", 3),
    "no substring that cuts a word": ("art", "Art", 5),
    "a word's beginning is no exact match either": ("Hodgenville Kentucky", "Hodgenville, Kentucky", 3),
    "punctuation": ("February 12 1809 - April 15 1865", "February 12, 1809 – April 15, 1865", 1),
    "hyphens": ("a one room log cabin", "a one-room log cabin", 3),
    "full stop of an abbreviation is part of it": ("PRESIDENT of the US", "president of the U.S.", 1),
    "curly quotes and dashes": ("it's a well-known party, he said - once", "It’s a well-known party,” he said—once", 5),
    "composed letters": ("café", "Cafe\u0301", 6),
    "case folding": ("der Straße", "der STRASSE", 6),
    "double spaces": ("He  did   well", "He did well", 3),
    "headings after the body": ("EARLY LIFE", "Early life", 2),
}
NEAR = {
    "a word more": (
        "He was born in a tiny one-room log cabin near Hodgenville",
        "He was born in a one-room log cabin near Hodgenville",
        3,
    ),
    "a word less": (
        "born in a log cabin near Hodgenville, Kentucky",
        "a one-room log cabin near Hodgenville, Kentucky",
        3,
    ),
    "words in another order": ("president of the U.S. 16th", "16th president of the U.S.", 1),
    "no common 4-gram": ("Kentucky Hodgenville near", "near Hodgenville, Kentucky", 3),
}


@pytest.mark.parametrize(("evidence", "text", "element"), EXACT.values(), ids=EXACT.keys())
def test_exact_pass(evidence: str, text: str, element: int) -> None:
    assert align_lincoln(evidence) == ("exact", text, element)


@pytest.mark.parametrize(("evidence", "text", "element"), NORMALISED.values(), ids=NORMALISED.keys())
def test_normalised_pass(evidence: str, text: str, element: int) -> None:
    assert align_lincoln(evidence) == ("normalised", text, element)


@pytest.mark.parametrize(("evidence", "text", "element"), NEAR.values(), ids=NEAR.keys())
def test_bleu_pass(evidence: str, text: str, element: int) -> None:
    assert align_lincoln(evidence) == ("bleu", text, element)


@pytest.mark.parametrize("evidence", ["", " \n\t\u00a0", "...", "—", "-", "quetzalcoatl", "\u200b"])
def test_no_token_in_common_is_no_span(evidence: str) -> None:
    assert align_lincoln(evidence) is None


@pytest.mark.parametrize("rows", [[], [("title", (), "")], [("paragraph", (), "—")]])
def test_page_without_text_is_no_span(rows: list[tuple[str, tuple[str, ...], str]]) -> None:
    assert align_evidence("He was born", make_page(rows)) is None


def test_spans_cross_paragraphs_only_where_asked() -> None:
    evidence = "Art is long. Er wohnte in der"
    assert align_lincoln(evidence, max_elements=2) == ("normalised", "Art is long.\nEr wohnte in der", 5)
    match, text, element = align_lincoln(evidence) or ("", "", 0)
    assert (match, text, element) == ("bleu", "Er wohnte in der", 6)
    changed = "Art is so long. Er wohnte in der STRASSE, 林"
    assert align_lincoln(changed, max_elements=2) == ("bleu", "Art is long.\nEr wohnte in der STRASSE; 林", 5)


def test_released_matcher_puts_this_into_the_title_and_we_do_not() -> None:
    rows = [
        ("title", (), "Therefore sign"),
        ("paragraph", (), "In logical argument and mathematical proof, the therefore sign is a sign."),
    ]
    assert align_evidence("therefore sign", make_page(rows)) == Span(1, 48, 1, 62, 1.0, "exact")


@pytest.mark.parametrize(("text", "start"), [("part Art", 5), ("arty Art", 5), ("part_art Art", 9), ("part art", 5)])
def test_substrings_that_cut_a_word_at_either_end_are_passed_over(text: str, start: int) -> None:
    span = align_evidence("art", make_page([("paragraph", (), text)]))
    assert span is not None
    assert (span.start_char, span.end_char, span.score) == (start, start + 3, 1.0)


@pytest.mark.parametrize(
    ("evidence", "outcome", "section"),
    [
        ("16th president", "exact", "Section::::Abstract."),
        ("log cabin", "exact", "Section::::Early life."),
        ("WELL-known,", "exact", "Section::::Early life.:Why law?"),
        ("Why law?", "exact", "Section::::Early life.:Why law?"),
        ("log of a cabin", SCORED, "Section::::Early life."),
        ("zebra", SCORED, None),
        (" — ", "empty_evidence", None),
        (None, "page_only", None),
    ],
)
def test_an_evidence_comes_with_its_place_and_no_threshold(
    evidence: str | None, outcome: str, section: str | None
) -> None:
    page = replace(next(synthetic_pages(1)), elements=tuple(make_page(LINCOLN).elements), is_disambiguation=False)
    search = PageSearch(page, tokeniser(), SearchSettings(numbering="elements"))
    found = search.locate(Alignment(PageKey("title", "T"), evidence))
    assert (found.outcome, found.section) == (outcome, section)
    if found.span is None:
        assert (found.text, found.place) == (None, None)
    else:
        assert found.text == matched_text(found.span, page.elements)
        assert found.place == Place(*astuple(found.span)[:4])


def test_a_wrong_score_never_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "best_span", lambda *_, **__: TokenSpan(0, 3, 0.75, 4))
    with pytest.raises(RecordError) as caught:
        align_evidence("He was never born in a cabin", make_page(LINCOLN))
    assert caught.value.reason == "self_check"


PIECES = (
    "He was born U.S. a.m. don't well-known 北京 ไทย Cafe\u0301 🚀 1,000 — , ( 10km e.g. ﬁ ß İ \u200d ' ΟΔΟΣ -".split()
)
texts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["", " ", " ", "\u00a0"])), max_size=14).map(
    lambda pairs: "".join(piece + space for piece, space in pairs)
)


@given(body=st.lists(texts, max_size=3), evidence=texts, max_elements=st.integers(1, 3))
@settings(max_examples=examples(300))
def test_every_span_has_the_score_that_is_stored(body: list[str], evidence: str, max_elements: int) -> None:
    page = make_page([("title", (), "He was"), *(("paragraph", (), text) for text in body)])
    span = align_evidence(evidence, page, max_elements=max_elements)
    forms = tokeniser().forms(evidence)
    if span is None:
        assert not set(forms) & set(page.vocabulary)
        return
    text = matched_text(span, page.elements)
    assert span.score == cited_bleu(evidence, text)
    assert 0 <= span.end_element - span.start_element < max_elements
    if span.match == "exact":
        assert text == evidence.strip()
    elif span.match == "normalised":
        assert tokeniser().forms(text) == forms
    else:
        assert tokeniser().forms(text) != forms


@given(body=texts, data=st.data())
@settings(max_examples=examples(150))
def test_every_run_of_a_pages_tokens_is_found_with_score_one(body: str, data: st.DataObject) -> None:
    found = tokeniser().tokens(body)
    if not found:
        return
    first = data.draw(st.integers(0, len(found) - 1))
    last = data.draw(st.integers(first, len(found) - 1))
    evidence = body[found[first].start : found[last].end]
    span = align_evidence(evidence, make_page([("paragraph", (), body)]))
    assert span is not None
    assert (span.score, span.match in ("exact", "normalised")) == (1.0, True)
