"""Reads a release of pages: single pages, the terms of their items, and the templates that lose the most text."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from kbsource.columns import numbers, rows_of, schema_of
from kbsource.errors import DataError
from kbsource.files import Folder, join
from kbsource.records import Page
from kbsource.release.manifest import Manifest
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import groups_with, open_table, opened_table
from kbsource.wikitext.reference_rows import Reference, ReferenceUse

if TYPE_CHECKING:
    import pyarrow.parquet as pq

OPEN_FILES = 8
"""Maximum number of Parquet files kept open. Each needs a few megabytes of memory for its footer."""

ROW_GROUPS = 4
"""Number of decoded row groups in the cache, about 1-2 MB each. Neighbouring pages are often requested next."""


class PagesReader:
    """Reads pages of a release by shard and row. Memory: ``OPEN_FILES`` footers and ``ROW_GROUPS`` row groups.

    Not safe for use by several threads at once.

    Args:
        files: the files of the table ``pages`` or of another table, in order, as paths in the folder.
        columns: the columns that ``row`` and ``group`` read. ``page`` needs all columns.
    """

    def __init__(self, folder: str | Folder, files: Iterable[str], *, columns: Sequence[str] | None = None) -> None:
        paths = [Folder.of(folder) / file for file in files]
        self._opened = lru_cache(OPEN_FILES)(partial(_opened, paths))
        self._read = lru_cache(ROW_GROUPS)(partial(_row_group, self._opened, columns))

    def page(self, shard: int, row: int) -> Page | None:
        """Returns a page; None if the file has fewer rows."""
        found = self.row(shard, row)
        return None if found is None else pages_of(found)[0]

    def row(self, shard: int, row: int) -> Any:
        """Returns a page as a record batch; None if the file has fewer rows."""
        table, first = self.group(shard, row)
        found = table.slice(row - first, 1).to_batches()
        return found[0] if found else None

    def group(self, shard: int, row: int) -> tuple[Any, int]:
        """Returns the row group that contains a row, and the number of its first row. If the file has fewer rows,
        returns the last row group.
        """
        _, starts = self._opened(shard)
        number = bisect_right(starts, row) - 1
        return self._read(shard, number), starts[number]

    def close(self) -> None:
        """Closes all files."""
        self._read.cache_clear()
        self._opened.cache_clear()


def _opened(files: Sequence[Folder], shard: int) -> tuple[pq.ParquetFile, list[int]]:
    """Returns a file and the number of the first row of each row group. The file is closed when nothing refers to
    it.
    """
    file = open_table(files[shard])
    sizes = (file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups))
    return file, list(accumulate(sizes, initial=0))[:-1]


def _row_group(opened: Callable[[int], tuple[Any, Any]], columns: Sequence[str] | None, shard: int, group: int) -> Any:
    return opened(shard)[0].read_row_group(group, columns=columns, use_threads=False)


class PageReferences(NamedTuple):
    """The references of a page and their uses, as rows of their tables."""

    refs: tuple[Reference, ...]
    uses: tuple[ReferenceUse, ...]


def page_references(folder: Folder, manifest: Manifest, shard: int, page_id: int) -> PageReferences:
    """Returns the references of a page in a shard of pages. Memory: one row group whose id range includes the page.

    Raises:
        DataError: the release has no references.
    """
    if "refs" not in manifest.tables:
        raise DataError("the release has no references; build it with --references")
    found: list[tuple[Any, ...]] = []
    for table, row in (("refs", Reference), ("ref_uses", ReferenceUse)):
        with opened_table(folder / manifest.tables[table][shard].file) as file:
            own = groups_with(file, "page_id", page_id)
            found.append(tuple(chain.from_iterable(rows_of(group, row) for group in own)))
    return PageReferences(*found)


def pages_of(batch: pa.RecordBatch, columns: Sequence[str] | None = None) -> list[Page]:
    """Returns the pages in a batch of the table ``pages``, or of some of its columns.

    Raises:
        DataError: the batch has other columns.
    """
    schema = schema_of(Page)
    missing = [name for name in columns or schema.names if name not in batch.schema.names]
    try:
        if missing:
            raise KeyError(missing[0])
        return rows_of(batch, Page)
    except (KeyError, ValueError) as error:
        if batch.schema.equals(schema):
            raise
        raise DataError(
            f"the pages do not have the columns of this version of kbsource ({', '.join(missing) or 'fields differ'}): "
            "build the release again, or read it with the version of kbsource in its manifest"
        ) from error


TABLE = "page_items"
HELD_GROUPS = 4
"""Number of row groups in the cache, 1-2 MB each. A few are enough, because pages are requested roughly in the order of
the table.
"""
_COLUMNS = ["page_id", "wikidata_qid", "label", "description", "aliases"]


class ItemTerms(NamedTuple):
    """Label, description and aliases of a page's item."""

    #: ``label`` and ``description`` are None if Wikidata does not have them, or does not have the item
    label: str | None
    description: str | None
    aliases: tuple[str, ...]  #: without duplicates
    has_sitelink: bool  #: true if a sitelink of Wikidata assigns the item, false if only page_props does


