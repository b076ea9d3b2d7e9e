"""Reading the tables of a release: one page at a time, or all of them in order."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from kbsource.files import Storage, join
from kbsource.records import Page
from kbsource.release.columns import batch_to_pages
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.reader import open_table, opened_table

OPEN_FILES = 8
"""Parquet files held open at once; each costs its footer, a few megabytes."""

ROW_GROUPS = 4
"""Row groups held decoded, about 1-2 MB each: neighbours of a page are often asked for next."""


class _Shard:
    """One open pages file."""

    def __init__(self, path: str, storage: Storage) -> None:
        self.file = open_table(path, storage)
        metadata = self.file.metadata
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        self.starts = list(accumulate(sizes, initial=0))[:-1]

    def close(self) -> None:
        self.file.close(force=True)


class PagesReader:
    """Pages of a release by shard and row. Memory: ``OPEN_FILES`` footers and ``ROW_GROUPS`` row
    groups.

    Not for use by several threads at once.

    Args:
        folder: of the release.
        manifest: of it.
        storage: of the folder.
        columns: that are read, for ``row``; all where pages are.
    """

    def __init__(
        self, folder: str, manifest: PagesManifest, storage: Storage, *, columns: Sequence[str] | None = None
    ) -> None:
        self._columns = columns
        self._paths = [join(folder, entry.file) for entry in manifest.tables["pages"]]
        self._storage = storage
        self._shards: OrderedDict[int, _Shard] = OrderedDict()
        self._groups: OrderedDict[tuple[int, int], Any] = OrderedDict()

    def page(self, shard: int, row: int) -> Page | None:
        """Gives one page; None where the file has fewer rows."""
        found = self.row(shard, row)
        return None if found is None else batch_to_pages(found)[0]

    def row(self, shard: int, row: int) -> Any:
        """Gives the record batch of one page; None where the file has fewer rows."""
        opened = self._shard(shard)
        group = bisect_right(opened.starts, row) - 1
        table = self._groups.pop((shard, group), None)
        if table is None:
            if len(self._groups) == ROW_GROUPS:  # first, so that its memory is there for the next one
                self._groups.popitem(last=False)
            table = opened.file.read_row_group(group, columns=self._columns, use_threads=False)
        self._groups[(shard, group)] = table
        found = table.slice(row - opened.starts[group], 1).to_batches()
        return found[0] if found else None

    def _shard(self, shard: int) -> _Shard:
        opened = self._shards.pop(shard, None)
        if opened is None:
            opened = _Shard(self._paths[shard], self._storage)
            if len(self._shards) == OPEN_FILES:
                self._shards.popitem(last=False)[1].close()
        self._shards[shard] = opened
        return opened

    def pages(self) -> Iterator[Page]:
        """Gives every page in the order of the release, one row group in memory."""
        for path in self._paths:
            with opened_table(path, self._storage) as file:
                for group in range(file.metadata.num_row_groups):
                    for batch in file.read_row_group(group, use_threads=False).to_batches():
                        yield from batch_to_pages(batch)

    def close(self) -> None:
        """Closes every file."""
        self._groups.clear()
        while self._shards:
            self._shards.popitem()[1].close()
