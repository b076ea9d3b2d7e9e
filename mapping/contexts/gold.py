"""Finds the passages that prove answers, and reads the passages that a retriever ranked.

A passage proves an answer if it contains the whole sentence of a proof. Ranked passages come in the file format of
``kbsource evaluate qampari --retrieved``: ``qid`` and ``ctxs``, a list of ``{id, title, text}``, best first, with an
optional ``score``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from kbsource.columns import rows_of
from kbsource.errors import DataError, RecordError
from kbsource.files import Folder
from kbsource.records import BadRecord
from kbsource.release.reader import parquet_file
from mapping.metrics.qampari import is_line_of, record_qid
from mapping.passages.cut import Passage
from mapping.sources.raw_records import FAULTS, Json, check_shape, digits_or_text, iter_records, objects_at, text_at
from mapping.sources.scratch import QuestionFiles, ScratchFile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


UNPLACED_REASONS: dict[str, str] = {
    "no_page": "published files: the release has no page with the proof's URL",
    "no_passages": "the corpus has no passage of the page",
    "no_running_text": "the proof is in an element that is not running text",
    "no_text": "published files: no sentence of the page is similar enough to the proof's sentence",
    "other_text": "the text of the passage differs from the proof: they were made from different releases of pages",
    "sentence_cut": "parts of the sentence are in different passages",
}
"""Reasons why no passage contains a proof, with their meanings."""

_MORE_PASSAGES = """
INSERT INTO pages VALUES (?, ?) ON CONFLICT (page_id) DO UPDATE SET n_passages = n_passages + excluded.n_passages
"""
_PLACE = "pid, qid, page_id, title, element, start, stop, sentence"
# A number with more digits does not fit into a table.
_PASSAGE_ID = re.compile(r"(0|[1-9][0-9]{0,17})__(0|[1-9][0-9]{0,17})")
_PAGE_ID = "page_id"


class ProofPlace(NamedTuple):
    """The location of the sentence of a proof."""

    pid: str
    qid: str
    page_id: int | None  # page id and title; a published proof that was not found has no page id, and the URL as title
    title: str
    element: int | None  # number of the element; None if the sentence was not found
    start_char: int | None  # the sentence: half-open code points of the element's text; None if it was not found
    end_char: int | None
    sentence: str  # text at that location; the whole text of a published proof that was not found


class ProofSpot(NamedTuple):
    """The location of the sentence of a published proof in a page of the release, as in ``ProofPlace``."""

    page_id: int
    title: str
    element: int
    start_char: int
    end_char: int
    sentence: str


class GoldText(NamedTuple):
    """A passage that contains a proof."""

    passage_id: str
    title: str
    text: str


class GoldPassages(ScratchFile):
    """Proofs and the passages that contain them, stored on disk. First ``add`` all proofs, then ``find`` passages, then
    look them up.
    """

    schema = """
    CREATE TABLE proofs (
        pid TEXT PRIMARY KEY, qid TEXT NOT NULL, page_id INTEGER, title TEXT NOT NULL, element INTEGER, start INTEGER,
        stop INTEGER, sentence TEXT NOT NULL, reason TEXT NOT NULL, passage_id TEXT
    );
    CREATE INDEX proofs_by_page ON proofs (page_id);
    CREATE TABLE passages (passage_id TEXT PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE pages (page_id INTEGER PRIMARY KEY, n_passages INTEGER NOT NULL);
    """

    def add(self, place: ProofPlace, *, reason: str = "no_passages") -> None:
        """Adds a proof with the reason why no passage contains it. The reason remains if no passage is found.

        Raises:
            DataError: a proof with this id was added before.
        """
        insert = f"INSERT OR IGNORE INTO proofs ({_PLACE}, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        if not self._database.execute(insert, (*place, reason)).rowcount:
            raise DataError(f"Two proofs have the id {place.pid}; check the QAMPARI release with kbsource verify.")

    def find(self, paths: Sequence[str]) -> None:
        """Searches a corpus once for all proofs. Memory: one row group, and 8 bytes per page.

        Args:
            paths: files of the table of passages, in order.
        """
        import numpy as np

        rows = self._database.execute("SELECT DISTINCT page_id FROM proofs WHERE page_id IS NOT NULL ORDER BY page_id")
        wanted = np.fromiter((page_id for (page_id,) in rows), np.int64)
        for page_id, passages in groupby(self._passages_on(wanted, paths), key=lambda passage: passage.page_id):
            self._place(page_id, list(passages))

    def _passages_on(self, wanted: npt.NDArray[np.int64], paths: Sequence[str]) -> Iterator[Passage]:
        """Reads the passages of pages in corpus order. From other row groups, only the page ids are read."""
        import numpy as np

        for path in paths:
            with Folder.of(path).open() as file, parquet_file(file) as parquet:
                for group in range(parquet.metadata.num_row_groups):
                    page_ids = parquet.read_row_group(group, columns=[_PAGE_ID], use_threads=False)[_PAGE_ID].to_numpy()
                    counted = np.unique(page_ids, return_counts=True)
                    self._database.executemany(
                        _MORE_PASSAGES, zip(*(column.tolist() for column in counted), strict=True)
                    )
                    rows = np.flatnonzero(np.isin(page_ids, wanted))
                    if len(rows):
                        yield from rows_of(parquet.read_row_group(group, use_threads=False).take(rows), Passage)

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
        """Returns the passage that contains a proof, or None."""
        select = """
            SELECT passages.passage_id, passages.title, passages.text
            FROM proofs JOIN passages USING (passage_id) WHERE proofs.pid = ?
        """
        return _gold_text(self._database.execute(select, (pid,)).fetchone())

    def with_id(self, passage_id: str) -> GoldText | None:
        """Returns the passage with this id if it contains a proof of any question, otherwise None."""
        select = "SELECT passage_id, title, text FROM passages WHERE passage_id = ?"
        return _gold_text(self._database.execute(select, (passage_id,)).fetchone())

    def is_passage(self, passage_id: str) -> bool:
        """Returns whether the corpus has a passage with that id."""
        found = _PASSAGE_ID.fullmatch(passage_id)
        if found is None:
            return False
        row = self._database.execute("SELECT n_passages FROM pages WHERE page_id = ?", (int(found[1]),)).fetchone()
        return row is not None and int(found[2]) < row[0]

    def unplaced(self) -> Iterator[tuple[ProofPlace, str]]:
        """Reads the proofs that no passage contains, each with its reason, in the order in which they were added."""
        select = f"SELECT {_PLACE}, reason FROM proofs WHERE passage_id IS NULL ORDER BY rowid"
        for *place, reason in self._database.execute(select):
            yield ProofPlace(*place), reason


def unplaced_line(place: ProofPlace, reason: str) -> bytes:
    """Returns the line of a proof that no passage contains."""
    return orjson.dumps({**place._asdict(), "reason": reason}) + b"\n"


def _gold_text(row: tuple[Any, ...] | None) -> GoldText | None:
    return None if row is None else GoldText(*row)


RANKED_REASONS: dict[str, str] = {
    **FAULTS,
    "duplicate_passage": "a question has the same passage twice",
    "duplicate_question": "the qid occurred before",
    "other_text": "the corpus has a different text for a passage that proves an answer: it was cut with other options",
    "unknown_passage": "the corpus has no passage with the id: page id, two underscores, number",
    "unknown_question": "passages for a question that is not in the release",
}
"""Reasons why a line is left out, with their meanings."""

Reject = Callable[[BadRecord], None]


class RankedPassage(NamedTuple):
    """A passage that a retriever found."""

    passage_id: str  # id, title and text of the passage, as the retriever wrote them
    title: str
    text: str
    score: float  # score of the retriever, or 1 / rank


def read_ranked(paths: Sequence[str], joined: QuestionFiles, gold: GoldPassages, *, most: int, reject: Reject) -> None:
    """Reads the passages of every line and stores them by question.

    Args:
        joined: stores the passages, including passages of questions that are not in the release.
        reject: called with the position and reason of every line that cannot be used.

    Raises:
        SetupError: a file cannot be read, or its first lines are not in the expected format.
    """
    for path in paths:
        check_shape(
            path,
            iter_records(path),
            lambda line: is_line_of(line, "retrieved"),
            expected="JSON Lines or an array with qid and ctxs",
        )
        for raw in iter_records(path):
            qid = ""
            try:
                record = raw.parse()
                qid = record_qid(record)
                joined.put("retrieved", qid, raw, orjson.dumps(list(map(tuple, _passages(record, gold)[:most]))))
            except RecordError as error:
                reject(raw.bad(error, key=qid, stage="retrieved"))


def ranked_for(qid: str, joined: QuestionFiles) -> list[RankedPassage] | None:
    """Returns the passages of a question, best first; None if there was no line."""
    content = joined.get("retrieved", qid)
    return None if content is None else [RankedPassage(*fields) for fields in orjson.loads(content)]


def _passages(record: Json, gold: GoldPassages) -> list[RankedPassage]:
    passages = [_passage(passage, rank, gold) for rank, passage in enumerate(objects_at(record, "ctxs"), start=1)]
    seen: set[str] = set()
    for passage in passages:
        if passage.passage_id in seen:
            raise RecordError("duplicate_passage", passage.passage_id)
        seen.add(passage.passage_id)
    return passages


def _passage(record: Json, rank: int, gold: GoldPassages) -> RankedPassage:
    passage_id, title, text = digits_or_text(record, "id"), text_at(record, "title"), text_at(record, "text")
    if not gold.is_passage(passage_id):
        raise RecordError("unknown_passage", repr(passage_id)[:80])
    known = gold.with_id(passage_id)
    if known is not None and known.text != text:
        raise RecordError("other_text", f"{passage_id}: {text[:80]!r}, in the corpus {known.text[:80]!r}")
    return RankedPassage(passage_id, title, text, 1 / rank if record.get("score") is None else _number(record["score"]))


def _number(value: Any) -> float:
    """Returns a score, which some retrievers write as text."""
    try:
        is_odd = isinstance(value, bool) or (isinstance(value, str) and "_" in value)  # "1_0" would be read as ten
        number = math.nan if is_odd else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise RecordError("wrong_type", f"'score': expected a number, found {repr(value)[:80]}")
    return number
