"""Filters, the split by relations, and what is drawn."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.selection import (
    AnswerFilter,
    PoolQuestion,
    SampleSizes,
    draw_key,
    draw_pool,
    draw_train,
    halve_pool,
    side_of,
    split_relations,
)

RELATIONS = [f"P{number}" for number in range(1, 13)]


@pytest.mark.parametrize(
    ("n_validated", "n_answers", "kept"),
    [
        (5, 5, True),
        (4, 4, False),
        (4, 5, False),
        (5, 6, True),
        (5, 7, False),
        (8, 10, True),
        (200, 250, True),
        (200, 251, False),
        (201, 201, False),
    ],
)
def test_four_fifths_are_validated_and_they_are_5_to_200(n_validated: int, n_answers: int, kept: bool) -> None:
    assert AnswerFilter().keeps(n_validated, n_answers) == kept


@given(st.integers(1, 400), st.integers(1, 8), st.integers(8, 300), st.sampled_from([0, 0.5, 0.7, 0.8, 1]))
def test_what_may_be_kept_is_kept_for_some_number_of_validated_answers(
    n_answers: int, least: int, most: int, share: float
) -> None:
    rule = AnswerFilter(least, most, share)
    assert rule.may_keep(n_answers) == any(rule.keeps(n, n_answers) for n in range(n_answers + 1))


@given(st.integers(1, 400))
def test_the_share_is_compared_without_rounding(fifth: int) -> None:
    assert AnswerFilter(1, 10**6).keeps(4 * fifth, 5 * fifth)
    assert not AnswerFilter(1, 10**6).keeps(4 * fifth - 1, 5 * fifth)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AnswerFilter(least=0), "From 0 to 200 answers"),
        (lambda: AnswerFilter(least=9, most=8), "From 9 to 8 answers: for --least-answers and --most-answers"),
        (lambda: AnswerFilter(share=80), "--least-share is 80; give a share of the answers between 0 and 1"),
        (lambda: SampleSizes(pool={SIMPLE: 1}), "there are wikidata_simple"),
        (lambda: SampleSizes(pool=dict.fromkeys(SUBSETS, -1)), "The pool has .* --pool-… give a number from 0 on"),
        (lambda: SampleSizes(train_per_relation=-1), "--train-per-relation is -1; give at least 0"),
    ],
)
def test_wrong_parameters_are_named(make: Any, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        make()


def test_the_sizes_are_those_of_the_paper() -> None:
    assert sum(SampleSizes().pool.values()) == 2000
    assert SampleSizes().train_per_relation == 1000


@given(st.sets(st.sampled_from(RELATIONS)), st.text(max_size=3))
def test_relations_are_split_into_halves(property_ids: set[str], seed: str) -> None:
    sides = split_relations(property_ids, seed)

    counts = Counter(sides.values())
    assert sides.keys() == property_ids
    assert 0 <= counts["train"] - counts["test"] <= 1
    assert split_relations(sorted(property_ids), seed) == sides


def test_another_seed_gives_another_split() -> None:
    assert len({tuple(sorted(split_relations(RELATIONS, str(seed)).items())) for seed in range(5)}) == 5


SIDES: Any = {"P1": "train", "P2": "train", "P8": "test", "P9": "test"}


@pytest.mark.parametrize(
    ("subset", "property_ids", "side", "side_without_mixed"),
    [
        (SIMPLE, ("P1",), "train", "train"),
        (SIMPLE, ("P9",), "test", "test"),
        (COMPOSITION, ("P1", "P2"), "train", "train"),
        (COMPOSITION, ("P1", "P9"), "test", "test"),
        (COMPOSITION, ("P9", "P1"), "test", "test"),
        (COMPOSITION, ("P1", "P570"), "train", "train"),
        (COMPOSITION, ("P9", "P570"), "test", "test"),
        (INTERSECTION, ("P1", "P2"), "train", "train"),
        (INTERSECTION, ("P8", "P9"), "test", "test"),
        (INTERSECTION, ("P9", "P9"), "test", "test"),
        (INTERSECTION, ("P1", "P9"), "train", None),
        (TABLE_SIMPLE, (), "test", "test"),
        (TABLE_COMPOSITION, (), "test", "test"),
    ],
)
def test_sides(subset: str, property_ids: tuple[str, ...], side: str, side_without_mixed: str | None) -> None:
    candidate = PoolQuestion("key", subset, property_ids)

    assert side_of(candidate, SIDES) == side
    assert side_of(candidate, SIDES, mixed="drop") == side_without_mixed


def _simple(counts: dict[str, int]) -> list[PoolQuestion]:
    return [PoolQuestion(f"{name}__Q{i}", SIMPLE, (name,)) for name, n in counts.items() for i in range(n)]


def _sizes(train: int = 0, **pool: int) -> SampleSizes:
    return SampleSizes(pool=dict.fromkeys(SUBSETS, 0) | pool, train_per_relation=train)


def test_simple_questions_are_dealt_by_relation_in_turn() -> None:
    pool = draw_pool(_simple({"P1": 2, "P30": 50, "P4": 50}), _sizes(wikidata_simple=11), "seed")

    # The odd one is of the property with the lower number.
    assert Counter(one.property_ids[0] for one in pool) == {"P1": 2, "P4": 5, "P30": 4}


def test_the_pool_has_the_sizes_or_all_there_are() -> None:
    candidates = [PoolQuestion(str(i), subset) for subset in SUBSETS[1:] for i in range(20)] + _simple({"P1": 3})
    pool = draw_pool(candidates, _sizes(wikidata_simple=9, wikidata_comp=4, wikitables_simple=99), "seed")

    assert Counter(one.subset for one in pool) == {SIMPLE: 3, COMPOSITION: 4, TABLE_SIMPLE: 20}


@pytest.mark.parametrize("n", [0, 5, 1000])
def test_many_candidates_are_drawn_as_if_all_were_held(n: int) -> None:
    candidates = _simple({"P1": 5000})
    pool = draw_pool(candidates, _sizes(wikidata_simple=n), "seed")

    assert pool == sorted(candidates, key=lambda one: draw_key(one, "seed", "pool"))[:n]


SETS = st.lists(
    st.builds(
        PoolQuestion,
        st.integers(0, 30).map(str),
        st.sampled_from(SUBSETS),
        st.lists(st.sampled_from(RELATIONS), min_size=1, max_size=2).map(tuple),
    ),
    unique_by=lambda one: (one.subset, one.key),
)


@given(SETS, st.integers(0, 12), st.randoms(use_true_random=False))
def test_draws_hang_on_nothing_but_the_seed(candidates: list[PoolQuestion], n: int, random: Any) -> None:
    sizes = SampleSizes(pool=dict.fromkeys(SUBSETS, n))
    pool = draw_pool(candidates, sizes, "a")
    random.shuffle(candidates)

    assert draw_pool(candidates, sizes, "a") == pool
    assert len(set(pool)) == len(pool)
    dev, test = halve_pool(pool, "a")
    assert len(test) - len(dev) in (0, 1)
    assert sorted(dev + test) == sorted(pool)
    assert halve_pool(pool[::-1], "a") == (dev, test)


@given(SETS, st.integers(0, 4))
def test_no_relation_has_more_training_questions_than_it_may(candidates: list[PoolQuestion], most: int) -> None:
    ordered = sorted(candidates, key=lambda one: draw_key(one, "seed", "train"))
    taken = list(draw_train(ordered, _sizes(train=most)))
    counts = Counter(name for one in taken for name in set(one.property_ids))

    assert max(counts.values(), default=0) <= most
    # What was left out would have been too much for one of its relations.
    assert all(any(counts[name] == most for name in one.property_ids) for one in set(ordered) - set(taken))


def test_training_questions_about_tables_are_all_taken() -> None:
    tables = [PoolQuestion(str(i), TABLE_COMPOSITION) for i in range(9)]

    assert list(draw_train(tables, _sizes(train=1))) == tables
