"""A few numbers that a worker process shares with its supervisor through a small memory-mapped file.

Writing them needs no system call and no message, so a worker can do it for every page.
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
    """The numbers that a worker shares."""

    page: int  #: number of the page being processed, from 1; 0 between pages
    serial: int  #: number of times that ``page`` was set; if it is unchanged, the worker is still at the same page
    pages_done: int  #: number of pages processed since the task began
    #: amount processed since the task began, in the unit of the job: bytes of raw input, pieces of evidence, facts
    amount_done: int


class Beat:
    """The numbers of a worker, for writing or reading."""

    def __init__(self, memory: mmap.mmap | bytearray) -> None:
        self._values = memoryview(memory).cast("Q")

    @classmethod
    def create(cls, path: str) -> Beat:
        """Creates a file of zeros, which replaces an older one, and maps it."""
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
        """Returns a beat that is not shared, for work in the same process."""
        return cls(bytearray(SIZE_BYTES))

    def enter(self, page: int) -> None:
        """Records that page number ``page`` (from 1) is being processed, until ``leave`` is called.

        If processing raises, the page stays recorded, so that the supervisor knows which page it was.
        """
        values = self._values
        values[_SERIAL] += 1
        values[_PAGE] = page

    def leave(self) -> None:
        """Records that no page is being processed."""
        self._values[_PAGE] = 0

    def done(self, *, pages: int, amount: int) -> None:
        """Adds to the amount of work done."""
        values = self._values
        values[_PAGES_DONE] += pages
        values[_AMOUNT_DONE] += amount

    @staticmethod
    def glance(path: str) -> Reading:
        """Returns the current numbers in a file, without mapping it."""
        with open(path, "rb") as file:
            return Reading(*struct.unpack("4Q", file.read(SIZE_BYTES)))

    def read(self) -> Reading:
        """Returns the current numbers."""
        values = self._values
        return Reading(values[_PAGE], values[_SERIAL], values[_PAGES_DONE], values[_AMOUNT_DONE])
