"""Rows of files looked up by number, and sets of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.files import atomic_write, join
from kbsource.runtime.chunks import Key, Stored, read_stored
from mapping.qampari.facts.classes import Numbers
from mapping.qampari.facts.item_sets import ItemSet
from pipelines.primitives.gather import Gather
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for


class Lookup:
    """Rows looked up by a column of numbers, which files hold ascending and not compressed, so that they are mapped.

    Args:
        chunks: keys, whose chunk is the group, and files.
        column: of the numbers.
        group_of: gives the group of each number.
    """

    def __init__(
        self, chunks: Sequence[tuple[Key, Stored]], column: str, group_of: Callable[[Numbers], Numbers]
    ) -> None:
        self._files = {key[1]: Stored(*stored) for key, stored in chunks}
        self._opened: dict[int, tuple[Numbers, pa.Table]] = {}
        self._column, self._group_of = column, group_of

    def take(self, numbers: Numbers) -> pa.RecordBatch:
        """Gives the row of each number, in their order; all are there."""
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
            with pa.memory_map(_local(stored.path)) as source:
                reader = pa.ipc.open_file(source)
                table = pa.Table.from_batches([reader.get_batch(number) for number in range(stored.n_batches)])
            self._opened[group] = table[self._column].to_numpy(), table
        return self._opened[group]


def _local(path: str) -> str:
    """Gives a local copy of a file that is elsewhere."""
    folder, _, name = path.rpartition("/")
    return join(storage_for(path).local_copy(folder, [name]), name)


class WriteItemSet(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, ``Stored``) of rows of ITEMS -> the path of one set of all of them.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def expand(self, items: Any) -> Any:
        return items | Gather() | "write" >> beam.ParDo(_WriteItemSet(self._path))


class _WriteItemSet(WorkerDoFn):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def process(self, chunks: list[tuple[Key, Stored]]) -> Iterator[str]:
        with named_faults():
            items = ItemSet()
            for _, one in chunks:
                for batch in read_stored(Stored(*one), storage_for(one[0])):
                    items.add(batch["item"].to_numpy())
            with atomic_write(storage_for(self._path), self._path) as file:
                np.save(file, items.bits, allow_pickle=False)
            yield self._path


def read_item_set(path: str) -> ItemSet:
    """Gives a set that ``WriteItemSet`` wrote."""
    with storage_for(path).open_read(path) as file:
        return ItemSet(np.load(file, allow_pickle=False))
