"""The split that each question is drawn for."""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.qampari.draw import Drawn, draw_questions
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.selection import PoolQuestion, SampleSizes, side_of, split_relations

RELATIONS = [f"P{number}" for number in range(1, 9)]
TABLES = (TABLE_SIMPLE, TABLE_COMPOSITION)
Mixed = Literal["train", "drop"]


def _candidates(n: int) -> list[PoolQuestion]:
    """Gives so many candidates of each subset, with every pair of relations."""
    found = []
    for number in range(n):
        one, other = RELATIONS[number % 8], RELATIONS[(number // 8 + number + 1) % 8]
        key = f"Q{number}"
        found += [PoolQuestion(key, SIMPLE, (one,)), PoolQuestion(key, INTERSECTION, (one, other))]
        found += [PoolQuestion(key, COMPOSITION, (one, "P569" if number % 2 else other))]
        found += [PoolQuestion(key, subset) for subset in TABLES]
    return found


def _draw(
    candidates: list[PoolQuestion], *, n: int = 6, train: int = 4, seed: str = "s", mixed: Mixed = "train"
) -> dict[tuple[str, str], Drawn]:
    sizes = SampleSizes(dict.fromkeys(SUBSETS, n), train)
    with tempfile.TemporaryDirectory() as scratch:
        draws = draw_questions(
            iter(candidates), RELATIONS, sizes=sizes, seed=seed, mixed=mixed, scratch=scratch, run_rows=5
        )
    assert len(draws) == len(candidates)
    return {(one.subset, one.key): drawn for one, drawn in zip(candidates, draws, strict=True)}


@given(
    st.permutations(_candidates(24)),
    st.integers(0, 40),
    st.integers(0, 12),
    st.sampled_from(("a", "b")),
    st.sampled_from(("train", "drop")),
)
def test_laws_of_the_draw(candidates: list[PoolQuestion], n: int, train: int, seed: str, mixed: Mixed) -> None:
    drawn = _draw(candidates, n=n, train=train, seed=seed, mixed=mixed)

    assert drawn == _draw(sorted(candidates), n=n, train=train, seed=seed, mixed=mixed)
    sides = split_relations(RELATIONS, seed)
    of_split: Counter[str | None] = Counter()
    pool: Counter[str] = Counter()
    n_test_side: Counter[str] = Counter()
    of_relation: Counter[str] = Counter()
    for one in candidates:
        side, split = drawn[one.subset, one.key]
        of_split[split] += 1
        own = side_of(one, sides, mixed=mixed)
        n_test_side[one.subset] += own == "test"
        if one.subset in TABLES:
            # Those that the pool has no room for are for training, which has no limit for them.
            assert (side, split) in (("test", "dev"), ("test", "test"), ("train", "train"))
        else:
            assert side == own
            assert split in {"test": ("dev", "test", None), "train": ("train", None), None: (None,)}[own]
        pool[one.subset] += split in ("dev", "test")
        if split == "train":
            of_relation.update(set(one.property_ids))
    assert len(drawn) == len(candidates)
    for subset in SUBSETS:
        assert pool[subset] == min(n, n_test_side[subset])
    assert of_split["test"] - of_split["dev"] in (0, 1)
    assert max(of_relation.values(), default=0) <= train
    for one in candidates:
        if drawn[one.subset, one.key] == ("train", None):  # no room for it
            assert any(of_relation[name] == train for name in one.property_ids)


def test_simple_questions_are_dealt_by_relation_in_turn() -> None:
    candidates = _candidates(64)
    sides = split_relations(RELATIONS, "s")
    drawn = _draw(candidates, n=10)
    of_relation = Counter(
        one.property_ids[0]
        for one in candidates
        if one.subset == SIMPLE and drawn[one.subset, one.key].split in ("dev", "test")
    )
    assert sorted(of_relation) == sorted(name for name, side in sides.items() if side == "test")
    assert sorted(of_relation.values()) == [2, 2, 3, 3]


def test_another_seed_draws_others_and_a_larger_pool_has_the_smaller_one() -> None:
    candidates = _candidates(64)

    def pool(n: int, seed: str) -> set[tuple[str, str]]:
        drawn = _draw(candidates, n=n, seed=seed)
        return {key for key, one in drawn.items() if one.split in ("dev", "test")}

    assert pool(6, "s") != pool(6, "t")
    assert pool(6, "s") < pool(9, "s")


def test_mixed_intersections_are_for_training_or_left_out() -> None:
    candidates = _candidates(64)
    kept, dropped = (_draw(candidates, train=1000, mixed=mixed) for mixed in ("train", "drop"))
    sides = split_relations(RELATIONS, "s")

    mixed = {
        (one.subset, one.key)
        for one in candidates
        if one.subset == INTERSECTION and len({sides[name] for name in one.property_ids}) == 2
    }
    assert mixed
    for key in kept:
        assert dropped[key] == ((None, None) if key in mixed else kept[key])
        assert key not in mixed or kept[key] == ("train", "train")


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_and_almost_nothing_to_draw(n: int) -> None:
    assert _draw([]) == {}
    table = PoolQuestion("Q1", TABLE_SIMPLE)
    assert _draw([table], n=n) == {(TABLE_SIMPLE, "Q1"): Drawn("test", "test") if n else Drawn("train", "train")}
