"""Reading a release of pages: pages, one at a time or all, what their items are called, and what templates lose."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from kbsource.columns import numbers, rows_of, schema_of
from kbsource.errors import DataError
from kbsource.files import Folder, join
from kbsource.records import Page
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.reader import open_table, opened_table, read_table
from kbsource.wikitext.reference_rows import Reference, ReferenceUse

if TYPE_CHECKING:
    import pyarrow.parquet as pq

OPEN_FILES = 8
"""Parquet files held open at once; each costs its footer, a few megabytes."""

ROW_GROUPS = 4
"""Row groups held decoded, about 1-2 MB each: neighbours of a page are often asked for next."""


class _Shard:
    """One open pages file."""

    def __init__(self, path: Folder) -> None:
        self.file = open_table(path)
        metadata = self.file.metadata
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        self.starts = list(accumulate(sizes, initial=0))[:-1]

    def close(self) -> None:
        self.file.close(force=True)


class PageReferences(NamedTuple):
    """The references of a page and their uses, as the tables have them."""

    refs: tuple[Reference, ...]
    uses: tuple[ReferenceUse, ...]


class PagesReader:
    """Pages of a release by shard and row. Memory: ``OPEN_FILES`` footers and ``ROW_GROUPS`` row
    groups.

    Not for use by several threads at once.

    Args:
        columns: that are read, for ``row`` and ``group``; all where pages are.
        table: another one with as many files.
    """

    def __init__(
        self,
        folder: str | Folder,
        manifest: PagesManifest,
        *,
        columns: Sequence[str] | None = None,
        table: str = "pages",
    ) -> None:
        self._folder, self._manifest, self._columns = Folder.of(folder), manifest, columns
        self._paths = [Folder.of(folder) / entry.file for entry in manifest.tables[table]]
        self._shards: OrderedDict[int, _Shard] = OrderedDict()
        self._groups: OrderedDict[tuple[int, int], Any] = OrderedDict()

    def page(self, shard: int, row: int) -> Page | None:
        """One page; None where the file has fewer rows."""
        found = self.row(shard, row)
        return None if found is None else pages_of(found)[0]

    def row(self, shard: int, row: int) -> Any:
        """The record batch of one page; None where the file has fewer rows."""
        table, first = self.group(shard, row)
        found = table.slice(row - first, 1).to_batches()
        return found[0] if found else None

    def group(self, shard: int, row: int) -> tuple[Any, int]:
        """The row group with a row, as a table, and its first row; the last one where the file has fewer rows."""
        opened = self._shard(shard)
        group = bisect_right(opened.starts, row) - 1
        table = self._groups.pop((shard, group), None)
        if table is None:
            if len(self._groups) == ROW_GROUPS:  # first, so that its memory is there for the next one
                self._groups.popitem(last=False)
            table = opened.file.read_row_group(group, columns=self._columns, use_threads=False)
        self._groups[(shard, group)] = table
        return table, opened.starts[group]

    def _shard(self, shard: int) -> _Shard:
        opened = self._shards.pop(shard, None)
        if opened is None:
            opened = _Shard(self._paths[shard])
            if len(self._shards) == OPEN_FILES:
                self._shards.popitem(last=False)[1].close()
        self._shards[shard] = opened
        return opened

    def references(self, shard: int, page_id: int) -> PageReferences:
        """The references of a page in a shard. Memory: a row group, of those whose ids it is among.

        Raises:
            DataError: the release has none.
        """
        import pyarrow.compute as pc  # takes a while, and most readers do without

        if "refs" not in self._manifest.tables:
            raise DataError("the release has no references; build it with --references")
        found: list[list[Any]] = []
        for table, row in (("refs", Reference), ("ref_uses", ReferenceUse)):
            own: list[Any] = []
            with opened_table(self._folder / self._manifest.tables[table][shard].file) as file:
                for group in range(file.metadata.num_row_groups):
                    ids = file.metadata.row_group(group).column(0).statistics
                    if ids.min <= page_id <= ids.max:
                        rows = file.read_row_group(group, use_threads=False)
                        own += rows_of(rows.filter(pc.equal(rows["page_id"], page_id)), row)
            found.append(own)
        return PageReferences(tuple(found[0]), tuple(found[1]))

    def close(self) -> None:
        """Closes every file."""
        self._groups.clear()
        while self._shards:
            self._shards.popitem()[1].close()


def pages_of(batch: pa.RecordBatch, columns: Sequence[str] | None = None) -> list[Page]:
    """The pages of a batch of the table ``pages``, or of these columns of it.

    Raises:
        DataError: the columns are others.
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
            f"the pages have not the columns of this version of kbsource ({', '.join(missing) or 'fields differ'}): "
            "build the release again, or read it with the version that its manifest names"
        ) from error


