"""What the items of pages are called, out of a release's table ``page_items``."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.files import Storage, join, storage_or_local
from kbsource.index.mapped_files import numbers
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.reader import opened_table

TABLE = "page_items"
HELD_GROUPS = 4
"""Row groups held, 1-2 MB each: pages are asked for about in the order of the table."""
_COLUMNS = ["page_id", "wikidata_qid", "label", "description", "aliases"]


class ItemTerms(NamedTuple):
    """What Wikidata calls the item of a page.

    Attributes:
        label, description: None where Wikidata has none, or does not have the item.
        aliases: each once.
        has_sitelink: Wikidata itself says that the page is of the item, not the dump's page_props alone.
    """

    label: str | None
    description: str | None
    aliases: tuple[str, ...]
    has_sitelink: bool


class PageItemsReader:
    """Terms by page id. Memory: the first page id of every row group, and ``HELD_GROUPS`` row groups.

    Not for use by several threads at once.

    Args:
        folder: of the release.
        manifest: of the release; its table is ordered by page id.
        storage: of the folder; None for the local file system.
    """

    def __init__(self, folder: str, manifest: PagesManifest, storage: Storage | None = None) -> None:
        self._storage = storage_or_local(folder, storage)
        self._places: list[tuple[str, int]] = []
        self._starts: list[int] = []
        self._groups: OrderedDict[int, tuple[Any, pa.Table]] = OrderedDict()
        for entry in manifest.tables[TABLE]:
            path = join(folder, entry.file)
            with opened_table(path, self._storage) as file:
                filled = (
                    number for number in range(file.metadata.num_row_groups) if file.metadata.row_group(number).num_rows
                )
                for group in filled:
                    self._places.append((path, group))
                    self._starts.append(_first_id(file, group))

    def terms(self, page_id: int) -> ItemTerms | None:
        """Gives what the item of a page is called, None where the table does not have the page."""
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
            with opened_table(path, self._storage) as file:
                table = file.read_row_group(group, columns=_COLUMNS, use_threads=False)
            held = (numbers(table["page_id"].combine_chunks()), table)
        self._groups[number] = held
        return held


def _first_id(file: pq.ParquetFile, group: int) -> int:
    first: int = file.read_row_group(group, columns=["page_id"], use_threads=False)["page_id"][0].as_py()
    return first
