"""The rows of the tables ``refs`` and ``ref_uses``."""

from __future__ import annotations

from typing import Annotated

from kbsource.records import Page
from kbsource.rows import Columns, Int32, Row


class Citation(Row):
    """One citation of a source, as an editor wrote it."""

    #: ``identifier`` for a source that is only named by an identifier, ``link`` for one only named by a URL, ``other``
    #: for a general citation template without a kind
    kind: Annotated[
        str,
        "web | news | book | journal | magazine | encyclopaedia | conference | thesis | report | press-release | "
        "av-media | episode | podcast | interview | speech | map | sign | mailing-list | newsgroup | social-media | "
        "preprint | patent | court | law | dataset | software | game | comic | identifier | link | other",
    ]
    title: Annotated[str | None, "title of the source; for a part of a book, the title of the book"] = None
    chapter: Annotated[str | None, "title of the cited part"] = None
    authors: Annotated[tuple[str, ...], "authors in order, `Family, Given` or as written"] = ()
    editors: Annotated[tuple[str, ...], "editors in order, `Family, Given` or as written"] = ()
    date_text: Annotated[str | None, "date as written"] = None
    date: Annotated[str | None, "`2004`, `2004-05` or `2004-05-06`; null if the date is ambiguous"] = None
    work: Annotated[str | None, "periodical, site, proceedings or other work that contains the source"] = None
    publisher: Annotated[str | None, "publisher"] = None
    language: Annotated[str | None, "language code, if exactly one language is named"] = None
    volume: Annotated[str | None, "volume as written"] = None
    issue: Annotated[str | None, "issue or number as written"] = None
    pages: Annotated[str | None, "pages, or another location in the source, as written"] = None
    quote: Annotated[str | None, "quoted words"] = None
    url: Annotated[str | None, "address of the source"] = None
    archive_url: Annotated[str | None, "URL of a copy in a web archive"] = None
    archive_date: Annotated[str | None, "ISO date of the copy, as stated or from its URL"] = None
    url_status: Annotated[str | None, "live | dead | usurped | unfit | deviated, if stated"] = None
    access_date: Annotated[str | None, "ISO date when an editor read the source"] = None
    doi: Annotated[str | None, "DOI, lower case, without prefix"] = None
    isbn: Annotated[str | None, "ISBN, 13 digits, with a valid check digit"] = None
    issn: Annotated[str | None, "ISSN with hyphen, with a valid check digit"] = None
    pmid: Annotated[str | None, "PubMed number"] = None
    pmc: Annotated[str | None, "PubMed Central number, without PMC"] = None
    arxiv: Annotated[str | None, "arXiv identifier, without version"] = None
    oclc: Annotated[str | None, "OCLC number"] = None
    jstor: Annotated[str | None, "JSTOR identifier"] = None
    s2cid: Annotated[str | None, "Semantic Scholar corpus number"] = None
    bibcode: Annotated[str | None, "ADS bibcode"] = None
    hdl: Annotated[str | None, "handle"] = None
    #: ``unknown_parameter:NAME``, ``unused_parameter:SLOT`` (an earlier parameter has the same meaning), ``FIELD_form``
    #: (invalid form), ``isbn_check`` and ``issn_check`` (wrong check digit), ``invisible_value`` (shows nothing),
    #: ``nothing_stated``
    losses: Annotated[tuple[str, ...], "values that were not carried over, sorted"] = ()


class Reference(Row):
    """Only with `--references`. One row per reference of a page, in the order of the dump. A page's references come in
    the order of first use, then those that it never uses, and then one row for each additional source that a reference
    cites. The columns from `kind` on contain the citation, if there is one.
    """

    page_id: Annotated[int, "page id"]
    ref: Annotated[Int32, "index among the references of the page, from 0, in the order of first use"]
    form: Annotated[str, "ref | note | short | short_text | work, see docs/references.md"]
    group: Annotated[str, "group of footnotes, empty for the default group"]
    source_number: Annotated[
        Int32, "0 for the reference itself; 1, 2, … for its additional sources, whose rows have no markup or number"
    ]
    number: Annotated[Int32 | None, "number in the list of its group; null if the page shows no marker for it"]
    name: Annotated[str | None, "name by which the page reuses the reference"]
    markup: Annotated[str, "wikitext of the reference; empty if the page does not define it"]
    markup_sha256: Annotated[str, "SHA-256 of the markup in UTF-8"]
    text: Annotated[str, "text of the reference as readers see it"]
    template: Annotated[str | None, "first citation template in the reference"]
    source: Annotated[Int32 | None, "for a shortened note, `ref` of the reference that it refers to"]
    citation: Annotated[Citation | None, Columns()]


class ReferenceUse(Row):
    """Only with `--references`. One row per reference marker or cleanup tag (such as "citation needed") in a page, in
    the order of the page.
    """

    page_id: Annotated[int, "page id"]
    ref: Annotated[Int32 | None, "`ref` of the reference; null for a cleanup tag"] = None
    cleanup_tag: Annotated[
        str | None,
        "the kind of the cleanup tag: citation_needed, dubious, …; null for a reference",
    ] = None
    element: Annotated[Int32 | None, "index into elements; null if the marker is not in running text"] = None
    offset: Annotated[
        Int32 | None, "number of code points in the element's text before the marker; the last is not white space"
    ] = None
    table: Annotated[Int32 | None, "index into tables if the marker is in a table"] = None
    infobox: Annotated[Int32 | None, "index into infoboxes if the marker is in an infobox"] = None
    within: Annotated[Int32 | None, "`ref` of the reference whose text contains the marker"] = None
    pages: Annotated[str | None, "pages cited at the marker, for example by {{rp}}"] = None
    sentence_start: Annotated[Int32 | None, "first code point of the sentence before the marker"] = None
    sentence_end: Annotated[Int32 | None, "end of the span, one past its last code point"] = None
    section: Annotated[tuple[str, ...], "headings above the marker, outermost first"] = ()


class PageWithReferences(Page):
    """A page with its references and their uses, which a release stores in separate tables."""

    refs: tuple[Reference, ...]
    ref_uses: tuple[ReferenceUse, ...]
