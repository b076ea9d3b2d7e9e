"""Queries that passed, on disk, come back as they were put there, in the order of their keys."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mapping.qampari.joins import PairAnswers
from mapping.qampari.ordered import KeySample
from mapping.qampari.questions import CompositionQuery, IntersectionQuery, SimpleQuery, order_key
from pipelines.qampari.kept import (
    KeptCompositions,
    KeptIntersections,
    KeptSimple,
    composition_key,
    composition_rows,
    intersection_key,
    intersection_rows,
    simple_key,
    simple_rows,
)

QUERIES = [
    SimpleQuery("P57", "Q7", "film"),
    SimpleQuery("P57", "Q7", "album"),
    SimpleQuery("P57", "Q100"),
    SimpleQuery("P57", "Q99"),
    SimpleQuery("P161", "Q3"),
    SimpleQuery("P19", f"Q{2**31}"),
]
ORDERED = sorted(QUERIES, key=order_key)


@pytest.fixture
def simple(tmp_path: Path) -> KeptSimple:
    sample = KeySample()
    for query in QUERIES:
        sample.add(simple_key(*query[:2]))
    with simple_rows(str(tmp_path), sample) as kept:
        for query in QUERIES:
            number = int(query.entity_id[1:])
            kept.add(
                simple_key(*query[:2]),
                (*query, np.array([number, number + 1]), np.array([5, 4]), np.array([False, True])),
            )
        kept.write(str(tmp_path / "simple.arrow"))
    return KeptSimple(str(tmp_path / "simple.arrow"))


def _values(kept: Any) -> list[Any]:
    return [one.tolist() if isinstance(one, np.ndarray) else one for one in kept]


def test_simple_queries(simple: KeptSimple) -> None:
    assert len(simple) == len(QUERIES)
    assert list(simple.queries()) == ORDERED
    for number, (query, one) in enumerate(zip(ORDERED, simple, strict=True)):
        item = int(query.entity_id[1:])
        assert _values(one) == _values(simple[number]) == [query, [item, item + 1], [5, 4], [False, True]]
        assert one.validated().tolist() == [item + 1]
        assert one.facts_of(np.array([item + 1])).tolist() == [4]


def test_compositions(simple: KeptSimple, tmp_path: Path) -> None:
    rows = [(name, base) for name in ("P569", "P27", "P1082") for base in range(len(QUERIES))]
    random.Random(1).shuffle(rows)
    sample = KeySample()
    sample.add(composition_key(*rows[0]))
    with composition_rows(str(tmp_path), sample) as kept:
        for name, base in rows:
            kept.add(composition_key(name, base), (name, base, [base, 9], ["é", name], [1, 2], 7))
        kept.write(str(tmp_path / "compositions.arrow"))
    found = KeptCompositions(str(tmp_path / "compositions.arrow"), simple)

    queries = sorted((CompositionQuery(name, ORDERED[base]) for name, base in rows), key=order_key)
    assert len(found) == len(rows)
    assert list(found.queries()) == [one.query for one in found] == queries
    for one in found:
        assert one.query.base == ORDERED[one.base]
        assert _values(one[1:]) == [one.base, [one.base, 9], ["é", one.query.property_id], [1, 2], 7]


def test_intersections(simple: KeptSimple, tmp_path: Path) -> None:
    pairs = [(first, second) for first in range(len(QUERIES)) for second in range(first + 1, len(QUERIES))]
    random.Random(1).shuffle(pairs)
    with intersection_rows(str(tmp_path), len(simple)) as kept:
        for first, second in pairs:
            kept.add(intersection_key(first, second), PairAnswers(first, second, np.array([first, second])))
        kept.write(str(tmp_path / "intersections.arrow"))
    found = KeptIntersections(str(tmp_path / "intersections.arrow"), simple)

    assert len(found) == len(pairs)
    assert [_values(one.pair) for one in found] == [[*pair, list(pair)] for pair in sorted(pairs)]
    queries = [IntersectionQuery(ORDERED[first], ORDERED[second]) for first, second in sorted(pairs)]
    assert list(found.queries()) == [one.query for one in found] == sorted(queries, key=order_key) == queries


def test_nothing_was_kept(tmp_path: Path) -> None:
    with simple_rows(str(tmp_path), KeySample()) as kept:
        kept.write(str(tmp_path / "simple.arrow"))
    simple = KeptSimple(str(tmp_path / "simple.arrow"))
    with intersection_rows(str(tmp_path), 0) as kept:
        kept.write(str(tmp_path / "intersections.arrow"))

    assert (len(simple), list(simple)) == (0, [])
    assert list(KeptIntersections(str(tmp_path / "intersections.arrow"), simple)) == []
