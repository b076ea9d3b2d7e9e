"""Regroups the rows of chunks. For each chunk, a file is written with its rows by group, so that all rows of a group
can be read from these files.

Only references to rows are sent between machines. In each file, the rows of a group are sorted. So the rows of a group
can be read in order by merging the files, with a few rows of each in memory, however large the group is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.runtime.chunks import BatchRef, Report, read_stored, write_chunk

MOST_GROUPS = 256
"""Maximum number of groups. The file of a chunk has a segment for each group."""
PIECE_ROWS = 1 << 14
"""Rows per batch in the file of a chunk. While a group is merged, this number of rows of each chunk is in memory."""


@dataclass(frozen=True, slots=True)
class ByNumber:
    """The group of each row: the remainder of an integer column divided by the number of groups."""

    column: str
    n_groups: int

    def __call__(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        numbers: npt.NDArray[np.int64] = rows[self.column].to_numpy().astype(np.int64, copy=False)
        return numbers % self.n_groups


def write_groups(
    batches: Iterable[pa.RecordBatch],
    groups: Iterable[npt.NDArray[np.int64]],
    schema: pa.Schema,
    *,
    path: str,
    order: Sequence[str] = (),
) -> list[tuple[int, BatchRef]]:
    """Writes the rows of a chunk by group, and returns the part of the file for each group, in ascending order of
    groups.

    Args:
        batches: the rows; all of them are held in memory.
        groups: the group of each row, one array per batch.
        order: number columns, without nulls, used to sort the rows of a group. Rows with equal values keep their
            order, as do all rows if no columns are given.
    """
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    group = np.concatenate([np.empty(0, np.int64), *groups])
    keys = [table[name].to_numpy() for name in reversed(order)]
    places = np.lexsort((*keys, group))
    group = group[places]
    found, starts = np.unique(group, return_index=True)
    ends = np.append(starts, len(group))[1:]
    pieces: list[tuple[int, BatchRef]] = []
    parts = []
    n_batches = 0
    for number, start, end in zip(found.tolist(), starts.tolist(), ends.tolist(), strict=True):
        cuts = range(start, end, PIECE_ROWS)
        parts += [(cut, min(cut + PIECE_ROWS, end)) for cut in cuts]
        pieces.append((number, BatchRef(path, n_batches, len(cuts), end - start, 0)))
        n_batches += len(cuts)
    ordered = (table.take(pa.array(places[start:end])).combine_chunks().to_batches()[0] for start, end in parts)
    write_chunk(ordered, schema, Report(), path=path)
    return pieces


def groups_in_place(
    batches: Sequence[pa.RecordBatch],
    groups: Sequence[npt.NDArray[np.int64]],
    stored: BatchRef,
    *,
    order: Sequence[str] = (),
) -> list[tuple[int, BatchRef]] | None:
    """Returns what ``write_groups`` would return, if the stored rows are already ordered by group and no batch contains
    rows of two groups. Otherwise returns None.

    Args:
        batches: the rows of ``stored``.
        groups: the group of each row, one array per batch.
        order: see ``write_groups``.
    """
    parts: list[tuple[int, BatchRef]] = []
    if any(len(group) == 0 or group[0] != group[-1] for group in groups):
        return None
    every = np.concatenate([np.empty(0, np.int64), *groups])
    keys = [np.concatenate([batch[name].to_numpy() for batch in batches]) for name in reversed(order) if batches]
    if not np.array_equal(np.lexsort((*keys, every)), np.arange(len(every))):
        return None
    for number, (group, batch) in enumerate(zip(groups, batches, strict=True), stored.first_batch):
        only = BatchRef(stored.path, number, 1, batch.num_rows, 0)
        if parts and parts[-1][0] == group[0]:
            last = parts.pop()[1]
            only = last._replace(n_batches=last.n_batches + 1, n_rows=last.n_rows + batch.num_rows)
        parts.append((int(group[0]), only))
    return parts


def read_group(pieces: Iterable[BatchRef]) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a group in the order of the chunks, chunk after chunk, with one batch in memory."""
    for piece in pieces:
        yield from read_stored(piece)


