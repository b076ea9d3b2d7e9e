"""Rows of references, and of their marks in the text."""

from __future__ import annotations

from typing import Annotated

from kbsource.records import Page
from kbsource.rows import Columns, Int32, Row
from kbsource.wikitext.citations import Citation


class Reference(Row):
    """Only with `--references`. One row per reference of a page, in the order of the dump; those without use come last
    on their page. Its citation, where it has one, is in the columns from `kind` on."""

    page_id: Annotated[int, "the page"]
    ref: Annotated[Int32, "its place among the references of the page, from 0, by first use"]
    form: Annotated[str, "ref | note | short | short_text | work, see docs/references.md"]
    group: Annotated[str, "group of footnotes, empty for the usual one"]
    number: Annotated[Int32 | None, "number in the list of its group; null where it has no mark"]
    name: Annotated[str | None, "name by which it is used again"]
    markup: Annotated[str, "its wikitext; empty where the page does not define it"]
    markup_sha256: Annotated[str, "SHA-256 of that in UTF-8"]
    text: Annotated[str, "its text as a reader sees it"]
    template: Annotated[str | None, "the first citation template in it"]
    source: Annotated[Int32 | None, "of a shortened note the reference of the page that it means"]
    citation: Annotated[Citation | None, Columns()]


class ReferenceUse(Row):
    """Only with `--references`. One row per mark of a reference or of doubt, in the order of the page."""

    page_id: Annotated[int, "the page"]
    ref: Annotated[Int32 | None, "the reference; null for a mark of doubt"] = None
    doubt: Annotated[str | None, "what is doubted: citation_needed, dubious, …; null for a reference"] = None
    element: Annotated[Int32 | None, "index into elements; null where it stands in no running text"] = None
    offset: Annotated[
        Int32 | None, "code points of the element's text before the mark; the last of them is no blank"
    ] = None
    table: Annotated[Int32 | None, "index into tables where it stands in one"] = None
    infobox: Annotated[Int32 | None, "index into infoboxes where it stands in one"] = None
    within: Annotated[Int32 | None, "the reference in whose text it stands"] = None
    pages: Annotated[str | None, "pages that are given with the mark"] = None
    sentence_start: Annotated[Int32 | None, "first code point of the sentence before the mark"] = None
    sentence_end: Annotated[Int32 | None, "one past its last code point"] = None
    section: Annotated[tuple[str, ...], "headings above it, outermost first"] = ()


class NotedPage(Page):
    """A page with its references, on its way into the files of a release."""

    refs: tuple[Reference, ...]
    ref_uses: tuple[ReferenceUse, ...]
