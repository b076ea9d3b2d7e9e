"""Rows in files by group, looked up by a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kbsource.files import join
from kbsource.runtime.chunks import Key, Stored
from mapping.qampari.facts.classes import Numbers
from mapping.qampari.records import ProofText
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
                table = pa.Table.from_batches([reader.get_batch(one) for one in range(stored.n_batches)])
            self._opened[group] = table[self._column].to_numpy(), table
        return self._opened[group]


def _local(path: str) -> str:
    """Gives a local copy of a file that is elsewhere."""
    folder, _, name = path.rpartition("/")
    return join(storage_for(path).local_copy(folder, [name]), name)


def proof_texts(rows: pa.RecordBatch | pa.Table) -> list[ProofText]:
    """Gives rows of PROOFS as records."""
    return list(map(ProofText, *(rows[name].to_pylist() for name in ProofText._fields)))
