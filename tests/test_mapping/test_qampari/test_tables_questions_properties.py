"""Questions about lists: pivots and answers, whatever the values."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mapping.qampari.lists.table_evidence import table_facts
from mapping.qampari.lists.table_questions import REASONS, draw_pivot, make_questions
from mapping.qampari.records import ProofText, Question
from mapping.qampari.selection import AnswerFilter
from tests.support.tables_of_lists import SEED, made_list

_AMOUNTS = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9).map(Decimal)), max_size=25)


@given(_AMOUNTS, st.integers(1, 5), st.randoms(use_true_random=False))
def test_a_pivot_is_one_of_the_amounts_with_enough_pages_on_both_sides_in_any_order(
    amounts: list[tuple[int, Decimal]], least: int, random: Random
) -> None:
    def sides(pivot: Decimal) -> tuple[int, int]:
        below = {page_id for page_id, amount in amounts if amount < pivot}
        return len(below), len({page_id for page_id, amount in amounts if amount >= pivot})

    pivot = draw_pivot(amounts, least=least, seed=SEED, column_key="1__0__1")
    shuffled = sorted(amounts, key=lambda _: random.random())
    assert draw_pivot(shuffled, least=least, seed=SEED, column_key="1__0__1") == pivot
    if pivot is None:
        assert not any(min(sides(amount)) >= least for _, amount in amounts)
    else:
        assert pivot in {amount for _, amount in amounts}
        assert min(sides(pivot)) >= least


_VALUES = st.sampled_from(["Skåne län", "Halland", "100", "200", "1990", "2001", "12", ""])


@given(
    st.lists(st.tuples(_VALUES, st.integers(1, 9)), min_size=1, max_size=14),
    st.sampled_from(["County", "Year"]),
    st.sets(st.integers(0, 40)),
    st.integers(1, 3),
)
def test_every_answer_has_its_proof_each_page_answers_once_and_keys_are_unique(
    rows: list[tuple[str, int]], column: str, unproved: set[int], least: int
) -> None:
    table = made_list([value for value, _ in rows], column=column, links=[page_id for _, page_id in rows])
    keys = [one.key for number, one in enumerate(table_facts([table])) if number not in unproved]
    proofs = {key: ProofText(key, 1, "T", 2, 0, len(key), 0) for key in keys}
    questions, unkept = make_questions([table], proofs, seed=SEED, keep=AnswerFilter(least, 6, 0.5))

    names = [one.key for one in questions] + [one.key for one in unkept]
    assert len(set(names)) == len(names)
    assert {one.reason for one in unkept} <= REASONS.keys()
    for question in questions:
        _check(question, proofs, least)


def _check(question: Question, proofs: dict[str, ProofText], least: int) -> None:
    assert least <= len(question.answers) == question.n_validated <= min(6, question.n_answers)
    assert len({one.title for one in question.answers}) == len(question.answers)
    for answer in question.answers:
        (proof,) = answer.proofs
        assert proofs[proof.text] == proof
        assert int(proof.text.split("__")[2]) + 1 == int(answer.text.split()[-1])
