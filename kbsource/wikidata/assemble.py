"""Assembles a release from the files of the ranges: duplicate entities, final names, classes, rejected records,
counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import schema_of
from kbsource.records import BadRecord
from kbsource.release.manifest import FileEntry, sum_counts
from kbsource.release.writer import name_files, write_small_table
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_chunk_report, read_stored
from kbsource.wikidata.kind import EntityCounts
from kbsource.wikidata.parts import IDS, PARSED_TABLES, PartReport, class_edges_path, part_files, tables_folder
from kbsource.wikidata.records import WIKIDATA_TABLES, ClassPair

BLOCK_CLASSES = 1 << 14
"""Number of classes whose closure is computed at once; each has 20 to 100 superclasses."""
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
            registers the class.
    """
    nodes = np.unique(np.concatenate([subclasses, superclasses]))
    first, above = _adjacency(nodes, subclasses, superclasses)
    for start in range(0, len(nodes), block_classes):
        sources = np.arange(start, min(start + block_classes, len(nodes)), dtype=np.int64)
        keys, distances = _reach(sources, len(nodes), first, above)
        ids = (_item_ids(nodes[places]) for places in (keys // len(nodes), keys % len(nodes)))
        yield pa.RecordBatch.from_arrays([*ids, pa.array(distances)], schema=schema_of(ClassPair))


def _adjacency(nodes: Numbers, subclasses: Numbers, superclasses: Numbers) -> tuple[Indexes, npt.NDArray[np.int32]]:
    """Returns, by index of the node, the start of its superclasses, and all superclasses as indexes."""
    is_edge = subclasses != superclasses
    below = np.searchsorted(nodes, subclasses[is_edge]).astype(np.int32)
    above = np.searchsorted(nodes, superclasses[is_edge]).astype(np.int32)
    order = np.argsort(below, kind="stable")
    first = np.searchsorted(below[order], np.arange(len(nodes) + 1))
    return first, above[order]


def _reach(
    sources: Indexes, n_nodes: int, first: Indexes, above: npt.NDArray[np.int32]
) -> tuple[Indexes, npt.NDArray[np.int32]]:
    """Returns the pairs (source * n_nodes + node) that are reached, sorted, and their distances."""
    found = sources * n_nodes + sources
    distances = np.zeros(len(found), np.int32)
    front, step = found, 0
    while len(front):
        step += 1
        nodes = front % n_nodes
        n_above = first[nodes + 1] - first[nodes]
        # Positions of every superclass of every node of the front: the start of its list, and consecutive positions
        # after it.
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


def find_superseded(ids: pa.Table) -> dict[int, tuple[int, ...]]:
    """Returns, by range, the ordinals of the lines whose entity another line supersedes.

    Among lines with the same entity, the one with the highest revision is used, then the first.

    Args:
        ids: rows of schema ``IDS``, in any order. If a line of an entity is included, all lines of that entity must be.
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    kind, number, revision, part, ordinal = (ids[name].to_numpy() for name in IDS.names)
    order = np.lexsort((ordinal, part, -revision, number, kind))
    again = (number[order][1:] == number[order][:-1]) & (kind[order][1:] == kind[order][:-1])
    for row in order[1:][again].tolist():
        found[int(part[row])].append(int(ordinal[row]))
    return {part: tuple(sorted(ordinals)) for part, ordinals in sorted(found.items())}


def name_tables(reports: Sequence[PartReport], *, output: str, staging: str) -> dict[str, tuple[FileEntry, ...]]:
    """Moves the ranges' files to their final places, in the order of the ranges; every table gets at least one file.

    Files that are already there stay.
    """
    tables = {}
    for table in PARSED_TABLES:
        entries = [entry for report in reports for entry in report.tables[table]]
        tables[table] = name_files(
            entries, table, schema=WIKIDATA_TABLES[table], folder=tables_folder(staging), output=output
        )
    return tables


def write_classes(keys: Iterable[ChunkKey], *, output: str, staging: str) -> tuple[FileEntry, ...]:
    """Writes the table ``classes`` and returns its files.

    Args:
        keys: keys of the ranges, under which their ``CLASS_EDGES`` are stored.
    """
    stored = (read_chunk_report(class_edges_path(staging, key))[0] for key in keys)
    batches = (batch for file in stored for batch in read_stored(file))
    edges = distinct_edges((batch["class"].to_numpy(), batch["superclass"].to_numpy()) for batch in batches)
    with part_files(staging, "classes", ChunkKey(0, 0)) as files:
        for batch in class_closure(*edges):
            files.write(batch)
    return name_files(
        files.entries, "classes", schema=schema_of(ClassPair), folder=tables_folder(staging), output=output
    )


def write_rejected(chunks: Iterable[BatchRef], *, output: str) -> tuple[FileEntry, ...]:
    """Writes the table ``rejected`` from the ranges' reports, and returns its files. Memory: a range's records."""
    rejected = (bad for chunk in chunks for bad in read_chunk_report(chunk.path)[1].rejected)
    return write_small_table(rejected, BadRecord, output, "rejected")


def entity_counts(reports: Sequence[PartReport]) -> dict[str, EntityCounts]:
    """Returns the counts of the lines of each input file by outcome."""
    files = dict.fromkeys(report.file for report in reports)
    return {
        file: sum_counts((report.counts for report in reports if report.file == file), EntityCounts()) for file in files
    }
