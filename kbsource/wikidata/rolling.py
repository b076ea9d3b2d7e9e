"""Files of a table that are written before anybody knows how many there will be."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

import pyarrow as pa

from kbsource.files import Storage
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import TableFile
from kbsource.runtime.chunks import Key

ROWS_PER_FILE = {
    "items": 1 << 20,
    "properties": 1 << 20,
    "sitelinks": 1 << 23,
    "statements": 1 << 22,
    "classes": 1 << 24,
}
"""Rows of a file, 50 to 200 MB: the ranges of a bzip2 file give less, a gzip file is one range."""


class RollingFiles:
    """Batches of one table on their way into files of at most about ``ROWS_PER_FILE`` rows.

    Args:
        key: of the range, for the names of the files.
    """

    def __init__(self, output: str, table: str, key: Key, storage: Storage) -> None:
        self._output, self._table, self._key, self._storage = output, table, key, storage
        self._stack = ExitStack()
        self._written: list[TableFile] = []

    def __enter__(self) -> RollingFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes a batch as one row group."""
        if not self._written or self._written[-1].n_rows >= ROWS_PER_FILE[self._table]:
            self._stack.close()
            part, chunk = self._key
            name = f"{self._table}/{part:05d}-{chunk:05d}-{len(self._written):03d}.parquet"
            self._written.append(self._stack.enter_context(TableFile(self._output, name, self._table, self._storage)))
        self._written[-1].write(batch)

    @property
    def entries(self) -> tuple[FileEntry, ...]:
        """What was written; only after the context has ended well."""
        return tuple(file.entry for file in self._written)
