"""The names of items and of the values of compositions, and the positions of the items' pages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from decimal import Context, Decimal
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.columns import batch_of, schema_of
from kbsource.index.title_index import TitleIndex
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.rows import Row
from kbsource.wikidata.kind import WikidataTables
from kbsource.wikidata.records import Item
from mapping.qampari.classes import ItemSet, Numbers, item_numbers, required
from mapping.qampari.evidence import item_names, number_names, text_names, year_names

_BATCH_ROWS = 1 << 14
_TERMS = ("labels", "aliases")
_LABEL_LANGUAGES = ("en", "mul")
TERM_COLUMNS = ("item_id", *_TERMS)
TERMS = pa.schema([*required("item"), *(schema_of(Item).field(name) for name in _TERMS)])
"""Labels and aliases of items in Wikidata."""


class Name(Row):
    """The names of an item or a value."""

    item: int | None  # number of the item; None for a value that is not an item
    #: best first; empty for an item without label, page and alias, and for a value that occurs everywhere, such as a
    #: number of two digits
    names: tuple[str, ...]
    page_id: int | None = None  # page of the item; None without a page
    title: str | None = None

    @property
    def item_id(self) -> str | None:
        """The id of the item in Wikidata."""
        return None if self.item is None else f"Q{self.item}"


NAMES = schema_of(Name)


class ItemPages:
    """The pages of items. Memory: 16 bytes per page, and another 16 per page with an item."""

    def __init__(self, folder: str, manifest: PagesManifest) -> None:
        index = index_folder(folder, manifest)
        locations = Locations(index)
        starts = np.fromiter(accumulate((table.rows for table in manifest.tables["pages"]), initial=0), np.int64)
        self._page_ids = _column(locations.pages(), "page_id")
        self._positions = starts[_column(locations.pages(), "shard")] + _column(locations.pages(), "row")
        self._items, self._pages_of_items = _column(locations.qids(), "qid"), _column(locations.qids(), "page_id")
        self._titles = TitleIndex.open(index)

    @property
    def n_items(self) -> int:
        """The number of pages with an item."""
        return len(self._items)

    def positions(self, page_ids: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Returns the positions, among all pages of the release, of those pages that it has, and a mask of these."""
        places, is_there = _places(self._page_ids, page_ids)
        return self._positions[places], is_there

    def page(self, item: int) -> tuple[int, str] | None:
        """Returns the id and title of an item's page, or None."""
        at = int(np.searchsorted(self._items, item))
        if at == len(self._items) or self._items[at] != item:
            return None
        page_id = int(self._pages_of_items[at])
        return page_id, self.title(page_id)

    def title(self, page_id: int) -> str:
        """Returns the title of a page of the release."""
        title = self._titles.article_title(page_id)
        assert title is not None  # the index contains only pages of the release
        return title

    def page_ids(self, items: Numbers) -> Numbers:
        """Returns the pages of items; -1 for items without a page."""
        places, is_there = _places(self._items, items)
        found = np.full(len(items), -1, np.int64)
        found[is_there] = self._pages_of_items[places]
        return found

    def items(self) -> Numbers:
        """Returns the items that have a page, ascending."""
        return self._items

    def items_of(self, page_ids: Numbers) -> Numbers:
        """Returns the items of pages, -1 for pages without an item; of several items the first."""
        order, ordered = self._by_page
        places, is_there = _places(ordered, page_ids)
        found = np.full(len(page_ids), -1, np.int64)
        found[is_there] = self._items[order[places]]
        return found

    @cached_property
    def _by_page(self) -> tuple[Numbers, Numbers]:
        """Returns the order that sorts the items' pages by id, and the pages in that order."""
        order = np.argsort(self._pages_of_items, kind="stable")
        return order, self._pages_of_items[order]

    def resolve(self, title: str) -> int | None:
        """Returns the page that a title resolves to, following redirects, or None."""
        return self._titles.resolve(title).page_id

    def redirects_to(self, page_id: int) -> tuple[str, ...]:
        """Returns the titles that redirect to a page, sorted."""
        return self._titles.redirects_to(page_id)


def _column(batches: Iterator[pa.RecordBatch], name: str) -> Numbers:
    return np.concatenate([np.empty(0, np.int64), *(batch[name].to_numpy() for batch in batches)])


