"""The content of a page: elements of running text with their links, tables and infoboxes. ``kbsource.records`` also
exports these rows.

All spans are half-open, ``[start, end)``, in Unicode code points of the stored element's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Protocol

from kbsource.rows import Int8, Int32, Row


class Element(Row):
    """A part of a page's running text: the title, a heading, a paragraph or a list item. Only element 0 is the
    title.
    """

    kind: Annotated[str, "title | heading | paragraph | list_item"]
    level: Annotated[Int8, "title 1; heading 1 to 6; paragraph 0; list item its depth from 1"]
    ordinal: Annotated[Int32 | None, "number of a numbered item"]
    #: ``*``, ``#``, ``;``, ``:`` and combinations
    marker: Annotated[str, "list prefix as written; empty for other elements"]
    section: Annotated[
        tuple[str, ...],
        "headings above the element, outermost first; for a heading, its own text is last",
    ]
    text: Annotated[str, "the text, without newlines"]


class Anchor(Row):
    """An internal link in an element: ``elements[element].text[start:end] == text``."""

    element: Annotated[Int32, "index into elements"]
    start: Annotated[Int32, "offset of the first code point in elements[element].text"]
    end: Annotated[Int32, "end of the span, one past its last code point"]
    text: Annotated[str, "elements[element].text[start:end], exactly"]
    target_title: Annotated[str, "title after redirects; if the link does not resolve, the normalised title as written"]
    target_fragment: Annotated[str | None, "section of the target, from the link or the redirect"]
    target_page_id: Annotated[int | None, "page id of the article; null when the dump has no such article"]
    written_target: Annotated[str, "target as written, including the fragment"]  #: without leading and trailing spaces
    from_template: Annotated[bool, "true if a template made the link, false if the page's own text has it"] = False


class CellLink(Row):
    """An internal link in a table cell or infobox value."""

    start: Annotated[Int32, "first code point of the link in the text"]
    end: Annotated[Int32, "end of the span, one past its last code point"]
    target_title: Annotated[str, "title after redirects; if the link does not resolve, the normalised title as written"]
    target_fragment: Annotated[str | None, "section of the target"]
    target_page_id: Annotated[int | None, "page id of the article; null when the dump has no such article"]


class Cell(Row):
    """A table cell as written. Only with `--spread-tables`, cells are repeated in all rows and columns that they
    cover.
    """

    text: Annotated[str, "text of the cell"]
    is_header: Annotated[bool, "true for a header cell, written with !"]
    colspan: Annotated[Int32, "number of columns covered, at least 1"]
    rowspan: Annotated[Int32, "number of rows covered, at least 1"]
    links: Annotated[tuple[CellLink, ...], "links, with offsets in the cell's text"]


class Table(Row):
    """A wikitext table."""

    element: Annotated[Int32, "index of the element after which the table is"]
    caption: Annotated[str | None, "caption, or null"]
    header: Annotated[tuple[str, ...], "texts of the first row if all its cells are header cells; else empty"]
    rows: Annotated[tuple[tuple[Cell, ...], ...], "remaining rows"]


class InfoboxField(Row):
    """One parameter of an infobox."""

    name: Annotated[str, "parameter name"]
    text: Annotated[str, "value as text"]
    links: Annotated[tuple[CellLink, ...], "links, with offsets in the value's text"]


class Infobox(Row):
    """An infobox template."""

    element: Annotated[Int32, "index of the element after which the infobox is"]
    name: Annotated[str, "template name"]
    fields: Annotated[tuple[InfoboxField, ...], "named, non-empty parameters in order"]


class PageContent(Protocol):
    """The columns of a page from which its text can be rendered."""

    @property
    def url(self) -> str: ...

    @property
    def elements(self) -> Sequence[Element]: ...

    @property
    def anchors(self) -> Sequence[Anchor]: ...

    @property
    def tables(self) -> Sequence[Table]: ...

    @property
    def infoboxes(self) -> Sequence[Infobox]: ...
