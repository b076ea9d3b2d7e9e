"""An index on disk for one reading: ids that were given, and the reference texts that examples need."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from types import TracebackType

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16000;
CREATE TABLE given (id TEXT PRIMARY KEY, file INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE texts (key TEXT PRIMARY KEY, text BLOB);
BEGIN;
"""


class Scratch:
    """A SQLite file in a temporary folder, so that memory stays flat however large dataset and references are.

    References are read once, front to back: first ``want`` every key, then ``put`` the texts that ``is_wanted``, then
    ``get`` them in any order.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kbsource-", dir=folder)
        self._database = sqlite3.connect(os.path.join(self._folder.name, "scratch.sqlite"), isolation_level=None)
        self._database.executescript(_SCHEMA)

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes the index."""
        self._database.close()
        self._folder.cleanup()

    def give(self, example_id: str, file: int) -> int | None:
        """Notes that an id of the file with this number is given; the number of the file that had it already."""
        cursor = self._database.execute("INSERT OR IGNORE INTO given VALUES (?, ?)", (example_id, file))
        if cursor.rowcount:
            return None
        earlier: int = self._database.execute("SELECT file FROM given WHERE id = ?", (example_id,)).fetchone()[0]
        return earlier

    def want(self, key: str) -> None:
        """Notes that the text of a key will be asked for."""
        self._database.execute("INSERT OR IGNORE INTO texts VALUES (?, NULL)", (key,))

    def is_wanted(self, key: str) -> bool:
        """Says whether the text of a key will be asked for."""
        return self._database.execute("SELECT 1 FROM texts WHERE key = ?", (key,)).fetchone() is not None

    def put(self, key: str, text: bytes) -> None:
        """Keeps the text of a wanted key, unless there is one."""
        self._database.execute("UPDATE texts SET text = ? WHERE key = ? AND text IS NULL", (text, key))

    def get(self, key: str) -> bytes | None:
        """Gives the text of a key, None when it is not in the references."""
        row = self._database.execute("SELECT text FROM texts WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]
