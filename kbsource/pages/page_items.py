"""Joins Wikidata items to the pages of a wiki: the item of each page, and its label, description and aliases.

Wikidata's items are read one row group at a time, and those of the pages are stored on disk. Memory: one row group, and
the numbers of these items, 4 bytes per page.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import schema_of
from kbsource.errors import SetupError
from kbsource.index.mapped_files import read_index_file
from kbsource.index.page_props import CLAIMS
from kbsource.index.title_index import TitleIndex
from kbsource.records import PageItem
from kbsource.release.manifest import FileEntry
from kbsource.release.pages.locations import PAGES_SCHEMA
from kbsource.release.writer import write_small_table
from kbsource.runtime.database import ORDER_MB, connected, streamed
from kbsource.site import Site
from kbsource.titles import normalise_title
from kbsource.wikidata.entity import shown_term
from kbsource.wikidata.kind import WikidataTables
from kbsource.wikidata.records import Item, Term

_TERMS = ("label", "descriptions", "aliases")
_ROWS_AT_ONCE = 1 << 12
_ITEMS = pa.schema([CLAIMS.field("qid"), *(schema_of(Item).field(name) for name in _TERMS)])
# Two statements, the first to join and the second to sort: one statement would need the memory of both at once, even
# if it spilled to disk.
_WITH_TERMS = """
create table described as select claims.*, label, descriptions, aliases from claims left join terms using (qid)
"""
_BY_PAGE = "select * from described order by page_id"


def check_site(tables: WikidataTables, site: Site) -> None:
    """Checks that a release of Wikidata can be joined with a wiki.

    Raises:
        SetupError: the wiki's name is unknown, or the release has no sitelinks of the wiki.
    """
    if not site.dbname:
        raise SetupError("The dump does not name its wiki, so no sitelink can be matched; leave out --wikidata.")
    sites = tables.manifest.options.get("sites")
    if sites is not None and site.dbname not in sites:
        raise SetupError(
            f"{tables.path} has no sitelinks to {site.dbname}, only to {', '.join(sites)}; make it with "
            f"kbsource wikidata --sites {site.dbname}."
        )


class Sitelinks:
    """Reads the sitelinks of a wiki that point to articles, in arrays of item << 32 | page id.

    Sitelinks to redirects are skipped, because their items are not about the target article. After iteration,
    ``n_redirects`` is their number, and ``n_missing`` is the number of sitelinks to titles that are not in the dump.
    """

    def __init__(self, tables: WikidataTables, site: Site, index: TitleIndex) -> None:
        self._tables, self._site, self._index = tables, site, index
        self.n_redirects = self.n_missing = 0

    def __iter__(self) -> Iterator[npt.NDArray[np.uint64]]:
        for batch in self._tables.batches("sitelinks", ["item_id", "site", "title"]):
            articles = array("Q")
            own = batch.filter(pc.equal(batch["site"], self._site.dbname))
            for item_id, title in zip(own["item_id"].to_pylist(), own["title"].to_pylist(), strict=True):
                found = self._index.resolve(normalise_title(title, self._site))
                if found.status == "article" and found.page_id is not None:
                    articles.append(int(item_id[1:]) << 32 | found.page_id)
                elif found.status == "unknown":
                    self.n_missing += 1
                else:
                    self.n_redirects += 1
            yield np.array(articles, np.uint64)


def write_page_items(
    claims_path: str, pages_path: str, tables: WikidataTables, *, output: str, scratch: str
) -> tuple[tuple[FileEntry, ...], dict[str, int]]:
    """Writes the table ``page_items``, sorted by page id, and returns its files and the number of rows by agreement.

    ``claims_path`` is the file from ``build_page_props`` with the items of each page. ``pages_path`` is
    ``pages.arrow``, which lists the pages of the release. ``scratch`` needs about as much space as the table.
    """
    counts: Counter[str] = Counter()

    def counted() -> Iterator[PageItem]:
        for row in _page_item_rows(claims_path, pages_path, tables, scratch):
            counts[row.agreement] += 1
            yield row

    entries = write_small_table(counted(), PageItem, output, "page_items")
    return entries, dict(sorted(counts.items()))


def _page_item_rows(claims_path: str, pages_path: str, tables: WikidataTables, scratch: str) -> Iterator[PageItem]:
    """Yields the rows of the pages in the release, sorted by page id."""
    languages = tables.manifest.options["languages"]
    released = (batch.select(["page_id"]) for batch in read_index_file(pages_path))
    with connected(scratch=scratch, memory_mb=ORDER_MB, threads=1) as db:
        with streamed(
            db,
            stated=(read_index_file(claims_path), CLAIMS),
            released=(released, pa.schema([PAGES_SCHEMA.field("page_id")])),
        ):
            db.execute("create table claims as select * from stated semi join released using (page_id)")
        # In a join, DuckDB would hold all items of Wikidata in memory, because it does not know their number.
        qids = db.sql("select qid from claims where qid > 0 order by qid").fetchnumpy()["qid"]
        with streamed(db, items=(_items(tables, qids), _ITEMS)):
            db.execute("create table terms as from items")
        db.execute(_WITH_TERMS)
        for batch in db.sql(_BY_PAGE).to_arrow_reader(_ROWS_AT_ONCE):
            for row in batch.to_pylist():
                yield _page_item(row, languages)


def _items(tables: WikidataTables, qids: npt.NDArray[np.uint32]) -> Iterator[pa.RecordBatch]:
    """Reads the items with these numbers, which must be ascending."""
    if not len(qids):
        return
    for batch in tables.batches("items", ["item_id", *_TERMS]):
        numbers = pc.utf8_slice_codeunits(batch["item_id"], 1).cast(pa.uint32()).to_numpy(zero_copy_only=False)
        is_wanted = qids[np.minimum(np.searchsorted(qids, numbers), len(qids) - 1)] == numbers
        found = pa.RecordBatch.from_arrays([pa.array(numbers), *(batch[name] for name in _TERMS)], schema=_ITEMS)
        yield found.filter(pa.array(is_wanted))


def _page_item(row: dict[str, Any], languages: Sequence[str]) -> PageItem:
    qid, wikidata, page_props = (f"Q{row[name]}" if row[name] else None for name in CLAIMS.names[1:])
    if wikidata == page_props:
        agreement = "same"
    elif wikidata and page_props:
        agreement = "differ"
    else:
        agreement = "only_wikidata" if wikidata else "only_page_props"
    descriptions = [Term(term["language"], term["text"]) for term in row["descriptions"] or ()]
    description = shown_term(descriptions, languages)
    return PageItem(
        row["page_id"],
        qid,
        wikidata,
        page_props,
        agreement,
        row["label"],
        description.text if description is not None else None,
        tuple(dict.fromkeys(alias["text"] for alias in row["aliases"] or ())),
    )
