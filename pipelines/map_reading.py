"""The driver's part of an alignment: records into chunks, evidences to the parts of the release that they need."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import accumulate
from typing import Any

from kbsource.files import Storage
from kbsource.release.manifest import Manifest
from kbsource.staging import StagedRows, staged_rows
from mapping.records import Evidence, Example, PageKey
from mapping.resolve import Resolved, Resolver
from mapping.sources.base import ReleasedExample, iter_evidence, released_span
from mapping.sources.kilt import fallback_page
from mapping.staged import example_to_json
from pipelines.map_missing import MissingTitles
from pipelines.map_staging import EXAMPLES, ROWS_AT_ONCE, Buckets, bucket_of, staged

CHUNK_CHARS = 16 << 20
"""Characters of staged records after which a chunk ends, however few they are."""
_BATCH_CHARS = 1 << 20


class StagedExamples:
    """Records on their way into chunks. A context: the last chunk is complete when it ends.

    Attributes:
        starts: number of the first record of each chunk; one chunk without records when there are none.
        n_chars: length of the staged records of each.
    """

    def __init__(self, staging: str, storage: Storage, chunk_records: int) -> None:
        self._staging, self._storage, self._chunk_records = staging, storage, chunk_records
        self._stack = ExitStack()
        self._rows: StagedRows | None = None
        self._n_records = self._n_pending = 0
        self.starts: list[int] = []
        self.n_chars: list[int] = []

    def __enter__(self) -> StagedExamples:
        self._begin()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._stack.__exit__(*failure)

    def add(self, example: Example) -> int:
        """Takes a record and gives its number."""
        if self._n_records - self.starts[-1] == self._chunk_records or self.n_chars[-1] >= CHUNK_CHARS:
            self._stack.close()
            self._begin()
        assert self._rows is not None
        text = example_to_json(example)
        self._rows.add((self._n_records, text))
        self.n_chars[-1] += len(text)
        self._n_pending += len(text)
        if self._n_pending >= _BATCH_CHARS:
            self._rows.flush()
            self._n_pending = 0
        self._n_records += 1
        return self._n_records - 1

    def _begin(self) -> None:
        path = staged(self._staging, "examples", len(self.starts))
        self._rows = self._stack.enter_context(staged_rows(self._storage, path, EXAMPLES))
        self.starts.append(self._n_records)
        self.n_chars.append(0)
        self._n_pending = 0


class Spread:
    """Sends evidences to the buckets of their pages.

    Attributes:
        resolver: of the release.
        titles: titles that are missing.
    """

    def __init__(self, resolver: Resolver, buckets: Buckets, titles: MissingTitles, release: Manifest) -> None:
        self.resolver = resolver
        self.titles = titles
        self._buckets = buckets
        self._starts = list(accumulate((entry.rows for entry in release.tables["pages"]), initial=0))

    def add(self, ordinal: int, example: Example, missing: StagedRows) -> None:
        """Looks up the pages of a record's evidences; those that are not found become rows of ``missing``."""
        for key, evidence in iter_evidence(example):
            found = self.resolver.resolve(evidence.page, fallback=_fallback(example, key, evidence))
            if found.page_id is not None:
                self.put((ordinal, *key), found, evidence.text)
                continue
            missing.add((ordinal, *key, found.asked, evidence.text))
            if found.asked:
                self.titles.add(found.asked)

    def put(self, key: tuple[int, int, int], found: Resolved, text: str | None) -> None:
        """Sends one evidence to its page."""
        assert found.page_id is not None
        shard, row = self.resolver.location(found.page_id)
        position = self._starts[shard] + row
        self._buckets.add(bucket_of(position, self._starts[-1]), (*key, position, *found[:4], text))


def _fallback(example: Example, key: tuple[int, int], evidence: Evidence) -> PageKey | None:
    return fallback_page(released_span(example, key)) if isinstance(example, ReleasedExample) else evidence.fallback


def flush_many(rows: StagedRows) -> None:
    """Writes the rows that are pending when they are many."""
    if rows.n_pending >= ROWS_AT_ONCE:
        rows.flush()
