"""Sentences that may say a fact."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.records import Page
from kbsource.sentences import sentence_spans
from mapping.entail.signal import Pair, UnjudgedPair, Verdict
from mapping.qampari.evidence import (
    CandidateSentence,
    ClaimedFact,
    Proof,
    SearchTarget,
    item_names,
    number_names,
    prove_facts,
    released_case,
    text_names,
    year_names,
)
from tests.support.qampari_proofs import fact_candidates, find_candidates, page_of

ULLANE = SearchTarget(("River Ullane", "Ullane"), 7)


def _found(page: Page, sought: SearchTarget = ULLANE, **options: int) -> list[tuple[str, str]]:
    return [(candidate.text, candidate.found) for candidate in find_candidates(page, sought, **options)]


def test_a_sentence_comes_behind_two_before_it() -> None:
    page = page_of(1, "One. Two. Three. It is on the Ullane. Five.")

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
    assert [name for _, name in _found(page_of(1, text))] == found


def test_candidates_are_ordered_by_name_then_link_then_place() -> None:
    page = page_of(
        1, "The Ullane falls here. It is the River Ullane.", "The stream is old. Here is the Ullane.",
        links=((3, "stream", 7), (3, "Ullane", 7), (2, "Ullane", 8)),
    )  # fmt: skip

    assert [(candidate.element, candidate.found) for candidate in find_candidates(page, ULLANE)] == [
        (2, "River Ullane"),
        (2, "Ullane"),
        (3, "Ullane"),
        (3, "stream"),
    ]


def test_headings_and_the_title_are_no_evidence_and_list_items_are() -> None:
    assert _found(page_of(1, "Nothing.")) == []
    assert _found(page_of(1, "The Ullane.", kind="list_item")) == [("The Ullane.", "Ullane")]
    assert _found(page_of(1, "Nothing.", links=((0, "Page", 7), (1, "Ullane", 7)))) == []


def test_a_name_that_ends_a_sentence_in_its_middle_joins_the_two() -> None:
    page = page_of(1, "Before. They met in Port Sellick Ltd. Works on Monday. After.")
    assert len(sentence_spans(page_of(1, "The Who? Band came. End.").elements[2].text)) == 3

    assert _found(page, SearchTarget(("Ltd. Works",))) == [
        ("Before. They met in Port Sellick Ltd. Works on Monday.", "Ltd. Works")
    ]
    assert _found(page_of(1, "Before. The Who? Band came. End."), SearchTarget(("Who? Band",))) == [
        ("Before. The Who? Band came.", "Who? Band")
    ]


def test_the_answers_page_comes_first_and_either_may_be_missing() -> None:
    here, there = page_of(5, "It lies on the Ullane."), page_of(7, "Halvane lies on it.")
    halvane = SearchTarget(("Halvane",), 5)

    assert [fact_candidate.page_id for fact_candidate in fact_candidates(here, halvane, there, ULLANE)] == [5, 7]
    assert [fact_candidate.page_id for fact_candidate in fact_candidates(None, halvane, there, ULLANE)] == [7]
    assert [fact_candidate.page_id for fact_candidate in fact_candidates(here, halvane, None, ULLANE)] == [5]
    assert fact_candidates(None, halvane, None, ULLANE) == []


def _texts(name: str, *paragraphs: str) -> list[str]:
    return [text for text, _ in _found(page_of(1, *paragraphs), SearchTarget((name,)))]


def test_the_sentences_before_are_of_the_same_paragraph() -> None:
    assert _texts("Ullane", "One. Two.", "It is the Ullane. It is long.", "Three. The Ullane ends.") == [
        "It is the Ullane.",
        "Three. The Ullane ends.",
    ]


@pytest.mark.parametrize(
    ("name", "text", "is_found"),
    [
        ("(500) Days", "They saw (500) Days.", True),
        ("Yahoo!", "He left Yahoo! then.", True),
        ("Yahoo!", "He left (Yahoo!).", True),
        ("Yahoo!", "It is Yahoo!s own.", False),
        (".hack", "The series .hack began.", True),
        (".hack", "The file a.hack is gone.", False),
        ("Guns N' Roses", "He heard GUNS N' ROSES.", True),
        ("AC/DC", "An AC/DC song.", True),
        ("C++", "It is in C++.", True),
        ("北京", "It is called 北京 there.", True),
        # Scripts without blanks: where letters stand on both sides nothing tells words apart.
        ("北京", "它位于北京市。", False),
    ],
)
def test_names_with_marks_at_their_edges_and_in_other_scripts(name: str, text: str, is_found: bool) -> None:
    assert bool(_texts(name, text)) == is_found


@pytest.mark.parametrize(
    ("number", "text", "is_found"),
    [
        ("250", "It has 250 steps.", True),
        ("250", "It has 1,250 steps.", False),
        ("250", "1,250 steps.", False),
        ("250", "It has 250,000 steps.", False),
        ("250", "It is 250.5 long.", False),
        ("250", "It has 250, 300 or more.", True),
        ("250", "It has 250. 3 are new.", True),
        ("1954", "On 12.5.1954 it rained.", True),
        ("250", "1,250, or 250?", True),
    ],
)
def test_a_number_is_not_found_in_a_longer_one(number: str, text: str, is_found: bool) -> None:
    assert bool(_texts(number, text)) == is_found


def test_a_page_names_things_by_letters_and_not_by_their_case() -> None:
    assert item_names("IBM", [("en", "Big"), ("en", "Blue")]) == ("IBM", "Blue")
    assert _texts("IBM", "The ibm works.") == ["The ibm works."]


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
        ("10.0", ("10.0",)),
        ("0.10", ("0.10",)),
        ("0.1", ()),
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
    assert [year_names(year) for year in (1852, 999, -1852, 9999, 10000)] == [("1852",), (), (), ("9999",), ()]
    assert [text_names(text) for text in (" Per mare ", "12", "123", " ")] == [("Per mare",), (), ("123",), ()]


def test_released_proofs_are_in_lower_case() -> None:
    assert released_case("He met Ada in Port Sellick. 12 Came.") == "He met ada in port sellick. 12 came."


@given(st.text("Ull ane.X? ", max_size=60), st.integers(0, 3))
def test_every_candidate_slices_to_its_name(text: str, n_before: int) -> None:
    page = page_of(1, text)
    sought = SearchTarget(("Ull", "X"))
    found = find_candidates(page, sought, n_before=n_before)

    for candidate in found:
        assert text[candidate.start_char : candidate.end_char] == candidate.text
        assert candidate.found in text[candidate.sentence_char : candidate.end_char]
        before = sentence_spans(text[candidate.start_char : candidate.sentence_char])
        assert len(before) <= n_before
    assert bool(found) == bool(re.search(r"(?i)\b(Ull|X)\b", text))
    assert len({(candidate.element, candidate.sentence_char, candidate.end_char) for candidate in found}) == len(found)


class Reader:
    """Takes the probability out of the premise; cannot judge a premise without one."""

    def __init__(self) -> None:
        self.judged: list[Pair] = []

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | UnjudgedPair]:
        self.judged += pairs
        return [
            Verdict(float(pair.premise), None, None) if pair.premise else UnjudgedPair("empty_premise", "")
            for pair in pairs
        ]


def _fact(*premises: str, number: int = 1) -> ClaimedFact:
    candidates = tuple(
        CandidateSentence(1, number, 10, 10, 10 + len(premise), premise, "", "A")
        for number, premise in enumerate(premises)
    )
    return ClaimedFact(number, "A was directed by X.", candidates)


@pytest.mark.parametrize(
    ("premises", "place", "entailment", "n_judged", "n_unjudged"),
    [
        (("0.9", "0.95"), 0, 0.9, 1, 0),
        (("0.1", "0.6", "0.9"), 1, 0.6, 2, 0),
        (("0.5",), None, None, 1, 0),
        (("", "0.6"), 1, 0.6, 2, 1),
        (("",), None, None, 1, 1),
        ((), None, None, 0, 0),
    ],
)
def test_candidates_are_tried_in_order_until_one_is_above_the_threshold(
    premises: tuple[str, ...], place: int | None, entailment: float | None, n_judged: int, n_unjudged: int
) -> None:
    fact = _fact(*premises)
    (proof,) = prove_facts([fact], Reader(), least=0.5)

    expected = None if place is None else fact.candidates[place]
    assert proof == Proof(fact, expected, entailment, n_judged, n_unjudged)


def test_the_threshold_of_the_released_code_is_the_default() -> None:
    proofs = prove_facts([_fact("0.0019540872"), _fact("0.0019541")], Reader())

    assert [proof.candidate is not None for proof in proofs] == [False, True]


def test_the_sentence_that_names_it_is_cut_last() -> None:
    reader = Reader()
    candidate = CandidateSentence(1, 0, 5, 7, 9, "0.25", "", "A")
    list(prove_facts([_fact()._replace(candidates=(candidate,))], reader))

    assert reader.judged == [Pair("0.25", "A was directed by X.", (2, 4))]


@given(st.lists(st.lists(st.sampled_from(["", "0.1", "0.6", "0.9"]), max_size=4)), st.integers(1, 5))
def test_how_many_are_worked_on_together_changes_nothing(facts: list[list[str]], n_at_once: int) -> None:
    made = [_fact(*premises, number=number) for number, premises in enumerate(facts)]
    together, apart = Reader(), Reader()

    proofs = list(prove_facts(made, together, least=0.5))
    assert list(prove_facts(made, apart, least=0.5, n_at_once=n_at_once)) == proofs
    assert sorted(apart.judged) == sorted(together.judged)
    assert [proof.fact for proof in proofs] == made
    assert sum(proof.n_judged for proof in proofs) == len(together.judged)
