"""Wikidata items and disambiguation marks per page, from the ``page_props`` table, memory-mapped.

One Arrow IPC file, uncompressed, sorted by page id: ``page_id`` and ``qid`` (number of the item, 0 for
none) as unsigned 32-bit integers, ``is_disambiguation`` as 0 or 1. Ids fit: MediaWiki declares ``pp_page``
as ``int unsigned``.
Source: https://www.mediawiki.org/wiki/Manual:Page_props_table.
"""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.errors import SetupError
from kbsource.title_index import numbers, open_mapped

FILE = "page_props.arrow"
SCHEMA = pa.schema(
    [
        pa.field("page_id", pa.uint32(), nullable=False),
        pa.field("qid", pa.uint32(), nullable=False),
        pa.field("is_disambiguation", pa.uint8(), nullable=False),
    ],
    metadata={"format": "kbsource-page-props-1"},
)

_MAX = (1 << 32) - 1
_LOW = np.uint64(_MAX)
_HALF = np.uint64(32)
_QID = re.compile(r"[Qq]([1-9][0-9]{0,9})", re.ASCII)


class QidConflict(NamedTuple):
    """An item that more than one page claims: the lowest page id has it, the other one gets none."""

    qid: str
    page_id: int
    refused_page_id: int


class Claims(NamedTuple):
    """Items of the pages that any source gives one, by page id; numbers, 0 for none.

    Attributes:
        qids: the item that the page got.
        wikidata: the item whose sitelink leads to the page, the lowest of several.
        page_props: the item that page_props gives it, likewise.
    """

    page_ids: npt.NDArray[np.int64]
    qids: npt.NDArray[np.uint32]
    wikidata: npt.NDArray[np.uint32]
    page_props: npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class PagePropsReport:
    """What was built.

    Attributes:
        n_rows: rows read, of any property.
        n_qids: pages with an item.
        n_disambiguations: pages marked as disambiguation.
        n_invalid_qids: values of ``wikibase_item`` that are no item id.
        n_not_articles: rows left out because ``is_article`` refused their page.
        conflicts: by item, then by refused page.
        claims: what every page got, and from where.
    """

    n_rows: int
    n_qids: int
    n_disambiguations: int
    n_invalid_qids: int
    n_not_articles: int
    conflicts: tuple[QidConflict, ...]
    claims: Claims


