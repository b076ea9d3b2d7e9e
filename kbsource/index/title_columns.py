"""Looks up many titles at once in the mapped columns of ``titles.arrow``.

Keys are found by interpolation, because hashes are evenly distributed. Titles are compared as bytes; only the titles of
redirect targets are converted to strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kbsource.index.mapped_files import MappedFile, digest_keys

_STEPS = 4
"""Number of interpolations. In a batch, the first one comes within about 100 rows of the key, the last one within two
or three.
"""
_WINDOW = 16
"""Number of keys around the interpolated row that are compared."""
_AROUND = np.arange(_WINDOW)


ABSENT, UNCERTAIN = -1, -2
"""Values in place of a row. ``ABSENT``: the dump does not have the title. ``UNCERTAIN``: the title must be looked up
individually, because another title has the same hash, or its key is not in the expected window.
"""


class FoundTitles(NamedTuple):
    """The rows and page ids of requested titles, by index in the request."""

    page_ids: list[int]  #: page ids of articles; undefined for other titles
    others: dict[int, int]  #: for each title that is not that of an article: its row, ``ABSENT`` or ``UNCERTAIN``


class TitleColumns:
    """The columns of an index without checksums, as arrays over the whole file."""

    def __init__(self, titles: MappedFile, *, batch_shift: int, article: int, one_hop: int) -> None:
        """Maps the columns.

        Args:
            batch_shift: binary logarithm of the rows of a batch.
            article, one_hop: statuses of articles, and of redirects that name an article.
        """
        self._article, self._one_hop = article, one_hop
        content = titles.content
        self._memory = titles.memory
        self._shift, self._mask = batch_shift, (1 << batch_shift) - 1
        # Buffers begin at multiples of eight bytes. The footer may not end at one.
        self._uint64 = np.frombuffer(content, np.uint64, content.size // 8)
        self._int64 = self._uint64.view(np.int64)
        self._int32 = np.frombuffer(content, np.int32, content.size // 4)
        self._int8 = np.frombuffer(content, np.int8)
        self._keys = _places(titles, "key", width=8)
        self._page_ids = _places(titles, "page_id", width=8)
        self._offsets = _places(titles, "title", width=4)
        self._titles = _places(titles, "title", width=1, buffer=2)
        self._fragments = _places(titles, "fragment", width=4)
        self._final_rows = _places(titles, "final_row", width=4)
        self._statuses = _places(titles, "status", width=1)
        n_rows = np.array([batch.num_rows for batch in titles.batches], np.int64)
        self._n_rows = n_rows
        self._first_keys = self._uint64[self._keys]
        self._first = self._first_keys.astype(np.float64)
        ends = np.append(self._first[1:], 2.0**64)
        self._rows_per_key = n_rows / np.maximum(ends - self._first, 1.0)

    def find(self, titles: Sequence[str]) -> FoundTitles:
        """Finds titles in normal form."""
        raw = [title.encode("utf-8", "surrogatepass") for title in titles]
        keys = digest_keys(raw)
        rows, is_there, is_certain = self._search(keys)
        batches, places = rows >> self._shift, rows & self._mask
        stored = self._raw(rows)
        page_ids = self._int64[self._page_ids[batches] + places].tolist()
        statuses = self._int8[self._statuses[batches] + places]
        rows = np.where(is_certain, np.where(is_there, rows, ABSENT), UNCERTAIN)
        others = np.flatnonzero((rows < 0) | (statuses != self._article))
        found = FoundTitles(page_ids, dict(zip(others.tolist(), rows[others].tolist(), strict=True)))
        if stored != raw:  # the title is absent, or has the same hash as another one
            for place, (own, other) in enumerate(zip(raw, stored, strict=True)):
                if own != other and found.others.get(place) != ABSENT:
                    found.others[place] = UNCERTAIN
        return found

    def follow(self, rows: Sequence[int]) -> list[tuple[str, int] | None]:
        """Returns the title and page id of the article that each redirect points to, from the rows of the redirects.

        The result is None for a redirect that has a fragment, needs more than one hop, or resolves to no article.
        """
        at = np.array(rows, np.int64)
        batches, places = at >> self._shift, at & self._mask
        fragments = self._fragments[batches] + places
        final_rows = self._int32[self._final_rows[batches] + places].astype(np.int64)
        is_plain = (
            (self._int8[self._statuses[batches] + places] == self._one_hop)
            & (self._int32[fragments] == self._int32[fragments + 1])
            & (final_rows >= 0)
        )
        final_rows = np.where(is_plain, final_rows, 0)
        ids = self._int64[self._page_ids[final_rows >> self._shift] + (final_rows & self._mask)].tolist()
        values = zip(self._raw(final_rows), ids, is_plain.tolist(), strict=True)
        return [(str(raw, "utf-8"), page_id) if is_known else None for raw, page_id, is_known in values]

    def _raw(self, rows: npt.NDArray[np.int64]) -> list[bytes]:
        """Returns the titles of these rows, in UTF-8."""
        batches = rows >> self._shift
        first, offsets = self._titles[batches], self._offsets[batches] + (rows & self._mask)
        starts, ends = first + self._int32[offsets], first + self._int32[offsets + 1]
        memory = self._memory
        # loads the memory of all titles at once, which is faster than one by one
        self._int8[np.minimum(starts, len(self._int8) - 1)]
        return [memory[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def _search(
        self, keys: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Returns for each key the first row whose key is not less, whether the two keys are equal, and whether the row
        is certain.
        """
        batches = np.maximum(np.searchsorted(self._first_keys, keys, side="right") - 1, 0)
        first, n_rows, rows_per_key = self._keys[batches], self._n_rows[batches], self._rows_per_key[batches]
        wanted = keys.astype(np.float64)
        places = np.zeros(len(keys), np.int64)
        seen = self._first[batches]
        for _ in range(_STEPS):
            places += np.clip((wanted - seen) * rows_per_key, -n_rows, n_rows).astype(np.int64)
            np.clip(places, 0, n_rows - 1, out=places)
            seen = self._uint64[first + places].astype(np.float64)
        places = np.clip(places - _WINDOW // 2, 0, np.maximum(n_rows - _WINDOW, 0))
        around = self._uint64[(first + places)[:, np.newaxis] + _AROUND]
        n_lower = np.count_nonzero(around < keys[:, np.newaxis], axis=1)
        # The first of several equal keys may be before the window or the batch.
        is_certain = (n_lower > 0) & (n_lower < _WINDOW) & (n_rows >= _WINDOW)
        places = np.minimum(places + n_lower, n_rows - 1)
        return (batches << self._shift) + places, self._uint64[first + places] == keys, is_certain


def _places(titles: MappedFile, name: str, *, width: int, buffer: int = 1) -> npt.NDArray[np.int64]:
    """Returns the offset in the file of a column's buffer, for each batch, in units of ``width`` bytes."""
    return np.array([titles.place_of(batch[name].buffers()[buffer]) for batch in titles.batches], np.int64) // width
