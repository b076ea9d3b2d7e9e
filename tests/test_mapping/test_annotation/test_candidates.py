"""Which passages people are shown, and how far they agree."""

from __future__ import annotations

import pytest

from mapping.annotation.campaign import FoundPassage, choose_candidates, is_same_passage, token_overlap
from mapping.annotation.tasks import CandidateOptions, cohen_kappa, fleiss_kappa, mean_kappa, pair_kappas


def passage(page: str, text: str, paragraphs: tuple[int, int] | None = None) -> FoundPassage:
    return FoundPassage(page, f"T{page}", paragraphs, text)


@pytest.mark.parametrize(
    ("case", "first", "second", "same"),
    [
        ("other pages", passage("1", "x"), passage("2", "x"), False),
        ("a paragraph in common", passage("1", "x", (1, 3)), passage("1", "y", (3, 4)), True),
        ("none in common", passage("1", "x", (1, 2)), passage("1", "y", (3, 3)), False),
        ("the same words further on", passage("1", "x", (1, 2)), passage("1", "x", (3, 3)), True),
        ("one holds the other", passage("1", "The river rises."), passage("1", "river rises", (1, 1)), True),
        ("neither does", passage("1", "a lake"), passage("1", "a river"), False),
        ("other titles", FoundPassage("", "A", (1, 1), "x"), FoundPassage("", "B", (1, 1), "x"), False),
        ("one title", FoundPassage("", "A", (1, 2), "x"), FoundPassage("", "A", (2, 2), "y"), True),
    ],
)
def test_the_same_passage(case: str, first: FoundPassage, second: FoundPassage, same: bool) -> None:
    assert is_same_passage(first, second) is is_same_passage(second, first) is same


@pytest.mark.parametrize(
    ("answers", "text", "share"),
    [
        (["Lake Miravel"], "It rises in miravel.", 0.5),
        (["Lake Miravel", "Miravel"], "It rises in Miravel.", 1.0),
        (["of the"], "of the lake", 0.0),
        ([], "a lake", 0.0),
        (["lake lake lake pond"], "lake", 0.5),
    ],
)
def test_overlap_is_over_distinct_tokens(answers: list[str], text: str, share: float) -> None:
    assert token_overlap(answers, text, {"of", "in"}) == share


def test_systems_take_turns_and_the_best_come_first() -> None:
    runs = [
        [passage("1", "lake one", (1, 1)), passage("1", "lake again", (1, 2)), passage("2", "lake two", (1, 1))],
        [passage("3", "nothing"), passage("1", "lake one", (1, 1)), passage("4", "lake four")],
        [passage("5", "lake five"), passage("6", "lake six")],
    ]
    options = CandidateOptions()
    found = choose_candidates("q", ["lake"], runs, None, options=options, stop_words=())
    # Round 1: pages 1 and 5; round 2: the first of them again, and 6; round 3: page 2, then four are there.
    assert {candidate.passage.page_id: candidate.systems for candidate in found} == {
        "1": (0, 1),
        "5": (2,),
        "6": (2,),
        "2": (0,),
    }
    assert found == choose_candidates("q", ["lake"], runs, None, options=options, stop_words=())
    other = choose_candidates("q", ["lake"], runs, None, options=CandidateOptions(seed="2"), stop_words=())
    assert sorted(found) == sorted(other)
    assert found != other


def test_the_gold_passage_is_one_of_them() -> None:
    runs = [[passage(str(number), "lake") for number in range(9)]]
    gold = passage("g", "not a word of it")
    found = choose_candidates("q", ["lake"], runs, gold, options=CandidateOptions(), stop_words=())
    assert [candidate.passage for candidate in found if candidate.is_gold] == [gold]
    assert len(found) == 4


def test_pages_that_a_run_calls_by_their_titles_alone_are_told_apart() -> None:
    runs = [[FoundPassage("", title, (1, 1), "A lake.") for title in "AB"]]
    found = choose_candidates("q", ["lake"], runs, None, options=CandidateOptions(), stop_words=())
    assert {candidate.passage.title for candidate in found} == {"A", "B"}
    assert len({candidate.passage_id for candidate in found}) == 2


def test_kappa_of_two() -> None:
    # A worked example: 50 cases, 20 yes by both, 15 no by both, 5 and 10 apart: 0.7 observed, 0.5 by chance.
    both = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    assert cohen_kappa(both) == pytest.approx(0.4)
    assert cohen_kappa([(True, True)] * 3) == 1
    assert cohen_kappa([(True, False), (False, True)]) == -1


def test_pairs_with_few_passages_in_common_do_not_count() -> None:
    labels = {f"p{number}": {"a": number % 2 == 0, "b": number % 2 == 0} for number in range(10)}
    labels["p0"]["c"] = True
    pairs = pair_kappas(labels)
    assert [(pair.first, pair.second, pair.n_common, pair.kappa) for pair in pairs] == [
        ("a", "b", 10, 1.0),
        ("a", "c", 1, None),
        ("b", "c", 1, None),
    ]
    assert (mean_kappa(pairs), mean_kappa(pairs[1:])) == (1.0, None)


def test_fleiss() -> None:
    # Three people: all yes, two of three, none: agreement 7/9; five of nine are yes, so 41/81 by chance.
    labels = {
        "p": {"a": True, "b": True, "c": True},
        "q": {"a": True, "b": True, "c": False},
        "r": {"a": False, "b": False, "c": False},
        "alone": {"a": False},
    }
    assert fleiss_kappa(labels) == pytest.approx((7 / 9 - 41 / 81) / (1 - 41 / 81))
    assert fleiss_kappa({"p": {"a": True, "b": True}}) == 1
    assert fleiss_kappa({"p": {"a": True}}) is None
