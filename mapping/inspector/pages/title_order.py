"""Titles in the order of the alphabet, for those that begin with what somebody types.

Two arrays of equal length, by folded title: ``keys.npy``, its first eight bytes as a number, and ``rows.npy``, its row
in titles.arrow. 12 bytes a title; the titles themselves are looked up where keys are not enough.
"""

from __future__ import annotations

import os
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.index.title_index import TitleEntry, TitleIndex
from kbsource.runtime.sorted_runs import SortedRuns
from mapping.inspector.side_index import OnProgress

KEYS_FILE, ROWS_FILE = "keys.npy", "rows.npy"
_KEY_BYTES = 8
_SCANNED = 2_000
"""Titles that are looked at for one answer, at most: most of them may be redirects that lead nowhere."""
_SCHEMA = pa.schema([("key", pa.uint64()), ("row", pa.int32())])


def folded(text: str) -> bytes:
    """Gives a title as it is compared: letters alike but for case and accents are one.

    >>> folded("Zürich") == folded("ZURICH") == b"zurich"
    True
    """
    if text.isascii():
        return text.lower().encode()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in plain if not unicodedata.combining(char)).encode("utf-8", "replace")


def _key(text: bytes, filler: bytes = b"\0") -> int:
    return int.from_bytes(text[:_KEY_BYTES].ljust(_KEY_BYTES, filler), "big")


def write_title_order(index: TitleIndex, folder: str, on_progress: OnProgress) -> None:
    """Writes both arrays. Memory: the keys of a few batches of titles, and the titles of one range of keys.

    Args:
        index: the titles.
        folder: local, also takes scratch files.
        on_progress: is told titles done and of how many, each counted twice.
    """
    n_titles, n_done = len(index), 0
    keys = np.lib.format.open_memmap(os.path.join(folder, KEYS_FILE), "w+", np.uint64, (n_titles,))
    rows = np.lib.format.open_memmap(os.path.join(folder, ROWS_FILE), "w+", np.int32, (n_titles,))
    with SortedRuns(os.path.join(folder, "runs"), _SCHEMA, by="key") as runs:
        for batch in index.title_batches():
            own = np.array([_key(folded(title)) for title in batch["title"].to_pylist()], np.uint64)
            runs.add(own, np.arange(n_done, n_done + len(own), dtype=np.int32))
            n_done += len(own)
            on_progress(n_done, 2 * n_titles)
        at = 0
        for keys_range in runs.ranges():
            batch = runs.read(keys_range)
            own, own_rows = batch["key"].to_numpy(), batch["row"].to_numpy()
            titles = index.titles_at(own_rows.astype(np.int64)).to_pylist()
            order = np.array(sorted(range(len(own)), key=list(map(folded, titles)).__getitem__), np.int64)
            keys[at : at + len(own)], rows[at : at + len(own)] = own[order], own_rows[order]
            at += len(own)
            on_progress(n_titles + at, 2 * n_titles)
    keys.flush()
    rows.flush()


class TitleOrder:
    """Lookups in both arrays, which are memory-mapped."""

    def __init__(self, folder: str, index: TitleIndex) -> None:
        self._keys: npt.NDArray[np.uint64] = np.load(os.path.join(folder, KEYS_FILE), mmap_mode="r")
        self._rows: npt.NDArray[np.int32] = np.load(os.path.join(folder, ROWS_FILE), mmap_mode="r")
        self._index = index

    def beginning_with(self, text: str, n_titles: int) -> Iterator[TitleEntry]:
        """Gives titles that begin with a text and lead to an article, in the order of the alphabet, so many at most."""
        wanted = folded(text)
        start = int(np.searchsorted(self._keys, np.uint64(_key(wanted))))
        end = int(np.searchsorted(self._keys, np.uint64(_key(wanted, b"\xff")), side="right"))
        if len(wanted) > _KEY_BYTES:
            start = bisect_left(range(end), wanted, start, key=self._folded_at)
        for place in range(start, min(end, start + _SCANNED)):
            if not n_titles or not self._folded_at(place).startswith(wanted):
                return
            entry = self._index.entry(int(self._rows[place]))
            if entry.final_page_id is not None:
                n_titles -= 1
                yield entry

    def _folded_at(self, place: int) -> bytes:
        return folded(self._index.title_at(int(self._rows[place])))
