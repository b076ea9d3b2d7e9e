"""Frozen rows that travel through the build: pages as read, pages as written, and what was rejected.

Small rows that exist in their hundreds per page (elements, anchors, cells) are NamedTuples: they are frozen and
slotted like the dataclasses, cost a quarter to create, and ``zip(*rows)`` turns them into Arrow columns.
All spans are half-open ``[start, end)`` in Unicode code points of the stored element's text.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be used, as it is written to the ``rejected`` table.

    Attributes:
        stage: step that rejected it: ``read``, ``scan``, ``parse`` or ``resolve``.
        key: page id, title or ordinal as text; empty when nothing of the record is known.
        reason: slug, see docs/tables.md.
        detail: what was seen, at most 1,000 characters.
        file: base name of the input file.
        offset: byte offset in that file. For bzip2 the compressed offset of the block that holds the start of the
            record, for every other form the offset in the decompressed bytes; -1 when unknown.
    """

    stage: str
    key: str
    reason: str
    detail: str
    file: str
    offset: int


@dataclass(frozen=True, slots=True)
class RawPage:
    """One page as the dump holds it, newest revision only.

    Attributes:
        page_id: MediaWiki page id.
        namespace: namespace number, from ``<ns>`` or, where that is missing, from the title's prefix.
        title: title with spaces, as written in the dump (prefix included).
        redirect_title: ``<redirect title=…>`` as written, without its fragment; None when the element is missing.
        revision_id, parent_revision_id: None for a missing parent.
        timestamp: ISO 8601 in UTC, ``2019-07-19T20:25:53Z``.
        model: content model; ``wikitext`` where the dump says nothing.
        text: wikitext of the main slot; empty when the page is empty.
        file: base name of the dump file.
        offset: as in BadRecord.
    """

    page_id: int
    namespace: int
    title: str
    redirect_title: str | None
    revision_id: int
    parent_revision_id: int | None
    timestamp: str
    model: str
    text: str
    file: str
    offset: int


class Element(NamedTuple):
    """One piece of running text.

    Attributes:
        kind: ``title`` (element 0 alone), ``heading``, ``paragraph`` or ``list_item``.
        level: 1 for the title, 1-6 for headings (number of ``=``), 0 for paragraphs, nesting depth from 1 for items.
        ordinal: number of a ``#`` item in its list, else None.
        marker: list prefix as written (``*``, ``#``, ``;``, ``:`` and combinations), else empty.
        section: headings the element stands under, outermost first; a heading's own text comes last.
        text: the text; never holds a newline.
    """

    kind: str
    level: int
    ordinal: int | None
    marker: str
    section: tuple[str, ...]
    text: str


class Anchor(NamedTuple):
    """An internal link in an element: ``elements[element].text[start:end] == text``.

    Attributes:
        target_title: title of the page the link leads to after redirects; where it leads nowhere, the normalised
            title as written.
        target_fragment: section of the target, from the link or else from the redirect; None when absent.
        target_page_id: id of that article; None when there is no such article in the dump.
        written_target: the target as written in the wikitext, fragment included, blanks at its ends left out.
        from_template: a template made the link; no editor of the page wrote it.
    """

    element: int
    start: int
    end: int
    text: str
    target_title: str
    target_fragment: str | None
    target_page_id: int | None
    written_target: str
    from_template: bool = False


class CellLink(NamedTuple):
    """An internal link in a table cell or infobox value; offsets are in that cell's text."""

    start: int
    end: int
    target_title: str
    target_fragment: str | None
    target_page_id: int | None


class Cell(NamedTuple):
    """One table cell as written; spans are not expanded."""

    text: str
    is_header: bool
    colspan: int
    rowspan: int
    links: tuple[CellLink, ...]


class Table(NamedTuple):
    """A wikitext table.

    Attributes:
        element: index of the element it follows.
        caption: text of ``|+``, else None.
        header: texts of the first row when all its cells are header cells, else empty.
        rows: the remaining rows, in order.
    """

    element: int
    caption: str | None
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class InfoboxField(NamedTuple):
    """One named, non-empty parameter of an infobox, rendered to text."""

    name: str
    text: str
    links: tuple[CellLink, ...]


class Infobox(NamedTuple):
    """An infobox template: its name as written and its fields in order."""

    element: int
    name: str
    fields: tuple[InfoboxField, ...]


class TemplateUse(NamedTuple):
    """How often a template (normalised name) came out in a way on the page.

    By a rule it is ``rendered`` or ``dropped``; by its definition ``expanded``, or ``invoked`` where a Lua module took
    part; ``bound`` is left out, as it went over a limit, and so is ``unknown``.
    """

    name: str
    outcome: str
    uses: int


class Loss(NamedTuple):
    """How many pieces of one kind (``comment``, ``ref``, ``gallery``, ``file``, …) were not carried over."""

    kind: str
    pieces: int


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """One article as released. See docs/tables.md for every column.

    ``redirects`` are the titles that lead here, sorted. ``parse_status`` is ``ok`` or says which fallback made the
    row: ``fallback_timeout``, ``fallback_crash`` or ``fallback_error``.
    """

    page_id: int
    title: str
    qid: str | None
    is_disambiguation: bool
    revision_id: int
    parent_revision_id: int | None
    timestamp: str
    url: str
    elements: tuple[Element, ...]
    anchors: tuple[Anchor, ...]
    categories: tuple[str, ...]
    template_categories: tuple[str, ...]
    redirects: tuple[str, ...]
    tables: tuple[Table, ...]
    infoboxes: tuple[Infobox, ...]
    templates: tuple[TemplateUse, ...]
    losses: tuple[Loss, ...]
    parse_status: str

    @property
    def text(self) -> str:
        """The texts of the elements, title first, a line each."""
        return "\n".join(element.text for element in self.elements)

    def to_dict(self) -> dict[str, Any]:
        """Gives the page as JSON values: records as objects, by the names of their columns."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def __repr__(self) -> str:
        return f"<Page {self.page_id} {self.title!r}: {len(self.elements)} elements, {len(self.anchors)} anchors>"


def _plain(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    names = getattr(value, "_fields", None)
    items = map(_plain, value)
    return list(items) if names is None else dict(zip(names, items, strict=True))


@dataclass(frozen=True, slots=True)
class RedirectRow:
    """One redirect page of the main namespace and where it leads.

    Attributes:
        title: the redirect's own title.
        target_title: normalised target as written.
        fragment: section of the target, None when absent.
        final_title, final_page_id: the article at the end of the chain; None when there is none.
        hops: redirects followed, this one included.
        status: ``ok``, ``double`` (more than one hop), ``loop``, ``missing_target`` or ``cross_namespace``.
    """

    page_id: int
    title: str
    target_title: str
    fragment: str | None
    final_title: str | None
    final_page_id: int | None
    hops: int
    status: str
