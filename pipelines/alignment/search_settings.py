"""How pages are searched, as values that can be sent to where it is done; nothing is imported that searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mapping.decide.policy import THRESHOLD
from mapping.search.numbering import Numbering
from pipelines.alignment.release_pages import ReleasePages

if TYPE_CHECKING:
    from kbsource.runtime.chunks import ChunkFunction


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
