"""Rows spread over scratch files by bucket, so that each bucket can be worked on alone in little memory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FLUSH_BYTES = 32 << 20
"""Rows held in memory before they are written out."""


class BucketSpill:
    """Scratch files, one per bucket, that take rows in any order and give each bucket's rows back in that
    order.

    The files are Arrow IPC streams, one after the other; they are removed when the context ends.
    """

    def __init__(self, folder: str, schema: pa.Schema, *, n_buckets: int, flush_bytes: int = FLUSH_BYTES) -> None:
        """Opens them.

        Args:
            folder: local; made here.
            schema: of the rows.
            n_buckets: how many files.
            flush_bytes: rows held in memory before they are written out; as much again while they are.
        """
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        self._schema = schema
        self._n_buckets = n_buckets
        self._flush_bytes = flush_bytes
        self._pending: list[pa.RecordBatch] = []
        self._pending_buckets: list[npt.NDArray[np.int64]] = []
        self._pending_bytes = 0

    def __enter__(self) -> BucketSpill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, batch: pa.RecordBatch, buckets: npt.NDArray[np.int64]) -> None:
        """Takes rows; ``buckets`` holds the bucket of each."""
        if batch.num_rows == 0:
            return
        self._pending.append(batch)
        self._pending_buckets.append(buckets)
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= self._flush_bytes:
            self.flush()

    def flush(self) -> None:
        """Writes out what is held in memory; call it once after the last row."""
        if not self._pending:
            return
        table = pa.Table.from_batches(self._pending, schema=self._schema)
        buckets = np.concatenate(self._pending_buckets)
        self._pending, self._pending_buckets, self._pending_bytes = [], [], 0
        order = np.argsort(buckets, kind="stable")
        table = table.take(order)
        edges = np.searchsorted(buckets[order], np.arange(self._n_buckets + 1))
        for bucket in range(self._n_buckets):
            start, stop = int(edges[bucket]), int(edges[bucket + 1])
            if start < stop:
                with (
                    open(self._path(bucket), "ab") as file,
                    pa.ipc.new_stream(file, self._schema) as writer,
                ):
                    writer.write_table(table.slice(start, stop - start))

    def read(self, bucket: int, columns: Iterable[str] | None = None) -> pa.Table:
        """Gives the rows of one bucket, in the order in which they came."""
        batches: list[Any] = []
        wanted = list(columns) if columns is not None else self._schema.names
        schema = pa.schema([self._schema.field(name) for name in wanted])
        if os.path.exists(self._path(bucket)):
            size = os.path.getsize(self._path(bucket))
            with pa.OSFile(self._path(bucket), "rb") as file:
                while file.tell() < size:
                    for batch in pa.ipc.open_stream(file):
                        batches.append(batch.select(wanted))
        return pa.Table.from_batches(batches, schema=schema)

    def _path(self, bucket: int) -> str:
        return os.path.join(self._folder, f"{bucket:04d}.arrows")
