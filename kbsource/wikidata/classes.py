"""The class closure: for every class, the classes above it over P279 (subclass of), in blocks of little memory.

What stays in memory are the P279 statements as pairs of 32-bit numbers and an index over them: about 24 bytes a
statement, 120 MB for the five million of Wikidata (2026). The closure itself, a hundred times as large, passes through
block by block. Circles of classes, which Wikidata has, are no trouble: every pair is met once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.schema import CLASSES

BLOCK_CLASSES = 1 << 14
"""Classes whose closure is worked out at once; each has 20 to 100 classes above it."""
_EDGES_AT_ONCE = 1 << 20
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)

Numbers = npt.NDArray[np.uint32]
Indexes = npt.NDArray[np.int64]


class Closure(NamedTuple):
    """Pairs of a block, by class, then by superclass: item numbers, and the fewest steps between them."""

    classes: Numbers
    superclasses: Numbers
    distances: npt.NDArray[np.int32]


def class_closure(
    subclasses: Numbers, superclasses: Numbers, *, block_classes: int = BLOCK_CLASSES
) -> Iterator[Closure]:
    """Yields the closure of a relation, the classes in ascending order.

    Args:
        subclasses, superclasses: pairs of item numbers, in any order, as often as they come. A pair of equal numbers
            only makes the class known.
        block_classes: classes of a block.
    """
    nodes = np.unique(np.concatenate([subclasses, superclasses]))
    first, above = _adjacency(nodes, subclasses, superclasses)
    for start in range(0, len(nodes), block_classes):
        sources = np.arange(start, min(start + block_classes, len(nodes)), dtype=np.int64)
        keys, distances = _reach(sources, len(nodes), first, above)
        yield Closure(nodes[keys // len(nodes)], nodes[keys % len(nodes)], distances)


def _adjacency(nodes: Numbers, subclasses: Numbers, superclasses: Numbers) -> tuple[Indexes, npt.NDArray[np.int32]]:
    """Gives, by index of the node, where its superclasses begin, and all superclasses as indexes."""
    is_edge = subclasses != superclasses
    below = np.searchsorted(nodes, subclasses[is_edge]).astype(np.int32)
    above = np.searchsorted(nodes, superclasses[is_edge]).astype(np.int32)
    order = np.argsort(below, kind="stable")
    first = np.searchsorted(below[order], np.arange(len(nodes) + 1))
    return first, above[order]


def _reach(
    sources: Indexes, n_nodes: int, first: Indexes, above: npt.NDArray[np.int32]
) -> tuple[Indexes, npt.NDArray[np.int32]]:
    """Gives the pairs (source * n_nodes + node) that are reached, sorted, and their distances."""
    found = sources * n_nodes + sources
    distances = np.zeros(len(found), np.int32)
    front, step = found, 0
    while len(front):
        step += 1
        nodes = front % n_nodes
        n_above = first[nodes + 1] - first[nodes]
        # Place of every superclass of every node of the front: where its list begins, and on from there.
        ends = np.cumsum(n_above)
        places = np.arange(ends[-1]) + np.repeat(first[nodes] - (ends - n_above), n_above)
        reached = np.unique(np.repeat(front - nodes, n_above) + above[places])
        at = np.minimum(np.searchsorted(found, reached), len(found) - 1)
        front = reached[found[at] != reached]
        merged = np.concatenate([found, front])
        order = np.argsort(merged, kind="stable")
        found = merged[order]
        distances = np.concatenate([distances, np.full(len(front), step, np.int32)])[order]
    return found, distances


def distinct_edges(
    pairs: Iterable[tuple[Numbers, Numbers]],
) -> tuple[Numbers, Numbers]:
    """Gives the distinct pairs, sorted; holds the distinct ones in memory, 8 bytes each."""
    known, pending, n_pending = np.empty(0, np.uint64), [], 0
    for below, above in pairs:
        pending.append(below.astype(np.uint64) << _HALF | above)
        n_pending += len(below)
        if n_pending >= max(_EDGES_AT_ONCE, len(known)):
            known, pending, n_pending = np.unique(np.concatenate([known, *pending])), [], 0
    known = np.unique(np.concatenate([known, *pending]))
    return (known >> _HALF).astype(np.uint32), (known & _LOW).astype(np.uint32)


def closure_batch(closure: Closure) -> pa.RecordBatch:
    """Gives a block of the closure as rows of the table ``classes``."""
    columns = [_item_ids(closure.classes), _item_ids(closure.superclasses), pa.array(closure.distances)]
    return pa.RecordBatch.from_arrays(columns, schema=CLASSES)


def _item_ids(numbers: Numbers) -> pa.Array:
    return pc.binary_join_element_wise("Q", pa.array(numbers).cast(pa.string()), "")
