"""Texts that stand in pages: what is around them there, where the release of the pages is open."""

from __future__ import annotations

from typing import NamedTuple

from mapping.inspector.marking import Span
from mapping.inspector.opened import Opened

AROUND = 300
"""Characters of an element that are shown on either side of a text."""


class InPage(NamedTuple):
    """What is around a text in its page; nothing where the release of the page is not open, or has another text there.

    Attributes:
        before, after: what is in front of it in the element where it begins, and behind it in that where it ends.
        url: of the page, with the text marked.
    """

    before: str
    after: str
    url: str | None


def in_page(opened: Opened, page_id: int, span: Span, text: str) -> InPage:
    """Gives what is around a text of a release.

    Args:
        opened: the release that names the text.
        page_id: of the page.
        span: where it stands there.
        text: what the release says that stands there.
    """
    if opened.pages is None or opened.pages.source is None:
        return InPage("", "", None)
    url = opened.page_url(page_id, [span])
    page = opened.pages.source.by_id(page_id)
    if page is None or not span.element <= span.end_element < len(page.elements):
        return InPage("", "", url)
    texts = [element.text for element in page.elements[span.element : span.end_element + 1]]
    before, after = texts[0][: span.start], texts[-1][span.end :]
    if "\n".join(texts) != before + text + after:  # whoever verifies the release is told of it
        return InPage("", "", url)
    return InPage(
        before if len(before) <= AROUND else f"…{before[-AROUND:]}",
        after if len(after) <= AROUND else f"{after[:AROUND]}…",
        url,
    )


def title_url(title: str | None, opened: Opened) -> str | None:
    """Gives the address of the page of that title; None where there is none, or its release is not open."""
    if title is None or opened.pages is None or opened.pages.source is None:
        return None
    page_id = opened.pages.source.resolve(title).page_id
    return None if page_id is None else opened.page_url(page_id)
