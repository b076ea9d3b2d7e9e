"""The mentions of T-REx on disk, brought together by fact and by record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from kbsource.identity import stable_sha256
from mapping.sources.forms.trex_documents import TrexDocument, TrexMention
from mapping.sources.reading.scratch import Scratch

MAX_PROVENANCES = 20
"""Facts stated by more sentences are left out. Source: section 4.2 of the KILT paper."""

_SCHEMA = """
CREATE TABLE documents (number INTEGER PRIMARY KEY, title TEXT, file TEXT, line INTEGER);
CREATE TABLE sentences (number INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE mentions (
    rank INTEGER, subject TEXT, relation TEXT, object TEXT, item TEXT, sentence INTEGER,
    subject_surface TEXT, relation_surface TEXT, object_surface TEXT, document INTEGER, text INTEGER
);
"""
_SORT = "CREATE TABLE ordered AS SELECT * FROM mentions ORDER BY rank, subject, relation, rowid"
_INSERT = "INSERT INTO mentions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_RANK_DIGITS = 15


class FactMention(NamedTuple):
    """A mention with its place.

    Attributes:
        object: Wikidata's id, or a literal as written.
        item: of the document's page.
        sentence: number in the document.
        subject_surface, relation_surface, object_surface: words of the sentence; None for what it does not name.
        document, text: keys of document and sentence in the index.
    """

    object: str
    item: str
    sentence: int
    subject_surface: str | None
    relation_surface: str | None
    object_surface: str | None
    document: int
    text: int


class Triples(NamedTuple):
    """All mentions with one subject and one relation, in the order they were met."""

    subject: str
    relation: str
    mentions: list[FactMention]

    def well_founded(self) -> tuple[frozenset[str], frozenset[str]]:
        """Gives the objects whose facts have few enough provenances, and those whose facts have too many."""
        places: dict[str, set[tuple[str, int]]] = {}
        for mention in self.mentions:
            seen = places.setdefault(mention.object, set())
            if len(seen) <= MAX_PROVENANCES:
                seen.add((mention.item, mention.sentence))
        many = frozenset(name for name, seen in places.items() if len(seen) > MAX_PROVENANCES)
        return frozenset(places) - many, many


class Facts(Scratch):
    """Mentions, and the texts of labels, in an index on disk. A context: the index is removed when it ends.

    First ``add_mentions`` of every document, then ``sort`` once, then ask.

    Args:
        folder: for the index; None for the system's folder for temporary files.
        seed: decides the order that records are given in.
    """

    def __init__(self, folder: str | None, *, seed: str) -> None:
        super().__init__(folder, _SCHEMA)
        self._seed = seed
        self._n_documents = self._n_sentences = 0

    def add_mentions(self, document: TrexDocument, mentions: list[TrexMention], *, file: str, line: int) -> None:
        """Keeps the mentions of a document, and the sentences that they stand in.

        Raises:
            RecordError: as ``TrexDocument.sentence``; nothing is kept.
        """
        numbers: dict[int, int] = {}
        for mention in mentions:
            numbers.setdefault(mention.sentence, self._n_sentences + len(numbers) + 1)
        texts = [(key, document.sentence(number)) for number, key in numbers.items()]
        self._n_sentences += len(texts)
        self._n_documents += 1
        run = self._database
        run.execute("INSERT INTO documents VALUES (?, ?, ?, ?)", (self._n_documents, document.title, file, line))
        run.executemany("INSERT INTO sentences VALUES (?, ?)", texts)
        run.executemany(
            _INSERT,
            (
                (
                    self._rank(mention.subject, mention.relation),
                    *mention[:3],
                    document.item,
                    mention.sentence,
                    *mention.surfaces,
                    self._n_documents,
                    numbers[mention.sentence],
                )
                for mention in mentions
            ),
        )

    def sort(self) -> None:
        """Brings the mentions into the order of their records."""
        self._database.execute(_SORT)
        self._database.execute("DROP TABLE mentions")

    def triples(self) -> Iterator[Triples]:
        """Gives the mentions of each record, records in the order of the draw."""
        rows = self._database.execute(
            "SELECT subject, relation, object, item, sentence, subject_surface, relation_surface, object_surface,"
            " document, text FROM ordered ORDER BY rowid"
        )
        for (subject, relation), group in groupby(rows, key=itemgetter(0, 1)):
            yield Triples(subject, relation, [FactMention(*row[2:]) for row in group])

    def counts(self) -> Counter[str]:
        """Gives the number of facts of each relation, those with too many provenances not counted."""
        counts: Counter[str] = Counter()
        for triple in self.triples():
            counts[triple.relation] += len(triple.well_founded()[0])
        return counts

    def sentence(self, key: int) -> str:
        """Gives the text of a sentence."""
        text: str = self._database.execute("SELECT text FROM sentences WHERE number = ?", (key,)).fetchone()[0]
        return text

    def document(self, key: int) -> tuple[str, str, int]:
        """Gives title, file and line of a document."""
        row: tuple[str, str, int] = self._database.execute(
            "SELECT title, file, line FROM documents WHERE number = ?", (key,)
        ).fetchone()
        return row

    def _rank(self, subject: str, relation: str) -> int:
        return int(stable_sha256(self._seed, "trex", subject, relation)[:_RANK_DIGITS], 16)
