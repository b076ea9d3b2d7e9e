"""Tables, infoboxes and links of a page before its links are looked up."""

from __future__ import annotations

from kbsource.rows import Row
from kbsource.titles import Target


class RawCell(Row):
    """A cell whose content is still wikitext."""

    text: str
    is_header: bool
    colspan: int = 1
    rowspan: int = 1


class RawAnchor(Row):
    """A link in an element; ``is_made``: a template made it."""

    element: int
    start: int
    end: int
    text: str
    target: Target
    written: str
    is_made: bool


class RawLink(Row):
    """A link in a cell or infobox value."""

    start: int
    end: int
    target: Target


class TextCell(Row):
    """A cell or an infobox value as text with its links."""

    text: str
    links: tuple[RawLink, ...] = ()


class ParsedCell(Row):
    """A table cell."""

    content: TextCell
    is_header: bool
    colspan: int
    rowspan: int


class ParsedTable(Row):
    """A table; fields as in records.Table."""

    element: int
    caption: str | None
    rows: tuple[tuple[ParsedCell, ...], ...]


class ParsedInfobox(Row):
    """An infobox; ``fields`` are (name, value) in order."""

    element: int
    name: str
    fields: tuple[tuple[str, TextCell], ...]
