"""The Wikidata item and the disambiguation flag of each page, from the ``page_props`` table, memory-mapped.

It is one uncompressed Arrow IPC file, sorted by page id: ``page_id`` and ``qid`` (number of the item, 0 if there is
none) as unsigned 32-bit integers, ``is_disambiguation`` as 0 or 1. The ids fit, because MediaWiki declares ``pp_page``
as ``int unsigned``.

Source: https://www.mediawiki.org/wiki/Manual:Page_props_table.
"""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.columns import numbers
from kbsource.errors import SetupError
from kbsource.index.mapped_files import MappedFile, write_index_file
from kbsource.records import Conflict
from kbsource.runtime.sorted_runs import SortedRuns

FILE = "page_props.arrow"
SCHEMA = pa.schema(
    [
        pa.field("page_id", pa.uint32(), nullable=False),
        pa.field("qid", pa.uint32(), nullable=False),
        pa.field("is_disambiguation", pa.uint8(), nullable=False),
    ],
    metadata={"format": "kbsource-page-props-1"},
)

CLAIMS_FILE = "claims.arrow"
CLAIMS = pa.schema(
    [
        pa.field("page_id", pa.uint32(), nullable=False),
        pa.field("qid", pa.uint32(), nullable=False),
        pa.field("wikidata", pa.uint32(), nullable=False),
        pa.field("page_props", pa.uint32(), nullable=False),
    ]
)
"""Items of the pages that any source assigns one to, sorted by page id; numbers, 0 for none.

``qid`` is the item that the page got. ``wikidata`` is the item whose sitelink points to the page, the lowest if there
are several; ``page_props`` is the item that page_props assigns to it, likewise.
"""

Numbers = npt.NDArray[np.uint32]

_MAX = (1 << 32) - 1
_LOW = np.uint64(_MAX)
_HALF = np.uint64(32)
_QID = re.compile(r"[Qq]([1-9][0-9]{0,9})", re.ASCII)
_ROWS_AT_ONCE = 1 << 16
# Sources of an item, in order of precedence; rows without an item are disambiguation flags.
_SITELINK, _ITEM, _MARK = range(3)
_STATED = pa.schema([("page_id", pa.uint32()), ("qid", pa.uint32()), ("kind", pa.uint8())])
_WON = pa.schema([("page_id", pa.uint32()), ("qid", pa.uint32())])


@dataclass(frozen=True, slots=True)
class PagePropsReport:
    """Report of the build."""

    n_invalid_qids: int  #: number of values of ``wikibase_item`` that are not item ids
    n_not_articles: int  #: number of rows left out because ``is_article`` refused their page
    conflicts: tuple[Conflict, ...]  #: sorted by item, then by refused page
    claims_path: str  #: file of the item that every page got, and its sources (``CLAIMS``)


def build_page_props(
    rows: Iterable[tuple[int, str, str]],
    folder: str,
    *,
    scratch: str,
    is_article: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]] | None = None,
    sitelinks: Iterable[npt.NDArray[np.uint64]] = (),
) -> PagePropsReport:
    """Writes ``page_props.arrow``, with at most one page per item and at most one item per page.

    A page that claims several items gets the lowest of those not refused to it. Sitelinks take precedence: page_props
    assigns items only to pages without a sitelink, and only items whose sitelink points to no page.

    Args:
        rows: (page id, property name, value) in any order; other properties are ignored.
        scratch: local folder for scratch files, 20 bytes per row; ``claims.arrow`` stays there.
        is_article: returns for page ids whether they count (``TitleIndex.has_articles``). Without it all count, and a
            redirect or a template may keep an item from an article.
        sitelinks: articles that Wikidata's sitelinks point to, as item << 32 | page id, in arrays.

    Raises:
        SetupError: a page id that MediaWiki cannot have.
    """
    os.makedirs(folder, exist_ok=True)
    claims_path = os.path.join(scratch, CLAIMS_FILE)
    conflicts: list[Conflict] = []
    with (
        SortedRuns(os.path.join(scratch, "stated"), _STATED, by="page_id") as stated,
        SortedRuns(os.path.join(scratch, "contended"), _STATED, by="qid") as contended,
        SortedRuns(os.path.join(scratch, "won"), _WON, by="page_id") as won,
        SortedRuns(os.path.join(scratch, "props"), SCHEMA, by="page_id") as props,
    ):
        reading = _Reading(stated, is_article)
        for row in rows:
            reading.add(*row)
        reading.flush()
        for links in sitelinks:
            stated.add(*_halves(links)[::-1], np.full(len(links), _SITELINK, np.uint8))
        for pages in stated.ranges():
            page_ids, qids, kinds = (column.to_numpy() for column in stated.read(pages).columns)
            is_linked = np.isin(page_ids, page_ids[kinds == _SITELINK])
            contends = (kinds == _SITELINK) | ((kinds == _ITEM) & ~is_linked)
            contended.add(page_ids[contends], qids[contends], kinds[contends])
        for items in contended.ranges():
            conflicts += _decide(contended.read(items), won)

        def claims() -> Iterator[pa.RecordBatch]:
            for pages in stated.ranges():
                page_ids, qids, kinds = (column.to_numpy() for column in stated.read(pages).columns)
                winners = [column.to_numpy() for column in won.read(pages).columns]
                having, marked = np.unique(winners[0]), np.unique(page_ids[kinds == _MARK])
                known = np.union1d(having, marked)
                props.add(known, _lowest(known, *winners), np.isin(known, marked).astype(np.uint8))
                claiming = np.unique(page_ids[kinds != _MARK])
                own = [(page_ids[kinds == kind], qids[kinds == kind]) for kind in (_SITELINK, _ITEM)]
                columns = [claiming, *(_lowest(claiming, *pair) for pair in (winners, *own))]
                yield pa.RecordBatch.from_arrays(columns, schema=CLAIMS)

        write_index_file(claims_path, CLAIMS, claims())
        _write_whole(props, os.path.join(folder, FILE), scratch)
    conflicts.sort(key=lambda record: (int(record.qid[1:]), record.page_id, record.refused_page_id))
    return PagePropsReport(reading.n_invalid, reading.n_not_articles, tuple(conflicts), claims_path)


