"""Joins Wikidata items to the pages of a wiki: the item of each page, and its label, description and aliases.

Wikidata is never held in memory: its tables are read one row group at a time, and the numbers of the pages' own items
are in mapped scratch files, 8 bytes per page.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import rebatched, schema_of
from kbsource.errors import SetupError
from kbsource.index.mapped_files import read_index_file, write_index_file
from kbsource.index.page_props import CLAIMS
from kbsource.index.title_index import TitleIndex
from kbsource.records import PageItem
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import write_small_table
from kbsource.runtime.sorted_runs import KeyRange, SortedRuns
from kbsource.site import Site
from kbsource.titles import normalise_title
from kbsource.wikidata.entity import shown_term
from kbsource.wikidata.kind import WikidataTables
from kbsource.wikidata.records import Item, Term

_TERMS = ("label", "descriptions", "aliases")
_ROWS_AT_ONCE = 1 << 14
_PLACED = pa.schema([pa.field("page_id", pa.uint32()), *(schema_of(Item).field(name) for name in _TERMS)])


def check_site(tables: WikidataTables, site: Site) -> None:
    """Checks that a release of Wikidata can be joined with a wiki.

    Raises:
        SetupError: the wiki's name is unknown, or its sitelinks were left out.
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

    After iteration, ``n_redirects`` is the number of sitelinks to redirects, whose items are about something else than
    the article, and ``n_missing`` the number of sitelinks to titles that the dump does not have.
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

    ``claims_path`` is the file of items per page from ``build_page_props``; ``pages_path`` is ``pages.arrow``, the
    pages of the release. ``scratch`` needs about as much space as the table.
    """
    counts: Counter[str] = Counter()
    os.makedirs(scratch, exist_ok=True)
    kept_path = os.path.join(scratch, "claims-kept.arrow")
    kept = rebatched(_released(read_index_file(claims_path), read_index_file(pages_path)), _ROWS_AT_ONCE)
    write_index_file(kept_path, CLAIMS, kept)

    def counted() -> Iterator[PageItem]:
        for row in _page_item_rows(kept_path, tables, scratch):
            counts[row.agreement] += 1
            yield row

    entries = write_small_table(counted(), PageItem, output, "page_items")
    os.remove(kept_path)
    return entries, dict(sorted(counts.items()))


def _released(claims: Iterator[pa.RecordBatch], pages: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Selects the claims whose page is in the release; both inputs are sorted by page id."""
    ids = np.empty(0, np.int64)
    for batch in claims:
        own = batch["page_id"].to_numpy()
        while len(own) and (not len(ids) or ids[-1] < own[-1]) and (page := next(pages, None)) is not None:
            ids = np.append(ids, page["page_id"].to_numpy())
        yield batch.filter(pa.array(np.isin(own, ids)))
        ids = ids[np.searchsorted(ids, own[-1:].max(initial=0)) :]


def _page_item_rows(claims_path: str, tables: WikidataTables, scratch: str) -> Iterator[PageItem]:
    """Iterates over the rows sorted by page id: terms of the pages' items are sorted by page, then joined for a few
    pages at a time.
    """
    languages = tables.manifest.options["languages"]
    qids_path, ids_path = (os.path.join(scratch, name) for name in ("items.bin", "items-pages.bin"))
    with (
        SortedRuns(os.path.join(scratch, "claims"), CLAIMS, by="qid") as by_qid,
        SortedRuns(os.path.join(scratch, "terms"), _PLACED, by="page_id") as terms,
    ):
        for claims in read_index_file(claims_path):
            by_qid.add(*claims.filter(pc.greater(claims["qid"], 0)).columns)
        if by_qid.n_rows:
            with open(qids_path, "wb") as qids_file, open(ids_path, "wb") as ids_file:
                for claims in by_qid.read_sorted(_ROWS_AT_ONCE):
                    claims["qid"].to_numpy().tofile(qids_file)
                    claims["page_id"].to_numpy().tofile(ids_file)
            qids, page_ids = np.memmap(qids_path, np.uint32, "r"), np.memmap(ids_path, np.uint32, "r")
            for batch in tables.batches("items", ["item_id", *_TERMS]):
                numbers = pc.utf8_slice_codeunits(batch["item_id"], 1).cast(pa.uint32()).to_numpy(zero_copy_only=False)
                at = np.minimum(np.searchsorted(qids, numbers), len(qids) - 1)
                is_wanted = qids[at] == numbers
                wanted = batch.filter(pa.array(is_wanted))
                terms.add(page_ids[at[is_wanted]], *(wanted[name] for name in _TERMS))
            os.remove(qids_path)
            os.remove(ids_path)
        for claims in read_index_file(claims_path):
            rows = claims.to_pylist()
            found = terms.read(KeyRange(rows[0]["page_id"], rows[-1]["page_id"] + 1)).to_pylist()
            by_page = {item["page_id"]: item for item in found}
            for row in rows:
                yield _page_item(row, by_page.get(row["page_id"]), languages)


def _page_item(claim: dict[str, int], terms: dict[str, Any] | None, languages: Sequence[str]) -> PageItem:
    qid, wikidata, page_props = (f"Q{claim[name]}" if claim[name] else None for name in CLAIMS.names[1:])
    if wikidata == page_props:
        agreement = "same"
    elif wikidata and page_props:
        agreement = "differ"
    else:
        agreement = "only_wikidata" if wikidata else "only_page_props"
    terms = terms or {"label": None, "descriptions": [], "aliases": []}
    description = shown_term([Term(term["language"], term["text"]) for term in terms["descriptions"]], languages)
    return PageItem(
        claim["page_id"],
        qid,
        wikidata,
        page_props,
        agreement,
        terms["label"],
        description.text if description is not None else None,
        tuple(dict.fromkeys(alias["text"] for alias in terms["aliases"])),
    )
