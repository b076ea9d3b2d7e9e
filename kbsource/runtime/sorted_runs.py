"""Sorts any number of rows by a number, on the local disk, as sorted runs that are read by ranges of keys.

All rows with the same key are in one range, so joins by the key are done range by range, in little memory.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.columns import rebatched
from kbsource.runtime.chunks import BatchRef, Report, read_stored, write_chunk

RUN_BYTES = 8 << 20
"""Bytes of rows held in memory until they are sorted and written; the same amount again during sorting."""
PIECE_ROWS = 1 << 12
"""Rows per batch in a run, the least that is read of it."""
RANGE_ROWS = 1 << 16
"""Approximate number of rows in a range."""


class KeyRange(NamedTuple):
    """Keys from ``start`` up to but not including ``stop``; None means unbounded."""

    start: int | None
    stop: int | None


class SortedRuns:
    """Rows that are added in any order and read by ranges of a column. The files are removed when the context ends.

    Memory: ``RUN_BYTES`` of rows twice while rows are added, one range while they are read, and 8 bytes for every
    ``PIECE_ROWS`` rows.
    """

    def __init__(self, folder: str, schema: pa.Schema, *, by: str) -> None:
        """Creates the folder.

        Args:
            folder: local folder used for nothing else.
            by: name of the key, an integer column without nulls.
        """
        self._folder, self._schema, self._by = folder, schema, by
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._runs: list[tuple[BatchRef, npt.NDArray[np.integer]]] = []
        self.n_rows = 0
        os.makedirs(folder, exist_ok=True)

    def __enter__(self) -> SortedRuns:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, *columns: pa.Array | npt.NDArray[np.generic]) -> None:
        """Adds rows, passed as the schema's columns."""
        batch = pa.RecordBatch.from_arrays(list(columns), schema=self._schema)
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        self.n_rows += batch.num_rows
        if self._pending_bytes >= RUN_BYTES:
            self._write_run()

    def ranges(self) -> list[KeyRange]:
        """Returns ranges that cover all keys, ascending, with about ``RANGE_ROWS`` rows each; rows with the same key
        stay together.
        """
        self._write_run()
        firsts = np.sort(np.concatenate([run[1] for run in self._runs])) if self._runs else np.empty(0, np.int64)
        step = max(RANGE_ROWS // PIECE_ROWS, 1)
        cuts = np.unique(firsts[step::step]).tolist()
        return [KeyRange(*edges) for edges in pairwise([None, *cuts, None])]

    def read(self, keys: KeyRange) -> pa.RecordBatch:
        """Returns the rows of a range, run after run, sorted by key within each run."""
        self._write_run()
        empty = pa.RecordBatch.from_pylist([], self._schema)
        return pa.concat_batches([empty, *(batch for run in self._runs for batch in self._read_run(*run, keys))])

    def read_sorted(self, n_rows: int) -> Iterator[pa.RecordBatch]:
        """Reads all rows sorted by key, in batches of exactly ``n_rows`` rows (the last may be shorter); rows with
        equal keys are in any order.
        """
        batches = (self.read(keys) for keys in self.ranges())
        return rebatched((batch.take(pa.array(np.argsort(batch[self._by]))) for batch in batches), n_rows)

    def _write_run(self) -> None:
        if not self._pending:
            return
        rows = pa.concat_batches(self._pending)
        self._pending, self._pending_bytes = [], 0
        keys = rows[self._by].to_numpy()
        order = np.argsort(keys, kind="stable")
        starts = range(0, len(order), PIECE_ROWS)
        pieces = (rows.take(pa.array(order[start : start + PIECE_ROWS])) for start in starts)
        path = os.path.join(self._folder, f"{len(self._runs):05d}.arrow")
        stored = write_chunk(pieces, self._schema, Report(), path=path)
        self._runs.append((stored, keys[order[::PIECE_ROWS]]))

    def _read_run(self, stored: BatchRef, firsts: npt.NDArray[np.integer], keys: KeyRange) -> Iterator[pa.RecordBatch]:
        # A segment may end with the key with which the next one begins.
        first = 0 if keys.start is None else max(_place(firsts, keys.start) - 1, 0)
        end = len(firsts) if keys.stop is None else _place(firsts, keys.stop)
        for batch in read_stored(stored._replace(first_batch=first, n_batches=end - first)):
            own = batch[self._by].to_numpy()
            start = 0 if keys.start is None else _place(own, keys.start)
            stop = len(own) if keys.stop is None else _place(own, keys.stop)
            if start < stop:
                yield batch.slice(start, stop - start)


def _place(keys: npt.NDArray[np.integer], key: int) -> int:
    """Returns the number of sorted keys below a key; compares integers as integers, not as floating-point numbers."""
    return int(np.searchsorted(keys, keys.dtype.type(key)))