class _Reading:
    """Collects rows of page_props into the table of stated items."""

    def __init__(
        self, stated: SortedRuns, is_article: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]] | None
    ) -> None:
        self._stated, self._is_article = stated, is_article
        self._pending = array("Q")
        self.n_invalid = self.n_not_articles = 0

    def add(self, page_id: int, name: str, value: str) -> None:
        if name == "disambiguation":
            self._pending.append(_checked(page_id))
        elif name == "wikibase_item":
            match = _QID.fullmatch(value)
            if match is None or int(match[1]) > _MAX:
                self.n_invalid += 1
            else:
                self._pending.append(int(match[1]) << 32 | _checked(page_id))
        if len(self._pending) >= _ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        qids, page_ids = _halves(np.array(self._pending, np.uint64))
        self._pending = array("Q")
        if self._is_article is not None:
            counts = self._is_article(page_ids.astype(np.int64))
            self.n_not_articles += int(np.count_nonzero(~counts))
            qids, page_ids = qids[counts], page_ids[counts]
        self._stated.add(page_ids, qids, np.where(qids, _ITEM, _MARK).astype(np.uint8))


def _halves(claims: npt.NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """Returns items and pages from values of item << 32 | page."""
    return (claims >> _HALF).astype(np.uint32), (claims & _LOW).astype(np.uint32)


def _decide(rows: pa.RecordBatch, won: SortedRuns) -> list[Conflict]:
    """Assigns every item to the lowest page that a sitelink names, or else page_props; returns the other pages
    named.
    """
    page_ids, qids, kinds = (column.to_numpy() for column in rows.columns)
    order = np.lexsort((page_ids, kinds, qids))
    page_ids, qids, kinds = page_ids[order], qids[order], kinds[order]
    _, first, claim = np.unique(qids, return_index=True, return_inverse=True)
    won.add(page_ids[first], qids[first])
    keepers = first[claim]
    is_refused = (kinds == kinds[keepers]) & (page_ids != page_ids[keepers])
    is_refused[1:] &= (page_ids[1:] != page_ids[:-1]) | (qids[1:] != qids[:-1])
    columns = (qids[is_refused], page_ids[keepers[is_refused]], page_ids[is_refused])
    found = zip(*(column.tolist() for column in columns), strict=True)
    return [Conflict(f"Q{qid}", keeper, refused) for qid, keeper, refused in found]


def _lowest(wanted: Numbers, page_ids: Numbers, qids: Numbers) -> Numbers:
    """Returns the lowest item of each wanted page, or 0; all ``page_ids`` are among the wanted pages."""
    order = np.lexsort((qids, page_ids))
    found, first = np.unique(page_ids[order], return_index=True)
    lowest = np.zeros(len(wanted), np.uint32)
    lowest[np.searchsorted(wanted, found)] = qids[order][first]
    return lowest


def _write_whole(rows: SortedRuns, path: str, scratch: str) -> None:
    """Writes rows sorted by key as one batch, from mapped scratch files."""
    paths = [os.path.join(scratch, f"{name}.bin") for name in SCHEMA.names]
    with ExitStack() as stack:
        files = [stack.enter_context(open(column_path, "wb")) for column_path in paths]
        for batch in rows.read_sorted(_ROWS_AT_ONCE):
            for column, file in zip(batch.columns, files, strict=True):
                column.to_numpy().tofile(file)
    types = (np.uint32, np.uint32, np.uint8)
    columns = [np.memmap(*pair, "r") if rows.n_rows else np.empty(0) for pair in zip(paths, types, strict=True)]
    write_index_file(path, SCHEMA, [pa.RecordBatch.from_arrays(columns, schema=SCHEMA)])
    for column_path in paths:
        os.remove(column_path)


def _checked(page_id: int) -> int:
    if not 0 < page_id <= _MAX:
        raise SetupError(
            f"page_props: page id {page_id} is not a page id of MediaWiki; the table is damaged, download it again"
        )
    return page_id


class PageProps:
    """Looks up pages in a mapped page_props file."""

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
        return cls(*MappedFile(os.path.join(folder, FILE), SCHEMA).batches)

    def _at(self, page_id: int) -> int:
        i = bisect_left(self._page_ids, page_id)
        return i if i < len(self._page_ids) and self._page_ids[i] == page_id else -1

    def qid(self, page_id: int) -> str | None:
        """Returns the page's Wikidata item, ``Q42``, or None."""
        i = self._at(page_id)
        return f"Q{self._qids[i]}" if i >= 0 and self._qids[i] else None

    def is_disambiguation(self, page_id: int) -> bool:
        """Returns whether the page is marked as a disambiguation page."""
        i = self._at(page_id)
        return i >= 0 and self._marks[i] == 1
