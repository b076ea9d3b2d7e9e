"""Assembles a release from the files of the ranges: resolves duplicate entities, gives files their final names, and
writes the classes, the rejected records and the counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from kbsource.columns import schema_of
from kbsource.records import BadRecord
from kbsource.release.manifest import FileEntry, sum_counts
from kbsource.release.writer import name_files, write_small_table
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_chunk_report, read_stored
from kbsource.wikidata.classes import class_closure, distinct_edges
from kbsource.wikidata.parts import IDS, PARSED_TABLES, PartReport, class_edges_path, part_files, tables_folder
from kbsource.wikidata.records import WIKIDATA_TABLES, ClassPair, EntityCounts


def find_superseded(ids: pa.Table) -> dict[int, tuple[int, ...]]:
    """Returns, by range, the ordinals of the lines to leave out because another line has the same entity.

    Of several lines with the same entity, the one with the highest revision is used, or if the revisions are equal, the
    first one.

    Args:
        ids: rows of schema ``IDS``, in any order. They must contain all or none of the lines of an entity.
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    kind, number, revision, part, ordinal = (ids[name].to_numpy() for name in IDS.names)
    order = np.lexsort((ordinal, part, -revision, number, kind))
    again = (number[order][1:] == number[order][:-1]) & (kind[order][1:] == kind[order][:-1])
    for row in order[1:][again].tolist():
        found[int(part[row])].append(int(ordinal[row]))
    return {part: tuple(sorted(ordinals)) for part, ordinals in sorted(found.items())}


def name_tables(reports: Sequence[PartReport], *, output: str, staging: str) -> dict[str, tuple[FileEntry, ...]]:
    """Gives the files of the ranges their final names, in the order of the ranges. Every table gets at least one file.

    Files that already have their final names are not changed.
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


def write_rejected_entities(chunks: Iterable[BatchRef], *, output: str) -> tuple[FileEntry, ...]:
    """Writes the table ``rejected`` from the ranges' reports, and returns its files. Memory: a range's records."""
    rejected = (bad for chunk in chunks for bad in read_chunk_report(chunk.path)[1].rejected)
    return write_small_table(rejected, BadRecord, output, "rejected")


def entity_counts(reports: Sequence[PartReport]) -> dict[str, EntityCounts]:
    """Returns the counts of the lines of each input file by outcome."""
    files = dict.fromkeys(report.file for report in reports)
    return {
        file: sum_counts((report.counts for report in reports if report.file == file), EntityCounts()) for file in files
    }
