"""What items are called and where their pages lie: a file of the items that are needed, looked up by number."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.files import Storage, storage_or_local
from kbsource.release.locations import Locations
from kbsource.release.manifest import Manifest, index_folder
from kbsource.schema import ITEMS
from kbsource.spill import BucketSpill
from kbsource.title_index import TitleIndex
from kbsource.wikidata.reader import WikidataTables
from mapping.qampari.classes import Numbers, item_numbers
from mapping.qampari.evidence import item_names

_BATCH_ROWS = 1 << 14
_NO_PAGE = -1
_TERMS = ("labels", "aliases")
_LABEL_LANGUAGES = ("en", "mul")
_PLACED = pa.schema([pa.field("row", pa.int64()), *(ITEMS.field(name) for name in _TERMS)])

NAMES = pa.schema(
    [
        pa.field("names", pa.list_(pa.string()), nullable=False),
        pa.field("page_id", pa.int64()),
        pa.field("title", pa.string()),
    ]
)
"""A row an item. Names: best first, none for an item without label, page and alias."""


class PageOfItem(NamedTuple):
    """The page of an item."""

    page_id: int
    title: str


class ItemName(NamedTuple):
    """What an item is called.

    Attributes:
        names: best first; none for an item without label, page and alias.
        page_id, title: of its page; None without one.
    """

    names: tuple[str, ...]
    page_id: int | None
    title: str | None


class ItemPages:
    """The pages that items have. Memory: 16 bytes a page, and 16 a page that has an item.

    Args:
        folder: of the release.
        manifest: of the release.
        storage: of the folder; None for the local file system.
    """

    def __init__(self, folder: str, manifest: Manifest, storage: Storage | None = None) -> None:
        index = index_folder(folder, manifest, storage_or_local(folder, storage))
        locations = Locations(index)
        starts = np.fromiter(accumulate((one.rows for one in manifest.tables["pages"]), initial=0), np.int64)
        self._page_ids = _column(locations.pages(), "page_id")
        self._positions = starts[_column(locations.pages(), "shard")] + _column(locations.pages(), "row")
        self._items, self._pages_of_items = _column(locations.qids(), "qid"), _column(locations.qids(), "page_id")
        self._titles = TitleIndex.open(index)

    @property
    def n_items(self) -> int:
        """How many pages have an item."""
        return len(self._items)

    def positions(self, page_ids: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Gives the places, among all pages of the release, of those pages that it has, and which these are."""
        places, is_there = _places(self._page_ids, page_ids)
        return self._positions[places], is_there

    def page(self, item: int) -> PageOfItem | None:
        """Gives the page of an item, None where it has none."""
        at = int(np.searchsorted(self._items, item))
        if at == len(self._items) or self._items[at] != item:
            return None
        page_id = int(self._pages_of_items[at])
        title = self._titles.article_title(page_id)
        assert title is not None  # the index is of pages of the release
        return PageOfItem(page_id, title)

    def redirects_to(self, page_id: int) -> tuple[str, ...]:
        """Gives the titles that lead to a page, sorted."""
        return self._titles.redirects_to(page_id)


def _column(batches: Iterator[pa.RecordBatch], name: str) -> Numbers:
    return np.concatenate([np.empty(0, np.int64), *(batch[name].to_numpy() for batch in batches)])