def build_page_props(
    rows: Iterable[tuple[int, str, str]],
    folder: str,
    *,
    is_article: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]] | None = None,
    sitelinks: npt.NDArray[np.uint64] | None = None,
) -> PagePropsReport:
    """Writes ``page_props.arrow``: at most one page per item, at most one item per page.

    A page that claims several items keeps the lowest of those it is not refused. Sitelinks come first: page_props
    gives an item only to pages that no sitelink leads to, and only items whose sitelink leads to no page. Memory: 16
    bytes per page with an item, 40 with sitelinks.

    Args:
        rows: (page id, property name, value) in any order; other properties are passed over.
        folder: local folder, made where missing.
        is_article: says of page ids whether they count (``TitleIndex.has_articles``); without it all do,
            and a redirect or a template may keep an item from an article.
        sitelinks: articles that Wikidata's sitelinks lead to, as item << 32 | page id; None without Wikidata.

    Raises:
        SetupError: a page id that MediaWiki cannot have.
    """
    given, marks = array("Q"), array("Q")
    n_rows = n_invalid = 0
    for page_id, name, value in rows:
        n_rows += 1
        if name == "disambiguation":
            marks.append(_checked(page_id))
        elif name == "wikibase_item":
            match = _QID.fullmatch(value)
            if match is None or int(match[1]) > _MAX:
                n_invalid += 1
            else:
                given.append(int(match[1]) << 32 | _checked(page_id))
    by_qid = np.frombuffer(given, np.uint64)
    marked = np.frombuffer(marks, np.uint64)
    n_before = len(by_qid) + len(marked)
    if is_article is not None:
        by_qid = by_qid[is_article((by_qid & _LOW).astype(np.int64))]
        marked = marked[is_article(marked.astype(np.int64))]
    n_not_articles = n_before - len(by_qid) - len(marked)
    by_qid = np.unique(by_qid)
    del given
    links = np.unique(sitelinks if sitelinks is not None else np.empty(0, np.uint64))
    linked, link_conflicts = _one_page_per_qid(links)
    linked = _one_qid_per_page(linked)
    is_free = ~np.isin(by_qid & _LOW, links & _LOW) & ~np.isin(by_qid >> _HALF, links >> _HALF)
    kept, conflicts = _one_page_per_qid(by_qid[is_free])
    by_page = np.sort(np.concatenate([linked, _one_qid_per_page(kept)]))
    claims = _claims(by_page, _one_qid_per_page(links), _one_qid_per_page(by_qid))
    marked = np.unique(marked)
    page_ids = np.union1d(by_page >> _HALF, marked)
    is_marked = np.isin(page_ids, marked).astype(np.uint8)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, FILE)
    columns = [pa.array(page_ids.astype(np.uint32)), pa.array(_items_of(page_ids, by_page)), pa.array(is_marked)]
    with pa.OSFile(f"{path}.tmp", "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
    os.replace(f"{path}.tmp", path)
    all_conflicts = tuple(sorted(link_conflicts + conflicts, key=lambda one: (int(one.qid[1:]), *one[1:])))
    return PagePropsReport(n_rows, len(by_page), len(marked), n_invalid, n_not_articles, all_conflicts, claims)


def _one_qid_per_page(claims: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Gives claims (item << 32 | page) as page << 32 | item, sorted, of each page the lowest item."""
    by_page = np.sort(claims << _HALF | claims >> _HALF)
    pages = by_page >> _HALF
    return by_page[np.concatenate([[True], pages[1:] != pages[:-1]])] if len(pages) else by_page


def _items_of(page_ids: npt.NDArray[np.uint64], by_page: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """Gives the item of each page, 0 for none; every page of ``by_page`` (page << 32 | item) is among them."""
    qids = np.zeros(len(page_ids), np.uint32)
    qids[np.searchsorted(page_ids, by_page >> _HALF)] = by_page & _LOW
    return qids


def _claims(
    by_page: npt.NDArray[np.uint64], wikidata: npt.NDArray[np.uint64], page_props: npt.NDArray[np.uint64]
) -> Claims:
    page_ids = np.union1d(wikidata >> _HALF, page_props >> _HALF)
    columns = (_items_of(page_ids, one) for one in (by_page, wikidata, page_props))
    return Claims(page_ids.astype(np.int64), *columns)


def _checked(page_id: int) -> int:
    if not 0 < page_id <= _MAX:
        raise SetupError(f"page_props: page id {page_id} is none of MediaWiki's; the table is damaged, load it again")
    return page_id


def _one_page_per_qid(
    by_qid: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], tuple[QidConflict, ...]]:
    """Splits sorted, distinct claims (item << 32 | page) into those kept, one per item, and the conflicts."""
    qids = by_qid >> _HALF
    is_first = np.ones(len(qids), np.bool_)
    is_first[1:] = qids[1:] != qids[:-1]
    kept = by_qid[is_first]
    refused = by_qid[~is_first]
    keepers = kept[np.searchsorted(kept >> _HALF, refused >> _HALF)] & _LOW
    conflicts = tuple(
        QidConflict(f"Q{claim >> 32}", keeper, claim & _MAX)
        for claim, keeper in zip(refused.tolist(), keepers.tolist(), strict=True)
    )
    return kept, conflicts


class PageProps:
    """Lookups in a mapped page_props file."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._page_ids = numbers(batch["page_id"])
        self._qids = numbers(batch["qid"])
        self._marks = numbers(batch["is_disambiguation"])

    @classmethod
    def open(cls, folder: str) -> PageProps:
        """Opens the file of a local folder.

        Raises:
            SetupError: the file is missing, damaged, or of another version.
        """
        return cls(open_mapped(os.path.join(folder, FILE), SCHEMA).get_batch(0))

    def _at(self, page_id: int) -> int:
        i = bisect_left(self._page_ids, page_id)
        return i if i < len(self._page_ids) and self._page_ids[i] == page_id else -1

    def qid(self, page_id: int) -> str | None:
        """Gives the page's Wikidata item, ``Q42``; None when it has none."""
        i = self._at(page_id)
        return f"Q{self._qids[i]}" if i >= 0 and self._qids[i] else None

    def is_disambiguation(self, page_id: int) -> bool:
        """Says whether the page is marked as a disambiguation page."""
        i = self._at(page_id)
        return i >= 0 and self._marks[i] == 1
