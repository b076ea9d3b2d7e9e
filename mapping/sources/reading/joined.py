"""Files that are joined by the ids of questions, whatever their order and size."""

from __future__ import annotations

from collections.abc import Iterator

from kbsource.errors import RecordError
from mapping.sources.reading.files_in import RawRecord
from mapping.sources.reading.scratch import ScratchFile

_SCHEMA = """
CREATE TABLE gold (qid TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE joined (
    kind TEXT NOT NULL, qid TEXT NOT NULL, file TEXT NOT NULL, line INTEGER NOT NULL, start INTEGER NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (kind, qid)
);
"""


class Joined(ScratchFile):
    """What files say of questions, by kind of file and question, on disk, to be taken in the order of the gold file."""

    def __init__(self, folder: str | None = None) -> None:
        super().__init__(folder, _SCHEMA)

    def put(self, kind: str, qid: str, raw: RawRecord, content: bytes) -> None:
        """Keeps what a line says of a question.

        Raises:
            RecordError: ``duplicate_question``.
        """
        row = (kind, qid, raw.file, raw.line, raw.offset, content)
        statement = "INSERT OR IGNORE INTO joined (kind, qid, file, line, start, content) VALUES (?, ?, ?, ?, ?, ?)"
        if not self._database.execute(statement, row).rowcount:
            raise RecordError("duplicate_question", qid)

    def open_question(self, qid: str) -> None:
        """Notes a gold question.

        Raises:
            RecordError: ``duplicate_question``.
        """
        if not self._database.execute("INSERT OR IGNORE INTO gold VALUES (?)", (qid,)).rowcount:
            raise RecordError("duplicate_question", qid)

    def get(self, kind: str, qid: str) -> bytes | None:
        """Gives what was kept for a question, None where there was no line."""
        statement = "SELECT content FROM joined WHERE kind = ? AND qid = ?"
        row = self._database.execute(statement, (kind, qid)).fetchone()
        return None if row is None else row[0]

    def without_question(self, kind: str) -> Iterator[tuple[str, RawRecord]]:
        """Gives qid and place of the lines whose question is not among the gold ones, in the order of the file."""
        statement = """
            SELECT qid, file, line, start FROM joined
            WHERE kind = ? AND qid NOT IN (SELECT qid FROM gold) ORDER BY rowid
        """
        for qid, file, line, start in self._database.execute(statement, (kind,)):
            yield qid, RawRecord(file, line, start, b"")
