"""What an alignment needs to know of a release: where its pages lie, and what leads to them."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from mapping.search.resolve import Resolver, read_moves
from pipelines.alignment.page_texts import PageTexts
from pipelines.stores.storage import absolute, storage_for


class ReleasePages(NamedTuple):
    """The pages of a release.

    Attributes:
        folder: of the release.
        files: paths of its pages files in it, in order.
        n_rows: pages in each of them.
        lang: language of the wiki.
    """

    folder: str
    files: tuple[str, ...]
    n_rows: tuple[int, ...]
    lang: str

    @classmethod
    def of(cls, manifest: PagesManifest, folder: str) -> ReleasePages:
        """Gives the pages of the release in a folder."""
        entries = manifest.tables["pages"]
        rows = tuple(entry.rows or 0 for entry in entries)
        return cls(absolute(folder), tuple(entry.file for entry in entries), rows, manifest.site.lang)

    @classmethod
    def open(cls, folder: str) -> ReleasePages:
        """Gives the pages of the release in a folder.

        Raises:
            SetupError: as ``kbsource.release.kind.Kind.read``.
        """
        return cls.of(PAGES_RELEASE.read(folder, storage_for(folder)), folder)

    @property
    def n_pages(self) -> int:
        """All of them."""
        return sum(self.n_rows)

    def starts(self) -> list[int]:
        """Gives the position of the first page of each file."""
        return list(accumulate(self.n_rows, initial=0))

    def texts(self) -> PageTexts:
        """Opens them for reading."""
        return PageTexts(self.folder, self.files, self.n_rows)


@lru_cache(maxsize=1)
def resolver_of(folder: str, title_map: str | None = None) -> Resolver:
    """Gives what looks pages up in a release; a process opens one at a time.

    Args:
        folder: of the release.
        title_map: file of known moves; None without.
    """
    moves = None if title_map is None else read_moves(title_map, storage_for(title_map))
    return Resolver.open(folder, moves=moves, storage=storage_for(folder))
