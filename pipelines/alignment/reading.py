"""The driver's part of an alignment: records into chunks, evidences to the parts of the release that they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

from kbsource.assembly import rounded_up
from kbsource.errors import DataError
from kbsource.files import Storage, join
from kbsource.records import BadRecord
from kbsource.release.layout import check_output
from kbsource.release.manifest import Manifest
from kbsource.schema import REJECTED
from kbsource.staging import StagedRows, staged_rows
from mapping.locate import locate_nowhere
from mapping.records import Evidence, Example, PageKey
from mapping.resolve import Resolved, Resolver
from mapping.sources import SOURCES
from mapping.sources.base import Inputs, ReleasedExample, Tally, iter_evidence, released_span
from mapping.sources.kilt import fallback_page
from mapping.staged import example_to_json
from mapping.suggest import FEW
from pipelines.alignment.missing import MissingTitles, read_similar, similar_titles, stage_titles
from pipelines.alignment.staging import (
    EXAMPLES,
    MISSING,
    REJECTED_FILE,
    ROWS_AT_ONCE,
    Buckets,
    bucket_of,
    read_rows,
    settled_row,
    staged,
    write_settled,
    write_starts,
)
from pipelines.alignment.tasks import SUGGEST
from pipelines.alignment.verify import check_model
from pipelines.options_map import MapOptions
from pipelines.shown_stages import ShownStages, Task
from pipelines.storage import storage_for

CHUNK_CHARS = 16 << 20
"""Characters of staged records after which a chunk ends, however few they are."""
_BATCH_CHARS = 1 << 20
_MISSING = "missing.arrow"


class StagedDataset(NamedTuple):
    """What came of reading a dataset.

    Attributes:
        tally: counts of records.
        n_chars: length of the staged records of each chunk.
        bucket_rows, bucket_bytes: evidences of each bucket, and bytes of their texts.
    """

    tally: Tally
    n_chars: list[int]
    bucket_rows: list[int]
    bucket_bytes: list[int]


def check_dataset(options: MapOptions, output: str) -> Storage:
    """Gives the storage of all files of an alignment, once what can be seen to be wrong has been looked for.

    Raises:
        SetupError: the folder cannot be written, a file or the model is missing or not what it should be.
    """
    storage = storage_for(output, *options.inputs, *options.references, *options.labels)
    check_output(output, storage)
    SOURCES[options.dataset].check(_inputs(options), options.split, storage=storage, options=options.source)
    check_model(options)
    return storage


def _inputs(options: MapOptions) -> Inputs:
    return Inputs(options.inputs, options.references, options.labels)


def read_dataset(
    options: MapOptions, *, resolver: Resolver, release: Manifest, tasks: ShownStages, storage: Storage
) -> StagedDataset:
    """Stages a dataset: records by chunk, evidences by where their pages lie.

    Raises:
        DataError: too many records cannot be used.
        SetupError: an input cannot be read to its end.
    """
    staging, tally = tasks.staging, Tally()
    first_bad: BadRecord | None = None
    with ExitStack() as stack:
        buckets = stack.enter_context(Buckets(staging, storage))
        titles = stack.enter_context(MissingTitles(options.source.scratch))
        spread = Spread(resolver, buckets, titles, release)
        tasks.progress.note(f"read: {len(options.inputs)} files of {options.dataset}")
        with ExitStack() as reading:
            missing = reading.enter_context(staged_rows(storage, join(staging, _MISSING), MISSING))
            rejected = reading.enter_context(staged_rows(storage, join(staging, REJECTED_FILE), REJECTED))
            examples = reading.enter_context(StagedExamples(staging, storage, options.chunk_records))
            for one in SOURCES[options.dataset].read(
                _inputs(options), options.split, storage=storage, options=options.source, tally=tally
            ):
                if isinstance(one, BadRecord):
                    first_bad = first_bad or one
                    rejected.add((one.stage, one.key, one.reason, one.detail, one.file, one.offset))
                    _flush_many(rejected)
                else:
                    spread.add(examples.add(one), one, missing)
                    _flush_many(missing)
        _suggest(titles, resolver, tasks, storage)
        rows = read_rows(storage, join(staging, _MISSING))
        settled = spread.settle(rows, examples.starts, accept_fuzzy=options.accept_fuzzy)
        write_settled(settled, storage, join(staging, "settled.arrow"))
    write_starts(staging, examples.starts, storage)
    tasks.progress.note(f"read: {tally.records:,} records, {tally.evidences:,} pieces of evidence")
    _check_rejects(tally, first_bad, options.max_rejects)
    return StagedDataset(tally, examples.n_chars, buckets.counts, buckets.n_bytes)


def _suggest(titles: MissingTitles, resolver: Resolver, tasks: ShownStages, storage: Storage) -> None:
    """Looks for titles like the missing ones: a few here and now, more by tasks, for it takes memory."""
    if len(titles) <= FEW:
        for batch in titles.batches():
            titles.put(similar_titles(batch, resolver.index))
        return
    tasks.progress.note(f"suggest: titles like {len(titles):,} that are missing")
    counts = stage_titles(titles, tasks.staging, storage)
    tasks.run(SUGGEST, [Task(number, count) for number, count in enumerate(counts)])
    for number in range(len(counts)):
        titles.put(read_similar(tasks.staging, number, storage))


def _check_rejects(tally: Tally, first: BadRecord | None, ceiling: float) -> None:
    n_rejected = tally.rejected.total()
    if first is not None and n_rejected / tally.records > ceiling:
        reasons = ", ".join(f"{count} {reason}" for reason, count in tally.rejected.most_common())
        raise DataError(
            f"{n_rejected} of {tally.records} records rejected, {n_rejected / tally.records:.3%}; the ceiling is "
            f"{ceiling:.3%} (by reason: {reasons}). The first: {first.file}, {first.key}: {first.detail}. If the files "
            f"are as they should be, raise --max-rejects to at least {rounded_up(n_rejected / tally.records)}."
        )


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
    """Sends evidences to the buckets of their pages."""

    def __init__(self, resolver: Resolver, buckets: Buckets, titles: MissingTitles, release: Manifest) -> None:
        self._resolver = resolver
        self._buckets = buckets
        self._titles = titles
        self._starts = list(accumulate((entry.rows for entry in release.tables["pages"]), initial=0))

    def add(self, ordinal: int, example: Example, missing: StagedRows) -> None:
        """Looks up the pages of a record's evidences; those that are not found become rows of ``missing``."""
        for key, evidence in iter_evidence(example):
            found = self._resolver.resolve(evidence.page, fallback=_fallback(example, key, evidence))
            if found.page_id is not None:
                self._put((ordinal, *key), found, evidence.text)
                continue
            missing.add((ordinal, *key, found.asked, evidence.text))
            if found.asked:
                self._titles.add(found.asked)

    def settle(
        self, missing: Iterator[tuple[Any, ...]], starts: Sequence[int], *, accept_fuzzy: float | None
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Sends on the evidences with an accepted likeness, and gives chunk and row of those that stay without a page.

        Args:
            missing: rows that ``add`` made, in order.
            starts: number of the first record of each chunk.
            accept_fuzzy: lowest likeness of a title that is taken for a missing one; None for never.
        """
        chunk = 0
        for ordinal, output, place, asked, text in missing:
            key = (ordinal, output, place)
            similar = self._titles.similar(asked) if asked else ()
            if accept_fuzzy is not None and similar and similar[0][1] >= accept_fuzzy:
                found = self._resolver.resolve_similar(similar[0][0])
                if found.page_id is not None:
                    self._put(key, found, text)
                    continue
            while chunk + 1 < len(starts) and starts[chunk + 1] <= ordinal:
                chunk += 1
            alignment = locate_nowhere(Resolved(None, None, None, 0, asked), text)
            yield chunk, settled_row(key, replace(alignment, suggestions=similar), None)

    def _put(self, key: tuple[int, int, int], found: Resolved, text: str | None) -> None:
        """Sends one evidence to its page."""
        assert found.page_id is not None
        shard, row = self._resolver.location(found.page_id)
        position = self._starts[shard] + row
        self._buckets.add(bucket_of(position, self._starts[-1]), (*key, position, *found[:4], text))


def _fallback(example: Example, key: tuple[int, int], evidence: Evidence) -> PageKey | None:
    return fallback_page(released_span(example, key)) if isinstance(example, ReleasedExample) else evidence.fallback


def _flush_many(rows: StagedRows) -> None:
    """Writes the rows that are pending when they are many."""
    if rows.n_pending >= ROWS_AT_ONCE:
        rows.flush()