def name_items(items: Numbers, terms: pa.Table, pages: ItemPages) -> Iterator[pa.RecordBatch]:
    """Collects the names of items, as rows of ``NAMES`` in the order of ``items``.

    The first name of an item is its label in English, in ``mul`` or in a variant of English, or else the title of its
    page. Its aliases follow.

    Args:
        items: numbers of the required items, ascending, without repeats.
        terms: rows of TERMS, in any order, for those that are in Wikidata.
    """
    terms = terms.sort_by("item").combine_chunks()
    known = terms["item"].to_numpy()
    for start in range(0, len(items), _BATCH_ROWS):
        part = items[start : start + _BATCH_ROWS]
        places, is_there = _places(known, part)
        found = dict(zip(part[is_there].tolist(), terms.take(pa.array(places)).to_pylist(), strict=True))
        yield batch_of((_name_of(item, found.get(item), pages.page(item)) for item in part.tolist()), Name)


def item_terms(batch: pa.RecordBatch, needed: ItemSet) -> pa.RecordBatch:
    """Returns the terms of the required items, as rows of TERMS.

    Args:
        batch: rows of a release's items, with ``TERM_COLUMNS``.
    """
    numbers = item_numbers(batch["item_id"])
    is_needed = needed.has(numbers)
    terms = batch.filter(pa.array(is_needed))
    columns = [pa.array(numbers[is_needed]), *(terms[name] for name in _TERMS)]
    return pa.RecordBatch.from_arrays(columns, schema=TERMS)


def _places(items: Numbers, numbers: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Returns the positions in ``items`` of the numbers that it contains, and a mask of these."""
    at = np.searchsorted(items, numbers)
    is_there = at < len(items)
    is_there[is_there] = items[at[is_there]] == numbers[is_there]
    return at[is_there], is_there


def _name_of(item: int, terms: dict[str, Any] | None, page: tuple[int, str] | None) -> Name:
    labels, aliases = ([], []) if terms is None else (terms["labels"], terms["aliases"])
    title = None if page is None else page[1]
    names = item_names(_label(labels) or title, ((alias["language"], alias["text"]) for alias in aliases))
    return Name(item, names, *(page or ()))


def _label(labels: list[dict[str, str]]) -> str | None:
    by_language = {label["language"]: label["text"] for label in labels if label["text"].strip()}
    variants = sorted(language for language in by_language if language.startswith("en-"))
    return next((by_language[language] for language in (*_LABEL_LANGUAGES, *variants) if language in by_language), None)


ValueKind = Literal["item", "year", "number", "text"]
_KINDS: dict[str, ValueKind] = {"wikibase-item": "item", "entity": "item", "time": "year", "quantity": "number"}
"""The kind of a value, by the datatype of its property or by the type of the value."""
_TYPES: dict[ValueKind, tuple[str, ...]] = {
    "item": ("entity",),
    "year": ("time",),
    "number": ("quantity",),
    "text": ("string", "monolingualtext"),
}
"""Value types of each kind."""


_DIGITS = 127
"""Maximum number of digits of a number in Wikibase."""


def answer_key(kind: ValueKind, value: str) -> str:
    """Returns the comparison key of a value of a kind: numbers by their value, others by their text.

    >>> answer_key("number", "1250.0") == answer_key("number", "1.25E+3"), answer_key("text", "1250.0")
    (True, '1250.0')
    """
    if kind != "number":
        return value
    context = Context(prec=_DIGITS, traps=[])
    return str(context.create_decimal(value).normalize(context) or Decimal())


def names_of_value(kind: ValueKind, value: str) -> tuple[str, ...] | None:
    """Returns the names under which a value, such as a year or a date, may be written; None for an item, whose names
    come from Wikidata.
    """
    if kind == "item":
        return None
    if kind == "year":
        return year_names(int(value))
    return number_names(value) if kind == "number" else text_names(value)


def property_kinds(tables: WikidataTables) -> dict[str, ValueKind]:
    """Returns the kind of values of each property of a release, by the property's datatype."""
    kinds: dict[str, ValueKind] = {}
    for batch in tables.batches("properties", ("property_id", "datatype")):
        for property_id, datatype in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            kinds[property_id] = _KINDS.get(datatype, "text")
    return kinds


def kinds_of_types(types: Mapping[str, str]) -> dict[str, ValueKind]:
    """Returns the kind of values of each property, given the type of one of its values."""
    return {property_id: _KINDS.get(type_, "text") for property_id, type_ in types.items()}


def types_of_values(kinds: Mapping[str, ValueKind], property_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Returns the value types of those properties whose kind is known.

    A dump can contain values of other types, such as remains of a property's former datatype.
    """
    return {name: _TYPES[kinds[name]] for name in property_ids if name in kinds}
