"""Scratch files by bucket, and rows sorted through them, so that memory holds a bucket and never all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from kbsource.spill import BucketSpill
from mapping.qampari.classes import Numbers

N_BUCKETS = 256
_SPILL_BYTES = 8 << 20
_ROWS_AT_ONCE = 1024
_MOST_SAMPLED = 1 << 16
_KEY = "key_of_order"


def open_spill(folder: str, schema: pa.Schema, n_buckets: int = N_BUCKETS) -> BucketSpill:
    """Opens scratch files for rows by bucket, few of which wait in memory."""
    return BucketSpill(folder, schema, n_buckets=n_buckets, flush_bytes=_SPILL_BYTES)


class KeySample:
    """Some of the keys that rows are going to have, one of so many, to deal the rows out evenly.

    Memory: at most ``_MOST_SAMPLED`` numbers, however many keys come.
    """

    def __init__(self) -> None:
        self._keys: list[int] = []
        self._n_seen = 0
        self._every = 1

    def add(self, key: int) -> None:
        """Takes a key."""
        if self._n_seen % self._every == 0:
            self._keys.append(key)
            if len(self._keys) == _MOST_SAMPLED:
                del self._keys[1::2]
                self._every *= 2
        self._n_seen += 1

    def edges(self, n_buckets: int = N_BUCKETS) -> Numbers:
        """Gives the keys that buckets after the first begin with, of which each gets about as many."""
        keys = np.sort(np.array(self._keys, np.int64))
        return keys[np.arange(1, n_buckets) * len(keys) // n_buckets] if len(keys) else keys


def even_edges(end: int, n_buckets: int = N_BUCKETS) -> Numbers:
    """Gives the keys that buckets after the first begin with, for keys that lie evenly from 0 to before ``end``.

    >>> even_edges(100, 4).tolist()
    [25, 50, 75]
    """
    return np.array([end * bucket // n_buckets for bucket in range(1, n_buckets)], np.int64)


class OrderedRows:
    """Takes rows in any order and gives them in the order of their keys. A context: scratch files end with it.

    Args:
        scratch: local folder for them.
        schema: of the rows.
        edges: keys that buckets after the first begin with; they decide what memory is needed and nothing else.
        ties: columns that rows of one key are ordered by, a text by its code points.
    """

    def __init__(self, scratch: str, schema: pa.Schema, edges: Numbers, *, ties: Sequence[str] = ()) -> None:
        self._schema = schema
        self._spilt = pa.schema([pa.field(_KEY, pa.int64(), nullable=False), *schema])
        self._edges = edges
        self._order = [(name, "ascending") for name in (_KEY, *ties)]
        self._spill = open_spill(scratch, self._spilt, len(edges) + 1)
        self._pending: list[tuple[Any, ...]] = []

    def __enter__(self) -> OrderedRows:
        self._spill.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spill.__exit__(kind, error, trace)

    def add(self, key: int, row: tuple[Any, ...]) -> None:
        """Takes a row."""
        self._pending.append((key, *row))
        if len(self._pending) == _ROWS_AT_ONCE:
            self._spill_pending()

    def _spill_pending(self) -> None:
        if self._pending:
            columns = zip(zip(*self._pending, strict=True), self._spilt.types, strict=True)
            batch = pa.RecordBatch.from_arrays([pa.array(*one) for one in columns], schema=self._spilt)
            self._spill.add(batch, np.searchsorted(self._edges, batch[_KEY].to_numpy(), side="right"))
            self._pending = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Gives all rows in order, those of a bucket at once; after the last was added."""
        self._spill_pending()
        self._spill.flush()
        for bucket in range(len(self._edges) + 1):
            table = self._spill.read(bucket)
            if table.num_rows:
                table = table.sort_by(self._order).select(self._schema.names)
                yield from table.combine_chunks().to_batches()

    def write(self, path: str) -> None:
        """Writes all rows in order, for ``OrderedFile``."""
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, self._schema) as writer:
            for batch in self.batches():
                writer.write_batch(batch)


class OrderedFile:
    """Rows that ``OrderedRows`` wrote, memory-mapped, to be looked up by number.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])

    def __len__(self) -> int:
        """Gives the number of rows."""
        return int(self._starts[-1])

    def at(self, number: int) -> tuple[pa.RecordBatch, int]:
        """Gives the batch that a row is in, and its place there."""
        of_batch = int(np.searchsorted(self._starts, number, side="right")) - 1
        return self._batches[of_batch], number - int(self._starts[of_batch])
