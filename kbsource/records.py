"""Row types of a release of pages: pages as read from the dump, pages as written, and rejected records.

All spans are half-open, ``[start, end)``, in Unicode code points of the stored element's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from kbsource.elements import Anchor as Anchor
from kbsource.elements import Cell as Cell
from kbsource.elements import CellLink as CellLink
from kbsource.elements import Element as Element
from kbsource.elements import Infobox as Infobox
from kbsource.elements import InfoboxField as InfoboxField
from kbsource.elements import Table as Table
from kbsource.errors import RecordError
from kbsource.parts import Without
from kbsource.rendering import HtmlPage, text_form
from kbsource.rows import Int32, Numbered, Row

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


class BadRecord(Row):
    """One row per page, or per damaged part of a file, that could not be used."""

    stage: Annotated[str, "step that rejected the record"]  #: ``read``, ``scan``, ``parse`` or ``resolve``
    key: Annotated[str, "page id, title or ordinal; empty when unknown"]
    reason: Annotated[str, "reason slug"]  #: listed in ``kbsource.errors``
    detail: Annotated[str, "what was found"]  #: at most 1,000 characters
    file: Annotated[str, "base name of the input file"]
    #: For bzip2, the offset of the compressed block where the record starts; otherwise the offset in the
    #: decompressed bytes.
    offset: Annotated[int, "byte offset of the record (in bzip2: of the compressed block); -1 when unknown"]


class RawPage(Row):
    """The newest revision of a page, as in the dump."""

    page_id: int
    namespace: int  #: from ``<ns>``, or if this is missing, from the title's prefix
    title: str  #: with spaces, as written in the dump (prefix included)
    redirect_title: str | None  #: ``<redirect title=…>`` as written, without its fragment
    revision_id: int
    parent_revision_id: int | None
    timestamp: str  #: ISO 8601 in UTC, ``2019-07-19T20:25:53Z``
    model: str  #: content model; ``wikitext`` if the dump does not state it
    text: str  #: wikitext of the main slot; empty when the page is empty
    file: str  #: base name of the dump file
    offset: int  #: as ``offset`` of BadRecord
    qid: str | None = None  #: Wikidata item, if the file states it; dumps of wikitext do not


class TemplateUse(Row, order=True):
    """How often a template had a given outcome on the page.

    A use is ``rendered`` or ``dropped`` by a rule of the parser. It is ``expanded`` from the template's definition, or
    ``invoked`` if the definition calls a Lua module. It is ``limit_exceeded`` if it exceeds a limit, and
    ``unknown`` if there is neither a rule nor a definition; in both cases it shows nothing.
    """

    name: Annotated[str, "normalised template name"]
    outcome: Annotated[str, "rendered | dropped | expanded | invoked | limit_exceeded | unknown; see templates"]
    uses: Annotated[Int32, "uses on the page"]


class Loss(Row, order=True):
    """The number of items of a kind (``comment``, ``ref``, ``gallery``, ``file``, …) that were not carried over."""

    kind: Annotated[str, "kind of content"]
    occurrences: Annotated[Int32, "number of occurrences that were not carried over"]


class Page(Row):
    """One row per article, in the order of the dump. Articles are the pages of the main namespace, including
    disambiguation pages and lists, but not redirects. Spans are half-open, `[start, end)`, in Unicode code points.
    """

    page_id: Annotated[int, "MediaWiki page id; unique"]
    title: Annotated[str, "title with spaces"]
    qid: Annotated[str | None, "Wikidata item, unique; null for a page without an item"]
    is_disambiguation: Annotated[
        bool,
        "true if page_props, __DISAMBIG__ or a template marks a disambiguation page",
    ]
    revision_id: Annotated[int, "id of the revision"]
    parent_revision_id: Annotated[int | None, "id of the previous revision; null if the dump does not state it"]
    timestamp: Annotated[datetime, "time when the revision was saved"]
    url: Annotated[str, "permanent link to the revision"]
    elements: Annotated[tuple[Element, ...], "title, headings, paragraphs and list items in order", Numbered()]
    anchors: Annotated[tuple[Anchor, ...], "internal links, ordered by element and start", Numbered()]
    categories: Annotated[tuple[str, ...], "category names without prefix, in order of first use"]
    template_categories: Annotated[
        tuple[str, ...], "the categories that only templates add, in the order of `categories`"
    ]
    category_sort_keys: Annotated[
        tuple[str, ...],
        "the sort key of each category; empty for a category without a sort key",
    ]
    redirects: Annotated[tuple[str, ...], "titles that redirect to this page, sorted"]
    tables: Annotated[tuple[Table, ...], "tables in order"]
    infoboxes: Annotated[tuple[Infobox, ...], "infoboxes in order"]
    templates: Annotated[tuple[TemplateUse, ...], "templates by name and outcome, sorted"]
    losses: Annotated[tuple[Loss, ...], "content that was not carried over, sorted by kind"]
    parse_status: Annotated[str, "ok | fallback_timeout | fallback_crash | fallback_error"]

    @property
    def text(self) -> str:
        """The texts of the elements, one per line, title first."""
        return "\n".join(element.text for element in self.elements)

    def plain(self, *, without: str | Iterable[str] = ()) -> str:
        """Returns the running text: paragraphs and headings separated by empty lines, without the title.

        Only the column ``elements`` is needed.

        Args:
            without: further parts to leave out: ``headings``, or headings of sections in the wiki's language, as a
                sequence or separated by commas (``"references, see also"``). A section is left out with its
                subsections.
        """
        return text_form("plain", without).text(self)

    def body(self, *, without: str | Iterable[str] = ()) -> str:
        """Returns the running text as ``plain`` does, with lists, indented lines, and tables with rows as ``cell |
        cell``.

        Args:
            without: as for ``plain``; ``tables`` and ``lists`` are accepted too.
        """
        return text_form("body", without).text(self)

    def markdown(self, *, links: bool = False, without: str | Iterable[str] = ()) -> str:
        """Returns the page as Markdown: title, headings, lists, tables, infoboxes, and formulas between dollar signs.

        Args:
            links: write links that point to the wiki.
            without: as for ``plain``; ``infoboxes``, ``tables`` and ``lists`` are accepted too.
        """
        return text_form("markdown", without, has_links=links).text(self)

    def html(self, *, links: bool = False, without: str | Iterable[str] = ()) -> str:
        """Returns the page as HTML, title included. The arguments are the same as for ``markdown``."""
        return HtmlPage(self, Without(without), has_links=links).text()

    def to_dict(self) -> dict[str, Any]:
        """Returns the page as JSON values: records become objects keyed by column name."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return values

    def __repr__(self) -> str:
        return f"<Page {self.page_id} {self.title!r}: {len(self.elements)} elements, {len(self.anchors)} anchors>"


