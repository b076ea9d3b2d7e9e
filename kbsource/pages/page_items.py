"""Items of Wikidata joined to the pages of a wiki: who has which item, and what the item is called.

Nothing holds Wikidata: its tables pass through a row group at a time, and what is not of the wiki's pages is left out.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence

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
from kbsource.runtime.database import connected, insert
from kbsource.site import Site
from kbsource.titles import normalise_title
from kbsource.wikidata.entity import shown_term
from kbsource.wikidata.kind import WikidataTables
from kbsource.wikidata.records import Item, Term

_TERMS = ("label", "descriptions", "aliases")
_ROWS_AT_ONCE = 1 << 14
_MEMORY_MB = 500
_PAGE_IDS = pa.schema([PAGES_SCHEMA.field("page_id")])
_ITEMS = pa.schema([pa.field("qid", pa.uint32()), *(schema_of(Item).field(name) for name in _TERMS)])
_JOINED = """
select page_id, case when qid > 0 then 'Q' || qid end, case when wikidata > 0 then 'Q' || wikidata end,
    case when page_props > 0 then 'Q' || page_props end, label, descriptions, aliases
from claims semi join pages using (page_id) left join items using (qid) order by page_id
"""


def check_site(tables: WikidataTables, site: Site) -> None:
    """Raises where a release of Wikidata cannot be joined with a wiki.

    Raises:
        SetupError: the wiki's name is not known, or its sitelinks were left out.
    """
    if not site.dbname:
        raise SetupError("The dump does not say which wiki it is of, so no sitelink leads to it; leave out --wikidata.")
    sites = tables.manifest.options.get("sites")
    if sites is not None and site.dbname not in sites:
        raise SetupError(
            f"{tables.path} has no sitelinks to {site.dbname}, only to {', '.join(sites)}; make it with "
            f"kbsource wikidata --sites {site.dbname}."
        )


class Sitelinks:
    """The sitelinks to a wiki that lead to articles, in arrays of item << 32 | page id.

    Once all were read ``n_redirects`` counts those to redirects, whose items are about something else than the article,
    ``n_missing`` those to titles that the dump does not have.
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
    """Writes the table ``page_items``, by page id, and gives its files and the number of rows by agreement.

    ``claims_path``: which page got which item, from ``build_page_props``; ``pages_path``: ``pages.arrow``, the pages of
    the release. ``scratch`` takes about the size of the table.
    """
    counts: Counter[str] = Counter()
    os.makedirs(scratch, exist_ok=True)
    languages = tables.manifest.options["languages"]
    with connected(memory_mb=_MEMORY_MB, scratch=scratch) as db:
        insert(db, "claims", read_index_file(claims_path), CLAIMS)
        insert(db, "pages", (batch.select(["page_id"]) for batch in read_index_file(pages_path)), _PAGE_IDS)
        qids = db.sql("select distinct qid from claims where qid > 0 order by qid").to_arrow_table()["qid"]
        insert(db, "items", _items(tables, qids.to_numpy()), _ITEMS)

        def rows() -> Iterator[PageItem]:
            for batch in db.sql(_JOINED).to_arrow_reader(_ROWS_AT_ONCE):
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    row = _page_item(*values, languages=languages)
                    counts[row.agreement] += 1
                    yield row

        entries = write_small_table(rows(), PageItem, output, "page_items")
    return entries, dict(sorted(counts.items()))


def _items(tables: WikidataTables, qids: npt.NDArray[np.uint32]) -> Iterator[pa.RecordBatch]:
    """What the items with these numbers, which ascend, are called."""
    for batch in tables.batches("items", ["item_id", *_TERMS]) if len(qids) else ():
        numbers = pc.utf8_slice_codeunits(batch["item_id"], 1).cast(pa.uint32())
        at = np.minimum(np.searchsorted(qids, numbers), len(qids) - 1)
        is_wanted = pa.array(qids[at] == numbers.to_numpy(zero_copy_only=False))
        columns = (column.filter(is_wanted) for column in (numbers, *(batch[name] for name in _TERMS)))
        yield pa.RecordBatch.from_arrays([*columns], schema=_ITEMS)


def _page_item(
    page_id: int,
    qid: str | None,
    wikidata: str | None,
    page_props: str | None,
    label: str | None,
    descriptions: Sequence[dict[str, str]] | None,
    aliases: Sequence[dict[str, str]] | None,
    *,
    languages: Sequence[str],
) -> PageItem:
    if wikidata == page_props:
        agreement = "same"
    elif wikidata and page_props:
        agreement = "differ"
    else:
        agreement = "only_wikidata" if wikidata else "only_page_props"
    description = shown_term([Term(term["language"], term["text"]) for term in descriptions or ()], languages)
    said = description.text if description is not None else None
    names = tuple(dict.fromkeys(alias["text"] for alias in aliases or ()))
    return PageItem(page_id, qid, wikidata, page_props, agreement, label, said, names)
