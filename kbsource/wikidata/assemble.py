"""From the ranges' files to a release: entities that come twice, final names, classes, rejected records, counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kbsource.files import Storage
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import name_files, write_small_table
from kbsource.runtime.chunks import Key, Stored, read_chunk_report, read_stored
from kbsource.wikidata.classes import class_closure, closure_batch, distinct_edges
from kbsource.wikidata.kind import EntityCounts
from kbsource.wikidata.parts import IDS, PARSED_TABLES, PartReport, class_edges_path, part_files, tables_folder


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


def name_tables(
    reports: Sequence[PartReport], storage: Storage, *, output: str, staging: str
) -> dict[str, tuple[FileEntry, ...]]:
    """Moves the ranges' files to where they belong, in the order of the ranges; every table gets at least one file.

    Files that are there already stay.
    """
    tables = {}
    for table in PARSED_TABLES:
        entries = [entry for report in reports for entry in report.tables[table]]
        tables[table] = name_files(entries, table, storage, folder=tables_folder(staging), output=output)
    return tables


def write_classes(keys: Iterable[Key], storage: Storage, *, output: str, staging: str) -> tuple[FileEntry, ...]:
    """Writes the table ``classes`` and gives its files.

    Args:
        keys: of the ranges, as their ``CLASS_EDGES`` have them.
        storage: of the folders.
        output: folder of the release.
        staging: staging folder.
    """
    stored = (read_chunk_report(class_edges_path(staging, key), storage)[0] for key in keys)
    batches = (batch for file in stored for batch in read_stored(file, storage))
    edges = distinct_edges((batch["class"].to_numpy(), batch["superclass"].to_numpy()) for batch in batches)
    with part_files(staging, "classes", Key(0, 0), storage) as files:
        for closure in class_closure(*edges):
            files.write(closure_batch(closure))
    return name_files(files.entries, "classes", storage, folder=tables_folder(staging), output=output)


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
