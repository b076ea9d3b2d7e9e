"""A search for facts that goes wrong on one page on purpose."""

from __future__ import annotations

from functools import partial
from typing import Any

from mapping.qampari.evidence import PageSentences
from pipelines.qampari import pages
from tests.support.guarded_work import misbehave

BAD_TITLE = "Book 13"
_HUGE = 1 << 40  # bytes, more than any limit


class MoodyFactSearch(pages.FactSearch):
    """Ends its process on the page ``BAD_TITLE``, in the way that ``how`` names; ``memory`` takes too much."""

    def __init__(self, how: str, *given: Any) -> None:
        pages._candidates = partial(_moody_candidates, pages._candidates, how)  # type: ignore[assignment]
        super().__init__(*given)


def _moody_candidates(find: Any, how: str, sentences: PageSentences, *sought: Any) -> Any:
    if sentences.page.title == BAD_TITLE:
        if how == "memory":
            bytearray(_HUGE)  # a MemoryError
        misbehave(how)
    return find(sentences, *sought)
