"""Rows of evidence as a search leaves them."""

from __future__ import annotations

from typing import Any

from mapping.records import Alignment, PageKey, Place, Span


def aligned(
    outcome: str,
    page_id: int | None = None,
    title: str | None = None,
    section: str | None = None,
    place: Place | None = None,
    score: float | None = None,
    **further: Any,
) -> Alignment:
    """Gives an evidence by what its fate depends on."""
    span = None if score is None else Span(1, 0, 1, 1, score, "bleu")
    found = {"page_id": page_id, "title": title, "section": section, "place": place, "span": span}
    return Alignment(PageKey("title", title or "T"), "text", outcome=outcome, **{**found, **further})
