"""A part of the release, searched for all evidences whose pages lie in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.beat import Beat
from kbsource.errors import DataError, RecordError
from kbsource.files import Storage
from kbsource.records import Page
from kbsource.staging import read_batches
from mapping.locate import PageSearch, SearchOptions, without_span
from mapping.places import place_alignments
from mapping.records import Alignment
from mapping.resolve import Resolved
from mapping.tokens import Tokeniser
from pipelines.alignment.staging import (
    WANTED,
    MapJob,
    batch_rows,
    bucket_range,
    read_starts,
    settled_row,
    staged,
    write_settled,
)
from pipelines.page_texts import PageTexts
from pipelines.storage import storage_for

PIECE_BYTES = 4 << 20
"""Text of evidences that are held at a time, with ``_ROW_BYTES`` for what else there is of each."""
_ROW_BYTES = 1_000
MAX_LOST = 3
"""Evidences of a page that are given up before the page is, with all further ones."""
GIVEN_UP = "page_"
"""Begins the verdict over what ended the process for the second time."""

_POSITION, _TEXT = (WANTED.get_field_index(name) for name in ("position", "text"))


@lru_cache(maxsize=1)
def tokeniser(lang: str) -> Tokeniser:
    """Gives the tokeniser of a language; a process has one, for it is slow to open and large."""
    return Tokeniser(lang)


def align_part(task: dict[str, Any], job: MapJob, beat: Beat) -> None:
    """Looks for the evidences of some buckets, piece by piece, page by page in the order of the release.

    The beat shows the number of the evidence in work, from 1. Verdicts over evidences are in the task, see
    ``run_tasks.run_guarded``: what ended the process twice is given up.
    """
    staging = task["staging"]
    storage = storage_for(staging)
    starts = read_starts(staging, storage)
    search = _Search(job, task.get("verdicts", {}), beat)
    aligned = (
        (bisect_right(starts, row[0]) - 1, row)
        for bucket in task["buckets"]
        for piece in read_pieces(storage, staged(staging, "wanted", bucket), bucket_range(bucket, sum(job.page_rows)))
        for row in sorted(search.settle(piece), key=lambda row: row[:3])
    )
    with search:
        write_settled(aligned, storage, staged(staging, "aligned", task["number"]))


def read_pieces(storage: Storage, path: str, positions: tuple[int, int]) -> Iterator[list[tuple[Any, ...]]]:
    """Gives the rows of a bucket in the order of their pages, as many at a time as memory may hold.

    All evidences of a page are in one piece, unless they are too many for one.

    Args:
        storage: of the staging folder.
        path: of the bucket.
        positions: half-open range of its pages.
    """
    first, end = positions
    weights = np.zeros(end - first, np.int64)
    for batch in read_batches(storage, path):
        np.add.at(weights, batch["position"].to_numpy() - first, _weights(batch))
    start = held = 0
    for place in np.flatnonzero(weights).tolist():
        weight = int(weights[place])
        if held and held + weight > PIECE_BYTES:
            yield from _rows_between(storage, path, first + start, first + place)
            start, held = place, 0
        held += weight
    yield from _rows_between(storage, path, first + start, end)


def _weights(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    n_bytes: npt.NDArray[np.int64] = pc.fill_null(pc.binary_length(batch["text"]), 0).to_numpy() + _ROW_BYTES
    return n_bytes


def _rows_between(storage: Storage, path: str, start: int, end: int) -> Iterator[list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = []
    held = 0
    for batch in read_batches(storage, path):
        positions = batch["position"].to_numpy()
        chosen = batch.filter(pa.array((positions >= start) & (positions < end)))
        for weight, row in zip(_weights(chosen).tolist(), batch_rows(chosen), strict=True):
            # More than a piece is only held of a page that is one by itself.
            if rows and held + weight > PIECE_BYTES:
                yield rows
                rows, held = [], 0
            rows.append(row)
            held += weight
    rows.sort(key=itemgetter(_POSITION))
    yield rows


class _Search:
    """The search of one task. A context: the files of the release are closed when it ends."""

    def __init__(self, job: MapJob, verdicts: Mapping[str, str], beat: Beat) -> None:
        self._job = job
        self._options = SearchOptions(job.threshold, job.max_elements, job.numbering, job.places_nothing)
        self._pages = PageTexts(job.kb, job.pages, job.page_rows)
        self._beat = beat
        self._lost = {
            int(number): f"search_{verdict.removeprefix(GIVEN_UP)}"
            for number, verdict in verdicts.items()
            if verdict.startswith(GIVEN_UP)
        }
        self._n_evidences = 0

    def __enter__(self) -> _Search:
        return self

    def __exit__(self, *_: object) -> None:
        self._pages.close()

    def settle(self, piece: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Gives what became of evidences that are in the order of their pages."""
        for position, group in groupby(piece, key=itemgetter(_POSITION)):
            evidences = list(group)
            page = self._pages.page(position)
            alignments = {(index, 0): one for index, one in enumerate(self._located(page, evidences))}
            placed = place_alignments(alignments, page, self._job.numbering)
            for (ordinal, output, place, *_), key in zip(evidences, alignments, strict=True):
                yield settled_row((ordinal, output, place), alignments[key], placed[key])
            self._beat.done(pages=1, n_bytes=sum(len(one[_TEXT] or "") for one in evidences))

    def _located(self, page: Page, evidences: list[tuple[Any, ...]]) -> Iterator[Alignment]:
        search = PageSearch(page, tokeniser(self._job.lang), self._options)
        n_lost, fate = 0, ""
        for row in evidences:
            self._n_evidences += 1
            page_id, title, found_by, hops = row[_POSITION + 1 : _TEXT]
            found = Resolved(page_id, title, found_by, hops, None)
            if self._n_evidences in self._lost:
                n_lost, fate = n_lost + 1, self._lost[self._n_evidences]
                yield without_span(fate, found)
                continue
            if n_lost >= MAX_LOST:
                yield without_span(fate, found)
                continue
            self._beat.enter(self._n_evidences)
            try:
                alignment = search.locate(found, row[_TEXT])
            except RecordError as error:
                raise DataError(
                    f"page {page.page_id}, {page.title!r}: {error}. Report this, it is a defect."
                ) from error
            self._beat.leave()
            yield alignment
