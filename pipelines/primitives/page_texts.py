"""Pages of a release with nothing but what is searched in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, groupby, islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.files import join
from kbsource.records import Page
from kbsource.release.columns import decode
from kbsource.release.reader import open_table
from kbsource.schema import ANCHOR, ELEMENT
from pipelines.stores.storage import storage_for

_COLUMNS = ["page_id", "title", "is_disambiguation", "elements"]
_PAGES_AT_ONCE = 64


class PageTexts:
    """Pages of a release with nothing but what alignment needs of them, read in the order of the release.

    Memory: one row group.

    Args:
        folder: of the release.
        files: paths of its pages files in it, in order.
        n_rows: pages in each of them.
        has_anchors: gives the links too.
    """

    def __init__(
        self, folder: str, files: tuple[str, ...], n_rows: tuple[int, ...], *, has_anchors: bool = False
    ) -> None:
        self._columns = [*_COLUMNS, "anchors"] if has_anchors else _COLUMNS
        self._storage = storage_for(folder)
        self._paths = [join(folder, file) for file in files]
        self._first_positions = list(accumulate(n_rows, initial=0))
        self._shard = -1
        self._file: pq.ParquetFile | None = None
        self._starts: list[int] = []
        self._group = -1
        self._table: pa.Table | None = None

    def close(self) -> None:
        """Closes the file that is open."""
        if self._file is not None:
            self._file.close(force=True)

    def page(self, position: int) -> Page:
        """Gives the page at a position among all pages: ids, title, elements, links if asked for; else empty."""
        return next(self.pages([position]))

    def pages(self, positions: Iterable[int]) -> Iterator[Page]:
        """Gives the pages at ascending positions, which costs less than to ask for each. Memory: some pages more."""
        for (shard, group), rows in groupby(positions, key=self._group_of):
            if group != self._group:
                assert self._file is not None
                self._table = self._file.read_row_group(group, columns=self._columns, use_threads=False)
                self._group = group
            first = self._first_positions[shard] + self._starts[group]
            while part := [position - first for position in islice(rows, _PAGES_AT_ONCE)]:
                assert self._table is not None
                yield from self._decoded(self._table.take(pa.array(part)).combine_chunks().to_batches()[0])

    def _group_of(self, position: int) -> tuple[int, int]:
        shard = bisect_right(self._first_positions, position) - 1
        if shard != self._shard:
            self._open(shard)
        return shard, bisect_right(self._starts, position - self._first_positions[shard]) - 1

    def _decoded(self, batch: pa.RecordBatch) -> Iterator[Page]:
        plain = (batch[name].to_pylist() for name in _COLUMNS[:3])
        empty: tuple[Any, ...] = ()
        has_anchors = "anchors" in self._columns
        anchors = decode(batch["anchors"], pa.list_(ANCHOR)) if has_anchors else [empty] * batch.num_rows
        elements = decode(batch["elements"], pa.list_(ELEMENT))
        for page_id, title, is_disambiguation, texts, links in zip(*plain, elements, anchors, strict=True):
            yield Page(
                page_id=page_id,
                title=title,
                qid=None,
                is_disambiguation=is_disambiguation,
                revision_id=0,
                parent_revision_id=None,
                timestamp="",
                url="",
                elements=texts,
                anchors=links,
                categories=empty,
                template_categories=empty,
                redirects=empty,
                tables=empty,
                infoboxes=empty,
                templates=empty,
                losses=empty,
                parse_status="ok",
            )

    def _open(self, shard: int) -> None:
        self.close()
        self._file = open_table(self._paths[shard], self._storage)
        metadata = self._file.metadata
        self._starts, n_rows = [], 0
        for group in range(metadata.num_row_groups):
            self._starts.append(n_rows)
            n_rows += metadata.row_group(group).num_rows
        self._shard, self._group = shard, -1