class PageItemsReader:
    """Looks up terms by page id. Memory: the first page id of every row group, and ``HELD_GROUPS`` row groups.

    Not safe for use by several threads at once.

    Args:
        manifest: manifest of the release. Its table ``page_items`` is sorted by page id.
    """

    def __init__(self, folder: str, manifest: PagesManifest) -> None:
        places: list[tuple[str, int]] = []
        self._starts: list[int] = []
        for entry in manifest.tables[TABLE]:
            path = join(folder, entry.file)
            with opened_table(path) as file:
                for group in range(file.metadata.num_row_groups):
                    if file.metadata.row_group(group).num_rows:
                        places.append((path, group))
                        first = file.read_row_group(group, columns=["page_id"], use_threads=False)
                        self._starts.append(first["page_id"][0].as_py())
        self._group = lru_cache(HELD_GROUPS)(partial(_terms_group, places))

    def terms(self, page_id: int) -> ItemTerms | None:
        """Returns the terms of a page's item; None if the table does not contain the page."""
        number = bisect_right(self._starts, page_id) - 1
        if number < 0:
            return None
        page_ids, table = self._group(number)
        row = bisect_left(page_ids, page_id)
        if row == len(page_ids) or page_ids[row] != page_id:
            return None
        (found,) = table.slice(row, 1).to_pylist()
        aliases: Iterable[str] = found["aliases"]
        return ItemTerms(found["label"], found["description"], tuple(aliases), found["wikidata_qid"] is not None)


def _terms_group(places: Sequence[tuple[str, int]], number: int) -> tuple[memoryview, pa.Table]:
    path, group = places[number]
    with opened_table(path) as file:
        table = file.read_row_group(group, columns=_COLUMNS, use_threads=False)
    return numbers(table["page_id"].combine_chunks()), table


def worst_templates(release: str, manifest: PagesManifest, *, limit: int, with_dropped: bool) -> list[dict[str, Any]]:
    """Returns the rows of the table ``templates`` with the largest losses of visible characters, largest first. Rows
    without losses are left out.

    Args:
        with_dropped: include templates that a rule drops because their text does not belong to the page's text.
    """
    rows = (
        row
        for row in PAGES_RELEASE.rows(release, manifest, "templates")
        if row["lost_chars"] and (with_dropped or row["outcome"] != "dropped")
    )
    return heapq.nsmallest(limit, rows, key=lambda row: (-row["lost_chars"], row["name"], row["outcome"]))


def sums_by_outcome(release: str, manifest: PagesManifest) -> Mapping[str, Counter[str]]:
    """Returns the sums of ``uses``, ``shown_chars`` and ``lost_chars`` in the table ``templates``, by outcome."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in PAGES_RELEASE.rows(release, manifest, "templates"):
        sums[row["outcome"]].update({name: row[name] for name in ("uses", "shown_chars", "lost_chars")})
    return sums
