"""The passages that prove answers: a proof's is the one that holds all of its sentence, by their places in the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from kbsource.errors import DataError
from kbsource.files import Storage
from kbsource.release.reader import parquet_file
from mapping.passages.corpus import passages_of
from mapping.passages.cut import Passage
from mapping.sources.reading.scratch import ScratchFile

REASONS: dict[str, str] = {
    "no_page": "published files: the release of pages has none with the address of the proof",
    "no_passages": "the corpus has no passage of the page",
    "no_running_text": "the proof stands in an element that is no running text",
    "no_text": "published files: no sentence of the page is near enough to that of the proof",
    "other_text": "the passage has another text there: release and corpus are of different knowledge sources",
    "sentence_cut": "parts of the sentence stand in different passages",
}
"""Why no passage holds a proof: reason -> meaning."""

_SCHEMA = """
CREATE TABLE proofs (
    pid TEXT PRIMARY KEY, qid TEXT NOT NULL, page_id INTEGER, title TEXT NOT NULL, element INTEGER, start INTEGER,
    stop INTEGER, sentence TEXT NOT NULL, reason TEXT NOT NULL, passage_id TEXT
);
CREATE INDEX proofs_by_page ON proofs (page_id);
CREATE TABLE passages (passage_id TEXT PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pages (page_id INTEGER PRIMARY KEY, n_passages INTEGER NOT NULL);
"""
_MORE_PASSAGES = """
INSERT INTO pages VALUES (?, ?) ON CONFLICT (page_id) DO UPDATE SET n_passages = n_passages + excluded.n_passages
"""
_PLACE = "pid, qid, page_id, title, element, start, stop, sentence"
# More digits make no number that a table holds.
_PASSAGE_ID = re.compile(r"(0|[1-9][0-9]{0,17})__(0|[1-9][0-9]{0,17})")
_PAGE_ID = "page_id"


class ProofPlace(NamedTuple):
    """Where the sentence of a proof stands.

    Attributes:
        pid: of the proof.
        qid: of its question.
        page_id, title: of the page; of a published proof that stands nowhere no id, and its address.
        element: number of the element; None where it stands nowhere.
        start_char, end_char: the sentence, half-open code points of the element's text; None where it stands nowhere.
        sentence: what stands there; of a published proof that stands nowhere all of its text.
    """

    pid: str
    qid: str
    page_id: int | None
    title: str
    element: int | None
    start_char: int | None
    end_char: int | None
    sentence: str


class GoldText(NamedTuple):
    """A passage that holds a proof."""

    passage_id: str
    title: str
    text: str


class GoldPassages(ScratchFile):
    """Proofs and the passages that hold them, on disk: first ``add`` all proofs, then ``find``, then ask."""

    def __init__(self, folder: str | None = None) -> None:
        super().__init__(folder, _SCHEMA)

    def add(self, place: ProofPlace, *, reason: str = "no_passages") -> None:
        """Takes a proof, with the reason why no passage holds it, which stays where none is found.

        Raises:
            DataError: one with its id was given before.
        """
        insert = f"INSERT OR IGNORE INTO proofs ({_PLACE}, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        if not self._database.execute(insert, (*place, reason)).rowcount:
            raise DataError(f"Two proofs have the id {place.pid}; check the QAMPARI release with kbsource verify.")

    def find(self, paths: Sequence[str], storage: Storage) -> None:
        """Looks through a corpus once, for all proofs. Memory: a row group, and eight bytes a page.

        Args:
            paths: files of the table of passages, in order.
            storage: holds them.
        """
        rows = self._database.execute("SELECT DISTINCT page_id FROM proofs WHERE page_id IS NOT NULL ORDER BY page_id")
        wanted = np.fromiter((page_id for (page_id,) in rows), np.int64)
        for page_id, passages in groupby(self._passages_on(wanted, paths, storage), key=lambda one: one.page_id):
            self._place(page_id, list(passages))

    def _passages_on(self, wanted: npt.NDArray[np.int64], paths: Sequence[str], storage: Storage) -> Iterator[Passage]:
        """Gives the passages of pages, in the order of the corpus; of other row groups only the page ids are read."""
        for path in paths:
            with storage.open_read(path) as file, parquet_file(file) as parquet:
                for group in range(parquet.metadata.num_row_groups):
                    page_ids = parquet.read_row_group(group, columns=[_PAGE_ID], use_threads=False)[_PAGE_ID].to_numpy()
                    counted = np.unique(page_ids, return_counts=True)
                    self._database.executemany(
                        _MORE_PASSAGES, zip(*(column.tolist() for column in counted), strict=True)
                    )
                    rows = np.flatnonzero(np.isin(page_ids, wanted))
                    if len(rows):
                        yield from passages_of(parquet.read_row_group(group, use_threads=False).take(rows))

    def _place(self, page_id: int, passages: Sequence[Passage]) -> None:
        select = "SELECT pid, element, start, stop, sentence FROM proofs WHERE page_id = ?"
        for pid, element, start, stop, sentence in self._database.execute(select, (page_id,)).fetchall():
            found = (
                (passage, text) for passage in passages if (text := passage.piece(element, start, stop)) is not None
            )
            holder, text = next(found, (None, ""))
            if holder is None or text != sentence:
                is_text = any(span.element == element for passage in passages for span in passage.spans)
                reason = "other_text" if holder is not None else "sentence_cut" if is_text else "no_running_text"
                self._database.execute("UPDATE proofs SET reason = ? WHERE pid = ?", (reason, pid))
                continue
            values = (holder.passage_id, holder.title, holder.text)
            self._database.execute("INSERT OR IGNORE INTO passages VALUES (?, ?, ?)", values)
            self._database.execute("UPDATE proofs SET passage_id = ? WHERE pid = ?", (holder.passage_id, pid))

    def of_proof(self, pid: str) -> GoldText | None:
        """Gives the passage that holds a proof; None where none does."""
        select = """
            SELECT passages.passage_id, passages.title, passages.text
            FROM proofs JOIN passages USING (passage_id) WHERE proofs.pid = ?
        """
        return _gold_text(self._database.execute(select, (pid,)).fetchone())

    def with_id(self, passage_id: str) -> GoldText | None:
        """Gives a passage that holds a proof of any question, by its id; None for every other passage."""
        select = "SELECT passage_id, title, text FROM passages WHERE passage_id = ?"
        return _gold_text(self._database.execute(select, (passage_id,)).fetchone())

    def is_passage(self, passage_id: str) -> bool:
        """Says whether the corpus has a passage with that id."""
        found = _PASSAGE_ID.fullmatch(passage_id)
        if found is None:
            return False
        row = self._database.execute("SELECT n_passages FROM pages WHERE page_id = ?", (int(found[1]),)).fetchone()
        return row is not None and int(found[2]) < row[0]

    def unplaced(self) -> Iterator[tuple[ProofPlace, str]]:
        """Gives the proofs that no passage holds, with the reason, in the order in which they were added."""
        select = f"SELECT {_PLACE}, reason FROM proofs WHERE passage_id IS NULL ORDER BY rowid"
        for *place, reason in self._database.execute(select):
            yield ProofPlace(*place), reason


def unplaced_line(place: ProofPlace, reason: str) -> bytes:
    """Gives the line of a proof that no passage holds."""
    return orjson.dumps({**place._asdict(), "reason": reason}) + b"\n"


def _gold_text(row: tuple[Any, ...] | None) -> GoldText | None:
    return None if row is None else GoldText(*row)
