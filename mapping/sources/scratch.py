"""Temporary indexes on disk for reading a dataset: the ids that were used, and the reference texts that examples
need.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from typing import ClassVar, Self

from kbsource.errors import RecordError
from kbsource.temporary import TemporaryFolder
from mapping.sources.raw_records import RawRecord

_FILE = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -4000;
"""


class ScratchFile:
    """A SQLite file in a temporary folder, so that memory use does not grow with the dataset and its references.

    A context manager: the file is removed at its end.
    """

    schema: ClassVar[str]
    """The tables, as SQL."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = TemporaryFolder(folder)
        self._database = sqlite3.connect(os.path.join(self._folder.name, "scratch.sqlite"), isolation_level=None)
        self._database.executescript(f"{_FILE}{self.schema}BEGIN;")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes the index."""
        self._database.close()
        self._folder.cleanup()


class Scratch(ScratchFile):
    """The ids that were used, and the texts of references.

    References are read only once, so use it in three steps: ``want`` every key that an example needs; read the
    references and ``put`` the texts of the keys that are wanted (``is_wanted``); then ``get`` the texts in any order.
    If all texts of a key are needed, ``add`` each of them and read its ``rows``.
    """

    schema = """
    CREATE TABLE given (id TEXT PRIMARY KEY, file INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE texts (key TEXT PRIMARY KEY, text BLOB);
    CREATE TABLE rows (key TEXT NOT NULL, row BLOB NOT NULL);
    CREATE INDEX rows_by_key ON rows (key);
    """

    def claim_id(self, example_id: str, file: int) -> int | None:
        """Records that an id occurs in the file with the number ``file``. Returns the number of an earlier file with
        this id, or None.
        """
        cursor = self._database.execute("INSERT OR IGNORE INTO given VALUES (?, ?)", (example_id, file))
        if cursor.rowcount:
            return None
        earlier: int = self._database.execute("SELECT file FROM given WHERE id = ?", (example_id,)).fetchone()[0]
        return earlier

    def want(self, key: str) -> None:
        """Records that the text of a key will be requested."""
        self._database.execute("INSERT OR IGNORE INTO texts VALUES (?, NULL)", (key,))

    def is_wanted(self, key: str) -> bool:
        """Returns whether the text of a key will be requested."""
        return self._database.execute("SELECT 1 FROM texts WHERE key = ?", (key,)).fetchone() is not None

    def put(self, key: str, text: bytes) -> None:
        """Stores the text of a wanted key, unless it already has one."""
        self._database.execute("UPDATE texts SET text = ? WHERE key = ? AND text IS NULL", (text, key))

    def get(self, key: str) -> bytes | None:
        """Returns the text of a key; None if it is not in the references."""
        row = self._database.execute("SELECT text FROM texts WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def add(self, key: str, row: bytes) -> None:
        """Stores a row of a key, in addition to the rows that it has."""
        self._database.execute("INSERT INTO rows VALUES (?, ?)", (key, row))

    def rows(self, key: str) -> list[bytes]:
        """Returns the rows of a key in the order of their addition."""
        found = self._database.execute("SELECT row FROM rows WHERE key = ? ORDER BY rowid", (key,))
        return [row for (row,) in found]


class QuestionFiles(ScratchFile):
    """The lines of files about questions, on disk. They can be read in the order of the gold file, by kind of file and
    question.
    """

    schema = """
    CREATE TABLE gold (qid TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE joined (
        kind TEXT NOT NULL, qid TEXT NOT NULL, file TEXT NOT NULL, line INTEGER NOT NULL, start INTEGER NOT NULL,
        content BLOB NOT NULL, PRIMARY KEY (kind, qid)
    );
    """

    def put(self, kind: str, qid: str, raw: RawRecord, content: bytes) -> None:
        """Stores the content of a line about a question; raises RecordError: ``duplicate_question``."""
        row = (kind, qid, raw.file, raw.line, raw.offset, content)
        statement = "INSERT OR IGNORE INTO joined (kind, qid, file, line, start, content) VALUES (?, ?, ?, ?, ?, ?)"
        if not self._database.execute(statement, row).rowcount:
            raise RecordError("duplicate_question", qid)

    def open_question(self, qid: str) -> None:
        """Records a gold question; raises RecordError: ``duplicate_question``."""
        if not self._database.execute("INSERT OR IGNORE INTO gold VALUES (?)", (qid,)).rowcount:
            raise RecordError("duplicate_question", qid)

    def get(self, kind: str, qid: str) -> bytes | None:
        """Returns the content stored for a question; None if there was no line."""
        statement = "SELECT content FROM joined WHERE kind = ? AND qid = ?"
        row = self._database.execute(statement, (kind, qid)).fetchone()
        return None if row is None else row[0]

    def without_question(self, kind: str) -> Iterator[tuple[str, RawRecord]]:
        """Finds the lines whose question is not among the gold questions: question id and position, in file order."""
        statement = """
            SELECT qid, file, line, start FROM joined
            WHERE kind = ? AND qid NOT IN (SELECT qid FROM gold) ORDER BY rowid
        """
        for qid, file, line, start in self._database.execute(statement, (kind,)):
            yield qid, RawRecord(file, line, start, b"")
