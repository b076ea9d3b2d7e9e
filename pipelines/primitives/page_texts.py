"""Pages of a release with nothing but what is searched in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby, islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.columns import rows_of
from kbsource.files import join
from kbsource.records import Page
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import open_table
from mapping.qampari.names import ItemPages

_COLUMNS = ["page_id", "title", "is_disambiguation", "elements"]
_PAGES_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesPlan:
    """The pages of a release that data are constructed from, and where these go."""

    kb: str  # folder of the release, from the root
    kb_sha256: str
    pages: tuple[str, ...]  # paths of its pages files in it, in order
    page_rows: tuple[int, ...]  # pages in each of them
    staging: str  # folder for what lies between the steps
    output: str  # folder of the release that is made
    n_groups: int  # groups of rows that are worked on together, see ``groups_for``

    @staticmethod
    def of_release(kb: str, release: PagesManifest) -> dict[str, Any]:
        """The values that the manifest of a release gives."""
        files = release.tables["pages"]
        rows = tuple(entry.rows or 0 for entry in files)
        return {"kb": kb, "kb_sha256": release.sha256, "pages": tuple(one.file for one in files), "page_rows": rows}

    @property
    def n_pages(self) -> int:
        """Pages of the release."""
        return sum(self.page_rows)

    def folder(self, *names: str) -> str:
        """A folder of a step."""
        return join(self.staging, *names)

    def item_pages(self) -> ItemPages:
        """Opens the pages that items have, once a process."""
        return _item_pages(self.kb, self.kb_sha256)

    def page_texts(self, *, has_anchors: bool = False) -> PageTexts:
        """Opens the pages."""
        return PageTexts(self.kb, self.pages, self.page_rows, has_anchors=has_anchors)


@lru_cache(maxsize=1)
def _item_pages(kb: str, sha256: str) -> ItemPages:
    return ItemPages(kb, PAGES_RELEASE.read(kb))


class PageTexts:
    """Pages of a release with nothing but what alignment needs of them, read in the order of the release.

    The files of pages are given in order by their paths in the folder, with the pages in each. Memory: one row group.
    """

    def __init__(
        self, folder: str, files: tuple[str, ...], n_rows: tuple[int, ...], *, has_anchors: bool = False
    ) -> None:
        self._columns = [*_COLUMNS, "anchors"] if has_anchors else _COLUMNS
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
        """The page at a position among all pages; it has its id, title and elements, and its links if asked for."""
        return next(self.pages([position]))

    def pages(self, positions: Iterable[int]) -> Iterator[Page]:
        """The pages at ascending positions, which costs less than to ask for each. Memory: some pages more."""
        for (shard, group), rows in groupby(positions, key=self._group_of):
            if group != self._group:
                assert self._file is not None
                self._table = self._file.read_row_group(group, columns=self._columns, use_threads=False)
                self._group = group
            first = self._first_positions[shard] + self._starts[group]
            while part := [position - first for position in islice(rows, _PAGES_AT_ONCE)]:
                assert self._table is not None
                yield from rows_of(self._table.take(pa.array(part)), Page)

    def _group_of(self, position: int) -> tuple[int, int]:
        shard = bisect_right(self._first_positions, position) - 1
        if shard != self._shard:
            self._open(shard)
        return shard, bisect_right(self._starts, position - self._first_positions[shard]) - 1

    def _open(self, shard: int) -> None:
        self.close()
        self._file = open_table(self._paths[shard])
        metadata = self._file.metadata
        self._starts, n_rows = [], 0
        for group in range(metadata.num_row_groups):
            self._starts.append(n_rows)
            n_rows += metadata.row_group(group).num_rows
        self._shard, self._group = shard, -1
