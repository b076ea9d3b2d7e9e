"""Pages of a release with nothing but what is searched in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.columns import rows_of
from kbsource.files import absolute, join
from kbsource.records import Page
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import open_table
from kbsource.runtime.regroup import MOST_GROUPS
from mapping.qampari.names import ItemPages

_COLUMNS = ["page_id", "title", "is_disambiguation", "elements"]
_PAGES_AT_ONCE = 64
_PAGES_TOGETHER = 256


class ReleasePages(NamedTuple):
    """The pages of a release."""

    folder: str  # of the release, from the root
    files: tuple[str, ...]  # paths of its files of pages in it, in order
    n_rows: tuple[int, ...]  # pages in each of them
    lang: str  # of the wiki
    sha256: str  # of its manifest

    @classmethod
    def of(cls, folder: str, manifest: PagesManifest) -> ReleasePages:
        """The pages of the release in a folder."""
        files, rows = zip(*((entry.file, entry.rows or 0) for entry in manifest.tables["pages"]), strict=True)
        return cls(absolute(folder), files, rows, manifest.site.lang, manifest.sha256)

    @classmethod
    def open(cls, folder: str) -> ReleasePages:
        """The same of a folder alone; raises SetupError, as ``kbsource.release.kind.Kind.read``."""
        return cls.of(folder, PAGES_RELEASE.read(folder))

    @property
    def n_pages(self) -> int:
        """All of them."""
        return sum(self.n_rows)

    def starts(self) -> list[int]:
        """The position of the first page of each file, and at last their number."""
        return list(accumulate(self.n_rows, initial=0))

    def together(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The group of each row by the ``position`` of its page among all: pages that are read together."""
        n_groups = min(self.n_pages // _PAGES_TOGETHER + 1, MOST_GROUPS)
        groups: npt.NDArray[np.int64] = rows["position"].to_numpy() * n_groups // self.n_pages
        return groups

    def of_items(self) -> ItemPages:
        """Opens the pages that items have, once a process."""
        return _item_pages(self.folder, self.sha256)


@lru_cache(maxsize=2)  # an older and a newer release
def _item_pages(folder: str, sha256: str) -> ItemPages:
    return ItemPages(folder, PAGES_RELEASE.read(folder))


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesPlan:
    """The pages of a release that data are constructed from, and where these go."""

    pages: ReleasePages
    staging: str  # folder for what lies between the steps
    output: str  # folder of the release that is made
    n_groups: int  # groups of rows that are worked on together, see ``groups_for``

    def folder(self, *names: str) -> str:
        """A folder of a step."""
        return join(self.staging, *names)


class PageTexts:
    """Pages of a release with nothing but what alignment needs of them, read in the order of the release.

    Memory: one row group.

    Args:
        further: columns that are needed besides, such as ``anchors``.
    """

    def __init__(self, pages: ReleasePages, *, further: Sequence[str] = ()) -> None:
        self._columns = [*_COLUMNS, *further]
        self._paths = [join(pages.folder, file) for file in pages.files]
        self._first_positions = pages.starts()
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
        """The page at a position among all pages; it has its id, title and elements, and what was asked for besides."""
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