class RedirectRow(Row):
    """One row per redirect page of the main namespace, sorted by title in code-point order."""

    page_id: Annotated[
        int | None,
        "page id of the redirect; null if a snapshot of HTML states only its title",
    ]
    title: Annotated[str, "title of the redirect"]
    target_title: Annotated[str, "title of the target in normal form, before further redirects"]
    fragment: Annotated[str | None, "section of the target; null if the redirect names no section"]
    final_title: Annotated[str | None, "title of the article at the end of the chain"]
    final_page_id: Annotated[int | None, "page id of the article at the end of the chain"]
    hops: Annotated[Int32, "length of the chain: number of redirects, this one included"]
    status: Annotated[str, "ok | double | loop | missing_target | cross_namespace"]


class TemplateRow(Row):
    """One row per template and outcome, with the number of uses and the amount of text shown and lost; sorted by name.
    A use is `rendered` or `dropped` if there is a rule for it. It is `expanded` if it was rendered from the template's
    definition, and `invoked` if this definition called a Lua module. It is `limit_exceeded` if it exceeded a limit, and
    `unknown` if the template has neither a rule nor a definition; the text of both is missing."""

    name: Annotated[str, "normalised template name"]
    outcome: Annotated[str, "rendered | dropped | expanded | invoked | limit_exceeded | unknown"]
    uses: Annotated[int, "number of uses in all articles"]
    pages: Annotated[int, "number of articles that use the template"]
    shown_chars: Annotated[int, "visible characters shown by its uses outside other templates"]
    lost_chars: Annotated[
        int, "visible characters that were not carried over: in its arguments, or with HTML in its output"
    ]
    example_title: Annotated[str | None, "title of the first article in which characters were lost"]
    example: Annotated[str | None, "the first use in this article that loses characters, shortened"]


