"""How often each template is used, how it comes out, and what is lost by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kbsource.records import Page
from kbsource.wikitext.templates import LostText

_NOTHING = LostText(0, None)


class TemplateRow(NamedTuple):
    """A row of the ``templates`` table."""

    name: str
    outcome: str
    uses: int
    pages: int
    lost_chars: int
    example_title: str | None
    example: str | None


class TemplateCounts:
    """Rows by name and outcome; numbers add up, and the first example stays."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], TemplateRow] = {}

    def add(self, rows: Iterable[TemplateRow]) -> None:
        """Adds what comes behind everything that was added before."""
        for row in rows:
            key = row[:2]
            known = self._rows.get(key)
            if known is not None:
                sums = (known.uses + row.uses, known.pages + row.pages, known.lost_chars + row.lost_chars)
                row = TemplateRow(*key, *sums, *(known if known.example is not None else row)[5:])
            self._rows[key] = row

    def add_page(self, page: Page, lost: Mapping[tuple[str, str], LostText]) -> None:
        """Adds the uses on a page, with what is lost there by name and outcome."""
        for use in page.templates:
            n_chars, example = lost.get(use[:2], _NOTHING)
            self.add([TemplateRow(*use, 1, n_chars, page.title if n_chars else None, example)])

    def rows(self) -> list[TemplateRow]:
        """Gives the rows, sorted."""
        return [self._rows[key] for key in sorted(self._rows)]
