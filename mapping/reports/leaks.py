"""Markup that is left in the text of pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MARKUP = re.compile(r"\{\{|\}\}|\[\[|\]\]|<ref|'''")
CONTEXT_CHARS = 40


@dataclass(frozen=True)
class Leak:
    """Markup left in one place of an article.

    Attributes:
        title: the article's title.
        place: ``element 7``, ``table 2`` or ``infobox 0``.
        kind: kind of the element, or ``cell``, ``caption``, ``field``.
        markup: what was left.
        context: up to 40 characters before and after it.
    """

    title: str
    place: str
    kind: str
    markup: str
    context: str

    @classmethod
    def at(cls, match: re.Match[str], *, title: str, place: str, kind: str) -> Leak:
        """Gives the leak that a match of ``MARKUP`` is."""
        context = match.string[max(0, match.start() - CONTEXT_CHARS) : match.end() + CONTEXT_CHARS]
        return cls(title, place, kind, match.group(), context.replace("\n", " "))


def row_leaks(row: Mapping[str, Any]) -> Iterator[Leak]:
    """Gives what is left in a row of the table of pages: of its elements, then of tables and infoboxes.

    What an article shows as written, in ``nowiki`` and its kin, is not told from the rest: a release does not say.
    """
    for place, kind, text in _texts(row):
        for match in MARKUP.finditer(text):
            yield Leak.at(match, title=row["title"], place=place, kind=kind)


def _texts(row: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for number, element in enumerate(row["elements"]):
        yield f"element {number}", element["kind"], element["text"]
    for number, table in enumerate(row["tables"]):
        yield f"table {number}", "caption", table["caption"] or ""
        yield from ((f"table {number}", "cell", text) for text in table["header"])
        yield from ((f"table {number}", "cell", cell["text"]) for cells in table["rows"] for cell in cells)
    for number, infobox in enumerate(row["infoboxes"]):
        yield from ((f"infobox {number}", "field", field["text"]) for field in infobox["fields"])
