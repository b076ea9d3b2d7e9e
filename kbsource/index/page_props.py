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
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.columns import numbers
from kbsource.errors import SetupError
from kbsource.index.mapped_files import MappedFile, write_index_file
from kbsource.records import Conflict
from kbsource.runtime.database import ORDER_MB, connected, ordered_batches, streamed

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
"""The pages to which some source assigns an item, sorted by page id. Items are numbers; 0 means none.

``qid`` is the item that the page has in the release. ``wikidata`` is the item whose sitelink points to the page, and
``page_props`` the item that page_props assigns to it; if there are several, the one with the lowest number.
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
# If a sitelink points to a page, its item in page_props is ignored.
_CONTENDED = f"""
create table contended as select * from stated where kind = {_SITELINK} union all
    select items.* from (from stated where kind = {_ITEM}) as items
        anti join (from stated where kind = {_SITELINK}) as linked using (page_id)
"""
# If several pages claim an item, it belongs to the one with the lowest id in the first source that names the item.
_WON = f"""
create table won as select qid, (best >> 32)::utinyint as kind, (best & {_MAX})::uinteger as page_id
from (select qid, min(kind::ubigint << 32 | page_id) as best from contended group by qid)
"""
_PAGES = f"""
create table pages as select page_id, qid, wikidata, page_props, is_disambiguation from (
    select page_id, min(qid) filter (kind = {_SITELINK}) as wikidata, min(qid) filter (kind = {_ITEM}) as page_props,
        max(kind) = {_MARK} as is_disambiguation
    from stated group by page_id
) left join (select page_id, min(qid) as qid from won group by page_id) using (page_id)
"""
_CONFLICTS = """
select distinct qid, won.page_id as page_id, contended.page_id as other_page_id
from contended join won using (qid, kind) where contended.page_id <> won.page_id
order by qid, page_id, other_page_id
"""
_CLAIMS = """
select page_id, coalesce(qid, 0) as qid, coalesce(wikidata, 0) as wikidata, coalesce(page_props, 0) as page_props
from pages where wikidata is not null or page_props is not null order by page_id
"""
_PROPS = """
select page_id, coalesce(qid, 0) as qid, is_disambiguation::utinyint as is_disambiguation
from pages where qid is not null or is_disambiguation order by page_id
"""


@dataclass(frozen=True, slots=True)
class PagePropsReport:
    """Report on the reading of page_props."""

    n_invalid_qids: int  #: number of values of ``wikibase_item`` that are not item ids
    n_not_articles: int  #: number of rows left out because their page is not an article
    conflicts: tuple[Conflict, ...]  #: sorted by item, then by the page that does not get it
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

    If a page claims several items, it gets the lowest of those that belong to no other page. Sitelinks take precedence:
    page_props assigns items only to pages without a sitelink, and only items that no sitelink assigns to a page.

    Args:
        rows: (page id, property name, value) in any order. Properties that are not needed are ignored.
        scratch: local folder for temporary files, which take 20 bytes per row. ``claims.arrow`` stays there.
        is_article: returns for page ids whether they are those of articles (``TitleIndex.has_articles``); other pages
            are ignored. If None, all pages count, so that an item may belong to a redirect or a template.
        sitelinks: arrays of Wikidata's sitelinks to articles, as item << 32 | page id.

    Raises:
        SetupError: a page id is larger than MediaWiki allows.
    """
    os.makedirs(folder, exist_ok=True)
    claims_path = os.path.join(scratch, CLAIMS_FILE)
    reading = _Reading(rows, is_article)
    linked = (_stated(*_halves(links), _SITELINK) for links in sitelinks)
    with connected(scratch=scratch, memory_mb=ORDER_MB, threads=1) as db:
        with streamed(db, batches=(chain(reading, linked), _STATED)):
            db.execute("create table stated as from batches")
        db.execute(_CONTENDED)
        db.execute(_WON)
        db.execute(_PAGES)
        conflicts = [Conflict(f"Q{qid}", *page_ids) for qid, *page_ids in db.execute(_CONFLICTS).fetchall()]
        write_index_file(claims_path, CLAIMS, ordered_batches(db, _CLAIMS, CLAIMS))
        _write_whole(ordered_batches(db, _PROPS, SCHEMA), os.path.join(folder, FILE), scratch)
    return PagePropsReport(reading.n_invalid, reading.n_not_articles, tuple(conflicts), claims_path)


class _Reading:
    """Reads rows of page_props as batches of stated items."""

    def __init__(
        self,
        rows: Iterable[tuple[int, str, str]],
        is_article: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]] | None,
    ) -> None:
        self._rows, self._is_article = rows, is_article
        self.n_invalid = self.n_not_articles = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        pending = array("Q")
        for page_id, name, value in self._rows:
            if name == "disambiguation":
                pending.append(_checked(page_id))
            elif name == "wikibase_item":
                match = _QID.fullmatch(value)
                if match is None or int(match[1]) > _MAX:
                    self.n_invalid += 1
                else:
                    pending.append(int(match[1]) << 32 | _checked(page_id))
            if len(pending) >= _ROWS_AT_ONCE:
                yield self._batch(pending)
                pending = array("Q")
        yield self._batch(pending)

    def _batch(self, pending: array[int]) -> pa.RecordBatch:
        qids, page_ids = _halves(np.array(pending, np.uint64))
        if self._is_article is not None:
            counts = self._is_article(page_ids.astype(np.int64))
            self.n_not_articles += int(np.count_nonzero(~counts))
            qids, page_ids = qids[counts], page_ids[counts]
        return _stated(qids, page_ids, np.where(qids, _ITEM, _MARK))


def _stated(qids: Numbers, page_ids: Numbers, kinds: int | npt.NDArray[np.int64]) -> pa.RecordBatch:
    own = np.full(len(qids), kinds, np.uint8)
    return pa.RecordBatch.from_arrays([page_ids, qids, own], schema=_STATED)


def _halves(claims: npt.NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """Returns items and pages from values of item << 32 | page."""
    return (claims >> _HALF).astype(np.uint32), (claims & _LOW).astype(np.uint32)


def _write_whole(batches: Iterable[pa.RecordBatch], path: str, scratch: str) -> None:
    """Combines batches into one, through mapped temporary files, and writes it."""
    paths = [os.path.join(scratch, f"{name}.bin") for name in SCHEMA.names]
    n_rows = 0
    with ExitStack() as stack:
        files = [stack.enter_context(open(column_path, "wb")) for column_path in paths]
        for batch in batches:
            n_rows += batch.num_rows
            for column, file in zip(batch.columns, files, strict=True):
                column.to_numpy().tofile(file)
    types = (np.uint32, np.uint32, np.uint8)
    columns = [np.memmap(*pair, "r") if n_rows else np.empty(0) for pair in zip(paths, types, strict=True)]
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
        """Returns the Wikidata item of a page (``Q42``); None if it has none."""
        i = self._at(page_id)
        return f"Q{self._qids[i]}" if i >= 0 and self._qids[i] else None

    def is_disambiguation(self, page_id: int) -> bool:
        """Returns whether the page is marked as a disambiguation page."""
        i = self._at(page_id)
        return i >= 0 and self._marks[i] == 1