class ShownUse(Row):
    """How much text a template shows and loses on a page."""

    shown_chars: Annotated[int, "visible characters shown by its uses outside other templates"]
    lost_chars: Annotated[
        int, "visible characters that were not carried over: in its arguments, or with HTML in its output"
    ]
    example: Annotated[str | None, "first use that loses characters, shortened"]


class ReferenceCount(Row):
    """The number of references of a kind on a page."""

    name: Annotated[str, "kind, as in the findings of the manifest"]
    n: Annotated[int, "number of references"]


class PageDependencies(Row):
    """Only with `--record-dependencies`. One row per page, in the order of `pages`: the inputs from which the
    page was made. `build --base` reads this table.
    """

    page_id: Annotated[int, "page id"]
    input_hash: Annotated[
        bytes | None,
        "hash of its wikitext, title, revision, redirects and item; null if the page is always made again",
    ]
    name_hashes: Annotated[
        tuple[int, ...], "hashes of the names of its other dependencies (definitions and titles), sorted"
    ]
    uses: Annotated[
        tuple[ShownUse, ...],
        "for each of the page's templates, the amount of text that it shows and loses",
    ]
    reference_counts: Annotated[
        tuple[ReferenceCount, ...],
        "counts of the page's references that are in no table, by name",
    ]


class DefinitionHash(Row):
    """Only with `--record-dependencies`. One row per name of a template or module that resolves to a text, and one per
    redirect, sorted by key as an unsigned number.
    """

    key: Annotated[int, "hash of its name, as a signed number"]
    text_hash: Annotated[int, "hash of the text, after redirects; in the row of a redirect, of its target's name"]


class PageItem(Row):
    """Only with `--wikidata`. One row per page with an item from a sitelink or page_props, sorted by page id."""

    page_id: Annotated[int, "page id; unique"]
    qid: Annotated[str | None, "Wikidata item of the page, as in pages; null if another page has this item"]
    wikidata_qid: Annotated[str | None, "item whose sitelink points to the page"]
    page_props_qid: Annotated[str | None, "item that page_props assigns to the page"]
    agreement: Annotated[str, "same | differ | only_wikidata | only_page_props"]
    label: Annotated[str | None, "label of the item"]
    description: Annotated[str | None, "description of the item"]
    aliases: Annotated[tuple[str, ...], "aliases of the item in the chosen languages, without duplicates"]


@dataclass(frozen=True, slots=True)
class Fallback:
    """An article that was extracted by the fallback, because the parser failed."""

    page_id: int
    title: str
    status: str  #: its ``parse_status``


@dataclass(frozen=True, slots=True)
class Conflict:
    """A Wikidata item claimed by more than one page: ``page_id`` has it, and ``other_page_id`` does not get it."""

    qid: str
    page_id: int
    other_page_id: int


def instant(written: str) -> datetime:
    """Returns the time written as ``2019-07-19T20:25:53Z``.

    Raises:
        RecordError: ``invalid_field`` if the text has another form.
    """
    if not _INSTANT.fullmatch(written):
        raise RecordError("invalid_field", f"timestamp is {written[:100]!r}")
    try:
        return datetime.fromisoformat(written)
    except ValueError as error:
        raise RecordError("invalid_field", f"timestamp is {written!r}: {error}") from error


def instant_text(when: datetime) -> str:
    """Returns a time in the form that ``instant`` reads."""
    return when.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
