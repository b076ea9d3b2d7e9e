"""Finds pages of a release: by typed text, by words, by links to a page, and at random."""

from __future__ import annotations

import secrets
import unicodedata
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from rapidfuzz import fuzz, process

from kbsource.index.title_index import TitleIndex
from kbsource.lookup import KnowledgeSource
from kbsource.release.pages.inlinks import count_linking, inlinks_index, linking_ids
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.release.side_index import OnProgress, OrderedRows, SideIndex, cache_folder, write_ordered
from kbsource.release.sql import connected
from kbsource.runtime.database import ORDER_MB
from mapping.inspector.full_text import full_text

_SHORTER, _MOST_COMPARED, _LIKE = 3, 200, 60
"""Limits for similar titles: by how many letters the common prefix may be shorter than possible, how many titles of
each prefix are compared, and the minimum similarity in per cent."""


def folded_title(text: str) -> str:
    """Returns a title in the form that is compared: case and accents are removed.

    >>> folded_title("Zürich") == folded_title("ZURICH") == "zurich"
    True
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    return kept.encode("utf-8", "replace").decode()


def write_title_order(index: TitleIndex, folder: str, on_progress: OnProgress) -> None:
    """Writes the titles that resolve to an article, in alphabetical order. ``on_progress`` is called with the number of
    titles written so far."""
    n_titles, n_done = len(index), 0
    with connected(writes=[folder], memory_mb=ORDER_MB, threads=1, scratch=folder) as db:
        db.execute("create table titles (key varchar, number integer)")
        for batch in index.title_batches():
            keys = pa.array([folded_title(title) for title in batch["title"].to_pylist()], pa.string())
            numbers = pa.array(range(n_done, n_done + len(keys)), pa.int32())
            db.register("read", pa.table([keys, numbers, batch["final_row"]], ["key", "number", "final_row"]))
            db.execute("insert into titles select key, number from read where final_row >= 0")
            n_done += len(keys)
            on_progress(n_done, n_titles)
        write_ordered(db, "titles", folder)


def titles_beginning_with(order: OrderedRows, text: str, n_titles: int) -> list[int]:
    """Returns the row numbers of at most ``n_titles`` titles that start with a text, in alphabetical order of the
    titles.
    """
    asked = "select number from rows where key between $1 and $1 || chr(1114111) order by key, number limit $2"
    return order.column(asked, folded_title(text), n_titles) if text else []


class FoundTitle(NamedTuple):
    """A page that was found, and how."""

    title: str  #: title that was found; for a redirect the redirect's own title
    page_id: int
    note: str = ""  #: title of the page if it differs, otherwise how the page was found, or empty


class PageFinder:
    """Looks up pages in a release of pages. Side indexes are built at first use. Several threads may use it."""

    def __init__(self, path: str, manifest: PagesManifest, source: KnowledgeSource) -> None:
        self._source = source
        folder = index_folder(path, manifest)
        self._index = TitleIndex.open(folder, cache_size=0)
        self._locations = Locations(folder)
        self.titles = SideIndex(cache_folder(manifest.sha256) / "titles-2", partial(write_title_order, self._index))
        self.backlinks = inlinks_index(path, manifest)
        self.texts = full_text(path, manifest)

    def close(self) -> None:
        """Stops building side indexes and closes them."""
        self.titles.close()
        self.backlinks.close()
        self.texts.close()

    def title(self, page_id: int) -> str | None:
        """Returns the title of a page, or None if the release does not have the page."""
        return None if self._locations.page(page_id) is None else self._index.article_title(page_id)

    def exact(self, text: str) -> tuple[FoundTitle, ...]:
        """Returns the pages that a text identifies: by URL, Wikidata item, title or page id."""
        text = text.strip()
        found: list[FoundTitle] = []
        named = self._source.resolve(text) if text else None
        if named is not None and named.page_id is not None and named.title is not None:
            is_redirect = named.by == "title" and named.requested != named.title
            note = f"→ {named.title}" if is_redirect else f"page {text}" if named.by == "id" else ""
            found.append(FoundTitle(named.requested if is_redirect else named.title, named.page_id, note))
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
        item = self._locations.page_of_qid(text)
        for page_id, note in ((item, f"item {text.upper()}"), (number, f"page {text}")):
            known = {page.page_id for page in found}
            if page_id is not None and page_id not in known and (title := self.title(page_id)) is not None:
                found.append(FoundTitle(title, page_id, note))
        return tuple(found)

    def beginning_with(self, text: str, n_titles: int) -> tuple[FoundTitle, ...]:
        """Returns pages whose titles, or titles of redirects to them, start with the typed text; none before the index
        is built."""
        order = self.titles.get()
        numbers = [] if order is None else titles_beginning_with(order, text.strip().replace("_", " "), n_titles)
        return tuple(
            FoundTitle(entry.title, entry.final_page_id, f"→ {entry.final_title}" if entry.is_redirect else "")
            for entry in map(self._index.entry, numbers)
            if entry.final_page_id is not None and self._locations.page(entry.final_page_id) is not None
        )

    def similar_to(self, title: str, n_titles: int) -> list[str]:
        """Returns titles similar to an unknown title, the most similar first; none before the index is built.

        They start with the longest prefix of the unknown title with which any title starts; it must have two letters.
        """
        order, asked = self.titles.get(), folded_title(title.strip().replace("_", " "))
        if order is None:
            return []
        longest, shortest = len(asked), 2  # prefixes that some title has; found by binary search
        while shortest < longest:
            middle = (shortest + longest + 1) // 2
            if titles_beginning_with(order, asked[:middle], 1):
                shortest = middle
            else:
                longest = middle - 1
        numbers: dict[int, None] = {}
        for length in range(shortest, max(shortest - _SHORTER, 1), -1):
            numbers |= dict.fromkeys(titles_beginning_with(order, asked[:length], _MOST_COMPARED))
        titles = [self._index.entry(number).title for number in numbers]
        found = process.extract(
            asked, titles, scorer=fuzz.ratio, processor=folded_title, limit=n_titles, score_cutoff=_LIKE
        )
        return [title for title, _, _ in found]

    def chance(self) -> int | None:
        """Returns the id of a random page, uniformly drawn; None if there are no pages."""
        n_pages = self._locations.n_pages
        return self._locations.page_id(secrets.randbelow(n_pages)) if n_pages else None

    def n_linking(self, page_id: int) -> int | None:
        """Returns how many pages link to a page; None before the index is built."""
        made = self.backlinks.get()
        return None if made is None else count_linking(made, page_id)

    def linking(self, page_id: int, start: int, end: int) -> list[FoundTitle]:
        """Returns pages that link to a page, by page id, from ``start`` up to but not including ``end``."""
        made = self.backlinks.get()
        ids = [] if made is None else linking_ids(made, page_id, start, end)
        return [FoundTitle(self._index.article_title(own) or "", own) for own in ids]
