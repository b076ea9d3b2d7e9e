"""Rows of a release of pages: pages as read, pages as written, and what was rejected.

All spans are half-open ``[start, end)`` in Unicode code points of the stored element's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from kbsource.errors import RecordError
from kbsource.rows import Int8, Int32, Numbered, Row

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


class BadRecord(Row):
    """One row per page, or damaged place of a file, that could not be used."""

    stage: Annotated[str, "step that rejected it"]  #: ``read``, ``scan``, ``parse`` or ``resolve``
    key: Annotated[str, "page id, title or ordinal; empty when unknown"]
    reason: Annotated[str, "slug"]  #: of ``kbsource.errors``
    detail: Annotated[str, "what was seen"]  #: at most 1,000 characters
    file: Annotated[str, "base name of the input file"]
    #: Of bzip2 that of the block that holds the record's start, of any other form that in the decompressed bytes.
    offset: Annotated[int, "byte offset (bzip2: of the compressed block), -1 when unknown"]


class RawPage(Row):
    """One page as the dump holds it, newest revision only."""

    page_id: int
    namespace: int  #: from ``<ns>`` or, where that is missing, from the title's prefix
    title: str  #: with spaces, as written in the dump (prefix included)
    redirect_title: str | None  #: ``<redirect title=…>`` as written, without its fragment
    revision_id: int
    parent_revision_id: int | None
    timestamp: str  #: ISO 8601 in UTC, ``2019-07-19T20:25:53Z``
    model: str  #: content model; ``wikitext`` where the dump says nothing
    text: str  #: wikitext of the main slot; empty when the page is empty
    file: str  #: base name of the dump file
    offset: int  #: as in BadRecord


class Element(Row):
    """One piece of running text. Element 0 alone is the title."""

    kind: Annotated[str, "title | heading | paragraph | list_item"]
    level: Annotated[Int8, "1 title, 1-6 heading, 0 paragraph, depth from 1 for items"]
    ordinal: Annotated[Int32 | None, "number of a numbered item"]
    marker: Annotated[str, "list prefix as written, else empty"]  #: ``*``, ``#``, ``;``, ``:`` and combinations
    section: Annotated[tuple[str, ...], "headings above it, outermost first; a heading ends its own path"]
    text: Annotated[str, "the text, without newlines"]


class Anchor(Row):
    """An internal link in an element: ``elements[element].text[start:end] == text``."""

    element: Annotated[Int32, "index into elements"]
    start: Annotated[Int32, "first code point in elements[element].text"]
    end: Annotated[Int32, "one past the last code point"]
    text: Annotated[str, "elements[element].text[start:end], exactly"]
    target_title: Annotated[str, "title after redirects, else normalised as written"]
    target_fragment: Annotated[str | None, "section of the target, from the link or the redirect"]
    target_page_id: Annotated[int | None, "id of the article; null when the dump has none"]
    written_target: Annotated[str, "the target as written, fragment included"]  #: without the blanks at its ends
    from_template: Annotated[bool, "a template made the link; no editor of the page wrote it"] = False


class CellLink(Row):
    """An internal link in a table cell or infobox value."""

    start: Annotated[Int32, "first code point of the link in the text"]
    end: Annotated[Int32, "one past its last code point"]
    target_title: Annotated[str, "title after redirects, else normalised as written"]
    target_fragment: Annotated[str | None, "section of the target"]
    target_page_id: Annotated[int | None, "id of the article; null when the dump has none"]


class Cell(Row):
    """One table cell as written; spans are not expanded."""

    text: Annotated[str, "text of the cell"]
    is_header: Annotated[bool, "written with !"]
    colspan: Annotated[Int32, "columns covered, at least 1"]
    rowspan: Annotated[Int32, "rows covered, at least 1"]
    links: Annotated[tuple[CellLink, ...], "links, offsets in the cell's text"]


class Table(Row):
    """A wikitext table."""

    element: Annotated[Int32, "index of the element the table follows"]
    caption: Annotated[str | None, "caption"]
    header: Annotated[tuple[str, ...], "texts of the first row if all its cells are header cells"]
    rows: Annotated[tuple[tuple[Cell, ...], ...], "the remaining rows"]


class InfoboxField(Row):
    """One parameter of an infobox."""

    name: Annotated[str, "parameter name"]
    text: Annotated[str, "its value as text"]
    links: Annotated[tuple[CellLink, ...], "links, offsets in the value's text"]


class Infobox(Row):
    """An infobox template."""

    element: Annotated[Int32, "index of the element the infobox follows"]
    name: Annotated[str, "template name"]
    fields: Annotated[tuple[InfoboxField, ...], "named, non-empty parameters in order"]


class TemplateUse(Row, order=True):
    """How often a template came out in a way on the page.

    By a rule it is ``rendered`` or ``dropped``; by its definition ``expanded``, or ``invoked`` where a Lua module took
    part; ``bound`` is left out, as it went over a limit, and so is ``unknown``.
    """

    name: Annotated[str, "normalised template name"]
    outcome: Annotated[str, "rendered | dropped | expanded | invoked | bound | unknown; see templates"]
    uses: Annotated[Int32, "uses on the page"]


class Loss(Row, order=True):
    """How many pieces of one kind (``comment``, ``ref``, ``gallery``, ``file``, …) were not carried over."""

    kind: Annotated[str, "kind of piece, see docs/tables.md"]
    pieces: Annotated[Int32, "pieces not carried over"]


class Page(Row):
    """One row per article: main namespace, not a redirect; disambiguation and list pages included. In the order of the
    dump. Spans are half-open `[start, end)` in Unicode code points."""

    page_id: Annotated[int, "MediaWiki page id; unique"]
    title: Annotated[str, "title with spaces"]
    qid: Annotated[str | None, "Wikidata item; at most one page has it"]
    is_disambiguation: Annotated[bool, "by page_props, __DISAMBIG__ or template family"]
    revision_id: Annotated[int, "revision the text is of"]
    parent_revision_id: Annotated[int | None, "revision before it"]
    timestamp: Annotated[datetime, "when that revision was saved"]
    url: Annotated[str, "permanent link to the revision"]
    elements: Annotated[tuple[Element, ...], "title, headings, paragraphs and list items in order", Numbered()]
    anchors: Annotated[tuple[Anchor, ...], "internal links, ordered by element and start", Numbered()]
    categories: Annotated[tuple[str, ...], "category names without prefix, in order of first use"]
    template_categories: Annotated[tuple[str, ...], "those of them that only templates give, in the same order"]
    redirects: Annotated[tuple[str, ...], "titles that lead here, sorted"]
    tables: Annotated[tuple[Table, ...], "tables in order"]
    infoboxes: Annotated[tuple[Infobox, ...], "infoboxes in order"]
    templates: Annotated[tuple[TemplateUse, ...], "templates by name and outcome, sorted"]
    losses: Annotated[tuple[Loss, ...], "what was not carried over, sorted by kind"]
    parse_status: Annotated[str, "ok | fallback_timeout | fallback_crash | fallback_error"]

    @property
    def text(self) -> str:
        """The texts of the elements, title first, a line each."""
        return "\n".join(element.text for element in self.elements)

    def plain(self, *, without: str | Iterable[str] = ()) -> str:
        """The running text: paragraphs and headings between blank lines, from the first sentence on, without the title.

        Needs no column but ``elements``.

        Args:
            without: what else is left out: ``headings``, or headings of sections in the wiki's language, as a sequence
                or with commas (``"references, see also"``). A section goes with its subsections.
        """
        from kbsource.rendering import text_form

        return text_form("plain", without).text(self)

    def body(self, *, without: str | Iterable[str] = ()) -> str:
        """The same with lists, indented lines and tables, rows as ``cell | cell``.

        Args:
            without: as of ``plain``; ``tables`` and ``lists`` too.
        """
        from kbsource.rendering import text_form

        return text_form("body", without).text(self)

    def markdown(self, *, links: bool = False, without: str | Iterable[str] = ()) -> str:
        """The page as Markdown: title, headings, lists, tables, infoboxes, and formulas between dollar signs.

        Args:
            links: lead to the wiki.
            without: as of ``plain``; ``infoboxes``, ``tables`` and ``lists`` too.
        """
        from kbsource.rendering import text_form

        return text_form("markdown", without, has_links=links).text(self)

    def html(self, *, links: bool = False, without: str | Iterable[str] = ()) -> str:
        """The page as HTML, from its title on; arguments as of ``markdown``."""
        from kbsource.parts import Without
        from kbsource.rendering import HtmlPage

        return HtmlPage(self, Without(without), has_links=links).text()

    def to_dict(self) -> dict[str, Any]:
        """The page as JSON values: records as objects, by the names of their columns."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return values

    def __repr__(self) -> str:
        return f"<Page {self.page_id} {self.title!r}: {len(self.elements)} elements, {len(self.anchors)} anchors>"


