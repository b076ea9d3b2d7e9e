"""Evidence looked up one at a time in a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kbsource.files import Storage
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from mapping.records import Alignment, PageKey, Span
from mapping.search.numbering import Numbering, place_alignments
from mapping.search.page_search import PageSearch, SearchOptions, locate_nowhere
from mapping.search.resolve import Resolver
from mapping.search.suggest import suggest_titles
from mapping.search.tokens import Tokeniser


class Locator:
    """Finds pages and spans; ``open`` gives one. A context: the files are closed when it ends.

    Many evidences of one page are best asked for one after the other: the last page is kept.
    """

    def __init__(self, source: KnowledgeSource, resolver: Resolver, options: SearchOptions) -> None:
        self._source = source
        self._resolver = resolver
        self._options = options
        self._tokeniser = Tokeniser(source.site.lang)
        self._last: tuple[Page, PageSearch] | None = None

    @classmethod
    def open(
        cls,
        release: str,
        *,
        threshold: float,
        max_elements: int = 1,
        numbering: Numbering = "elements",
        moves: Mapping[str, str] | None = None,
        storage: Storage | None = None,
    ) -> Locator:
        """Opens a release.

        Args:
            release: its folder.
            threshold, max_elements, numbering: as in SearchOptions; spans are given in that numbering.
            moves: known moves, as for Resolver.
            storage: of the folder; None for the local file system.

        Raises:
            SetupError: the folder holds no finished release, or is remote and without a storage.
        """
        resolver = Resolver.open(release, moves=moves, storage=storage)
        return cls(KnowledgeSource.open(release, storage), resolver, SearchOptions(threshold, max_elements, numbering))

    def __enter__(self) -> Locator:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def locate(self, key: PageKey, evidence: str | None) -> Alignment:
        """Gives where an evidence stands; None for the page alone. Missing titles come with similar ones."""
        found = self._resolver.resolve(key)
        if found.page_id is None:
            alignment = locate_nowhere(found, evidence)
            if not found.asked:
                return alignment
            similar = suggest_titles([found.asked], self._resolver.index)
            return replace(alignment, suggestions=similar.get(found.asked, ()))
        page, search = self._page_and_search(found.page_id)
        return self._numbered(search.locate(found, evidence), page)

    def _page_and_search(self, page_id: int) -> tuple[Page, PageSearch]:
        if self._last is None or self._last[0].page_id != page_id:
            page = self._source.by_id(page_id)
            assert page is not None  # the resolver gives pages of the release only
            self._last = page, PageSearch(page, self._tokeniser, self._options)
        return self._last

    def _numbered(self, alignment: Alignment, page: Page) -> Alignment:
        span = alignment.span
        place = place_alignments({(0, 0): alignment}, page, self._options.numbering)[0, 0].place
        if span is None or place is None:
            return alignment
        return replace(alignment, span=Span(*place, span.score, span.match))
