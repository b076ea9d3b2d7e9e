"""The only shuffle: rows go through files, and keys and references through Beam."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.runtime.chunks import Key, Stored, chunk_path, read_stored
from kbsource.runtime.regroup import write_groups
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

GroupsOf = Callable[[pa.RecordBatch], npt.NDArray[np.int64]]


class Regroup(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, rows) -> (group, tuple of ``Stored``): where the rows of each group are, pieces in the order of the keys.

    Read a group with ``read_group`` of ``kbsource.runtime.regroup``, in the order of the input, or with ``merge_group``
    in that of ``order``. Memory is that of one chunk, however many rows a group has. A group without rows does not
    come.

    Args:
        folder: takes a file for each chunk; for one job with one input only.
        by: gives the group of each row of a batch, a number from 0; importable where workers run, and pickled.
        order: columns of numbers that the rows of a group are ordered by, within each piece.
    """

    def __init__(self, folder: str, by: GroupsOf, *, order: Sequence[str] = ()) -> None:
        super().__init__()
        self._split = _SplitChunk(folder, by, tuple(order))

    def expand(self, chunks: Any) -> Any:
        return (
            chunks
            | "split" >> beam.ParDo(self._split)
            | "group" >> beam.GroupByKey()
            | "in order" >> beam.MapTuple(_in_order)
        )


def _in_order(group: int, pieces: Iterable[tuple[Key, Stored]]) -> tuple[int, tuple[Stored, ...]]:
    return group, tuple(Stored(*stored) for _, stored in sorted(pieces))


class _SplitChunk(WorkerDoFn):
    def __init__(self, folder: str, by: GroupsOf, order: tuple[str, ...]) -> None:
        super().__init__()
        self._folder, self._by, self._order = folder, by, order

    def process(self, element: tuple[Key, Stored | pa.RecordBatch]) -> Iterator[tuple[int, tuple[Key, Stored]]]:
        key, rows = element
        path = chunk_path(self._folder, Key(*key))
        with named_faults():
            if isinstance(rows, Stored):
                source = storage_for(rows.path)
                batches = list(read_stored(rows, source))
                schema = batches[0].schema if batches else read_chunk_schema(rows)
            else:
                batches, schema = [rows], rows.schema
            groups = [self._by(batch) for batch in batches]
            pieces = write_groups(batches, groups, schema, path=path, storage=storage_for(path), order=self._order)
            for group, stored in pieces:
                yield group, (Key(*key), stored)


def read_chunk_schema(stored: Stored) -> pa.Schema:
    """Gives the schema of stored rows."""
    with storage_for(stored.path).open_read(stored.path) as file:
        return pa.ipc.open_file(file).schema
