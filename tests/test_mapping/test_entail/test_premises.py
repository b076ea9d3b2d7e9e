"""Sentences of texts, and the pieces of pages that hypotheses are judged by."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.records import Element, Page
from mapping.entail.premises import likely_sentences, span_premise
from mapping.records import Span
from mapping.search.sentences import sentence_spans


def page(title: str, *paragraphs: str) -> Page:
    """Gives a page of paragraphs."""
    elements = [
        Element("title", 1, None, "", (), title),
        *(Element("paragraph", 0, None, "", (), one) for one in paragraphs),
    ]
    empty: tuple[()] = ()
    return Page(1, title, None, False, 1, None, "", "", tuple(elements), *(empty,) * 8, "ok")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("He said “No.” Then he left.", ["He said “No.”", "Then he left."]),
        ("Dr. A. B. Smith of the U.S. Navy came at 5 p.m. on Mon. with 3.5 kg.", None),
        ("It ended in 1945. 1946 was calm.", ["It ended in 1945.", "1946 was calm."]),
        ("What is 3.14? It is pi… It is.", ["What is 3.14?", "It is pi…", "It is."]),
        ("yes. but no", None),
        ("first line\nsecond line", ["first line", "second line"]),
        ("これは文です。次の文です。", ["これは文です。", "次の文です。"]),
        ("هل أنت بخير؟ نعم. انتهى", ["هل أنت بخير؟", "نعم.", "انتهى"]),
        ("यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("នេះជាប្រយោគ។នេះទៀត៕", ["នេះជាប្រយោគ។", "នេះទៀត៕"]),
        ("  spaced .  Out  ", ["spaced .", "Out"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_they_end(text: str, sentences: list[str] | None) -> None:
    assert [text[start:end] for start, end in sentence_spans(text)] == ([text] if sentences is None else sentences)


@given(st.text(alphabet="aB.!? \n\"'”)。Dr1", max_size=60))
def test_sentences_hold_all_that_is_no_white_space_once_and_in_order(text: str) -> None:
    spans = sentence_spans(text)

    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)


@pytest.mark.parametrize("piece", [".", ". ", "A. ", "... ", '."'])
def test_long_rows_of_stops_take_time_as_they_are_long(piece: str) -> None:
    """A row that is looked at anew from each of its places, or copied at each, would take minutes."""
    text = piece * 100_000
    started = time.process_time()

    sentence_spans(text)

    assert time.process_time() - started < 10


ELEMENTS = ["T", "One aa. Two bb. Three cc. Four dd. Five ee. Six ff.", "Seven gg. Eight hh."]


@pytest.mark.parametrize(
    ("words", "premise"),
    [
        ("Three cc", "One aa. Two bb. Three cc. Four dd. Five ee."),
        ("One", "One aa. Two bb. Three cc."),
        ("ff.", "Four dd. Five ee. Six ff."),
        ("cc. Four", "One aa. Two bb. Three cc. Four dd. Five ee. Six ff."),
        ("One aa. Two bb. Three cc. Four dd. Five ee. Six ff.", "One aa. Two bb. Three cc. Four dd. Five ee. Six ff."),
    ],
)
def test_a_span_comes_with_two_sentences_on_either_side(words: str, premise: str) -> None:
    start = ELEMENTS[1].index(words)

    found = span_premise(page(*ELEMENTS), Span(1, start, 1, start + len(words), 1.0, "exact"))

    assert found.text == premise
    assert found.text[slice(*found.core)] == words


def test_a_span_may_cross_elements() -> None:
    start = ELEMENTS[1].index("ff.")

    found = span_premise(page(*ELEMENTS), Span(1, start, 2, 5, 1.0, "exact"))

    assert found.text == "Four dd. Five ee. Six ff.\nSeven gg. Eight hh."
    assert found.text[slice(*found.core)] == "ff.\nSeven"


def test_context_is_of_the_elements_of_the_span_alone() -> None:
    one = page("T", "One aa.", "", "Two bb。", "Three cc.", "Four dd.")

    found = [span_premise(one, Span(first, 0, last, end, 1.0, "exact")) for first, last, end in ((3, 3, 3), (1, 4, 5))]

    assert [each.text for each in found] == ["Two bb。", "One aa.\n\nTwo bb。\nThree cc."]
    assert [each.text[slice(*each.core)] for each in found] == ["Two", "One aa.\n\nTwo bb。\nThree"]


@given(
    st.lists(st.text(alphabet="aB.。؟א\U0001f600 \n", max_size=20), min_size=1, max_size=4),
    st.data(),
)
def test_the_core_of_a_premise_is_the_span_over_any_elements(texts: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(texts)))
    last = data.draw(st.integers(first, len(texts)))
    start = data.draw(st.integers(0, len(texts[first - 1])))
    end = data.draw(st.integers(start if first == last else 0, len(texts[last - 1])))
    pieces = texts[first - 1 : last]
    pieces[-1] = pieces[-1][:end]
    pieces[0] = pieces[0][start:]

    found = span_premise(page("T", *texts), Span(first, start, last, end, 1.0, "exact"))

    assert found.text[slice(*found.core)] == "\n".join(pieces)
    assert found.text in "\n".join(texts[first - 1 : last])


@given(st.text(alphabet="aB. \n", min_size=1, max_size=40), st.data())
def test_the_core_of_a_premise_is_the_span(text: str, data: st.DataObject) -> None:
    text = text.replace("\n", " ")
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))

    found = span_premise(page("T", text), Span(1, start, 1, end, 1.0, "exact"))

    assert found.text[slice(*found.core)] == text[start:end]
    assert found.text in text


def test_the_sentences_with_most_of_the_words_are_tried_in_the_order_of_the_page() -> None:
    one = page("Four dd gg", *ELEMENTS[1:])
    one = replace(one, elements=(*one.elements, Element("heading", 2, None, "", ("Four",), "Four dd gg hh")))

    found = likely_sentences(one, "Four dd, Two and gg.", elements=range(len(one.elements)), n_most=2)

    assert [(sentence.element, sentence.text) for sentence in found] == [(1, "Two bb."), (1, "Four dd.")]
    assert likely_sentences(page("T", "他出生于北京。他死了。"), "孔子出生于曲阜。", elements=(1,), n_most=1)[
        0
    ].text == ("他出生于北京。")
    assert likely_sentences(one, "zebra", elements=range(3), n_most=9) == []
    assert [sentence.text for sentence in likely_sentences(one, "Four gg", elements=(2,), n_most=9)] == ["Seven gg."]
