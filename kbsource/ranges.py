"""A file of which ranges of bytes can be read."""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

RANGE_BYTES = 1 << 16
"""Number of bytes per request when a file in a bucket is read at random positions."""


class RangesFile(io.RawIOBase):
    """A file of ``n_bytes`` bytes, of which ranges are requested when they are read.

    Args:
        read_range: a function that returns the bytes from a start to an end, or only the first of them.
        n_kept: number of recently read short ranges in the cache. It helps readers that first read the headers of a
            file's parts and then the parts.
    """

    def __init__(self, n_bytes: int, read_range: Callable[[int, int], Buffer], n_kept: int = 0) -> None:
        self._n_bytes, self._read_range, self._at = n_bytes, read_range, 0
        self._kept: deque[tuple[int, memoryview]] = deque(maxlen=n_kept)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._n_bytes)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._n_bytes)
        if end <= self._at:
            return 0
        found = self._kept_from(self._at)
        if not found:
            found = memoryview(self._read_range(self._at, end))
            if len(found) <= RANGE_BYTES:
                self._kept.append((self._at, found))
        found = found[: end - self._at]
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)

    def _kept_from(self, at: int) -> memoryview:
        for start, kept in self._kept:
            if start <= at < start + len(kept):
                return kept[at - start :]
        return memoryview(b"")