def write_names(path: str, items: Numbers, tables: WikidataTables, pages: ItemPages, *, scratch: str) -> None:
    """Writes what items are called, an Arrow file with rows of NAMES in the order of ``items``.

    An item is called by its label in English, or in ``mul``, or in a variant of English; where it has none of these by
    the title of its page; and by its aliases.

    Args:
        path: local.
        items: numbers of the items that are needed, ascending, each once.
        tables: of Wikidata; read once.
        pages: of the items.
        scratch: local folder for scratch files, about the size of the file.
    """
    n_buckets = max(1, -(-len(items) // _BATCH_ROWS))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with (
        BucketSpill(os.path.join(scratch, "names"), _PLACED, n_buckets=n_buckets) as spill,
        pa.OSFile(path, "wb") as sink,
        pa.ipc.new_file(sink, NAMES) as writer,
    ):
        for batch in tables.batches("items", ("item_id", *_TERMS)):
            numbers = item_numbers(batch["item_id"])
            rows, is_wanted = _places(items, numbers)
            terms = batch.filter(pa.array(is_wanted))
            columns = [pa.array(rows), *(terms[name] for name in _TERMS)]
            spill.add(pa.RecordBatch.from_arrays(columns, schema=_PLACED), rows // _BATCH_ROWS)
        spill.flush()
        for bucket in range(n_buckets):
            found = {one["row"]: one for one in spill.read(bucket).to_pylist()}
            of_bucket = range(bucket * _BATCH_ROWS, min((bucket + 1) * _BATCH_ROWS, len(items)))
            named = [_named(found.get(row), pages.page(int(items[row]))) for row in of_bucket]
            if named:
                values = zip(zip(*named, strict=True), NAMES.types, strict=True)
                writer.write_batch(pa.RecordBatch.from_arrays([pa.array(*one) for one in values], schema=NAMES))


def _places(items: Numbers, numbers: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Gives the places in ``items`` of the numbers that are there, and which these are."""
    at = np.searchsorted(items, numbers)
    is_there = at < len(items)
    is_there[is_there] = items[at[is_there]] == numbers[is_there]
    return at[is_there], is_there


def _named(terms: dict[str, Any] | None, page: PageOfItem | None) -> tuple[Any, ...]:
    labels, aliases = ([], []) if terms is None else (terms["labels"], terms["aliases"])
    title = None if page is None else page.title
    names = item_names(_label(labels) or title, ((one["language"], one["text"]) for one in aliases))
    return (names, *((None, None) if page is None else page))


def _label(labels: list[dict[str, str]]) -> str | None:
    by_language = {one["language"]: one["text"] for one in labels if one["text"].strip()}
    variants = sorted(one for one in by_language if one.startswith("en-"))
    return next((by_language[one] for one in (*_LABEL_LANGUAGES, *variants) if one in by_language), None)


class ItemNames:
    """Looks items up in a file of ``write_names``.

    Args:
        path: of the file; it is memory-mapped.
        items: as they were given to ``write_names``.
    """

    def __init__(self, path: str, items: Numbers) -> None:
        self._items = items
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]

    def take(self, items: Numbers) -> pa.RecordBatch:
        """Gives a row of NAMES for each item, in their order.

        Args:
            items: all of them among those that the file is of.
        """
        rows, is_there = _places(self._items, items)
        assert is_there.all()
        return take_rows(self._batches, rows, NAMES, _BATCH_ROWS)

    def row(self, item: int) -> ItemName:
        """Gives the row of one item."""
        return self.rows(np.array([item], np.int64))[item]

    def rows(self, items: Numbers) -> dict[int, ItemName]:
        """Gives the rows of items by their numbers, all at once; memory holds those given."""
        wanted = np.unique(items)
        found = self.take(wanted)
        names = found["names"]
        texts, edges = names.flatten().to_pylist(), (names.offsets.to_numpy() - names.offsets[0].as_py()).tolist()
        columns = (found[name].to_pylist() for name in ("page_id", "title"))
        return {
            item: ItemName(tuple(texts[start:end]), page_id, title)
            for item, (start, end), page_id, title in zip(wanted.tolist(), pairwise(edges), *columns, strict=True)
        }


def take_rows(batches: list[pa.RecordBatch], rows: Numbers, schema: pa.Schema, batch_rows: int) -> pa.RecordBatch:
    """Gives rows of a file in any order.

    Args:
        batches: of the file, each of ``batch_rows`` rows but for the last.
        rows: their numbers.
        schema: of the file.
        batch_rows: see there.
    """
    order = np.argsort(rows, kind="stable")
    in_order = rows[order]
    edges = np.flatnonzero(np.diff(in_order // batch_rows, prepend=-1, append=-1))
    parts = [
        batches[in_order[start] // batch_rows].take(pa.array(in_order[start:end] % batch_rows))
        for start, end in pairwise(edges.tolist())
    ]
    if not parts:
        return pa.RecordBatch.from_pylist([], schema=schema)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return pa.concat_batches(parts).take(pa.array(back))
