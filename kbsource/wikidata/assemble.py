"""From the ranges' files to a release: entities that come twice, final names, classes, rejected records, counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import Storage, join
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import TableFile, write_small_table
from kbsource.runtime.chunks import Key, Stored, read_chunk_report, read_stored
from kbsource.schema import CLASSES
from kbsource.wikidata.classes import Closure, class_closure
from kbsource.wikidata.manifest import EntityCounts
from kbsource.wikidata.parts import IDS, PARSED_TABLES, PartReport, class_edges_path, tables_folder
from kbsource.wikidata.rolling import RollingFiles

_EDGES_AT_ONCE = 1 << 20
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)


def find_superseded(ids: pa.Table) -> dict[int, tuple[int, ...]]:
    """Gives, by range, the ordinals of the lines whose entity another line supersedes.

    Of lines with one entity the one with the highest revision counts, then the first.

    Args:
        ids: of schema ``IDS``, in any order; all lines of an entity whose lines are among them.
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    kind, number, revision, part, ordinal = (ids[name].to_numpy() for name in IDS.names)
    order = np.lexsort((ordinal, part, -revision, number, kind))
    again = (number[order][1:] == number[order][:-1]) & (kind[order][1:] == kind[order][:-1])
    for row in order[1:][again].tolist():
        found[int(part[row])].append(int(ordinal[row]))
    return {part: tuple(sorted(ordinals)) for part, ordinals in sorted(found.items())}


def name_files(
    reports: Sequence[PartReport], storage: Storage, *, output: str, staging: str
) -> dict[str, tuple[FileEntry, ...]]:
    """Moves the ranges' files to where they belong, in the order of the ranges; every table gets at least one file.

    Files that are there already stay.
    """
    tables = {}
    for table in PARSED_TABLES:
        entries = [entry for report in reports for entry in report.tables[table]]
        tables[table] = _named(entries, table, storage, output=output, staging=staging)
    return tables


def _named(
    entries: Sequence[FileEntry], table: str, storage: Storage, *, output: str, staging: str
) -> tuple[FileEntry, ...]:
    folder = tables_folder(staging)
    if not entries:
        with TableFile(folder, f"{table}/none.parquet", table, storage) as empty:
            pass
        entries = [empty.entry]
    waiting = frozenset(storage.glob(join(folder, table, "*.parquet")))
    named = []
    for number, entry in enumerate(entries):
        file = shard_path(table, number, len(entries))
        if (source := join(folder, entry.file)) in waiting:
            storage.rename(source, join(output, file))
        named.append(FileEntry(file, entry.rows, entry.bytes, entry.sha256))
    return tuple(named)


def write_classes(keys: Iterable[Key], storage: Storage, *, output: str, staging: str) -> tuple[FileEntry, ...]:
    """Writes the table ``classes`` and gives its files.

    Args:
        keys: of the ranges, as their ``CLASS_EDGES`` have them.
        storage: of the folders.
        output: folder of the release.
        staging: staging folder.
    """
    stored = (read_chunk_report(class_edges_path(staging, key), storage)[0] for key in keys)
    batches = (batch for one in stored for batch in read_stored(one, storage))
    edges = distinct_edges((batch["class"].to_numpy(), batch["superclass"].to_numpy()) for batch in batches)
    with RollingFiles(tables_folder(staging), "classes", Key(0, 0), storage) as files:
        for closure in class_closure(*edges):
            files.write(closure_batch(closure))
    return _named(files.entries, "classes", storage, output=output, staging=staging)


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


def write_rejected(chunks: Iterable[Stored], storage: Storage, *, output: str) -> tuple[FileEntry, ...]:
    """Writes the table ``rejected`` out of the reports of the ranges, and gives its files. Memory: one range's."""
    rejected = (bad for chunk in chunks for bad in read_chunk_report(chunk.path, storage)[1].rejected)
    return write_small_table(rejected, output, "rejected", storage=storage)


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
