"""Moves rows between workers: text through files, keys and references through Beam."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.runtime.chunks import (
    BatchRef,
    ChunkKey,
    Report,
    chunk_path,
    keep_chunk,
    read_batches,
    read_chunk_schema,
    write_chunk,
)
from kbsource.runtime.regroup import groups_in_place, write_groups
from pipelines.runners.workers import do

GroupsOf = Callable[[pa.RecordBatch], npt.NDArray[np.int64]]


class CollectSorted(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Collects all pairs in one list, in key order, each once. Without pairs, the list is empty.

    (key, value) -> one list.

    The whole list is on one worker, so values should be references, counts or other small values.

    Args:
        function: called with the list and the values of ``given``, as in ``do``; the items it yields replace the list.
    """

    def __init__(self, function: Callable[..., Iterable[Any]] | None = None, *given: Any) -> None:
        super().__init__()
        self._function, self._given = function, given

    def expand(self, keyed: Any) -> Any:
        # Grouping by a common key would take three times as many transforms, and a first element for empty inputs.
        begin = keyed.pipeline | "begin" >> beam.Impulse()
        return begin | "in order" >> do(_in_order, beam.pvalue.AsList(keyed), *self._given, function=self._function)


def _in_order(
    _: bytes, keyed: Iterable[tuple[Any, Any]], *given: Any, function: Callable[..., Iterable[Any]] | None
) -> Iterable[Any]:
    ordered = sorted(keyed, key=itemgetter(0))
    return [ordered] if function is None else function(ordered, *given)


class Checkpoint(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Writes rows to files, and distributes the references to these files over all workers.

    (key, record batch) -> (key, ``BatchRef``).

    Text therefore never passes through a shuffle, whose memory it would fill. Existing files are reused.

    Args:
        folder: a file per chunk is written to it. Use another folder for each job and input.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, chunks: Any) -> Any:
        return chunks | "keep" >> do(_keep, folder=self._folder) | "spread" >> beam.Reshuffle()


def _keep(element: tuple[ChunkKey, pa.RecordBatch], *, folder: str) -> Iterator[tuple[ChunkKey, BatchRef]]:
    yield element[0], keep_batch(ChunkKey(*element[0]), element[1], folder)


def keep_batch(key: ChunkKey, batch: pa.RecordBatch, folder: str) -> BatchRef:
    """Returns the file of a chunk's rows in the folder, and writes it if it does not exist."""
    return keep_chunk(folder, key, lambda path: write_batch(batch, path=path))


def write_batch(batch: pa.RecordBatch, *, path: str) -> None:
    """Writes a chunk of one batch."""
    write_chunk([batch], batch.schema, Report(), path=path)


class Regroup(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Groups rows through files: returns the files with the rows of each group, in key order.

    (key, rows) -> (group, tuple of ``BatchRef``).

    A stored file whose rows are in groups already is not written again.

    Read a group in input order with ``read_group`` of ``kbsource.runtime.regroup``, or in the order of ``order`` with
    ``merge_group``. Memory: one chunk, whatever the size of a group. Groups without rows are not returned.

    Args:
        folder: a file per chunk is written to it. Use another folder for each job and input.
        by: function that returns the group of each row of a batch, as a number from 0. It is pickled and must be
            importable by workers.
        order: numeric columns that the rows of a group are sorted by within each file.
    """

    def __init__(self, folder: str, by: GroupsOf, *, order: Sequence[str] = ()) -> None:
        super().__init__()
        self._split = do(split_rows, folder=folder, by=by, order=tuple(order))

    def expand(self, chunks: Any) -> Any:
        return chunks | "split" >> self._split | "group" >> beam.GroupByKey() | "in order" >> beam.MapTuple(_in_turn)


def split_rows(
    element: tuple[ChunkKey, BatchRef | pa.RecordBatch], *, folder: str, by: GroupsOf, order: Sequence[str]
) -> Iterator[tuple[int, tuple[ChunkKey, BatchRef]]]:
    """Divides the rows of a chunk by group, for ``Regroup``.

    (key, rows) -> (group, (key, rows of the group)).
    """
    key, rows = ChunkKey(*element[0]), element[1]
    batches = list(read_batches(rows))
    schema = read_chunk_schema(rows.path) if isinstance(rows, BatchRef) else rows.schema
    groups = [by(batch) for batch in batches]
    parts = groups_in_place(batches, groups, rows, order=order) if isinstance(rows, BatchRef) else None
    if parts is None:
        parts = write_groups(batches, groups, schema, path=chunk_path(folder, key), order=order)
    for group, stored in parts:
        yield group, (key, stored)


def _in_turn(group: int, pieces: Iterable[tuple[ChunkKey, BatchRef]]) -> tuple[int, tuple[BatchRef, ...]]:
    return group, tuple(BatchRef(*stored) for _, stored in sorted(pieces))
