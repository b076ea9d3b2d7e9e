"""Chunks of a table written as the Parquet files of a release, one file for each part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, TypeAlias

import apache_beam as beam
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.release.kind import Kind
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import TableFile
from kbsource.runtime.chunks import Key, Stored, read_stored
from mapping.kinds import OWN_TABLES
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import absolute, storage_for

Rows: TypeAlias = "Stored | pa.RecordBatch"


def write_part(table: str, file: str, rows: Iterable[Rows], *, output: str, schema: pa.Schema) -> FileEntry:
    """Writes one file of a table, under a temporary name until it is whole, and gives its entry in a manifest.

    Args:
        table: name of the table.
        file: path in the folder.
        rows: in their order; each batch becomes a row group.
        output: folder of the release.
        schema: of the table.
    """
    with TableFile(output, file, table, storage_for(output), schema=schema) as target:
        for row in rows:
            for batch in read_stored(row, storage_for(row.path)) if isinstance(row, Stored) else (row,):
                if batch.num_rows:
                    target.write(batch)
    return target.entry


class WriteTable(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, rows) -> ``FileEntry``: one Parquet file for each part of the keys, its rows in the order of the keys.

    The files are hashed while they are written, have temporary names until they are whole, and have the same bytes
    whatever ran. Parts without chunks have no file; without any chunks there is one empty file.

    Rows that are no ``Stored`` go through the memory of the runner: put a ``Checkpoint`` before this where they are
    many.

    Args:
        table: name of the table.
        output: folder of the release.
        kind: of the release, which has the table's schema.
    """

    def __init__(self, table: str, output: str, *, kind: Kind[Any] = OWN_TABLES) -> None:
        super().__init__()
        self._table, self._output, self._schema = table, absolute(output), kind.tables[table]

    def expand(self, chunks: Any) -> Any:
        begin = chunks.pipeline | "always" >> beam.Create([(0, None)], reshuffle=False)
        return (
            (chunks | "together" >> beam.Map(_together), begin)
            | beam.Flatten()
            | "all" >> beam.GroupByKey()
            | "files" >> beam.FlatMap(_files, self._table)
            | "spread" >> beam.Reshuffle()
            | "write" >> beam.ParDo(_WritePart(self._table, self._output, self._schema))
        )


def _together(chunk: tuple[Key, Rows]) -> tuple[int, tuple[Key, Rows]]:
    return 0, chunk


def _files(together: tuple[int, Iterable[tuple[Key, Rows] | None]], table: str) -> Iterator[tuple[str, list[Rows]]]:
    """Gives path and rows of every file."""
    ordered = sorted((chunk for chunk in together[1] if chunk is not None), key=_key_of)
    parts = [[rows for _, rows in part] for _, part in groupby(ordered, key=_part_of)] or [[]]
    for number, part in enumerate(parts):
        yield shard_path(table, number, len(parts)), part


def _key_of(chunk: tuple[Key, Rows]) -> Key:
    return chunk[0]


def _part_of(chunk: tuple[Key, Rows]) -> int:
    return chunk[0][0]


class _WritePart(WorkerDoFn):
    def __init__(self, table: str, output: str, schema: pa.Schema) -> None:
        super().__init__()
        self._table, self._output, self._schema = table, output, schema

    def process(self, element: tuple[str, list[Rows]]) -> Iterator[FileEntry]:
        file, rows = element
        with named_faults():
            yield write_part(self._table, file, rows, output=self._output, schema=self._schema)
