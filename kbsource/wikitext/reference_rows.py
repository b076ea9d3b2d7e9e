"""Rows of references, and of their marks in the text."""

from __future__ import annotations

from typing import Annotated

from kbsource.records import Page
from kbsource.rows import Columns, Int32, Row


class Citation(Row):
    """One citation of a source, as an editor wrote it."""

    #: ``identifier`` is what an identifier alone names, ``link`` what an address alone does, ``other`` what a template
    #: for all kinds does not tell
    kind: Annotated[
        str,
        "web | news | book | journal | magazine | encyclopaedia | conference | thesis | report | press-release | "
        "av-media | episode | podcast | interview | speech | map | sign | mailing-list | newsgroup | social-media | "
        "preprint | patent | court | law | dataset | software | game | comic | identifier | link | other",
    ]
    title: Annotated[str | None, "title; of a part of a book that of the book, of an article its own"] = None
    chapter: Annotated[str | None, "title of the part that is cited"] = None
    authors: Annotated[tuple[str, ...], "authors in order, `Family, Given` or as written"] = ()
    editors: Annotated[tuple[str, ...], "editors, likewise"] = ()
    date_text: Annotated[str | None, "date as written"] = None
    date: Annotated[str | None, "`2004`, `2004-05` or `2004-05-06`, as far as the text leaves no doubt"] = None
    work: Annotated[str | None, "periodical, site, proceedings or other whole that holds it"] = None
    publisher: Annotated[str | None, "publisher"] = None
    language: Annotated[str | None, "language code, where exactly one is named"] = None
    volume: Annotated[str | None, "volume as written"] = None
    issue: Annotated[str | None, "issue or number as written"] = None
    pages: Annotated[str | None, "pages, or another place in it, as written"] = None
    quote: Annotated[str | None, "quoted words"] = None
    url: Annotated[str | None, "address of the source"] = None
    archive_url: Annotated[str | None, "address of a copy in a web archive"] = None
    archive_date: Annotated[str | None, "ISO day of the copy, as stated or as its address says"] = None
    url_status: Annotated[str | None, "live | dead | usurped | unfit | deviated, where stated"] = None
    access_date: Annotated[str | None, "ISO date when an editor read it"] = None
    doi: Annotated[str | None, "DOI, lower case, without prefix"] = None
    isbn: Annotated[str | None, "ISBN, 13 digits; its check digit is right"] = None
    issn: Annotated[str | None, "ISSN with hyphen; its check digit is right"] = None
    pmid: Annotated[str | None, "PubMed number"] = None
    pmc: Annotated[str | None, "PubMed Central number, without PMC"] = None
    arxiv: Annotated[str | None, "arXiv identifier, without version"] = None
    oclc: Annotated[str | None, "OCLC number"] = None
    jstor: Annotated[str | None, "JSTOR identifier"] = None
    s2cid: Annotated[str | None, "Semantic Scholar corpus number"] = None
    bibcode: Annotated[str | None, "ADS bibcode"] = None
    hdl: Annotated[str | None, "handle"] = None
    #: ``unknown_parameter:NAME``, ``unused_parameter:SLOT`` (another one came first), ``FIELD_form`` (not of its form),
    #: ``isbn_check``, ``issn_check``, ``invisible_value`` (shows nothing), ``nothing_stated``
    losses: Annotated[tuple[str, ...], "what was not carried over, sorted"] = ()


class Reference(Row):
    """Only with `--references`. One row per reference of a page, in the order of the dump. Those without use come
    behind the others, and last on their page a row for each further source that a reference cites. The citation, where
    there is one, is in the columns from `kind` on."""

    page_id: Annotated[int, "the page"]
    ref: Annotated[Int32, "its place among the references of the page, from 0, by first use"]
    form: Annotated[str, "ref | note | short | short_text | work, see docs/references.md"]
    group: Annotated[str, "group of footnotes, empty for the usual one"]
    source_number: Annotated[Int32, "0; of further sources of the reference `ref` 1, 2, …, without markup and number"]
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
