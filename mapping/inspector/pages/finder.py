"""The ways to a page of a release: what somebody typed, what links to it, and chance."""

from __future__ import annotations

import secrets
from bisect import bisect_left
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kbsource.files import Storage
from kbsource.index.title_index import BATCH_SHIFT, TitleIndex
from kbsource.lookup import KnowledgeSource
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from mapping.inspector.pages.backlinks import Backlinks, write_backlinks
from mapping.inspector.pages.title_order import TitleOrder, write_title_order
from mapping.inspector.side_index import OnProgress, SideIndex, cache_folder

_IN_BATCH = (1 << BATCH_SHIFT) - 1


class FoundTitle(NamedTuple):
    """A page that was found, and how.

    Attributes:
        title: as it was found: of a redirect its own.
        page_id: of the page.
        note: what the page is called where that is another title, else how it was found, or empty.
    """

    title: str
    page_id: int
    note: str = ""


class PageFinder:
    """Lookups in a release of pages; side indexes are made when they are asked for first. Threads may share one."""

    def __init__(self, path: str, manifest: PagesManifest, storage: Storage, source: KnowledgeSource) -> None:
        self._path, self._manifest, self._storage, self._source = path, manifest, storage, source
        folder = index_folder(path, manifest, storage)
        self._index = TitleIndex.open(folder, cache_size=0)
        self._locations = Locations(folder)
        cache = cache_folder(manifest.sha256)
        self.titles = SideIndex(cache / "titles-1", self._write_titles, lambda made: TitleOrder(made, self._index))
        self.backlinks = SideIndex(cache / "backlinks-1", self._write_backlinks, Backlinks)

    def close(self) -> None:
        """Stops the work on side indexes."""
        self.titles.close()
        self.backlinks.close()

    def title(self, page_id: int) -> str | None:
        """Gives the title of a page, None when the release has no such page."""
        return None if self._locations.page(page_id) is None else self._index.article_title(page_id)

    def exact(self, asked: str) -> tuple[FoundTitle, ...]:
        """Gives the pages that something names by itself: an address, an item, a title, a number."""
        asked = asked.strip()
        found: list[FoundTitle] = []
        named = self._source.resolve(asked) if asked else None
        if named is not None and named.page_id is not None and named.title is not None:
            is_redirect = named.by == "title" and named.asked != named.title
            note = f"→ {named.title}" if is_redirect else f"page {asked}" if named.by == "id" else ""
            found.append(FoundTitle(named.asked if is_redirect else named.title, named.page_id, note))
        number = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 19 else None
        item = self._locations.page_of_qid(asked)
        for page_id, note in ((item, f"item {asked.upper()}"), (number, f"page {asked}")):
            known = {page.page_id for page in found}
            if page_id is not None and page_id not in known and (title := self.title(page_id)) is not None:
                found.append(FoundTitle(title, page_id, note))
        return tuple(found)

    def beginning_with(self, asked: str, n_titles: int) -> tuple[FoundTitle, ...]:
        """Gives pages by the titles that begin with what was typed, redirects' among them; none before the index is
        made."""
        order = self.titles.get()
        if order is None or not asked.strip():
            return ()
        entries = order.beginning_with(asked.strip().replace("_", " "), n_titles)
        return tuple(
            FoundTitle(entry.title, entry.final_page_id, f"→ {entry.final_title}" if entry.is_redirect else "")
            for entry in entries
            if entry.final_page_id is not None and self._locations.page(entry.final_page_id) is not None
        )

    def chance(self) -> int | None:
        """Gives the id of any page, each as likely as the others; None where there is none."""
        return self._page_id(secrets.randbelow(self._n_pages)) if self._n_pages else None

    def n_linking(self, page_id: int) -> int | None:
        """Gives how many pages link to a page; None before that is counted."""
        made = self.backlinks.get()
        return None if made is None else made.count(self._number(page_id))

    def linking(self, page_id: int, start: int, end: int) -> list[FoundTitle]:
        """Gives pages that link to a page, by page id, from the ``start``th up to but not including the ``end``th."""
        made = self.backlinks.get()
        numbers = [] if made is None else made.sources(self._number(page_id), start, end)
        ids = map(self._page_id, numbers)
        return [FoundTitle(self._index.article_title(own) or "", own) for own in ids]

    @cached_property
    def _first_ids(self) -> list[int]:
        return [batch["page_id"][0].as_py() for batch in self._locations.pages()]

    @cached_property
    def _batches(self) -> list[npt.NDArray[np.int64]]:
        return [batch["page_id"].to_numpy() for batch in self._locations.pages()]

    @property
    def _n_pages(self) -> int:
        return sum(map(len, self._batches))

    def _page_id(self, number: int) -> int:
        return int(self._batches[number >> BATCH_SHIFT][number & _IN_BATCH])

    def _number(self, page_id: int) -> int:
        batch = max(bisect_left(self._first_ids, page_id + 1) - 1, 0)
        return (batch << BATCH_SHIFT) + int(np.searchsorted(self._batches[batch], page_id))

    def _write_titles(self, folder: str, on_progress: OnProgress) -> None:
        write_title_order(self._index, folder, on_progress)

    def _write_backlinks(self, folder: str, on_progress: OnProgress) -> None:
        page_ids = np.concatenate([np.empty(0, np.int64), *self._batches])
        write_backlinks(
            self._path, self._manifest, self._storage, page_ids=page_ids, folder=folder, on_progress=on_progress
        )
