"""The passages that prove answers: a proof's is the one that holds all of its sentence, by their places in the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from kbsource.files import Storage
from mapping.passages.corpus import passages_of
from mapping.passages.cut import Passage
from mapping.sources.scratch import ScratchFile

REASONS: dict[str, str] = {
    "no_passages": "the corpus has no passage of the page",
    "no_running_text": "the proof stands in an element that is no running text",
    "sentence_cut": "parts of the sentence stand in different passages",
}
"""Why no passage holds a proof: reason -> meaning."""

_SCHEMA = """
CREATE TABLE proofs (
    pid TEXT PRIMARY KEY, qid TEXT NOT NULL, page_id INTEGER NOT NULL, title TEXT NOT NULL, element INTEGER NOT NULL,
    start INTEGER NOT NULL, stop INTEGER NOT NULL, passage_id TEXT, reason TEXT NOT NULL DEFAULT 'no_passages'
);
CREATE INDEX proofs_by_page ON proofs (page_id);
CREATE TABLE passages (passage_id TEXT PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
"""
_PAGE_ID = "page_id"


class ProofPlace(NamedTuple):
    """Where the sentence of a proof stands.

    Attributes:
        pid: of the proof.
        qid: of its question.
        page_id, title: of the page.
        element: number of the element.
        start_char, end_char: the sentence, half-open code points of the element's text.
    """

    pid: str
    qid: str
    page_id: int
    title: str
    element: int
    start_char: int
    end_char: int


class GoldText(NamedTuple):
    """A passage that holds a proof."""

    passage_id: str
    title: str
    text: str


class GoldPassages(ScratchFile):
    """Proofs and the passages that hold them, on disk: first ``add`` all proofs, then ``find``, then ask."""

    def __init__(self, folder: str | None = None) -> None:
        super().__init__(folder, _SCHEMA)

    def add(self, place: ProofPlace) -> None:
        """Takes a proof."""
        names = "pid, qid, page_id, title, element, start, stop"
        self._database.execute(f"INSERT INTO proofs ({names}) VALUES (?, ?, ?, ?, ?, ?, ?)", place)

    def find(self, paths: Sequence[str], storage: Storage) -> None:
        """Looks through a corpus once, for all proofs. Memory: a row group, and eight bytes a page.

        Args:
            paths: files of the table of passages, in order.
            storage: holds them.
        """
        rows = self._database.execute("SELECT DISTINCT page_id FROM proofs").fetchall()
        wanted = np.unique(np.array([page_id for (page_id,) in rows], np.int64))
        for page_id, passages in groupby(_passages_on(wanted, paths, storage), key=lambda one: one.page_id):
            self._place(page_id, list(passages))

    def _place(self, page_id: int, passages: Sequence[Passage]) -> None:
        select = "SELECT pid, element, start, stop FROM proofs WHERE page_id = ?"
        for pid, element, start, stop in self._database.execute(select, (page_id,)).fetchall():
            holder = next((one for one in passages if one.holds(element, start, stop)), None)
            if holder is None:
                is_text = any(span.element == element for one in passages for span in one.spans)
                reason = "sentence_cut" if is_text else "no_running_text"
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

    def unplaced(self) -> Iterator[tuple[ProofPlace, str]]:
        """Gives the proofs that no passage holds, with the reason, in the order in which they were added."""
        select = """
            SELECT pid, qid, page_id, title, element, start, stop, reason FROM proofs
            WHERE passage_id IS NULL ORDER BY rowid
        """
        for *place, reason in self._database.execute(select):
            yield ProofPlace(*place), reason


def _gold_text(row: tuple[Any, ...] | None) -> GoldText | None:
    return None if row is None else GoldText(*row)


def _passages_on(wanted: npt.NDArray[np.int64], paths: Sequence[str], storage: Storage) -> Iterator[Passage]:
    """Gives the passages of pages, in the order of the corpus; of other row groups only the page ids are read."""
    for path in paths:
        with storage.open_read(path) as file, pq.ParquetFile(file) as parquet:
            for group in range(parquet.metadata.num_row_groups):
                page_ids = parquet.read_row_group(group, columns=[_PAGE_ID], use_threads=False)[_PAGE_ID].to_numpy()
                rows = np.flatnonzero(np.isin(page_ids, wanted))
                if len(rows):
                    yield from passages_of(parquet.read_row_group(group, use_threads=False).take(rows))
