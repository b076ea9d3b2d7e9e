from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kbsource.wikidata.classes import class_closure, distinct_edges

Pairs = list[tuple[int, int]]


def closure(pairs: Pairs, **options: int) -> dict[tuple[int, int], int]:
    """Gives the distance of every pair, after checking the order of the rows."""
    below, above = (np.array([pair[side] for pair in pairs], np.uint32) for side in (0, 1))
    rows = [
        (int(row["class_id"][1:]), int(row["superclass_id"][1:]), row["distance"])
        for block in class_closure(below, above, **options)
        for row in block.to_pylist()
    ]
    assert rows == sorted(rows)
    found = {(item, other): steps for item, other, steps in rows}
    assert len(found) == len(rows)
    return found


def slow_closure(pairs: Pairs) -> dict[tuple[int, int], int]:
    found = {}
    for start in {node for pair in pairs for node in pair}:
        reached, front, steps = {start: 0}, {start}, 0
        while front:
            steps += 1
            front = {above for below, above in pairs if below in front} - set(reached)
            reached |= dict.fromkeys(front, steps)
        found |= {(start, node): steps for node, steps in reached.items()}
    return found


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=30), st.integers(1, 5))
def test_the_closure_is_that_of_a_plain_walk(pairs: Pairs, block_classes: int) -> None:
    assert closure(pairs, block_classes=block_classes) == slow_closure(pairs)


@given(st.lists(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 3)), max_size=5), max_size=5))
def test_distinct_edges_are_sorted_and_each_comes_once(batches: list[Pairs]) -> None:
    arrays = ((np.array([p[0] for p in b], np.uint32), np.array([p[1] for p in b], np.uint32)) for b in batches)
    below, above = distinct_edges(arrays)
    expected = sorted({pair for batch in batches for pair in batch})
    assert list(zip(below.tolist(), above.tolist(), strict=True)) == expected