TABLE = "page_items"
HELD_GROUPS = 4
"""Row groups held, 1-2 MB each: pages are asked for about in the order of the table."""
_COLUMNS = ["page_id", "wikidata_qid", "label", "description", "aliases"]


class ItemTerms(NamedTuple):
    """What Wikidata calls the item of a page."""

    label: str | None  #: ``label``, ``description``: None where Wikidata has none, or does not have the item
    description: str | None
    aliases: tuple[str, ...]  #: each once
    has_sitelink: bool  #: Wikidata itself says that the page is of the item, not the dump's page_props alone


class PageItemsReader:
    """Terms by page id. Memory: the first page id of every row group, and ``HELD_GROUPS`` row groups.

    Not for use by several threads at once.

    Args:
        manifest: of the release; its table is ordered by page id.
    """

    def __init__(self, folder: str, manifest: PagesManifest) -> None:
        self._places: list[tuple[str, int]] = []
        self._starts: list[int] = []
        self._groups: OrderedDict[int, tuple[Any, pa.Table]] = OrderedDict()
        for entry in manifest.tables[TABLE]:
            path = join(folder, entry.file)
            with opened_table(path) as file:
                filled = (
                    number for number in range(file.metadata.num_row_groups) if file.metadata.row_group(number).num_rows
                )
                for group in filled:
                    self._places.append((path, group))
                    self._starts.append(_first_id(file, group))

    def terms(self, page_id: int) -> ItemTerms | None:
        """What the item of a page is called, None where the table does not have the page."""
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

    def _group(self, number: int) -> tuple[Any, pa.Table]:
        held = self._groups.pop(number, None)
        if held is None:
            if len(self._groups) == HELD_GROUPS:
                self._groups.popitem(last=False)
            path, group = self._places[number]
            with opened_table(path) as file:
                table = file.read_row_group(group, columns=_COLUMNS, use_threads=False)
            held = (numbers(table["page_id"].combine_chunks()), table)
        self._groups[number] = held
        return held


def _first_id(file: pq.ParquetFile, group: int) -> int:
    first: int = file.read_row_group(group, columns=["page_id"], use_threads=False)["page_id"][0].as_py()
    return first


def worst_templates(release: str, *, limit: int, with_dropped: bool) -> list[dict[str, Any]]:
    """The rows of the table ``templates`` that lose most visible characters, most first; none that loses none.

    Args:
        with_dropped: those too that a rule drops: what they say does not belong to the text.
    """
    rows = (
        row
        for row in read_table(release, "templates")
        if row["lost_chars"] and (with_dropped or row["outcome"] != "dropped")
    )
    return heapq.nsmallest(limit, rows, key=lambda row: (-row["lost_chars"], row["name"], row["outcome"]))


def sums_by_outcome(release: str) -> Mapping[str, Counter[str]]:
    """By outcome the sums of ``uses``, ``shown_chars`` and ``lost_chars`` in the table ``templates``."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in read_table(release, "templates"):
        sums[row["outcome"]].update({name: row[name] for name in ("uses", "shown_chars", "lost_chars")})
    return sums
