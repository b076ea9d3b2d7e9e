"""Classes of Wikidata: the closure of the relations between classes and superclasses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import schema_of
from kbsource.wikidata.records import ClassPair

BLOCK_CLASSES = 1 << 14
"""Number of classes whose superclasses are computed at once. Each has 20 to 100 superclasses."""
_EDGES_AT_ONCE = 1 << 20
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)

Numbers = npt.NDArray[np.uint32]
Indexes = npt.NDArray[np.int64]


def class_closure(
    subclasses: Numbers, superclasses: Numbers, *, block_classes: int = BLOCK_CLASSES
) -> Iterator[pa.RecordBatch]:
    """Computes the closure of a relation as rows of the table ``classes``, sorted by class, then by superclass.

    Args:
        subclasses, superclasses: pairs of item numbers, in any order, duplicates allowed. A pair of equal numbers only
            adds the class.
    """
    nodes = np.unique(np.concatenate([subclasses, superclasses]))
    first, above = _adjacency(nodes, subclasses, superclasses)
    for start in range(0, len(nodes), block_classes):
        sources = np.arange(start, min(start + block_classes, len(nodes)), dtype=np.int64)
        keys, distances = _reach(sources, len(nodes), first, above)
        ids = (_item_ids(nodes[places]) for places in (keys // len(nodes), keys % len(nodes)))
        yield pa.RecordBatch.from_arrays([*ids, pa.array(distances)], schema=schema_of(ClassPair))


def _adjacency(nodes: Numbers, subclasses: Numbers, superclasses: Numbers) -> tuple[Indexes, npt.NDArray[np.int32]]:
    """Returns the superclasses of all nodes as one array of indexes, and for each node where its superclasses start in
    it.
    """
    is_edge = subclasses != superclasses
    below = np.searchsorted(nodes, subclasses[is_edge]).astype(np.int32)
    above = np.searchsorted(nodes, superclasses[is_edge]).astype(np.int32)
    order = np.argsort(below, kind="stable")
    first = np.searchsorted(below[order], np.arange(len(nodes) + 1))
    return first, above[order]


def _reach(
    sources: Indexes, n_nodes: int, first: Indexes, above: npt.NDArray[np.int32]
) -> tuple[Indexes, npt.NDArray[np.int32]]:
    """Returns the sorted pairs of a source and a node that is reached from it, as source * n_nodes + node, and their
    distances.
    """
    found = sources * n_nodes + sources
    distances = np.zeros(len(found), np.int32)
    front, step = found, 0
    while len(front):
        step += 1
        nodes = front % n_nodes
        n_above = first[nodes + 1] - first[nodes]
        # Positions of the superclasses of all nodes in the front. Those of a node are consecutive.
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


def distinct_edges(pairs: Iterable[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Returns the distinct pairs, sorted; holds them in memory, 8 bytes each."""
    known, pending, n_pending = np.empty(0, np.uint64), [], 0
    for below, above in pairs:
        pending.append(below.astype(np.uint64) << _HALF | above)
        n_pending += len(below)
        if n_pending >= max(_EDGES_AT_ONCE, len(known)):
            known, pending, n_pending = np.unique(np.concatenate([known, *pending])), [], 0
    known = np.unique(np.concatenate([known, *pending]))
    return (known >> _HALF).astype(np.uint32), (known & _LOW).astype(np.uint32)


def _item_ids(numbers: Numbers) -> pa.Array:
    return pc.binary_join_element_wise("Q", pa.array(numbers).cast(pa.string()), "")
