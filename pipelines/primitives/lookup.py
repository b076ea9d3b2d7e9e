"""Looks up rows of files by number, and reads and writes sets of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.files import Folder, join
from kbsource.local_copies import local_copy
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_batches
from mapping.qampari.classes import ItemSet, Numbers
from pipelines.primitives.shuffle import CollectSorted
from pipelines.runners.workers import WorkerDoFn


class Lookup:
    """Looks up rows by a numeric column. The files are sorted by this column and not compressed, so they can be
    memory-mapped.

    ``group_of`` maps a number to its group, which is the chunk in the key of the file with this number.
    """

    def __init__(
        self, chunks: Sequence[tuple[ChunkKey, BatchRef]], column: str, group_of: Callable[[Numbers], Numbers]
    ) -> None:
        self._files = {key[1]: BatchRef(*stored) for key, stored in chunks}
        self._opened: dict[int, tuple[Numbers, pa.Table]] = {}
        self._column, self._group_of = column, group_of

    def take(self, numbers: Numbers) -> pa.RecordBatch:
        """Returns the row of each number, in the given order; all numbers must exist."""
        groups = self._group_of(numbers)
        order = np.argsort(groups, kind="stable")
        in_order, groups = numbers[order], groups[order]
        parts = []
        edges = np.flatnonzero(np.diff(groups, prepend=-1, append=-1))
        for start, end in pairwise(edges.tolist()):
            known, table = self._table(int(groups[start]))
            at = np.searchsorted(known, in_order[start:end])
            assert (known[at] == in_order[start:end]).all()
            parts.append(table.take(pa.array(at)))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        rows = pa.concat_tables(parts).combine_chunks().to_batches()[0]
        return rows.take(pa.array(back))

    def _table(self, group: int) -> tuple[Numbers, pa.Table]:
        if group not in self._opened:
            stored = self._files[group]
            folder, _, name = stored.path.rpartition("/")
            with pa.memory_map(join(local_copy(Folder.of(folder), [name]), name)) as source:
                reader = pa.ipc.open_file(source)
                table = pa.Table.from_batches([reader.get_batch(number) for number in range(stored.n_batches)])
            self._opened[group] = table[self._column].to_numpy(), table
        return self._opened[group]


class MapRows(WorkerDoFn):
    """(key, record batch) -> (key, result of a function of the batch and the side inputs).

    With ``opens``, the first side input is a path; the function gets the object that was opened from it once.
    """

    def __init__(self, function: Callable[..., pa.RecordBatch], *, opens: Callable[[str], Any] | None = None) -> None:
        super().__init__()
        self._function, self._opens = function, opens
        self._opened: Any = None

    def process(self, element: tuple[ChunkKey, pa.RecordBatch], *given: Any) -> Iterator[Any]:
        key, batch = element
        with named_faults():
            if self._opens is not None:
                if self._opened is None:
                    self._opened = self._opens(given[0])
                given = (self._opened, *given[1:])
            yield key, self._function(batch, *given)


def write_item_set(path: str) -> CollectSorted:
    """(key, ``BatchRef``) of rows of ITEMS -> the path of a set of all items."""
    return CollectSorted(partial(_write_item_set, path=path))


def _write_item_set(chunks: list[tuple[ChunkKey, BatchRef]], *, path: str) -> Iterator[str]:
    items = ItemSet()
    for _, stored in chunks:
        for batch in read_batches(BatchRef(*stored)):
            items.add(batch["item"].to_numpy())
    with Folder.of(path).create() as file:
        np.save(file, items.bits, allow_pickle=False)
    yield path


def read_item_set(path: str) -> ItemSet:
    """Returns a set that ``write_item_set`` wrote."""
    with Folder.of(path).open() as file:
        return ItemSet(np.load(file, allow_pickle=False))
