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
    """

    n_rows: int
    n_qids: int
    n_disambiguations: int
    n_invalid_qids: int
    n_not_articles: int
    conflicts: tuple[QidConflict, ...]


def build_page_props(
    rows: Iterable[tuple[int, str, str]],
    folder: str,
    *,
    is_article: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]] | None = None,
) -> PagePropsReport:
    """Writes ``page_props.arrow``: at most one page per item, at most one item per page.

    A page that claims several items keeps the lowest of those it is not refused. Memory: 16 bytes per page
    with an item.

    Args:
        rows: (page id, property name, value) in any order; other properties are passed over.
        folder: local folder, made where missing.
        is_article: says of page ids whether they count (``TitleIndex.has_articles``); without it all do,
            and a redirect or a template may keep an item from an article.

    Raises:
        SetupError: a page id that MediaWiki cannot have.
    """
    claims, marks = array("Q"), array("Q")
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
                claims.append(int(match[1]) << 32 | _checked(page_id))
    by_qid = np.frombuffer(claims, np.uint64)
    marked = np.frombuffer(marks, np.uint64)
    n_before = len(by_qid) + len(marked)
    if is_article is not None:
        by_qid = by_qid[is_article((by_qid & _LOW).astype(np.int64))]
        marked = marked[is_article(marked.astype(np.int64))]
    n_not_articles = n_before - len(by_qid) - len(marked)
    by_qid = np.unique(by_qid)
    del claims
    kept, conflicts = _one_page_per_qid(by_qid)
    by_page = np.sort(kept << _HALF | kept >> _HALF)
    pages = by_page >> _HALF
    by_page = by_page[np.concatenate([[True], pages[1:] != pages[:-1]])] if len(pages) else by_page
    marked = np.unique(marked)
    page_ids = np.union1d(by_page >> _HALF, marked)
    qids = np.zeros(len(page_ids), np.uint32)
    qids[np.searchsorted(page_ids, by_page >> _HALF)] = by_page & _LOW
    is_marked = np.zeros(len(page_ids), np.uint8)
    is_marked[np.searchsorted(page_ids, marked)] = 1
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, FILE)
    columns = [pa.array(page_ids.astype(np.uint32)), pa.array(qids), pa.array(is_marked)]
    with pa.OSFile(f"{path}.tmp", "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
    os.replace(f"{path}.tmp", path)
    return PagePropsReport(n_rows, len(by_page), len(marked), n_invalid, n_not_articles, conflicts)


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