class RedirectRow(Row):
    """One row per redirect page of the main namespace, by title in code-point order."""

    page_id: Annotated[int, "page id of the redirect"]
    title: Annotated[str, "title of the redirect"]
    target_title: Annotated[str, "normalised target as written"]
    fragment: Annotated[str | None, "section of the target"]
    final_title: Annotated[str | None, "article at the end of the chain"]
    final_page_id: Annotated[int | None, "its page id"]
    hops: Annotated[Int32, "redirects followed, this one included"]
    status: Annotated[str, "ok | double | loop | missing_target | cross_namespace"]


class TemplateRow(Row):
    """How often each template is used, by how it was settled, and what it shows; sorted by name."""

    name: Annotated[str, "normalised template name"]
    outcome: Annotated[str, "rendered | dropped | expanded | invoked | bound | unknown"]
    uses: Annotated[int, "uses in all articles"]
    pages: Annotated[int, "articles that use it"]
    shown_chars: Annotated[int, "visible characters that its uses outside of other templates show"]
    lost_chars: Annotated[int, "visible characters of its arguments that were not carried over"]
    example_title: Annotated[str | None, "first article that loses some"]
    example: Annotated[str | None, "the use there, shortened"]


class ShownUse(Row):
    """What a template shows and loses on a page."""

    shown_chars: Annotated[int, "visible characters that its uses outside of other templates show"]
    lost_chars: Annotated[int, "visible characters of its arguments that were not carried over"]
    example: Annotated[str | None, "the first use that loses some, shortened"]


