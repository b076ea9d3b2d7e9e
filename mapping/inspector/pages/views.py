"""The views of a release of pages: a page, what links to it, its long tables, search, and any page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.inspector.frame import Crumb, Tab, View, Views, number_asked, paging, render
from mapping.inspector.marking import Span, read_spans
from mapping.inspector.opened import Opened, section_id
from mapping.inspector.pages.finder import FoundTitle, PageFinder
from mapping.inspector.pages.page_html import Document
from mapping.inspector.pages.page_parts import TABLE_ROWS, Part, page_parts, part_with

N_TYPED = 12
"""Titles that are named while somebody types."""
N_FOUND = 100
_N_LINKING = 8
_N_HEADINGS = 500


class _Heading(NamedTuple):
    level: int
    text: str
    url: str


def show_page(request: Request, opened: Opened) -> Response:
    """Shows a page, or a part of a long one."""
    source, finder = _of_pages(opened)
    page = _page(request, source)
    spans = read_spans(request.query_params.getlist("hl"))
    parts = page_parts(page)
    number = _part_asked(request, page, parts, spans)
    uses = sorted(page.templates, key=lambda use: (use.outcome, -use.uses))
    return render(
        request,
        opened,
        "pages/page.html",
        title=page.title,
        page=page,
        document=Document(opened, page, spans).html(parts[number]),
        headings=_headings(opened, page, parts),
        n_headings=sum(element.kind == "heading" for element in page.elements),
        part=number,
        n_parts=len(parts),
        templates={outcome: list(own) for outcome, own in groupby(uses, key=lambda use: use.outcome)},
        n_linking=finder.n_linking(page.page_id),
        linking=finder.linking(page.page_id, 0, _N_LINKING),
        backlinks=finder.backlinks,
        address=page.url if page.url.startswith(("https://", "http://")) else None,
        span_places=[(span, opened.page_url(page.page_id, [span])) for span in spans],
    )


def show_table(request: Request, opened: Opened) -> Response:
    """Shows rows of a table of a page."""
    source, _ = _of_pages(opened)
    page, number = _page(request, source), int(request.path_params["number"])
    if number >= len(page.tables):
        raise HTTPException(404, f"The page has no table {number + 1:,}.")
    table = page.tables[number]
    rows = paging(request, len(table.rows), n_rows=TABLE_ROWS)
    return render(
        request,
        opened,
        "pages/table.html",
        title=f"Table {number + 1}",
        crumbs=[Crumb(page.title, opened.page_url(page.page_id))],
        page=page,
        number=number,
        paging=rows,
        table=Document(opened, page).table_html(number, table, rows.start, rows.end),
    )


def show_linking(request: Request, opened: Opened) -> Response:
    """Shows the pages that link to a page."""
    source, finder = _of_pages(opened)
    page_id = int(request.path_params["page_id"])
    title = finder.title(page_id)
    if title is None:
        raise _no_page(source, page_id)
    rows = paging(request, finder.n_linking(page_id) or 0, n_rows=N_FOUND)
    return render(
        request,
        opened,
        "pages/linking.html",
        title="What links here",
        crumbs=[Crumb(title, opened.page_url(page_id))],
        page_title=title,
        page_id=page_id,
        paging=rows,
        found=finder.linking(page_id, rows.start, rows.end),
        backlinks=finder.backlinks,
        is_counted=finder.n_linking(page_id) is not None,
    )


def show_search(request: Request, opened: Opened) -> Response:
    """Leads to the page that something names by itself, else shows the pages that begin with it."""
    _, finder = _of_pages(opened)
    asked = request.query_params.get("q", "").strip()
    exact = finder.exact(asked)
    if len(exact) == 1 and "all" not in request.query_params:
        return RedirectResponse(opened.page_url(exact[0].page_id), 303)
    found = _together(exact, finder.beginning_with(asked, N_FOUND))
    return render(
        request,
        opened,
        "pages/search.html",
        title="Search",
        asked=asked,
        found=found,
        is_full=len(found) >= N_FOUND,
        titles=finder.titles,
        is_sorted=finder.titles.get() is not None,
    )


def tell_titles(request: Request, opened: Opened) -> Response:
    """Gives the pages that begin with what somebody has typed so far, as JSON."""
    _, finder = _of_pages(opened)
    asked = request.query_params.get("q", "")
    found = _together(finder.exact(asked), finder.beginning_with(asked, N_TYPED))[:N_TYPED]
    rows = [{"title": row.title, "note": row.note, "url": opened.page_url(row.page_id)} for row in found]
    return JSONResponse({"ready": finder.titles.get() is not None, "percent": finder.titles.percent, "found": rows})


def lead_anywhere(request: Request, opened: Opened) -> Response:
    """Leads to any page."""
    _, finder = _of_pages(opened)
    page_id = finder.chance()
    if page_id is None:
        raise HTTPException(404, "The release has no pages.")
    return RedirectResponse(opened.page_url(page_id), 303, {"Cache-Control": "no-store"})


def _of_pages(opened: Opened) -> tuple[KnowledgeSource, PageFinder]:
    assert opened.source is not None  # its kind says so
    return opened.source, opened.finder


def _page(request: Request, source: KnowledgeSource) -> Page:
    page_id = int(request.path_params["page_id"])
    page = source.by_id(page_id) if page_id < 1 << 63 else None
    if page is None:
        raise _no_page(source, page_id)
    return page


def _no_page(source: KnowledgeSource, page_id: int) -> HTTPException:
    if page_id < 1 << 63 and source.resolve(page_id).status == "not_released":
        return HTTPException(404, f"Page {page_id} was rejected; the table rejected says why.")
    return HTTPException(404, f"The release has no page {page_id}.")


def _part_asked(request: Request, page: Page, parts: Sequence[Part], spans: Sequence[Span]) -> int:
    """Gives the number, from 0, of the part with what a request asks for."""
    if (asked := number_asked(request, "part")) is not None:
        if not 1 <= asked <= len(parts):
            raise HTTPException(404, f"The page has {len(parts)} parts, and no part {asked}.")
        return asked - 1
    if spans:
        return part_with(parts, spans[0].element, spans[0].start)
    if wanted := request.query_params.get("section"):
        for number, element in enumerate(page.elements):
            if element.kind == "heading" and section_id(element.text) == section_id(wanted):
                return part_with(parts, number)
    return 0


def _headings(opened: Opened, page: Page, parts: Sequence[Part]) -> list[_Heading]:
    found = [(number, own) for number, own in enumerate(page.elements) if own.kind == "heading"][:_N_HEADINGS]
    return [
        _Heading(
            min(max(element.level, 2), 6),
            element.text,
            opened.url(f"page/{page.page_id}", part=part_with(parts, number) + 1 if len(parts) > 1 else None)
            + f"#e{number}",
        )
        for number, element in found
    ]


def _together(exact: Sequence[FoundTitle], more: Sequence[FoundTitle]) -> list[FoundTitle]:
    known = {(entry.title, entry.page_id) for entry in exact}
    return [*exact, *(entry for entry in more if (entry.title, entry.page_id) not in known)]


PAGES_VIEWS = Views(
    kinds=(PAGES_RELEASE,),
    views=(
        View("/page/{page_id:int}", show_page),
        View("/page/{page_id:int}/table/{number:int}", show_table),
        View("/page/{page_id:int}/links", show_linking),
        View("/search", show_search),
        View("/titles.json", tell_titles),
        View("/random", lead_anywhere),
    ),
    tabs=(Tab("Search", "search"), Tab("Random page", "random")),
)
