"""A search that goes wrong for one evidence on purpose."""

from __future__ import annotations

from dataclasses import dataclass

from kbsource.runtime.chunks import ChunkFunction
from mapping.records import Alignment
from mapping.search.page_search import PageSearch
from pipelines.alignment import search
from pipelines.alignment.search import MakeSearch
from tests.support.guarded_work import misbehave

HANGS = "the evidence that nobody finds"


class MoodySearch(PageSearch):
    """Never comes back from ``HANGS``."""

    def locate(self, wanted: Alignment) -> Alignment:
        if wanted.evidence_text == HANGS:
            misbehave("hang in C")
        return super().locate(wanted)


@dataclass(frozen=True)
class MakeMoodySearch(MakeSearch):
    """Makes what ``MakeSearch`` makes, with ``MoodySearch`` in it."""

    def __call__(self) -> ChunkFunction:
        search.PageSearch = MoodySearch  # type: ignore[misc]
        return MakeSearch.__call__(self)
