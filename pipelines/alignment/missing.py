"""Titles that a release does not have, and the similar ones that it has: kept on disk, looked for by tasks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from kbsource.beat import Beat
from kbsource.files import Storage
from kbsource.release.layout import INDEX
from kbsource.staging import read_batches, staged_rows
from kbsource.title_index import TitleIndex
from mapping.sources.scratch import ScratchFile
from mapping.suggest import QUERIES_AT_ONCE, Suggestion, suggest_titles
from pipelines.alignment.staging import MapJob, read_rows, staged
from pipelines.storage import storage_for

_DATABASE = "CREATE TABLE missing (title TEXT PRIMARY KEY, similar TEXT) WITHOUT ROWID;"
_TITLES = pa.schema([pa.field("title", pa.string(), nullable=False)])
_SIMILAR = pa.schema([pa.field("title", pa.string(), nullable=False), pa.field("similar", pa.string(), nullable=False)])


class MissingTitles(ScratchFile):
    """First ``add`` every title, then ``put`` what is like those of each of the ``batches``, then look it up."""

    def __init__(self, folder: str | None) -> None:
        super().__init__(folder, _DATABASE)

    def __len__(self) -> int:
        n_titles: int = self._database.execute("SELECT COUNT(*) FROM missing").fetchone()[0]
        return n_titles

    def add(self, title: str) -> None:
        """Takes a title in normal form, any number of times."""
        self._database.execute("INSERT OR IGNORE INTO missing VALUES (?, NULL)", (title,))

    def batches(self) -> Iterator[list[str]]:
        """Gives the distinct titles in order, as many at a time as one pass over the index serves."""
        titles = self._after("")
        while titles:
            yield titles
            titles = self._after(titles[-1])

    def _after(self, title: str) -> list[str]:
        rows = self._database.execute(
            "SELECT title FROM missing WHERE title > ? ORDER BY title LIMIT ?", (title, QUERIES_AT_ONCE)
        )
        return [found for (found,) in rows]

    def put(self, similar: Iterable[tuple[str, str]]) -> None:
        """Takes pairs of a title and ``similar_titles`` of it."""
        rows = ((found, title) for title, found in similar)
        self._database.executemany("UPDATE missing SET similar = ? WHERE title = ?", rows)

    def similar(self, title: str) -> tuple[Suggestion, ...]:
        """Gives the similar titles, best first, with their likeness from 0 to 100; none for a title never added."""
        row = self._database.execute("SELECT similar FROM missing WHERE title = ?", (title,)).fetchone()
        return tuple((other, score) for other, score in json.loads(row[0])) if row and row[0] else ()


def similar_titles(titles: Iterable[str], index: TitleIndex) -> Iterator[tuple[str, str]]:
    """Gives each title that any is like, with those, as JSON."""
    for title, similar in suggest_titles(titles, index).items():
        yield title, json.dumps(similar, ensure_ascii=False)


def stage_titles(titles: MissingTitles, staging: str, storage: Storage) -> list[int]:
    """Writes a file for each batch of titles and gives how many are in each."""
    counts = []
    for number, batch in enumerate(titles.batches()):
        with staged_rows(storage, staged(staging, "missing_titles", number), _TITLES) as rows:
            for title in batch:
                rows.add((title,))
        counts.append(len(batch))
    return counts


def suggest_part(task: dict[str, Any], job: MapJob, beat: Beat) -> None:
    """Looks for titles like those of one file."""
    staging, number = task["staging"], task["number"]
    storage = storage_for(staging)
    index = TitleIndex.open(os.path.join(job.kb, INDEX))
    (titles,) = read_batches(storage, staged(staging, "missing_titles", number))
    with staged_rows(storage, staged(staging, "similar", number), _SIMILAR) as rows:
        for row in similar_titles(titles["title"].to_pylist(), index):
            rows.add(row)
    beat.done(pages=0, n_bytes=titles.num_rows)


def read_similar(staging: str, number: int, storage: Storage) -> Iterator[tuple[str, str]]:
    """Gives what ``suggest_part`` found."""
    return read_rows(storage, staged(staging, "similar", number))
