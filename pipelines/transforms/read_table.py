"""A table of a release, read by many workers at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.errors import named_faults
from kbsource.release.reader import parquet_file
from kbsource.runtime.chunks import Key
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

CHUNK_ROWS = 1 << 19
"""Rows of a chunk, and those of a row group more."""


class _Place(NamedTuple):
    """Some row groups of a file, by the number of the file."""

    file: int
    first_group: int
    n_groups: int


class ReadTable(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Pipeline -> (Key, record batch) of chosen columns: part is the number of the file, chunk that of a row group.

    Rows are in the order of the table within a batch and, by key, over batches. Memory: ``CHUNK_ROWS`` rows.

    Args:
        paths: of the table's files in order, in any storage.
        columns: which ones, in that order; None for all.
        together: a column; rows that stand together and are equal in it are in one batch.
        chunk_rows: row groups are put together until there are so many rows; 1 leaves each alone.
    """

    def __init__(
        self,
        paths: Sequence[str],
        columns: Sequence[str] | None,
        *,
        together: str | None = None,
        chunk_rows: int | None = None,
    ) -> None:
        super().__init__()
        self._paths, self._together = tuple(paths), together
        self._columns = None if columns is None else list(columns)
        self._chunk_rows = chunk_rows or CHUNK_ROWS

    def expand(self, pipeline: Any) -> Any:
        return (
            pipeline
            | "files" >> beam.Create(list(range(len(self._paths))), reshuffle=False)
            | "places" >> beam.ParDo(_Places(self._paths, self._chunk_rows))
            | "spread" >> beam.Reshuffle()
            | "read" >> beam.ParDo(_Read(self._paths, self._columns, self._together))
        )


class ReadStatements(ReadTable):
    """Pipeline -> (Key, record batch) of a release of Wikidata's statements; those of an entity are in one batch.

    As ``ReadTable``.

    Args:
        paths: of the files of statements in order, in any storage.
        columns: which ones; ``entity_id`` among them.
    """

    def __init__(self, paths: Sequence[str], columns: Sequence[str]) -> None:
        super().__init__(paths, columns, together="entity_id")


class _Places(WorkerDoFn):
    def __init__(self, paths: tuple[str, ...], chunk_rows: int) -> None:
        super().__init__()
        self._paths, self._chunk_rows = paths, chunk_rows

    def process(self, file: int) -> Iterator[_Place]:
        path = self._paths[file]
        with named_faults(), storage_for(path).open_read(path) as raw:
            metadata = pq.read_metadata(raw)
            first = n_rows = 0
            for group in range(metadata.num_row_groups):
                n_rows += metadata.row_group(group).num_rows
                if n_rows >= self._chunk_rows or group == metadata.num_row_groups - 1:
                    yield _Place(file, first, group + 1 - first)
                    first, n_rows = group + 1, 0


class _Read(WorkerDoFn):
    def __init__(self, paths: tuple[str, ...], columns: list[str] | None, together: str | None) -> None:
        super().__init__()
        self._paths, self._columns, self._together = paths, columns, together

    def process(self, element: tuple[int, int, int]) -> Iterator[tuple[Key, pa.RecordBatch]]:
        place = _Place(*element)
        with named_faults():
            groups = list(self._groups(place.file, place.first_group, place.n_groups, self._columns))
            table = pa.concat_tables(groups).combine_chunks()
            if self._together is not None:
                table = self._whole(place, table, self._together)
            if table.num_rows:
                yield Key(place.file, place.first_group), table.combine_chunks().to_batches()[0]

    def _whole(self, place: _Place, table: pa.Table, name: str) -> pa.Table:
        """Gives the rows without those that go on from before, and with those that go on after them."""
        before = self._last_before(place, name)
        n_rest = 0
        if before is not None:
            is_other = table[name].combine_chunks().to_numpy(zero_copy_only=False) != before
            n_rest = int(np.argmax(is_other)) if is_other.any() else table.num_rows
        if n_rest == table.num_rows:
            return table.slice(n_rest)
        last = table[name][table.num_rows - 1].as_py()
        further = []
        for group in self._after(place):
            is_other = group[name].combine_chunks().to_numpy(zero_copy_only=False) != last
            n_more = int(np.argmax(is_other)) if is_other.any() else group.num_rows
            further.append(group.slice(0, n_more))
            if n_more < group.num_rows:
                break
        return pa.concat_tables([table.slice(n_rest), *further])

    def _last_before(self, place: _Place, name: str) -> Any:
        for file in range(place.file, -1, -1):
            end = place.first_group if file == place.file else None
            with storage_for(self._paths[file]).open_read(self._paths[file]) as raw, parquet_file(raw) as opened:
                for group in range(opened.metadata.num_row_groups if end is None else end)[::-1]:
                    if opened.metadata.row_group(group).num_rows:
                        values = opened.read_row_group(group, columns=[name], use_threads=False)[name]
                        return values[len(values) - 1].as_py()
        return None

    def _after(self, place: _Place) -> Iterator[pa.Table]:
        yield from self._groups(place.file, place.first_group + place.n_groups, None, self._columns)
        for file in range(place.file + 1, len(self._paths)):
            yield from self._groups(file, 0, None, self._columns)

    def _groups(self, file: int, first: int, n_groups: int | None, columns: list[str] | None) -> Iterator[pa.Table]:
        path = self._paths[file]
        with storage_for(path).open_read(path) as raw, parquet_file(raw) as opened:
            n_all = opened.metadata.num_row_groups
            for group in range(first, n_all if n_groups is None else first + n_groups):
                table = opened.read_row_group(group, columns=columns, use_threads=False)
                yield table if columns is None else table.select(columns)
