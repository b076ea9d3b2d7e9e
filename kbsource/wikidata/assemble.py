"""From the ranges' files to a release: entities that come twice, final names, classes, rejected records, counts."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import Storage, join
from kbsource.records import BadRecord
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import TableFile, write_small_table
from kbsource.schema import CLASSES
from kbsource.sorted_runs import SortedRuns
from kbsource.staging import read_batches
from kbsource.wikidata.classes import Closure, class_closure
from kbsource.wikidata.manifest import EntityCounts
from kbsource.wikidata.parts import IDS, PARSED_TABLES, PartReport, staged_file
from kbsource.wikidata.rolling import RollingFiles

_EDGES_AT_ONCE = 1 << 20
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)
_PLACED = IDS.append(pa.field("part", pa.int64(), nullable=False))


def find_superseded(
    reports: Sequence[PartReport], storage: Storage, *, staging: str, scratch: str
) -> dict[int, tuple[int, ...]]:
    """Gives, by range, the ordinals of the lines whose entity another line supersedes.

    Of lines with one entity the one with the highest revision counts, then the first.

    Args:
        reports: of all ranges.
        staging: staging folder.
        scratch: local folder for scratch files, 29 bytes an entity.
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    with SortedRuns(os.path.join(scratch, "ids"), _PLACED, by="number") as ids:
        for report in reports:
            for batch in read_batches(storage, staged_file(staging, "ids", report.part)):
                ids.add(*batch.columns, np.full(batch.num_rows, report.part, np.int64))
        for keys in ids.ranges():
            kind, number, revision, ordinal, part = (column.to_numpy() for column in ids.read(keys).columns)
            order = np.lexsort((ordinal, part, -revision, number, kind))
            again = (number[order][1:] == number[order][:-1]) & (kind[order][1:] == kind[order][:-1])
            for row in order[1:][again].tolist():
                found[int(part[row])].append(int(ordinal[row]))
    return {part: tuple(sorted(ordinals)) for part, ordinals in sorted(found.items())}


def name_files(reports: Sequence[PartReport], output: str, storage: Storage) -> dict[str, tuple[FileEntry, ...]]:
    """Gives the ranges' files their final names, in the order of the ranges; every table gets at least one file."""
    tables = {}
    for table in PARSED_TABLES:
        entries = [entry for report in reports for entry in report.tables[table]]
        tables[table] = _named(entries or [_empty_file(output, table, storage)], output, table, storage)
    return tables


def _empty_file(output: str, table: str, storage: Storage) -> FileEntry:
    with TableFile(output, f"{table}/00000-000.unnamed", table, storage) as file:
        pass
    return file.entry


def _named(entries: Sequence[FileEntry], output: str, table: str, storage: Storage) -> tuple[FileEntry, ...]:
    named = []
    for number, entry in enumerate(entries):
        file = shard_path(table, number, len(entries))
        storage.rename(join(output, entry.file), join(output, file))
        named.append(FileEntry(file, entry.rows, entry.bytes, entry.sha256))
    return tuple(named)


def write_classes(
    reports: Sequence[PartReport], storage: Storage, *, output: str, staging: str
) -> tuple[FileEntry, ...]:
    """Writes the table ``classes`` and gives its files."""
    batches = (
        batch for report in reports for batch in read_batches(storage, staged_file(staging, "classes", report.part))
    )
    edges = distinct_edges((batch["class"].to_numpy(), batch["superclass"].to_numpy()) for batch in batches)
    with RollingFiles(output, "classes", 0, storage) as files:
        for closure in class_closure(*edges):
            files.write(closure_batch(closure))
    return _named(files.entries or [_empty_file(output, "classes", storage)], output, "classes", storage)


def distinct_edges(
    pairs: Iterable[tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
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


def _item_ids(numbers: npt.NDArray[np.uint32]) -> pa.Array:
    return pc.binary_join_element_wise("Q", pa.array(numbers).cast(pa.string()), "")


def write_rejected(
    reports: Sequence[PartReport], storage: Storage, *, output: str, staging: str
) -> tuple[FileEntry, ...]:
    """Writes the table ``rejected`` and gives its files."""

    def records() -> Iterator[BadRecord]:
        for report in reports:
            for batch in read_batches(storage, staged_file(staging, "rejected", report.part)):
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield BadRecord(*values)

    return write_small_table(records(), output, "rejected", storage=storage)


def entity_counts(reports: Sequence[PartReport]) -> dict[str, EntityCounts]:
    """Gives what became of the lines of each input file."""
    counts: dict[str, Counter[str]] = {}
    rejected: dict[str, Counter[str]] = {}
    for report in reports:
        own = counts.setdefault(report.file, Counter())
        for name in ("n_lines", "n_items", "n_properties", "n_others"):
            own[name] += getattr(report, name)
        rejected.setdefault(report.file, Counter()).update(report.rejected)
    return {
        file: EntityCounts(
            own["n_lines"],
            own["n_items"],
            own["n_properties"],
            own["n_others"],
            dict(sorted(rejected[file].items())),
        )
        for file, own in counts.items()
    }


def summed_facts(reports: Sequence[PartReport]) -> dict[str, int]:
    """Gives the sum of the ranges' further counts."""
    total: Counter[Any] = Counter()
    for report in reports:
        total.update(report.facts)
    return dict(sorted(total.items()))
