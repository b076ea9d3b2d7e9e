"""Pages on their way into the row groups of a file."""

from __future__ import annotations

import pyarrow as pa

from kbsource.records import Page
from kbsource.release.columns import pages_to_batch, timestamp_seconds
from kbsource.release.pages.laws import check_page

GROUP_ROWS = 512
GROUP_CHARS = 512 << 10
"""A row group holds at most so many pages and about so much text. Smaller groups give one page sooner, larger ones
cost less to write: most of both is fixed, for the number of columns. A file's footer, which is held whole by who writes
or reads the file, grows by 6 KB a group."""


_ENCODING_FAULTS = (ArithmeticError, TypeError, ValueError, pa.ArrowException)


class PageFaultError(Exception):
    """A page that keeps the laws cannot be encoded; ``number`` is the one that it was added with."""

    def __init__(self, number: int, detail: str) -> None:
        super().__init__(f"page {number}: {detail}")
        self.number = number


class PageGroups:
    """Pages on their way into row groups: the same pages give the same groups. Memory: one group."""

    def __init__(self) -> None:
        self._pending: list[Page] = []
        self._numbers: list[int] = []
        self._pending_chars = 0

    @staticmethod
    def check(page: Page) -> None:
        """Checks every law that a page of a release keeps.

        Raises:
            RecordError: ``offset_law``, ``page_law``, ``bad_text`` or ``bad_timestamp``.
        """
        check_page(page)
        timestamp_seconds(page.timestamp)

    def add(self, page: Page, number: int = 0) -> pa.RecordBatch | None:
        """Takes a page that ``check`` has passed; gives the group before it where that is full.

        Args:
            page: the next one.
            number: names it in a ``PageFaultError``.

        Raises:
            PageFaultError: a page of the group cannot be encoded.
        """
        n_chars = sum(len(element.text) for element in page.elements)
        full = None
        if len(self._pending) == GROUP_ROWS or (self._pending and self._pending_chars + n_chars > GROUP_CHARS):
            full = self.rest()
        self._pending.append(page)
        self._numbers.append(number)
        self._pending_chars += n_chars
        return full

    def rest(self) -> pa.RecordBatch | None:
        """Gives what is pending, None when nothing is; call it once more after the last page.

        Raises:
            PageFaultError: a page cannot be encoded.
        """
        if not self._pending:
            return None
        try:
            batch = pages_to_batch(self._pending)
        except _ENCODING_FAULTS:
            for number, page in zip(self._numbers, self._pending, strict=True):
                try:
                    pages_to_batch([page])
                except _ENCODING_FAULTS as error:
                    raise PageFaultError(number, str(error)) from error
            raise
        self._pending, self._numbers, self._pending_chars = [], [], 0
        return batch
