"""How often each template is used, how it comes out, what it shows, and what is lost by it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kbsource.records import Page
from kbsource.wikitext.parse import ParsedText
from kbsource.wikitext.templates import LostText

_NOTHING = LostText(0, None)


class TemplateRow(NamedTuple):
    """A row of the ``templates`` table."""

    name: str
    outcome: str
    uses: int
    pages: int
    shown_chars: int
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
                first = known if known.example is not None else row
                row = TemplateRow(
                    *key,
                    uses=known.uses + row.uses,
                    pages=known.pages + row.pages,
                    shown_chars=known.shown_chars + row.shown_chars,
                    lost_chars=known.lost_chars + row.lost_chars,
                    example_title=first.example_title,
                    example=first.example,
                )
            self._rows[key] = row

    def add_page(self, page: Page, text: ParsedText) -> None:
        """Adds the uses on a page, with what is shown and lost there by name and outcome."""
        for use in page.templates:
            n_lost, example = text.lost.get(use[:2], _NOTHING)
            n_shown = text.shown.get(use[:2], 0)
            self.add([TemplateRow(*use, 1, n_shown, n_lost, page.title if n_lost else None, example)])

    def rows(self) -> list[TemplateRow]:
        """Gives the rows, sorted."""
        return [self._rows[key] for key in sorted(self._rows)]
