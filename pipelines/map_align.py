"""A part of the release, searched for all evidences whose pages lie in it."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.beat import Beat
from kbsource.errors import RecordError, SetupError
from kbsource.files import join
from kbsource.records import Page
from kbsource.release.columns import decode
from kbsource.schema import ELEMENT
from kbsource.staging import read_batches, read_json
from mapping.locate import SearchOptions, Wanted, locate_in_page
from mapping.places import place_alignments
from mapping.resolve import Resolved
from mapping.tokens import Tokeniser
from pipelines.map_staging import WANTED, MapJob, settled_row, staged, write_settled
from pipelines.storage import storage_for

_COLUMNS = ["page_id", "title", "is_disambiguation", "elements"]


@lru_cache(maxsize=1)
def _chunk_starts(staging: str) -> list[int]:
    starts: list[int] = read_json(storage_for(staging), join(staging, "plan.json"))["starts"]
    return starts


@lru_cache(maxsize=1)
def _tokeniser(lang: str) -> Tokeniser:
    return Tokeniser(lang)


def align_part(task: dict[str, Any], job: MapJob, beat: Beat) -> None:
    """Looks for the evidences of some buckets, bucket by bucket, page by page in the order of the release."""
    staging = task["staging"]
    starts = _chunk_starts(staging)
    rows: list[tuple[Any, ...]] = []
    for bucket in task["buckets"]:
        rows += _aligned_bucket(staging, bucket, job, beat)
    rows.sort(key=lambda row: row[:3])
    numbered = ((bisect_right(starts, row[0]) - 1, row) for row in rows)
    write_settled(numbered, storage_for(staging), staged(staging, "aligned", task["number"]))


def _aligned_bucket(staging: str, bucket: int, job: MapJob, beat: Beat) -> Iterator[tuple[Any, ...]]:
    batches = list(read_batches(storage_for(staging), staged(staging, "wanted", bucket)))
    table = pa.Table.from_batches(batches, schema=WANTED)
    wanted = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    wanted.sort(key=lambda row: row[3:5])
    tokeniser = _tokeniser(job.lang)
    options = SearchOptions(job.threshold, job.max_elements, job.numbering)
    with PageTexts(job.kb, job.pages) as pages:
        for number, ((shard, row), group) in enumerate(groupby(wanted, key=lambda row: row[3:5]), start=1):
            evidences = list(group)
            page = pages.page(shard, row)
            beat.enter(number)
            asked = [Wanted(_found(one), one[9]) for one in evidences]
            try:
                alignments = locate_in_page(page, asked, tokeniser=tokeniser, options=options)
            except RecordError as error:
                raise SetupError(
                    f"page {page.page_id}, {page.title!r}: {error}. Report this, it is a defect."
                ) from error
            beat.leave()
            keys = [(one[0], one[1], one[2]) for one in evidences]
            by_place = {(index, 0): alignment for index, alignment in enumerate(alignments)}
            placed = place_alignments(by_place, page, job.numbering)
            for index, (key, alignment) in enumerate(zip(keys, alignments, strict=True)):
                yield settled_row(key, alignment, placed[index, 0], None)
            beat.done(pages=1, n_bytes=sum(len(one[9] or "") for one in evidences))


def _found(row: tuple[Any, ...]) -> Resolved:
    page_id, title, found_by, hops = row[5:9]
    return Resolved(page_id, title, found_by, hops, None)


class PageTexts:
    """Pages of a local release with nothing but what alignment needs of them, read in the order of the release.

    Used as a context. Memory: one row group.
    """

    def __init__(self, folder: str, files: tuple[str, ...]) -> None:
        self._paths = [os.path.join(folder, file) for file in files]
        self._shard = -1
        self._file: pq.ParquetFile | None = None
        self._starts: list[int] = []
        self._group = -1
        self._table: pa.Table | None = None

    def __enter__(self) -> PageTexts:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def page(self, shard: int, row: int) -> Page:
        """Gives one page: ids, title, elements; all else is empty."""
        if shard != self._shard:
            self._open(shard)
        group = bisect_right(self._starts, row) - 1
        if group != self._group:
            assert self._file is not None
            self._table = self._file.read_row_group(group, columns=_COLUMNS, use_threads=False)
            self._group = group
        assert self._table is not None
        one = self._table.slice(row - self._starts[group], 1).to_batches()[0]
        ids, titles, marks = (one[name].to_pylist() for name in _COLUMNS[:3])
        elements = decode(one["elements"], pa.list_(ELEMENT))[0]
        empty: tuple[Any, ...] = ()
        return Page(
            page_id=ids[0],
            title=titles[0],
            qid=None,
            is_disambiguation=marks[0],
            revision_id=0,
            parent_revision_id=None,
            timestamp="",
            url="",
            elements=elements,
            anchors=empty,
            categories=empty,
            redirects=empty,
            tables=empty,
            infoboxes=empty,
            templates=empty,
            losses=empty,
            parse_status="ok",
        )

    def _open(self, shard: int) -> None:
        if self._file is not None:
            self._file.close()
        self._file = pq.ParquetFile(self._paths[shard], memory_map=True)
        metadata = self._file.metadata
        self._starts, n_rows = [], 0
        for group in range(metadata.num_row_groups):
            self._starts.append(n_rows)
            n_rows += metadata.row_group(group).num_rows
        self._shard, self._group = shard, -1
