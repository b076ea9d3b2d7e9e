"""Joins of sorted rows give what loops over all facts give."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.qampari.facts.classes import ClassTypes
from mapping.qampari.facts.statements import FACTS, VALUES, sorted_facts
from mapping.qampari.questions import SimpleQuery
from mapping.qampari.relations import Relations, SimpleRelation
from tests.support.examples import examples
from tests.support.qampari_joins import compositions, intersections, simple_answers

TYPES = ClassTypes(("film", "album", "song"), np.empty(0, np.int64), np.empty((0, 2), np.uint64))
UNTYPED = SimpleRelation("P50", "author", "Which", "books", "books", "{entity}", "{entity}")
TYPED = SimpleRelation("P57", "director", "Which", None, None, "{entity}", "{entity}", ("song", "film", "series"))
OFF = SimpleRelation("P275", "license", "Which", "things", "things", "{entity}", "{entity}", is_enabled=False)
RELATIONS = Relations({one.property_id: one for one in (UNTYPED, TYPED, OFF)}, {}, ("film", "series", "song"))

# property, value, subject
TRIPLES = st.lists(st.tuples(st.sampled_from([50, 57, 275]), st.integers(1, 4), st.integers(1, 9)), max_size=60)
MASKS = st.lists(st.integers(0, 7), min_size=10, max_size=10)
SETS = st.lists(st.sets(st.integers(1, 12), min_size=1), max_size=7)


def _facts(triples: list[tuple[int, int, int]], masks: list[int], size: int = 7) -> list[pa.RecordBatch]:
    rows = [(*triple, masks[triple[2]], 0) for triple in triples]
    return [_batch(rows[start : start + size], FACTS) for start in range(0, len(rows), size)]


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _simple(triples: Any, masks: Any, **options: Any) -> list[tuple[SimpleQuery, list[int]]]:
    found = simple_answers(_facts(triples, masks), RELATIONS, TYPES, **options)
    return [(one.query, one.subjects.tolist()) for one in found]


@settings(max_examples=examples(50))
@given(TRIPLES, MASKS)
def test_simple_queries(triples: list[tuple[int, int, int]], masks: list[int]) -> None:
    expected = []
    for property_, value in {(triple[0], triple[1]) for triple in triples if triple[0] != 275}:
        subjects = sorted({triple[2] for triple in triples if triple[:2] == (property_, value)})
        if not 2 <= len(subjects) <= 6:
            continue
        query = SimpleQuery(f"P{property_}", f"Q{value}")
        if property_ == 50:
            expected.append((query, subjects))
            continue
        for label in ("song", "film"):
            typed = [one for one in subjects if masks[one] >> TYPES.labels.index(label) & 1]
            if len(typed) >= 2:
                expected.append((query._replace(type_label=label), typed))

    found = _simple(triples, masks, least=2, most=6)
    assert sorted(found) == sorted(expected)
    assert _simple(triples[::-1], masks, least=2, most=6) == found


def test_five_answers_are_needed_and_more_than_3000_subjects_are_too_many() -> None:
    masks = [1] * 3002

    def subjects(n: int, property_: int = 50) -> list[tuple[int, int, int]]:
        return [(property_, 1, subject) for subject in range(1, n + 1)]

    assert _simple(subjects(4), masks) == []
    assert [len(answers) for _, answers in _simple(subjects(5), masks)] == [5]
    assert [len(answers) for _, answers in _simple(subjects(3000), masks)] == [3000]
    assert _simple(subjects(3001), masks) == []
    assert _simple(subjects(3001, 57), [1] * 5 + [0] * 2997) == []


def test_types_are_tried_in_the_order_of_the_relation() -> None:
    found = _simple([(57, 1, subject) for subject in range(1, 6)], [0b101] * 9)

    assert [query.type_label for query, _ in found] == ["song", "film"]


@settings(max_examples=examples(50))
@given(SETS)
def test_intersections_are_of_two_families(sets: list[set[int]]) -> None:
    expected = [
        (first, second, sorted(one & other))
        for (first, one), (second, other) in combinations(enumerate(sets), 2)
        if len(one & other) >= 2 and not one <= other and not other <= one and first // 2 != second // 2
    ]
    queries = ((number, number // 2, np.array(sorted(one))) for number, one in enumerate(sets))
    found = [(one.first, one.second, one.subjects.tolist()) for one in intersections(queries, least=2)]

    assert sorted(found) == expected


@settings(max_examples=examples(50))
@given(
    SETS, st.lists(st.tuples(st.integers(1, 12), st.sampled_from([50, 57, 86]), st.sampled_from("abc")), max_size=50)
)
def test_compositions(sets: list[set[int]], values: list[tuple[int, int, str]]) -> None:
    grouped: defaultdict[tuple[int, str], set[tuple[int, str]]] = defaultdict(set)
    for number, subjects in enumerate(sets):
        for subject, property_, value in values:
            if subject in subjects and property_ != (50, 57)[number % 2]:
                grouped[number, f"P{property_}"].add((subject, value))
    expected = [
        (*key, tuple(sorted(pairs))) for key, pairs in grouped.items() if len({value for _, value in pairs}) >= 2
    ]
    queries = ((number, ("P50", "P57")[number % 2], np.array(sorted(one))) for number, one in enumerate(sets))
    found = compositions(queries, [_batch(values, VALUES)], least=2)

    assert sorted(found) == sorted(expected)


@settings(max_examples=examples(50))
@given(TRIPLES, MASKS, st.integers(1, 20))
def test_facts_that_are_sorted_and_cut_short_in_chunks_give_the_same_queries(
    triples: list[tuple[int, int, int]], masks: list[int], size: int
) -> None:
    cut = [sorted_facts(batch, 6) for batch in _facts(triples, masks, size)]
    for batch in cut:
        keys = list(zip(*(batch[name].to_pylist() for name in ("value", "property", "subject")), strict=True))
        assert keys == sorted(set(keys))
        assert max(Counter(key[:2] for key in keys).values(), default=0) <= 7

    found = simple_answers(cut, RELATIONS, TYPES, least=2, most=6)
    assert [(one.query, one.subjects.tolist()) for one in found] == _simple(triples, masks, least=2, most=6)
