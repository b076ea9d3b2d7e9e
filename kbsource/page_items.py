"""Items of Wikidata joined to the pages of a wiki: who has which item, and what the item is called.

Nothing holds Wikidata: its tables pass through a row group at a time, and memory holds numbers of the pages' own items
alone, about 40 bytes a page.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.files import Storage
from kbsource.page_props import Claims
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import write_small_table
from kbsource.schema import ITEMS
from kbsource.site import Site
from kbsource.spill import BucketSpill
from kbsource.title_index import TitleIndex
from kbsource.titles import normalise_title
from kbsource.wikidata.entity import Term, shown_term
from kbsource.wikidata.reader import WikidataTables

N_BUCKETS = 64
_TERMS = ("label", "descriptions", "aliases")
_PLACED = pa.schema([pa.field("row", pa.int64()), *(ITEMS.field(name) for name in _TERMS)])


class PageItemRow(NamedTuple):
    """A row of the table ``page_items``."""

    page_id: int
    qid: str | None
    wikidata_qid: str | None
    page_props_qid: str | None
    agreement: str
    label: str | None
    description: str | None
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sitelinks:
    """Where the sitelinks to a wiki lead.

    Attributes:
        articles: item << 32 | page id of those that lead to articles.
        n_redirects, n_missing: sitelinks to redirects, whose items are about something else than the article, and to
            titles that the dump does not have.
    """

    articles: npt.NDArray[np.uint64]
    n_redirects: int
    n_missing: int


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


def read_sitelinks(tables: WikidataTables, site: Site, index: TitleIndex) -> Sitelinks:
    """Gives where the sitelinks to a wiki lead. Memory: 8 bytes for each that leads to an article."""
    articles = array("Q")
    n_redirects = n_missing = 0
    for batch in tables.batches("sitelinks", ["item_id", "site", "title"]):
        own = batch.filter(pc.equal(batch["site"], site.dbname))
        for item_id, title in zip(own["item_id"].to_pylist(), own["title"].to_pylist(), strict=True):
            found = index.resolve(normalise_title(title, site))
            if found.status == "article" and found.page_id is not None:
                articles.append(int(item_id[1:]) << 32 | found.page_id)
            elif found.status == "unknown":
                n_missing += 1
            else:
                n_redirects += 1
    return Sitelinks(np.frombuffer(articles, np.uint64), n_redirects, n_missing)


def write_page_items(
    claims: Claims,
    released: npt.NDArray[np.int64],
    tables: WikidataTables,
    storage: Storage,
    *,
    output: str,
    scratch: str,
) -> tuple[tuple[FileEntry, ...], dict[str, int]]:
    """Writes the table ``page_items``, by page id, and gives its files and the number of rows by agreement.

    Args:
        claims: which page got which item, from ``page_props.build_page_props``.
        released: page ids of the release, ascending.
        tables: the release of Wikidata.
        storage: of the release.
        output: folder of the release.
        scratch: local folder for scratch files, about the size of the table.
    """
    page_ids, qids, wikidata, page_props = claims
    kept = np.isin(page_ids, released)
    claims = Claims(page_ids[kept], qids[kept], wikidata[kept], page_props[kept])
    counts: Counter[str] = Counter()

    def counted() -> Iterator[PageItemRow]:
        for row in _page_item_rows(claims, tables, scratch):
            counts[row.agreement] += 1
            yield row

    entries = write_small_table(counted(), output, "page_items", storage=storage)
    return entries, dict(sorted(counts.items()))


def _page_item_rows(claims: Claims, tables: WikidataTables, scratch: str) -> Iterator[PageItemRow]:
    """Gives the rows by page id: terms are spread over buckets of neighbouring pages, then joined bucket by bucket."""
    n_rows = len(claims.page_ids)
    if not n_rows:
        return
    languages = tables.manifest.options["languages"]
    order = np.argsort(claims.qids, kind="stable")
    sorted_qids = claims.qids[order]
    with BucketSpill(os.path.join(scratch, "page_items"), _PLACED, n_buckets=N_BUCKETS) as spill:
        for batch in tables.batches("items", ["item_id", *_TERMS]):
            numbers = pc.utf8_slice_codeunits(batch["item_id"], 1).cast(pa.uint32()).to_numpy(zero_copy_only=False)
            at = np.minimum(np.searchsorted(sorted_qids, numbers), n_rows - 1)
            is_wanted = sorted_qids[at] == numbers
            rows = order[at[is_wanted]]
            terms = batch.filter(pa.array(is_wanted))
            columns = [pa.array(rows), *(terms[name] for name in _TERMS)]
            spill.add(pa.RecordBatch.from_arrays(columns, schema=_PLACED), rows * N_BUCKETS // n_rows)
        spill.flush()
        for bucket in range(N_BUCKETS):
            found = {one["row"]: one for one in spill.read(bucket).to_pylist()}
            # The rows whose bucket this is: row * N_BUCKETS // n_rows == bucket.
            for row in range(-(-bucket * n_rows // N_BUCKETS), -(-(bucket + 1) * n_rows // N_BUCKETS)):
                yield _page_item(claims, row, found.get(row), languages)


def _page_item(claims: Claims, row: int, terms: dict[str, Any] | None, languages: Sequence[str]) -> PageItemRow:
    qid, wikidata, page_props = (
        f"Q{column[row]}" if column[row] else None for column in (claims.qids, claims.wikidata, claims.page_props)
    )
    if wikidata == page_props:
        agreement = "same"
    elif wikidata and page_props:
        agreement = "differ"
    else:
        agreement = "only_wikidata" if wikidata else "only_page_props"
    terms = terms or {"label": None, "descriptions": [], "aliases": []}
    description = shown_term([Term(one["language"], one["text"]) for one in terms["descriptions"]], languages)
    return PageItemRow(
        int(claims.page_ids[row]),
        qid,
        wikidata,
        page_props,
        agreement,
        terms["label"],
        description.text if description is not None else None,
        tuple(dict.fromkeys(alias["text"] for alias in terms["aliases"])),
    )
