"""Rows of chunks put in groups: a file for each chunk, its rows by group, so that a group's rows can be read together.

What travels between machines is where the rows are. Within a chunk the rows of a group are in order, so the rows of a
group come in order by merging what the chunks hold, with little of each in memory, however large the group is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.runtime.chunks import BatchRef, Report, read_stored, write_chunk

MOST_GROUPS = 256
"""Groups of rows that are worked on together; a chunk has a piece of each."""
PIECE_ROWS = 1 << 14
"""Rows of a batch in a file by groups: what is held of each chunk while a group is merged."""


@dataclass(frozen=True, slots=True)
class ByNumber:
    """The group of each row by a column of whole numbers: the number, or its remainder by a number of groups."""

    column: str
    n_groups: int | None = None
    shift: int = 0  # last bits of the number that do not count

    def __call__(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        return self.of(rows[self.column].to_numpy().astype(np.int64, copy=False))

    def of(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The groups of numbers."""
        groups = numbers >> self.shift
        return groups if self.n_groups is None else groups % self.n_groups


@dataclass(frozen=True, slots=True)
class ByText:
    """The group of each row by a column of texts."""

    column: str
    n_groups: int

    def __call__(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        texts = rows[self.column].to_pylist()
        return np.fromiter((zlib.crc32(text.encode()) % self.n_groups for text in texts), np.int64, len(texts))


def write_groups(
    batches: Iterable[pa.RecordBatch],
    groups: Iterable[npt.NDArray[np.int64]],
    schema: pa.Schema,
    *,
    path: str,
    order: Sequence[str] = (),
) -> list[tuple[int, BatchRef]]:
    """Writes the rows of a chunk by group and gives each group's part of the file, groups ascending.

    Args:
        batches: the rows; all of them are held in memory.
        groups: the group of each row, an array a batch.
        order: columns of numbers, without nulls, that the rows of a group are ordered by; rows that are equal there,
            and all rows without an order, keep theirs.
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


def read_group(pieces: Iterable[BatchRef]) -> Iterator[pa.RecordBatch]:
    """The rows of a group as they were in the chunks, chunk after chunk, one batch in memory."""
    for piece in pieces:
        yield from read_stored(piece)


def merge_group(pieces: Sequence[BatchRef], order: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a group in the order that each piece is in.

    The same pieces give the same rows in the same order; that of rows that are equal in ``order`` means nothing.
    Memory: ``PIECE_ROWS`` rows of each piece, however many rows there are in all.

    Args:
        pieces: each ordered by the columns of ``order``.
        order: columns that were given to ``write_groups``.
    """
    if len(pieces) == 1:
        yield from read_stored(pieces[0])
        return
    readers = [_Reader(read_stored(piece), piece.n_batches) for piece in pieces]
    while readers := [reader for reader in readers if reader.fill()]:
        # All rows up to the least last row of what is held can be given: nothing before them is still to come, and
        # after the last batch of a piece nothing at all.
        limits = [reader.last(order) for reader in readers if not reader.is_at_end]
        taken = [reader.take_to(min(limits), order) if limits else reader.take() for reader in readers]
        table = pa.Table.from_batches([batch for batch in taken if batch is not None])
        places = np.lexsort([table[name].to_numpy() for name in reversed(order)])
        yield from table.take(pa.array(places)).combine_chunks().to_batches()


class _Reader:
    """What is held of one piece."""

    def __init__(self, batches: Iterator[pa.RecordBatch], n_batches: int) -> None:
        self._batches = batches
        self._n_left = n_batches
        self._held: pa.RecordBatch | None = None

    @property
    def is_at_end(self) -> bool:
        """Nothing comes after what is held."""
        return self._n_left == 0

    def fill(self) -> bool:
        """Holds rows, unless there are no more; says whether there are."""
        while self._held is None or not self._held.num_rows:
            self._held = next(self._batches, None)
            if self._held is None:
                return False
            self._n_left -= 1
        return True

    def take(self) -> pa.RecordBatch | None:
        """All that is held."""
        taken, self._held = self._held, None
        return taken

    def last(self, order: Sequence[str]) -> tuple[Any, ...]:
        assert self._held is not None
        return tuple(self._held[name][-1].as_py() for name in order)

    def take_to(self, limit: tuple[Any, ...], order: Sequence[str]) -> pa.RecordBatch | None:
        """The rows up to a limit, itself included."""
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
    """Rows as they come, cut so that those that stand together and are equal in some columns are in one batch.

    Memory: a batch, and the longest run of equal rows.
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
