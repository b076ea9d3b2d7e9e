"""The first accepted candidate is the proof."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.entail.signal import Pair, Refused, Verdict
from mapping.qampari.facts.evidence import Candidate
from mapping.qampari.facts.validation import Fact, Proof, prove_facts


class Reader:
    """Takes the probability out of the premise; cannot judge a premise without one."""

    def __init__(self) -> None:
        self.judged: list[Pair] = []

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | Refused]:
        self.judged += pairs
        return [
            Verdict(float(one.premise), None, None) if one.premise else Refused("empty_premise", "") for one in pairs
        ]


def _fact(*premises: str, answer: str = "Q1") -> Fact:
    candidates = tuple(
        Candidate(1, number, 10, 10, 10 + len(one), one, "", False) for number, one in enumerate(premises)
    )
    return Fact("P57__Q9", answer, "A was directed by X.", candidates)


@pytest.mark.parametrize(
    ("premises", "place", "entailment", "n_judged", "n_refused"),
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
    premises: tuple[str, ...], place: int | None, entailment: float | None, n_judged: int, n_refused: int
) -> None:
    fact = _fact(*premises)
    (proof,) = prove_facts([fact], Reader(), least=0.5)

    expected = None if place is None else fact.candidates[place]
    assert proof == Proof(fact, expected, entailment, n_judged, n_refused)


def test_the_threshold_of_the_released_code_is_the_default() -> None:
    proofs = prove_facts([_fact("0.0019540872"), _fact("0.0019541")], Reader())

    assert [one.candidate is not None for one in proofs] == [False, True]


def test_answers_of_one_name_are_two() -> None:
    first, second = _fact("0.9"), _fact("0.1", answer="Q2")

    assert [one.candidate is not None for one in prove_facts([first, second], Reader(), least=0.5)] == [True, False]


def test_the_sentence_that_names_it_is_cut_last() -> None:
    reader = Reader()
    candidate = Candidate(1, 0, 5, 7, 9, "0.25", "", False)
    list(prove_facts([_fact()._replace(candidates=(candidate,))], reader))

    assert reader.judged == [Pair("0.25", "A was directed by X.", (2, 4))]


@given(st.lists(st.lists(st.sampled_from(["", "0.1", "0.6", "0.9"]), max_size=4)), st.integers(1, 5))
def test_how_many_are_worked_on_together_changes_nothing(facts: list[list[str]], n_at_once: int) -> None:
    made = [_fact(*premises, answer=f"Q{number}") for number, premises in enumerate(facts)]
    together, apart = Reader(), Reader()

    proofs = list(prove_facts(made, together, least=0.5))
    assert list(prove_facts(made, apart, least=0.5, n_at_once=n_at_once)) == proofs
    assert sorted(apart.judged) == sorted(together.judged)
    assert [one.fact for one in proofs] == made
    assert sum(one.n_judged for one in proofs) == len(together.judged)
