"""What items and the values of compositions are called, and where the pages of items lie."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.columns import batch_of, rows_of, schema_of
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
"""What Wikidata calls items."""


class Name(Row):
    """What an item or a value is called."""

    item: int | None  # number of the item; None for values of other kinds
    #: best first; none for an item without label, page and alias, and for a value that pages are full of, such as a
    #: number of two digits
    names: tuple[str, ...]
    page_id: int | None = None  # of its page; None without one
    title: str | None = None

    @property
    def item_id(self) -> str | None:
        """The item as Wikidata names it."""
        return None if self.item is None else f"Q{self.item}"


NAMES = schema_of(Name)


class ItemPages:
    """The pages that items have. Memory: 16 bytes a page, and 16 a page that has an item."""

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
        """How many pages have an item."""
        return len(self._items)

    def positions(self, page_ids: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """The places, among all pages of the release, of those pages that it has, and which these are."""
        places, is_there = _places(self._page_ids, page_ids)
        return self._positions[places], is_there

    def page(self, item: int) -> tuple[int, str] | None:
        """The page of an item, as its id and title; None where it has none."""
        at = int(np.searchsorted(self._items, item))
        if at == len(self._items) or self._items[at] != item:
            return None
        page_id = int(self._pages_of_items[at])
        return page_id, self.title(page_id)

    def title(self, page_id: int) -> str:
        """The title of a page of the release."""
        title = self._titles.article_title(page_id)
        assert title is not None  # the index is of pages of the release
        return title

    def page_ids(self, items: Numbers) -> Numbers:
        """The pages of items, -1 for those without one."""
        places, is_there = _places(self._items, items)
        found = np.full(len(items), -1, np.int64)
        found[is_there] = self._pages_of_items[places]
        return found

    def items(self) -> Numbers:
        """The items that have a page, ascending."""
        return self._items

    def items_of(self, page_ids: Numbers) -> Numbers:
        """The items of pages, -1 for those without one; of several the first."""
        order, ordered = self._by_page
        places, is_there = _places(ordered, page_ids)
        found = np.full(len(page_ids), -1, np.int64)
        found[is_there] = self._items[order[places]]
        return found

    @cached_property
    def _by_page(self) -> tuple[Numbers, Numbers]:
        """The order of the pages that have items, and these in it."""
        order = np.argsort(self._pages_of_items, kind="stable")
        return order, self._pages_of_items[order]

    def resolve(self, title: str) -> int | None:
        """The page that a title leads to, over redirects too; None where it leads to none."""
        return self._titles.resolve(title).page_id

    def redirects_to(self, page_id: int) -> tuple[str, ...]:
        """The titles that lead to a page, sorted."""
        return self._titles.redirects_to(page_id)


def _column(batches: Iterator[pa.RecordBatch], name: str) -> Numbers:
    return np.concatenate([np.empty(0, np.int64), *(batch[name].to_numpy() for batch in batches)])


def name_items(items: Numbers, terms: pa.Table, pages: ItemPages) -> Iterator[pa.RecordBatch]:
    """What items are called, rows of NAMES in the order of ``items``.

    An item is called by its label in English, or in ``mul``, or in a variant of English; where it has none of these by
    the title of its page; and by its aliases.

    Args:
        items: numbers of the items that are needed, ascending, each once.
        terms: rows of TERMS, in any order, of those of them that Wikidata has.
    """
    terms = terms.sort_by("item").combine_chunks()
    known = terms["item"].to_numpy()
    for start in range(0, len(items), _BATCH_ROWS):
        part = items[start : start + _BATCH_ROWS]
        places, is_there = _places(known, part)
        found = dict(zip(part[is_there].tolist(), terms.take(pa.array(places)).to_pylist(), strict=True))
        yield batch_of((_named(item, found.get(item), pages.page(item)) for item in part.tolist()), Name)


def item_terms(batch: pa.RecordBatch, needed: ItemSet) -> pa.RecordBatch:
    """What Wikidata calls those items that are needed, as rows of TERMS.

    Args:
        batch: rows of a release's items, with ``TERM_COLUMNS``.
    """
    numbers = item_numbers(batch["item_id"])
    is_needed = needed.has(numbers)
    terms = batch.filter(pa.array(is_needed))
    columns = [pa.array(numbers[is_needed]), *(terms[name] for name in _TERMS)]
    return pa.RecordBatch.from_arrays(columns, schema=TERMS)


def _places(items: Numbers, numbers: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """The places in ``items`` of the numbers that are there, and which these are."""
    at = np.searchsorted(items, numbers)
    is_there = at < len(items)
    is_there[is_there] = items[at[is_there]] == numbers[is_there]
    return at[is_there], is_there


def _named(item: int, terms: dict[str, Any] | None, page: tuple[int, str] | None) -> Name:
    labels, aliases = ([], []) if terms is None else (terms["labels"], terms["aliases"])
    title = None if page is None else page[1]
    names = item_names(_label(labels) or title, ((alias["language"], alias["text"]) for alias in aliases))
    return Name(item, names, *(page or ()))


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

    def rows(self, items: Numbers) -> dict[int, Name]:
        """The rows of items by their numbers, all at once; memory holds those given."""
        wanted = np.unique(items)
        if not len(wanted):
            return {}
        return dict(zip(wanted.tolist(), rows_of(self._take(wanted), Name), strict=True))


ValueKind = Literal["item", "year", "number", "text"]
_KINDS: dict[str, ValueKind] = {"wikibase-item": "item", "entity": "item", "time": "year", "quantity": "number"}
"""By datatype of the property or type of the value."""
_TYPES: dict[ValueKind, tuple[str, ...]] = {
    "item": ("entity",),
    "year": ("time",),
    "number": ("quantity",),
    "text": ("string", "monolingualtext"),
}
"""Types of the values of a kind."""


_DIGITS = 127
"""Most digits of a number in Wikibase."""


def answer_key(kind: ValueKind, value: str) -> str:
    """What values of a kind are told apart by: numbers as such, however they are written, others as they are.

    >>> answer_key("number", "1250.0") == answer_key("number", "1.25E+3"), answer_key("text", "1250.0")
    (True, '1250.0')
    """
    if kind != "number":
        return value
    context = Context(prec=_DIGITS, traps=[])
    return str(context.create_decimal(value).normalize(context) or Decimal())


class Values:
    """What values are called."""

    def __init__(self, names: ItemNames, kinds: Mapping[str, ValueKind]) -> None:
        self._names = names
        self._kinds = kinds

    def keys(self, property_id: str, values: Sequence[str]) -> list[str]:
        """The ``answer_key`` of each value of a property."""
        kind = self._kinds.get(property_id, "text")
        return [answer_key(kind, value) for value in values]

    def take(self, values: Sequence[tuple[str, str]]) -> list[Name]:
        """What values are called, each given with its property; in their order."""
        kinds = [self._kinds.get(property_id, "text") for property_id, _ in values]
        items = [int(value[1:]) for kind, (_, value) in zip(kinds, values, strict=True) if kind == "item"]
        named = self._names.rows(np.array(items, np.int64))
        found = []
        for kind, (_, value) in zip(kinds, values, strict=True):
            if kind == "item":
                found.append(named[int(value[1:])])
            elif kind == "year":
                found.append(Name(None, year_names(int(value))))
            else:
                found.append(Name(None, number_names(value) if kind == "number" else text_names(value)))
        return found


def property_kinds(tables: WikidataTables) -> dict[str, ValueKind]:
    """The kind of the values of the properties that a release has, by their datatype."""
    kinds: dict[str, ValueKind] = {}
    for batch in tables.batches("properties", ("property_id", "datatype")):
        for property_id, datatype in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            kinds[property_id] = _KINDS.get(datatype, "text")
    return kinds


def kinds_of_types(types: Mapping[str, str]) -> dict[str, ValueKind]:
    """The kind of the values of properties, by the type of one of them."""
    return {property_id: _KINDS.get(type_, "text") for property_id, type_ in types.items()}


def types_of_values(kinds: Mapping[str, ValueKind], property_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The types that the values of properties have, of those whose kind is known.

    A dump can hold others, such as what is left of a property's former datatype.
    """
    return {name: _TYPES[kinds[name]] for name in property_ids if name in kinds}
