"""What items are called and where their pages lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.files import Storage, storage_or_local
from kbsource.index.title_index import TitleIndex
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.schema import ITEMS
from mapping.qampari.facts.classes import Numbers, item_numbers
from mapping.qampari.facts.evidence import item_names
from mapping.qampari.facts.item_sets import ItemSet

_BATCH_ROWS = 1 << 14
_TERMS = ("labels", "aliases")
_LABEL_LANGUAGES = ("en", "mul")
TERM_COLUMNS = ("item_id", *_TERMS)
TERMS = pa.schema([pa.field("item", pa.int64(), nullable=False), *(ITEMS.field(name) for name in _TERMS)])
"""What Wikidata calls items."""

NAMES = pa.schema(
    [
        pa.field("item", pa.int64(), nullable=False),
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

    def __init__(self, folder: str, manifest: PagesManifest, storage: Storage | None = None) -> None:
        index = index_folder(folder, manifest, storage_or_local(folder, storage))
        locations = Locations(index)
        starts = np.fromiter(accumulate((table.rows for table in manifest.tables["pages"]), initial=0), np.int64)
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

    def page_ids(self, items: Numbers) -> Numbers:
        """Gives the pages of items, -1 for those without one."""
        places, is_there = _places(self._items, items)
        found = np.full(len(items), -1, np.int64)
        found[is_there] = self._pages_of_items[places]
        return found

    def resolve(self, title: str) -> int | None:
        """Gives the page that a title leads to, over redirects too; None where it leads to none."""
        return self._titles.resolve(title).page_id

    def redirects_to(self, page_id: int) -> tuple[str, ...]:
        """Gives the titles that lead to a page, sorted."""
        return self._titles.redirects_to(page_id)


def _column(batches: Iterator[pa.RecordBatch], name: str) -> Numbers:
    return np.concatenate([np.empty(0, np.int64), *(batch[name].to_numpy() for batch in batches)])


def name_items(items: Numbers, terms: pa.Table, pages: ItemPages) -> Iterator[pa.RecordBatch]:
    """Gives what items are called, rows of NAMES in the order of ``items``.

    An item is called by its label in English, or in ``mul``, or in a variant of English; where it has none of these by
    the title of its page; and by its aliases.

    Args:
        items: numbers of the items that are needed, ascending, each once.
        terms: rows of TERMS, in any order, of those of them that Wikidata has.
        pages: of the items.
    """
    terms = terms.sort_by("item").combine_chunks()
    known = terms["item"].to_numpy()
    for start in range(0, len(items), _BATCH_ROWS):
        part = items[start : start + _BATCH_ROWS]
        places, is_there = _places(known, part)
        found = dict(zip(part[is_there].tolist(), terms.take(pa.array(places)).to_pylist(), strict=True))
        rows = [(item, *_named(found.get(item), pages.page(item))) for item in part.tolist()]
        values = zip(zip(*rows, strict=True), NAMES.types, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(*value) for value in values], schema=NAMES)


def item_terms(batch: pa.RecordBatch, needed: ItemSet) -> pa.RecordBatch:
    """Gives what Wikidata calls those items that are needed, as rows of TERMS.

    Args:
        batch: rows of a release's items, with ``TERM_COLUMNS``.
        needed: the items.
    """
    numbers = item_numbers(batch["item_id"])
    is_needed = needed.has(numbers)
    terms = batch.filter(pa.array(is_needed))
    columns = [pa.array(numbers[is_needed]), *(terms[name] for name in _TERMS)]
    return pa.RecordBatch.from_arrays(columns, schema=TERMS)


def _places(items: Numbers, numbers: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Gives the places in ``items`` of the numbers that are there, and which these are."""
    at = np.searchsorted(items, numbers)
    is_there = at < len(items)
    is_there[is_there] = items[at[is_there]] == numbers[is_there]
    return at[is_there], is_there


def _named(terms: dict[str, Any] | None, page: PageOfItem | None) -> tuple[Any, ...]:
    labels, aliases = ([], []) if terms is None else (terms["labels"], terms["aliases"])
    title = None if page is None else page.title
    names = item_names(_label(labels) or title, ((alias["language"], alias["text"]) for alias in aliases))
    return (names, *((None, None) if page is None else page))


def _label(labels: list[dict[str, str]]) -> str | None:
    by_language = {label["language"]: label["text"] for label in labels if label["text"].strip()}
    variants = sorted(language for language in by_language if language.startswith("en-"))
    return next((by_language[language] for language in (*_LABEL_LANGUAGES, *variants) if language in by_language), None)


class ItemNames:
    """Looks items up.

    Args:
        take: gives a row of NAMES for each item, in their order.
    """

    def __init__(self, take: Callable[[Numbers], pa.RecordBatch]) -> None:
        self._take = take

    def row(self, item: int) -> ItemName:
        """Gives the row of one item."""
        return self.rows(np.array([item], np.int64))[item]

    def rows(self, items: Numbers) -> dict[int, ItemName]:
        """Gives the rows of items by their numbers, all at once; memory holds those given."""
        wanted = np.unique(items)
        if not len(wanted):
            return {}
        found = self._take(wanted)
        names = found["names"]
        texts, edges = names.flatten().to_pylist(), (names.offsets.to_numpy() - names.offsets[0].as_py()).tolist()
        columns = (found[name].to_pylist() for name in ("page_id", "title"))
        return {
            item: ItemName(tuple(texts[start:end]), page_id, title)
            for item, (start, end), page_id, title in zip(wanted.tolist(), pairwise(edges), *columns, strict=True)
        }
