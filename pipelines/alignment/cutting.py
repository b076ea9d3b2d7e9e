"""The evidences of neighbouring pages cut into chunks of work, and so those without a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import base_name, join
from kbsource.runtime.chunks import Report, Stored, read_stored, write_chunk
from mapping.search.suggest import QUERIES_AT_ONCE
from pipelines.alignment.rows import RESOLVED, batch_rows, batches_of
from pipelines.stores.storage import storage_for

PIECE_BYTES = 4 << 20
"""Text of evidences that are one chunk, with ``ROW_BYTES`` for what else there is of each."""
MISSING_BYTES = 64 << 20
"""The same of evidences without a page: one pass over all titles of a release serves a whole chunk."""
ROW_BYTES = 1_000
MERGED_AT_ONCE = 64
"""Pieces of rows without a page that are merged at a time."""
_TAKEN_AT_ONCE = 64
_ASKED, _TEXT = (RESOLVED.get_field_index(name) for name in ("asked", "evidence_text"))


def cut_pages(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Gives rows of ``RESOLVED`` in chunks that end between pages; a page that is more than a chunk is cut too.

    Args:
        batches: in the order of their pages.
    """
    held: list[pa.RecordBatch] = []
    n_bytes = 0
    for batch in batches:
        weights = np.cumsum(_weights(batch))
        begun = start = 0
        for end in _ends_of_pages(batch):
            before = int(weights[start - 1]) if start else 0
            since = int(weights[begun - 1]) if begun else 0
            if (held or start > begun) and n_bytes + int(weights[end - 1]) - since > PIECE_BYTES:
                yield [*held, batch.slice(begun, start - begun)] if start > begun else held
                held, n_bytes, begun, since = [], 0, start, before
            start = end
        held.append(batch.slice(begun))
        n_bytes += int(weights[-1]) - (int(weights[begun - 1]) if begun else 0)
    if held:
        yield held


def _ends_of_pages(batch: pa.RecordBatch) -> list[int]:
    """Gives where pages end; a page that is more than a chunk ends at every row."""
    positions = batch["position"].to_numpy()
    ends: list[int] = [*(np.flatnonzero(np.diff(positions)) + 1).tolist(), len(positions)]
    weights = np.cumsum(_weights(batch))
    found: list[int] = []
    start = 0
    for end in ends:
        n_bytes = int(weights[end - 1]) - (int(weights[start - 1]) if start else 0)
        found += range(start + 1, end + 1) if n_bytes > PIECE_BYTES else [end]
        start = end
    return found


def _weights(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    n_bytes: npt.NDArray[np.int64] = (
        pc.fill_null(pc.binary_length(batch["evidence_text"]), 0).to_numpy().astype(np.int64) + ROW_BYTES
    )
    return n_bytes


def cut_titles(pieces: Sequence[Stored], folder: str) -> Iterator[Iterator[pa.RecordBatch]]:
    """Gives rows without a page in chunks of ``QUERIES_AT_ONCE`` titles that were asked for, in their order.

    Each chunk must be taken before the next. Memory: some rows of ``MERGED_AT_ONCE`` pieces.

    Args:
        pieces: each in the order of the titles.
        folder: takes files while many pieces become fewer.
    """
    storage = storage_for(folder)
    level = 0
    while len(pieces) > MERGED_AT_ONCE:
        merged = []
        for number, start in enumerate(range(0, len(pieces), MERGED_AT_ONCE)):
            path = join(folder, str(level), base_name(pieces[0].path), f"{number}.arrow")
            rows = _by_title(pieces[start : start + MERGED_AT_ONCE])
            merged.append(write_chunk(batches_of(rows, RESOLVED), RESOLVED, Report(), path=path, storage=storage))
        pieces = merged
        level += 1
    ahead = _Ahead(_by_title(pieces))
    while ahead.next is not None:
        yield batches_of(_of_titles(ahead), RESOLVED)


def _by_title(pieces: Iterable[Stored]) -> Iterator[tuple[Any, ...]]:
    return merge(*map(_rows, pieces), key=_asked_of)


def _rows(piece: Stored) -> Iterator[tuple[Any, ...]]:
    """Gives rows in order, few of them in the form of Python at a time."""
    for batch in read_stored(piece, storage_for(piece.path)):
        for start in range(0, batch.num_rows, _TAKEN_AT_ONCE):
            yield from batch_rows(batch.slice(start, _TAKEN_AT_ONCE))


def _asked_of(row: tuple[Any, ...]) -> str:
    return row[_ASKED] or ""


class _Ahead:
    """Rows, of which the next can be looked at."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self.next = next(rows, None)

    def take(self) -> tuple[Any, ...]:
        row = self.next
        assert row is not None
        self.next = next(self._rows, None)
        return row


def _of_titles(rows: _Ahead) -> Iterator[tuple[Any, ...]]:
    last, n_titles, n_bytes = "", 0, 0
    while rows.next is not None:
        if (asked := _asked_of(rows.next)) != last:
            if n_titles == QUERIES_AT_ONCE or n_bytes > MISSING_BYTES:
                return
            last, n_titles = asked, n_titles + 1
        row = rows.take()
        n_bytes += len(row[_TEXT] or "") + ROW_BYTES
        yield row
