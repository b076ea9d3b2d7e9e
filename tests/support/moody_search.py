"""A search that goes wrong for one evidence on purpose."""

from __future__ import annotations

from typing import Any

from mapping.records import Alignment
from mapping.search.page_search import PageSearch
from pipelines.alignment import search
from pipelines.alignment.search import Search
from tests.support.guarded_work import misbehave

HANGS = "the evidence that nobody finds"


class MoodyPageSearch(PageSearch):
    """Never comes back from ``HANGS``."""

    def locate(self, wanted: Alignment) -> Alignment:
        if wanted.evidence_text == HANGS:
            misbehave("hang in C")
        return super().locate(wanted)


class MoodySearch(Search):
    """The search with ``MoodyPageSearch`` in it."""

    def __init__(self, *given: Any) -> None:
        search.PageSearch = MoodyPageSearch  # type: ignore[misc]
        super().__init__(*given)
