"""What an alignment needs to know of a release: where its pages lie, what leads to them, and how they are searched.

Nothing is imported that searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from mapping.decide.policy import THRESHOLD
from mapping.search.numbering import Numbering
from mapping.search.resolve import Resolver, read_moves
from pipelines.primitives.page_texts import PageTexts
from pipelines.stores.storage import absolute, storage_for

if TYPE_CHECKING:
    from kbsource.runtime.chunks import ChunkFunction


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


class SearchSettings(NamedTuple):
    """How pages are searched for the evidences of a dataset.

    Attributes:
        threshold, max_elements, numbering, places_nothing: as in ``mapping.search.page_search.SearchOptions``.
        accept_fuzzy: lowest likeness, 0 to 100, of a title that is taken for a missing one; None for never.
        rescue_sentences: sentences of the page that a model is asked about where the span is weak.
    """

    threshold: float = THRESHOLD
    max_elements: int = 1
    numbering: Numbering = "kilt"
    places_nothing: bool = False
    accept_fuzzy: float | None = None
    rescue_sentences: int = 0


@dataclass(frozen=True, slots=True)
class MakeSearch:
    """Makes the search in the process that does it, where alone the library of the tokeniser is loaded.

    Attributes:
        pages: of the release.
        settings: of all datasets but those of ``by_part``.
        by_part: settings by number of the dataset.
    """

    pages: ReleasePages
    settings: SearchSettings
    by_part: Mapping[int, SearchSettings]

    def __call__(self) -> ChunkFunction:
        """Gives the function of chunks."""
        from pipelines.alignment.search import Search

        return Search(self.pages, self.settings, self.by_part)
