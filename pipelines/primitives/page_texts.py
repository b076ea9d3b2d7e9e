"""Reads pages of a release with only the columns that are searched."""

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

from kbsource.columns import rows_of
from kbsource.files import absolute, join
from kbsource.records import Page
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.pages.reading import PagesReader
from kbsource.runtime.regroup import MOST_GROUPS
from mapping.qampari.names import ItemPages

_COLUMNS = ["page_id", "title", "is_disambiguation", "elements"]
_PAGES_AT_ONCE = 64
_PAGES_TOGETHER = 256


class ReleasePages(NamedTuple):
    """The pages of a release."""

    folder: str  # absolute path of the release
    files: tuple[str, ...]  # paths of its files of pages in the folder, in order
    n_rows: tuple[int, ...]  # number of pages in each file
    lang: str  # language of the wiki
    sha256: str  # hash of its manifest

    @classmethod
    def of(cls, folder: str, manifest: PagesManifest) -> ReleasePages:
        """Returns the pages of the release in a folder."""
        files, rows = zip(*((entry.file, entry.rows or 0) for entry in manifest.tables["pages"]), strict=True)
        return cls(absolute(folder), files, rows, manifest.site.lang, manifest.sha256)

    @classmethod
    def open(cls, folder: str) -> ReleasePages:
        """Returns the pages of the release in a folder, given only its path. Raises SetupError in the same cases as
        ``kbsource.release.kind.Kind.read``."""
        return cls.of(folder, PAGES_RELEASE.read(folder))

    @property
    def n_pages(self) -> int:
        """Returns the number of all pages."""
        return sum(self.n_rows)

    def starts(self) -> list[int]:
        """Returns the position of the first page of each file, and finally the number of pages."""
        return list(accumulate(self.n_rows, initial=0))

    def together(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Returns the group of each row by the ``position`` of its page; pages of a group are read together."""
        n_groups = min(self.n_pages // _PAGES_TOGETHER + 1, MOST_GROUPS)
        groups: npt.NDArray[np.int64] = rows["position"].to_numpy() * n_groups // self.n_pages
        return groups

    def of_items(self) -> ItemPages:
        """Opens the mapping from items to pages, once per process."""
        return _item_pages(self.folder, self.sha256)


@lru_cache(maxsize=2)  # an older and a newer release
def _item_pages(folder: str, sha256: str) -> ItemPages:
    return ItemPages(folder, PAGES_RELEASE.read(folder))


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesPlan:
    """The pages of a release as input for data, and the output folders."""

    pages: ReleasePages
    staging: str  # folder for files between the steps
    output: str  # folder of the new release

    def folder(self, *names: str) -> str:
        """Returns the folder of a step."""
        return join(self.staging, *names)


class PageTexts:
    """Reads pages of a release, with only the columns that alignment needs, in the order of the release.

    Memory: a few row groups.

    Args:
        further: additional columns, such as ``anchors``.
    """

    def __init__(self, pages: ReleasePages, *, further: Sequence[str] = ()) -> None:
        self._reader = PagesReader(pages.folder, pages.files, columns=[*_COLUMNS, *further])
        self._starts = pages.starts()

    def close(self) -> None:
        """Closes the open files."""
        self._reader.close()

    def page(self, position: int) -> Page:
        """Returns the page at a position among all pages, with its id, title, elements and the additional columns."""
        return next(self.pages([position]))

    def pages(self, positions: Iterable[int]) -> Iterator[Page]:
        """Reads the pages at ascending positions, which is faster than reading each separately. Memory: some more
        pages.
        """
        for first, own in groupby(positions, key=lambda position: self._group(position)[1]):
            table, _ = self._group(first)
            while part := [position - first for position in islice(own, _PAGES_AT_ONCE)]:
                yield from rows_of(table.take(pa.array(part)), Page)

    def _group(self, position: int) -> tuple[pa.Table, int]:
        """Returns the row group of a page, and the position of the first page in it."""
        shard = bisect_right(self._starts, position) - 1
        table, row = self._reader.group(shard, position - self._starts[shard])
        return table, self._starts[shard] + row
