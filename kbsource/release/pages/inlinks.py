"""Finds the pages that link to a page, through an index in the cache folder."""

from __future__ import annotations

from functools import partial

from kbsource.release.manifest import Manifest
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.side_index import OnProgress, OrderedRows, SideIndex, cache_folder, write_ordered
from kbsource.release.sql import add_tables, connected
from kbsource.runtime.database import ORDER_MB

_ALL = 1 << 62
"""A number greater than that of any wiki's pages."""


def inlinks_index(path: str, manifest: Manifest) -> SideIndex[OrderedRows]:
    """Returns the index of the links in a release of pages. It has a row for each pair of a page and a page that links
    to it.
    """
    return SideIndex(cache_folder(manifest.sha256) / "backlinks-2", partial(_write_inlinks, path, manifest))


def _write_inlinks(path: str, manifest: Manifest, folder: str, on_progress: OnProgress) -> None:
    """Writes the pairs of a page and a page that links to it; ``on_progress`` receives the number of pages done."""
    n_done, entries = 0, manifest.tables["pages"]
    with connected(reads=[path], writes=[folder], memory_mb=ORDER_MB, threads=1, scratch=folder) as db:
        add_tables(db, PAGES_RELEASE.declared, {"pages": [entry.file for entry in entries]}, path)
        db.execute("create table released as select page_id from pages")
        db.execute("create table links (target bigint, source bigint)")
        for entry in entries:
            add_tables(db, PAGES_RELEASE.declared, {"pages": [entry.file]}, path)
            db.execute(
                "insert into links select * from (select unnest(list_distinct([a.target_page_id for a in anchors])) "
                "as target, page_id from pages) where target in (from released)"
            )
            n_done += entry.rows or 0
            on_progress(n_done, manifest.n_rows("pages"))
        write_ordered(db, "links", folder)


def count_linking(index: OrderedRows, page_id: int) -> int:
    """Returns the number of pages that link to a page."""
    (n_pages,) = index.column("select count(*) from rows where target = ?", page_id)
    return int(n_pages)


def linking_ids(index: OrderedRows, page_id: int, start: int = 0, end: int | None = None) -> list[int]:
    """Returns the part ``[start, end)`` of the ascending ids of all pages that link to a page."""
    query = "select source from rows where target = ? order by source limit ? offset ?"
    return index.column(query, page_id, _ALL if end is None else max(end - start, 0), start)