class MarkCount(Row):
    """How many references of a page are of some nature."""

    name: Annotated[str, "as in the findings of the manifest"]
    n: Annotated[int, "how many"]


class Trace(Row):
    """Only with `--traces`. What the page of the same place in pages was made from, for `build --base`."""

    page_id: Annotated[int, "the page"]
    made_from: Annotated[
        bytes | None,
        "hash of its wikitext, title, revision, redirects and item; null where it is always made anew",
    ]
    asked: Annotated[tuple[int, ...], "hashes of names of what else it rests on: definitions and titles, sorted"]
    uses: Annotated[tuple[ShownUse, ...], "beside the page's templates, what each shows and loses"]
    marks: Annotated[tuple[MarkCount, ...], "counts of its references that are in no table, by name"]


class DefinitionHash(Row):
    """Only with `--traces`. One row per name of a template or module that leads to a text, by key as without a sign."""

    key: Annotated[int, "hash of its name, with a sign"]
    text_hash: Annotated[int, "hash of the text, redirects followed"]


class PageItem(Row):
    """Only with `--wikidata`. One row per page that a sitelink or page_props gives an item, by page id."""

    page_id: Annotated[int, "the page; unique"]
    qid: Annotated[str | None, "its item, as in pages; null where another page has it"]
    wikidata_qid: Annotated[str | None, "item whose sitelink leads to the page"]
    page_props_qid: Annotated[str | None, "item that page_props gives the page"]
    agreement: Annotated[str, "same | differ | only_wikidata | only_page_props"]
    label: Annotated[str | None, "label of the item"]
    description: Annotated[str | None, "its description"]
    aliases: Annotated[tuple[str, ...], "its aliases in the chosen languages, each once"]


@dataclass(frozen=True, slots=True)
class Fallback:
    """An article that was extracted in the simplest way, because the parser failed."""

    page_id: int
    title: str
    status: str  #: its ``parse_status``


@dataclass(frozen=True, slots=True)
class Conflict:
    """An item of Wikidata that more than one page claims: ``page_id`` has it, the other page does not get it."""

    qid: str
    page_id: int
    refused_page_id: int


def instant(written: str) -> datetime:
    """The time that ``2019-07-19T20:25:53Z`` says.

    Raises:
        RecordError: ``invalid_field``.
    """
    if not _INSTANT.fullmatch(written):
        raise RecordError("invalid_field", f"timestamp is {written[:100]!r}")
    try:
        return datetime.fromisoformat(written)
    except ValueError as error:
        raise RecordError("invalid_field", f"timestamp is {written!r}: {error}") from error


def instant_text(when: datetime) -> str:
    """What ``instant`` takes."""
    return when.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
