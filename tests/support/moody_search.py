"""A search that goes wrong for one evidence on purpose."""

from __future__ import annotations

from dataclasses import dataclass

from kbsource.runtime.chunks import ChunkFunction
from mapping.records import Alignment
from mapping.search.page_search import PageSearch
from mapping.search.resolve import Resolved
from pipelines.alignment import search
from pipelines.alignment.release_pages import MakeSearch
from tests.support.guarded_work import misbehave

HANGS = "the evidence that nobody finds"


class MoodySearch(PageSearch):
    """Never comes back from ``HANGS``."""

    def locate(self, found: Resolved, text: str | None) -> Alignment:
        if text == HANGS:
            misbehave("hang in C")
        return super().locate(found, text)


@dataclass(frozen=True)
class MakeMoodySearch(MakeSearch):
    """Makes what ``MakeSearch`` makes, with ``MoodySearch`` in it."""

    def __call__(self) -> ChunkFunction:
        search.PageSearch = MoodySearch  # type: ignore[misc]
        return MakeSearch.__call__(self)
