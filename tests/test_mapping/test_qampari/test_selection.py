"""Filters, the split by relations, and what is drawn."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.entail.signal import DEFAULT_MODEL, MAX_TOKENS
from mapping.metrics.evaluation import QAMPARI_KS
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.selection import (
    AnswerFilter,
    PoolQuestion,
    QuestionDraw,
    SampleSizes,
    draw_key,
    draw_pool,
    draw_questions,
    eligible_split_of,
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
        (lambda: AnswerFilter(least=0), "--least-answers is 0. Must be >= 1"),
        (lambda: AnswerFilter(least=9, most=8), "--least-answers is 9 and --most-answers is 8; give --most-answers"),
        (lambda: AnswerFilter(share=80), "--least-share is 80. Must be <= 1"),
        (lambda: SampleSizes(pool={SIMPLE: 1}), "for each of wikidata_simple"),
        (
            lambda: SampleSizes(pool=dict.fromkeys(SUBSETS, -1)),
            "The pool has .* give a number of at least 0 for each of",
        ),
        (lambda: SampleSizes(train_per_relation=-1), "--train-per-relation is -1. Must be >= 0"),
    ],
)
def test_wrong_parameters_are_named(make: Any, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        make()


def test_the_model_and_the_sizes_are_the_published_ones() -> None:
    assert (DEFAULT_MODEL, MAX_TOKENS) == ("ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli", 256)
    assert SampleSizes().pool == {
        SIMPLE: 830,
        COMPOSITION: 400,
        INTERSECTION: 400,
        TABLE_SIMPLE: 170,
        TABLE_COMPOSITION: 200,
    }
    assert SampleSizes().train_per_relation == 1000
    assert QAMPARI_KS == (10, 25, 50, 100, 200)


@pytest.mark.parametrize(
    ("n_values", "n_right", "n_pairs", "outcome"),
    [
        (5, 300, 300, "kept"),
        (5, 8, 10, "kept"),
        (5, 7, 10, "share_too_low"),
        (4, 90, 90, "too_few_validated"),
        (200, 900, 900, "kept"),
        (201, 201, 201, "too_many_validated"),
    ],
)
def test_bounds_of_a_composition_are_of_values_and_the_share_is_of_pairs(
    n_values: int, n_right: int, n_pairs: int, outcome: str
) -> None:
    assert AnswerFilter().outcome(n_values, n_values, n_pairs=(n_right, n_pairs)) == outcome


@given(st.sets(st.sampled_from(RELATIONS)), st.text(max_size=3))
def test_relations_are_split_into_halves(property_ids: set[str], seed: str) -> None:
    sides = split_relations(property_ids, seed)

    counts = Counter(sides.values())
    assert sides.keys() == property_ids
    assert 0 <= counts["train"] - counts["test"] <= 1
    assert split_relations(sorted(property_ids), seed) == sides


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

    assert eligible_split_of(candidate, SIDES) == side
    assert eligible_split_of(candidate, SIDES, mixed="drop") == side_without_mixed


def _simple(counts: dict[str, int]) -> list[PoolQuestion]:
    return [PoolQuestion(f"{name}__Q{i}", SIMPLE, (name,)) for name, n in counts.items() for i in range(n)]


def _sizes(train: int = 0, **pool: int) -> SampleSizes:
    return SampleSizes(pool=dict.fromkeys(SUBSETS, 0) | pool, train_per_relation=train)


def test_simple_questions_are_dealt_by_relation_in_turn() -> None:
    pool = draw_pool(_simple({"P1": 2, "P30": 50, "P4": 50}), _sizes(wikidata_simple=11), "seed")

    # The odd one is of the property with the lower number.
    assert Counter(candidate.property_ids[0] for candidate in pool) == {"P1": 2, "P4": 5, "P30": 4}


@pytest.mark.parametrize("n", [0, 5, 1000])
def test_many_candidates_are_drawn_as_if_all_were_held(n: int) -> None:
    candidates = _simple({"P1": 5000})
    pool = draw_pool(candidates, _sizes(wikidata_simple=n), "seed")

    assert pool == sorted(candidates, key=lambda candidate: draw_key(candidate, "seed", "pool"))[:n]


EIGHT_RELATIONS = [f"P{number}" for number in range(1, 9)]
TABLES = (TABLE_SIMPLE, TABLE_COMPOSITION)
Mixed = Literal["train", "drop"]


def _candidates(n: int) -> list[PoolQuestion]:
    """So many candidates of each subset, with every pair of relations."""
    found = []
    for number in range(n):
        relation, other = EIGHT_RELATIONS[number % 8], EIGHT_RELATIONS[(number // 8 + number + 1) % 8]
        key = f"Q{number}"
        found += [PoolQuestion(key, SIMPLE, (relation,)), PoolQuestion(key, INTERSECTION, (relation, other))]
        found += [PoolQuestion(key, COMPOSITION, (relation, "P569" if number % 2 else other))]
        found += [PoolQuestion(key, subset) for subset in TABLES]
    return found


def _draw(
    candidates: list[PoolQuestion], *, n: int = 6, train: int = 4, seed: str = "s", mixed: Mixed = "train"
) -> dict[tuple[str, str], QuestionDraw]:
    sizes = SampleSizes(dict.fromkeys(SUBSETS, n), train)
    draws = draw_questions(iter(candidates), EIGHT_RELATIONS, sizes=sizes, seed=seed, mixed=mixed)
    assert len(draws) == len(candidates)
    return {(candidate.subset, candidate.key): drawn for candidate, drawn in zip(candidates, draws, strict=True)}


@given(
    st.permutations(_candidates(24)),
    st.integers(0, 40),
    st.integers(0, 12),
    st.sampled_from(("a", "b")),
    st.sampled_from(("train", "drop")),
)
@pytest.mark.slow
def test_laws_of_the_draw(candidates: list[PoolQuestion], n: int, train: int, seed: str, mixed: Mixed) -> None:
    drawn = _draw(candidates, n=n, train=train, seed=seed, mixed=mixed)

    assert drawn == _draw(sorted(candidates), n=n, train=train, seed=seed, mixed=mixed)
    sides = split_relations(EIGHT_RELATIONS, seed)
    of_split: Counter[str | None] = Counter()
    pool: Counter[str] = Counter()
    n_test_side: Counter[str] = Counter()
    of_relation: Counter[str] = Counter()
    for candidate in candidates:
        side, split = drawn[candidate.subset, candidate.key]
        of_split[split] += 1
        own = eligible_split_of(candidate, sides, mixed=mixed)
        n_test_side[candidate.subset] += own == "test"
        if candidate.subset in TABLES:
            # Those that the pool has no room for are for training, which has no limit for them.
            assert (side, split) in (("test", "dev"), ("test", "test"), ("train", "train"))
        else:
            assert side == own
            assert split in {"test": ("dev", "test", None), "train": ("train", None), None: (None,)}[own]
        pool[candidate.subset] += split in ("dev", "test")
        if split == "train":
            of_relation.update(set(candidate.property_ids))
    assert len(drawn) == len(candidates)
    for subset in SUBSETS:
        assert pool[subset] == min(n, n_test_side[subset])
    assert of_split["test"] - of_split["dev"] in (0, 1)
    assert max(of_relation.values(), default=0) <= train
    for candidate in candidates:
        if drawn[candidate.subset, candidate.key] == ("train", None):  # no room for it
            assert any(of_relation[name] == train for name in candidate.property_ids)


def test_another_seed_draws_others_and_a_larger_pool_has_the_smaller_one() -> None:
    candidates = _candidates(64)

    def pool(n: int, seed: str) -> set[tuple[str, str]]:
        drawn = _draw(candidates, n=n, seed=seed)
        return {key for key, side in drawn.items() if side.split in ("dev", "test")}

    assert pool(6, "s") != pool(6, "t")
    assert pool(6, "s") < pool(9, "s")