def merge_group(pieces: Sequence[BatchRef], order: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a group, merged in the order of ``order``.

    The same segments always yield the same rows in the same order. Rows that are equal in ``order`` have no defined
    order. Memory: ``PIECE_ROWS`` rows of each segment, however many rows there are.

    Args:
        pieces: the segments, each sorted by the columns of ``order``.
        order: columns that were passed to ``write_groups``.
    """
    if len(pieces) == 1:
        yield from read_stored(pieces[0])
        return
    readers = [_Reader(read_stored(piece), piece.n_batches) for piece in pieces]
    while readers := [reader for reader in readers if reader.fill()]:
        # For each segment, take the last row in memory. All rows up to the lowest of these can be yielded, because
        # later rows of any segment cannot come before it. A segment whose last batch was read does not limit it.
        limits = [reader.last(order) for reader in readers if not reader.is_at_end]
        taken = [reader.take_to(min(limits), order) if limits else reader.take() for reader in readers]
        table = pa.Table.from_batches([batch for batch in taken if batch is not None])
        places = np.lexsort([table[name].to_numpy() for name in reversed(order)])
        yield from table.take(pa.array(places)).combine_chunks().to_batches()


class _Reader:
    """The rows of a segment that are in memory."""

    def __init__(self, batches: Iterator[pa.RecordBatch], n_batches: int) -> None:
        self._batches = batches
        self._n_left = n_batches
        self._held: pa.RecordBatch | None = None

    @property
    def is_at_end(self) -> bool:
        """True if the rows in memory are the last ones of the segment."""
        return self._n_left == 0

    def fill(self) -> bool:
        """Reads rows if none are in memory. Returns whether there are any."""
        while self._held is None or not self._held.num_rows:
            self._held = next(self._batches, None)
            if self._held is None:
                return False
            self._n_left -= 1
        return True

    def take(self) -> pa.RecordBatch | None:
        """Removes all rows from memory and returns them."""
        taken, self._held = self._held, None
        return taken

    def last(self, order: Sequence[str]) -> tuple[Any, ...]:
        assert self._held is not None
        return tuple(self._held[name][-1].as_py() for name in order)

    def take_to(self, limit: tuple[Any, ...], order: Sequence[str]) -> pa.RecordBatch | None:
        """Removes the rows up to and including a limit from memory and returns them."""
        assert self._held is not None
        start, end = 0, self._held.num_rows
        for name, value in zip(order, limit, strict=True):
            column = self._held[name].to_numpy()[start:end]
            start, end = (
                start + int(np.searchsorted(column, value)),
                start + int(np.searchsorted(column, value, "right")),
            )
        taken = self._held.slice(0, end)
        self._held = self._held.slice(end)
        return taken if taken.num_rows else None


def whole_runs(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Divides rows into batches, in order, so that consecutive rows with equal values in some columns are in the same
    batch.

    Memory: one batch, and the longest run of equal rows.
    """
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        is_new = np.zeros(batch.num_rows, np.bool_)
        for name in names:
            values = batch[name].to_numpy()
            is_new[1:] |= values[1:] != values[:-1]
            is_new[0] |= bool(held) and values[0] != held[-1][name][held[-1].num_rows - 1].as_py()
        edges = np.flatnonzero(is_new)
        if not len(edges):
            held.append(batch)
            continue
        last = int(edges[-1])
        if whole := [*held, *([batch.slice(0, last)] if last else [])]:
            yield pa.concat_batches(whole)
        held = [batch.slice(last)]
    if held:
        yield pa.concat_batches(held)


def one_run_each(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    """Divides rows into batches, in order: one for each run of consecutive rows with equal values in a column."""
    for batch in whole_runs(batches, [name]):
        edges = np.flatnonzero(np.diff(batch[name].to_numpy())) + 1
        for start, end in pairwise([0, *edges.tolist(), batch.num_rows]):
            yield batch.slice(start, end - start)
