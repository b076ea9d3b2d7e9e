"""Sentences that may say a fact."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.records import Anchor, Element, Page
from mapping.qampari.facts.evidence import (
    Sought,
    item_names,
    number_names,
    released_case,
    text_names,
    year_names,
)
from mapping.search.sentences import sentence_spans
from tests.support.qampari_proofs import fact_candidates, find_candidates


def _page(
    page_id: int, *paragraphs: str, links: tuple[tuple[int, str, int], ...] = (), kind: str = "paragraph"
) -> Page:
    """Gives a page; links are (element, text, page id) at the text's first occurrence."""
    elements = [Element("title", 1, None, "", (), f"Page {page_id}"), Element("heading", 2, None, "", (), "Ullane")]
    elements += [Element(kind, 0, None, "", (), one) for one in paragraphs]
    anchors = []
    for number, text, target in links:
        start = elements[number].text.index(text)
        anchors.append(Anchor(number, start, start + len(text), text, "T", None, target, "T"))
    values: dict[str, Any] = dict.fromkeys((one.name for one in fields(Page)), ())
    return Page(**values | {"page_id": page_id, "elements": tuple(elements), "anchors": tuple(anchors)})


ULLANE = Sought(("River Ullane", "Ullane"), 7)


def _found(page: Page, sought: Sought = ULLANE, **options: int) -> list[tuple[str, str]]:
    return [(one.text, one.found) for one in find_candidates(page, sought, **options)]


def test_a_sentence_comes_behind_two_before_it() -> None:
    page = _page(1, "One. Two. Three. It is on the Ullane. Five.")

    assert _found(page) == [("Two. Three. It is on the Ullane.", "Ullane")]
    assert _found(page, n_before=0) == [("It is on the Ullane.", "Ullane")]
    (candidate,) = find_candidates(page, ULLANE)
    text = page.elements[candidate.element].text
    assert text[candidate.start_char : candidate.end_char] == candidate.text
    assert text[candidate.sentence_char : candidate.end_char] == "It is on the Ullane."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the RIVER ULLANE is long", ["RIVER ULLANE"]),
        ("The Ullane's mouth, and the Ullane.", ["Ullane"]),
        ("The Ullanes are a family.", []),
        ("Sub-Ullane.", ["Ullane"]),
        ("A Ullane_x.", []),
    ],
)
def test_names_are_whole_words_in_any_case(text: str, found: list[str]) -> None:
    assert [name for _, name in _found(_page(1, text))] == found


def test_candidates_are_ordered_by_name_then_link_then_place() -> None:
    page = _page(
        1, "The Ullane falls here. It is the River Ullane.", "The stream is old. Here is the Ullane.",
        links=((3, "stream", 7), (3, "Ullane", 7), (2, "Ullane", 8)),
    )  # fmt: skip

    assert [(one.element, one.found, one.is_link) for one in find_candidates(page, ULLANE)] == [
        (2, "River Ullane", False),
        (2, "Ullane", False),
        (3, "Ullane", False),
        (3, "stream", True),
    ]


def test_headings_and_the_title_are_no_evidence_and_list_items_are() -> None:
    assert _found(_page(1, "Nothing.")) == []
    assert _found(_page(1, "The Ullane.", kind="list_item")) == [("The Ullane.", "Ullane")]
    assert _found(_page(1, "Nothing.", links=((0, "Page", 7), (1, "Ullane", 7)))) == []


def test_a_name_that_ends_a_sentence_in_its_middle_joins_the_two() -> None:
    page = _page(1, "Before. They met in Port Sellick Ltd. Works on Monday. After.")
    assert len(sentence_spans(_page(1, "The Who? Band came. End.").elements[2].text)) == 3

    assert _found(page, Sought(("Ltd. Works",))) == [
        ("Before. They met in Port Sellick Ltd. Works on Monday.", "Ltd. Works")
    ]
    assert _found(_page(1, "Before. The Who? Band came. End."), Sought(("Who? Band",))) == [
        ("Before. The Who? Band came.", "Who? Band")
    ]


def test_the_answers_page_comes_first_and_either_may_be_missing() -> None:
    here, there = _page(5, "It lies on the Ullane."), _page(7, "Halvane lies on it.")
    halvane = Sought(("Halvane",), 5)

    assert [one.page_id for one in fact_candidates(here, halvane, there, ULLANE)] == [5, 7]
    assert [one.page_id for one in fact_candidates(None, halvane, there, ULLANE)] == [7]
    assert [one.page_id for one in fact_candidates(here, halvane, None, ULLANE)] == [5]
    assert fact_candidates(None, halvane, None, ULLANE) == []


def test_names_of_an_item() -> None:
    aliases = [("en", "Ullane"), ("en", "U2"), ("en-gb", "the Ull"), ("eng", "Ulla"), ("de", "Ullan"), ("en", "Her")]

    assert item_names("Her", aliases) == ("Her", "Ullane", "the Ull")
    assert item_names(None, aliases) == ("Ullane", "the Ull")


@pytest.mark.parametrize(
    ("amount", "names"),
    [
        ("61390", ("61390", "61,390")),
        ("100", ("100",)),
        ("99", ()),
        ("1250.50", ("1250.50", "1250.5", "1,250.5")),
        ("12.5", ("12.5",)),
        ("-1500", ("-1500", "-1,500")),
        ("1000.0", ("1000.0", "1000", "1,000")),
        ("5E3", ("5000", "5,000")),
        ("5E1", ()),
        ("5E-900000000", ()),
        ("5E900000000", ()),
        ("NaN", ()),
        ("many", ()),
    ],
)
def test_names_of_numbers(amount: str, names: tuple[str, ...]) -> None:
    assert number_names(amount) == names


def test_names_of_years_and_texts() -> None:
    assert [year_names(one) for one in (1852, 999, -1852, 9999, 10000)] == [("1852",), (), (), ("9999",), ()]
    assert [text_names(one) for one in (" Per mare ", "12", "123", " ")] == [("Per mare",), (), ("123",), ()]


def test_released_proofs_are_in_lower_case() -> None:
    assert released_case("He met Ada in Port Sellick. 12 Came.") == "He met ada in port sellick. 12 came."


@given(st.text("Ull ane.X? ", max_size=60), st.integers(0, 3))
def test_every_candidate_slices_to_its_name(text: str, n_before: int) -> None:
    page = _page(1, text)
    sought = Sought(("Ull", "X"))
    found = find_candidates(page, sought, n_before=n_before)

    for one in found:
        assert text[one.start_char : one.end_char] == one.text
        assert one.found in text[one.sentence_char : one.end_char]
        before = sentence_spans(text[one.start_char : one.sentence_char])
        assert len(before) <= n_before
    assert bool(found) == bool(re.search(r"(?i)\b(Ull|X)\b", text))
    assert len({(one.element, one.sentence_char, one.end_char) for one in found}) == len(found)
