"""A few numbers that a working process shows to whoever watches it, through a small mapped file.

Writing them costs no system call and no message, so a worker can do it for every page.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import NamedTuple

from kbsource.files import completed_file

_PAGE, _SERIAL, _PAGES_DONE, _AMOUNT_DONE = range(4)
SIZE_BYTES = 4 * 8


class Reading(NamedTuple):
    """What a worker shows."""

    page: int  #: number of the page in work, from 1; 0 between pages
    serial: int  #: how often ``page`` was set: an unchanged serial is the same piece of work
    pages_done: int  #: since the task began
    amount_done: int  #: the same in the unit of the job: bytes of raw input, evidences, facts


class Beat:
    """The numbers of one worker, to write or to read."""

    def __init__(self, memory: mmap.mmap | bytearray) -> None:
        self._values = memoryview(memory).cast("Q")

    @classmethod
    def create(cls, path: str) -> Beat:
        """Makes the file, all zeros, in place of an older one, and maps it."""
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with completed_file(path) as temporary, open(temporary, "wb") as file:
            file.write(bytes(SIZE_BYTES))
        return cls.open(path)

    @classmethod
    def open(cls, path: str) -> Beat:
        """Maps a file that ``create`` made."""
        with open(path, "r+b") as file:
            return cls(mmap.mmap(file.fileno(), SIZE_BYTES))

    @classmethod
    def unshared(cls) -> Beat:
        """A beat that nobody else can read, for work done in this process."""
        return cls(bytearray(SIZE_BYTES))

    def enter(self, page: int) -> None:
        """Shows that page number ``page`` (from 1) is in work, until ``leave``.

        Where the work raises, the page stays shown: that is how its supervisor knows which one it was.
        """
        values = self._values
        values[_SERIAL] += 1
        values[_PAGE] = page

    def leave(self) -> None:
        """Shows that no page is in work."""
        self._values[_PAGE] = 0

    def done(self, *, pages: int, amount: int) -> None:
        """Adds to the work done."""
        values = self._values
        values[_PAGES_DONE] += pages
        values[_AMOUNT_DONE] += amount

    @staticmethod
    def glance(path: str) -> Reading:
        """The numbers in a file as they are now, without mapping it."""
        with open(path, "rb") as file:
            return Reading(*struct.unpack("4Q", file.read(SIZE_BYTES)))

    def read(self) -> Reading:
        """The numbers as they are now."""
        values = self._values
        return Reading(values[_PAGE], values[_SERIAL], values[_PAGES_DONE], values[_AMOUNT_DONE])
