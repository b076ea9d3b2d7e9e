"""Wikidata items and disambiguation marks per page, from the ``page_props`` table, memory-mapped.

One Arrow IPC file, uncompressed, sorted by page id: ``page_id`` and ``qid`` (number of the item, 0 for
none) as unsigned 32-bit integers, ``is_disambiguation`` as 0 or 1. Ids fit: MediaWiki declares ``pp_page``
as ``int unsigned``.
Source: https://www.mediawiki.org/wiki/Manual:Page_props_table.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.columns import numbers
from kbsource.errors import SetupError
from kbsource.index.mapped_files import MappedFile, write_index_file
from kbsource.records import Conflict
from kbsource.runtime.database import connected, insert

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
"""Items of the pages that any source gives one, by page id; numbers, 0 for none.

``qid`` is the item that the page got; ``wikidata`` the one whose sitelink leads to the page, the lowest of several;
``page_props`` the one that page_props gives it, likewise.
"""

Numbers = npt.NDArray[np.uint32]

_MAX = (1 << 32) - 1
_LOW = np.uint64(_MAX)
_HALF = np.uint64(32)
_QID = re.compile(r"[Qq]([1-9][0-9]{0,9})", re.ASCII)
_ROWS_AT_ONCE = 1 << 16
_MEMORY_MB = 500
# Who says it, first who comes first; the rows without an item are disambiguation marks.
_SITELINK, _ITEM, _MARK = range(3)
_STATED = pa.schema([("page_id", pa.uint32()), ("qid", pa.uint32()), ("kind", pa.uint8())])
_DECIDE = f"""
create table contended as from stated where kind = {_SITELINK}
    or (kind = {_ITEM} and page_id not in (select page_id from stated where kind = {_SITELINK}));
create table won as select distinct on (qid) qid, page_id, kind from contended order by qid, kind, page_id;
create table having_item as select page_id, min(qid) as qid from won group by page_id;
"""
"""Every item goes to the lowest page that a sitelink names, or else page_props."""
_CONFLICTS = """
select distinct 'Q' || qid, won.page_id, contended.page_id, qid from contended join won using (qid, kind)
where contended.page_id <> won.page_id order by qid, 2, 3
"""
_PROPS = f"""
select page_id, coalesce(qid, 0)::uinteger, (marked is not null)::utinyint
from having_item full join (select distinct page_id, true as marked from stated where kind = {_MARK}) using (page_id)
order by page_id
"""
_CLAIMED = f"""
select page_id, coalesce(any_value(having_item.qid), 0)::uinteger,
    coalesce(min(stated.qid) filter (kind = {_SITELINK}), 0)::uinteger,
    coalesce(min(stated.qid) filter (kind = {_ITEM}), 0)::uinteger
