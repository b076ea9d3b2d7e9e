"""Ranks of answers and of evidence among retrieved passages."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mapping.metrics.answers import GoldNames
from mapping.metrics.ranks import RetrievedPassage, answer_ranks, ranks_by_text, shares_most, title_form

PASSAGES = [
    RetrievedPassage("1__0", "Stairs of Halvane", "They were built in 1852 above the harbour."),
    RetrievedPassage("7__3", "Lake Miravel", "The River Ullane rises in the lake and falls into the sea."),
    RetrievedPassage("9__1", "Ore", "Halvanese ore is dug in the hills."),
]


@pytest.mark.parametrize(
    ("answer", "rank"),
    [
        (GoldNames("Halvane"), 1),
        (GoldNames("river ullane"), 2),
        (GoldNames("Source", ("the Sea",)), 2),
        (GoldNames("Lake Miravel"), 2),
        (GoldNames("Halvanes"), None),
        (GoldNames("The"), None),
        (GoldNames("1852"), 1),
        (GoldNames("Miravel River"), None),
    ],
    ids=lambda value: value.text if isinstance(value, GoldNames) else "",
)
def test_an_answer_is_found_by_whole_words_in_title_or_text(answer: GoldNames, rank: int | None) -> None:
    assert answer_ranks([answer], PASSAGES) == [rank]


@pytest.mark.parametrize(
    ("case", "name", "text", "is_found"),
    [
        ("a genitive", "Halvane", "It is Halvane's harbour.", True),
        ("before a hyphen", "Halvane", "a Halvane-based company", True),
        ("between dashes", "Halvane", "the Ullane–Halvane railway—the first—opened", True),
        ("in curly quotes", "The Mere", "known as “Mere”, then", True),
        ("without its stops", "U.S.", "in the US today", True),
        ("with stops", "US", "in the U.S. today", True),
        ("without its hyphen", "A-Team", "the ateam came", True),
        ("in another case", "ÉTOILE", "une étoile", True),
        ("over a line end of the text", "River Ullane", "the River\nUllane", True),
        ("a part of a word", "Halvane", "Halvanese ore", False),
        ("with an accent behind it", "Halvan", "Halvané", False),
        ("a part of a number", "185", "in 1852", False),
        ("nothing but a letter that is an article", "A", "a town", False),
        ("over title and text", "Stairs They", "They were built", False),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_words_end_where_letters_and_digits_do(case: str, name: str, text: str, is_found: bool) -> None:
    assert answer_ranks([GoldNames(name)], [RetrievedPassage("", "Stairs", text)]) == [1 if is_found else None]


def test_as_released_names_are_found_inside_of_words() -> None:
    assert answer_ranks([GoldNames("halvanes"), GoldNames("Lake, Miravel")], PASSAGES, substring=True) == [3, None]


@pytest.mark.parametrize(
    ("case", "evidence", "rank"),
    [
        ("the same text", RetrievedPassage("", "Lake Miravel", PASSAGES[1].text), 2),
        ("title and text but for case", RetrievedPassage("", "LAKE MIRAVEL", PASSAGES[1].text.upper()), 2),
        (
            "title as an address",
            RetrievedPassage("", "https://en.wikipedia.org/wiki/Lake_Miravel", "The River Ullane rises"),
            2,
        ),
        ("another title", RetrievedPassage("", "Ullane", PASSAGES[1].text), None),
        ("a sentence of which the end is missing", RetrievedPassage("", "Ore", "Halvanese ore is dug in the hxxxx"), 3),
        ("too little in common", RetrievedPassage("", "Ore", "Halvanese ore is xxxxxxxxxxxxxxxxx"), None),
        ("no text", RetrievedPassage("", "Ore", ""), None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_evidence_is_found_by_title_and_most_of_its_text(
    case: str, evidence: RetrievedPassage, rank: int | None
) -> None:
    assert ranks_by_text([evidence], PASSAGES) == [rank]


def test_a_passage_is_matched_with_one_piece_of_evidence() -> None:
    twice = RetrievedPassage("", "Ore", "Halvanese ore is dug")
    assert ranks_by_text([twice, twice], PASSAGES) == [3, None]
    assert ranks_by_text([twice, twice], [*PASSAGES, PASSAGES[2]]) == [3, 4]


@pytest.mark.parametrize(
    ("title", "form"),
    [
        ("https://en.wikipedia.org/wiki/Caf%C3%A9_Halvane", "café halvane"),
        ("https://en.wikipedia.org/wiki/AC/DC", "ac/dc"),
        ("https://en.wikipedia.org/wiki/Lake_Miravel#History", "lake miravel"),
        ("https://en.wikipedia.org/wiki/Who_is_it?", "who is it?"),
        (" AC/DC ", "ac/dc"),
        ("100%_wool", "100% wool"),
    ],
)
def test_titles_are_compared_in_one_form(title: str, form: str) -> None:
    assert title_form(title) == form


TEXTS = st.text("ab", max_size=14)


@given(TEXTS, TEXTS)
@example("aaaaaaaaab", "aaaaaaa")
@example("abababa", "bababab")
@example("", "a")
@example("aaaaaaaaaa", "aaaaaaab")  # 7 of 8 characters
@example("abcdefghij", "abcdefgxxxx")  # 7 of 10 are not more than 0.7
def test_most_of_a_text_is_a_common_run_of_more_than_seven_tenths(one: str, other: str) -> None:
    runs = {one[a:b] for a in range(len(one)) for b in range(a + 1, len(one) + 1)}
    longest = max((len(run) for run in runs if run in other), default=0)
    assert shares_most(one, other) == (10 * longest > 7 * min(len(one), len(other)))


def _walked(evidence: str, passage: str) -> int:
    """The longest run that the released script sees: it goes along diagonals, and in the second half numbers the
    passage's characters by the evidence's and the other way round."""
    pairs = ((len(passage), len(evidence)), (len(evidence), len(passage)))
    firsts = [(k - back, n - 1 - back) for m, n in pairs for k in range(m) for back in range(min(k + 1, n))]
    return max((_n_same(passage[i:], evidence[j:]) for i, j in firsts), default=0)


def _n_same(text: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))


@given(TEXTS, TEXTS)
@example("cdefghijkl", "abcdefghij")  # the evidence begins later in the passage, and ends behind it
@example("abcdefghij", "cdefghijkl")
def test_as_released_runs_are_seen_at_a_part_of_the_places(evidence: str, passage: str) -> None:
    seen = 10 * _walked(evidence, passage) > 7 * min(len(evidence), len(passage))
    assert shares_most(evidence, passage, partial_runs=True) == seen


def test_texts_of_any_length_are_compared() -> None:
    text = "".join(f"{number} " for number in range(20_000))

    assert shares_most(text, f"x{text}")
    assert not shares_most(text, text[: len(text) // 2] + "x" * (len(text) // 2))