from stated left join having_item using (page_id) where kind <> {_MARK} group by page_id order by page_id
"""


@dataclass(frozen=True, slots=True)
class PagePropsReport:
    """What was built."""

    n_invalid_qids: int  #: values of ``wikibase_item`` that are no item id
    n_not_articles: int  #: rows left out because ``is_article`` refused their page
    conflicts: tuple[Conflict, ...]  #: by item, then by refused page
    claims_path: str  #: file of what every page got, and from where (``CLAIMS``)


def build_page_props(
    rows: Iterable[tuple[int, str, str]],
    folder: str,
    *,
    scratch: str,
    is_article: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]] | None = None,
    sitelinks: Iterable[npt.NDArray[np.uint64]] = (),
) -> PagePropsReport:
    """Writes ``page_props.arrow``: at most one page per item, at most one item per page.

    A page that claims several items keeps the lowest of those it is not refused. Sitelinks come first: page_props
    gives an item only to pages that no sitelink leads to, and only items whose sitelink leads to no page.

    Args:
        rows: (page id, property name, value) in any order; other properties are passed over.
        scratch: local folder for scratch files, 20 bytes a row; ``claims.arrow`` stays there. Memory: ``MEMORY_MB``
            of ``kbsource.runtime.database`` at most, and 20 bytes a page.
        is_article: says of page ids whether they count (``TitleIndex.has_articles``); without it all do,
            and a redirect or a template may keep an item from an article.
        sitelinks: articles that Wikidata's sitelinks lead to, as item << 32 | page id, in arrays.

    Raises:
        SetupError: a page id that MediaWiki cannot have.
    """
    for one in (folder, scratch):
        os.makedirs(one, exist_ok=True)
    claims_path = os.path.join(scratch, CLAIMS_FILE)
    with connected(memory_mb=_MEMORY_MB, scratch=scratch) as db:
        reading = _Reading(rows, is_article)
        insert(db, "stated", reading, _STATED)
        insert(db, "stated", map(_linked, sitelinks), _STATED)
        db.execute(_DECIDE)
        conflicts = tuple(Conflict(*found) for *found, _ in db.execute(_CONFLICTS).fetchall())
        props = db.sql(_PROPS).to_arrow_table().combine_chunks()
        claims = db.sql(_CLAIMED).to_arrow_reader(_ROWS_AT_ONCE)
        write_index_file(claims_path, CLAIMS, (_as(CLAIMS, batch) for batch in claims))
    write_index_file(os.path.join(folder, FILE), SCHEMA, [_as(SCHEMA, props)])
    return PagePropsReport(reading.n_invalid, reading.n_not_articles, conflicts, claims_path)


def _as(schema: pa.Schema, rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    """Rows of one batch, by what their columns are called."""
    columns = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in rows.columns)
    return pa.RecordBatch.from_arrays([*columns], schema=schema)


class _Reading:
    """Rows of page_props as what they state, counted once all were read."""

    def __init__(
        self,
        rows: Iterable[tuple[int, str, str]],
        is_article: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]] | None,
    ) -> None:
        self._rows, self._is_article = iter(rows), is_article
        self.n_invalid = self.n_not_articles = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while group := list(islice(self._rows, _ROWS_AT_ONCE)):
            qids, page_ids = _halves(np.fromiter(self._stated(group), np.uint64))
            if self._is_article is not None:
                counts = self._is_article(page_ids.astype(np.int64))
                self.n_not_articles += int(np.count_nonzero(~counts))
                qids, page_ids = qids[counts], page_ids[counts]
            kinds = np.where(qids, _ITEM, _MARK).astype(np.uint8)
            yield pa.RecordBatch.from_arrays([page_ids, qids, kinds], schema=_STATED)

    def _stated(self, rows: Iterable[tuple[int, str, str]]) -> Iterator[int]:
        for page_id, name, value in rows:
            if name == "disambiguation":
                yield _checked(page_id)
            elif name == "wikibase_item":
                match = _QID.fullmatch(value)
                if match is None or int(match[1]) > _MAX:
                    self.n_invalid += 1
                else:
                    yield int(match[1]) << 32 | _checked(page_id)


def _halves(claims: npt.NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
    """Items and pages of item << 32 | page."""
    return (claims >> _HALF).astype(np.uint32), (claims & _LOW).astype(np.uint32)


def _linked(sitelinks: npt.NDArray[np.uint64]) -> pa.RecordBatch:
    qids, page_ids = _halves(sitelinks)
    return pa.RecordBatch.from_arrays([page_ids, qids, np.full(len(qids), _SITELINK, np.uint8)], schema=_STATED)


def _checked(page_id: int) -> int:
    if not 0 < page_id <= _MAX:
        raise SetupError(f"page_props: page id {page_id} is none of MediaWiki's; the table is damaged, load it again")
    return page_id


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
        return cls(*MappedFile(os.path.join(folder, FILE), SCHEMA).batches)

    def _at(self, page_id: int) -> int:
        i = bisect_left(self._page_ids, page_id)
        return i if i < len(self._page_ids) and self._page_ids[i] == page_id else -1

    def qid(self, page_id: int) -> str | None:
        """The page's Wikidata item, ``Q42``; None when it has none."""
        i = self._at(page_id)
        return f"Q{self._qids[i]}" if i >= 0 and self._qids[i] else None

    def is_disambiguation(self, page_id: int) -> bool:
        """Whether the page is marked as a disambiguation page."""
        i = self._at(page_id)
        return i >= 0 and self._marks[i] == 1
