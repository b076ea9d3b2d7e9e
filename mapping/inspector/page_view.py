"""Shows a page of a release for reading, and related views: long tables, linking pages, search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from msgspec import to_builtins
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kbsource.lookup import KnowledgeSource
from kbsource.records import Anchor, CellLink, Page, Table
from kbsource.release.pages.reading import PageReferences
from kbsource.rendering import ElementPiece, HtmlPage, Links
from kbsource.web_addresses import web_address
from kbsource.wikitext.reference_rows import Reference, ReferenceUse
from mapping.inspector.finder import FoundTitle, PageFinder
from mapping.inspector.frame import (
    Crumb,
    Paging,
    View,
    paging,
    query_number,
    redirect_to,
    render_view,
    wants_json,
)
from mapping.inspector.full_text import MOST_RESULTS
from mapping.inspector.marking import Mark, MarkedRange, Marker, TextLink, mark_text, read_spans, shown
from mapping.inspector.opened import OpenRelease, section_id

PART_CHARS = 200_000
"""Size of a part of a page, exceeded by at most a quarter: the characters of its texts, tables and infoboxes, plus an
amount per element."""
TABLE_ROWS = 100
"""Rows of a table that are shown in its page. The other rows have a separate view."""
_ELEMENT_CHARS, _LINK_CHARS = 100, 100


Part = tuple[ElementPiece, ...]


def page_parts(page: Page) -> list[Part]:
    """Returns the parts of a page, at least one. Their pieces are all elements in order."""
    weights = [_ELEMENT_CHARS] * len(page.elements)
    for anchor in page.anchors:
        weights[anchor.element] += _LINK_CHARS
    for table in page.tables:
        cells = (cell for row in table.rows[:TABLE_ROWS] for cell in row)
        weights[table.element] += sum(len(cell.text) + _LINK_CHARS * (1 + len(cell.links)) for cell in cells)
    for infobox in page.infoboxes:
        weights[infobox.element] += sum(len(field.text) + _LINK_CHARS for field in infobox.fields)
    parts: list[Part] = []
    pieces: list[ElementPiece] = []
    size = 0
    for number, (element, weight) in enumerate(zip(page.elements, weights, strict=True)):
        n_chars = len(element.text)
        for start in range(0, max(n_chars, 1), PART_CHARS):
            end = min(start + PART_CHARS, n_chars)
            own = end - start + (weight if end == n_chars else 0)
            if size > PART_CHARS // 4 and size + own > PART_CHARS:
                parts.append(tuple(pieces))
                pieces, size = [], 0
            pieces.append(ElementPiece(number, start, end))
            size += own
    return [*parts, tuple(pieces)]


def part_with(parts: Sequence[Part], element: int, start: int = 0) -> int:
    """Returns the number of the part, from 0, that contains a character of an element; the last part if none does."""
    for number, part in enumerate(parts):
        last = part[-1]
        if (element, start) < (last.element, max(last.end, last.start + 1)):
            return number
    return len(parts) - 1


class PageDocument(HtmlPage):
    """One page of a release, with link targets, marked spans, and links into the inspector."""

    page: Page

    def __init__(
        self,
        opened: OpenRelease,
        page: Page,
        spans: Sequence[MarkedRange] = (),
        references: PageReferences | None = None,
    ) -> None:
        super().__init__(page, has_links=True)
        self._opened, self._spans = opened, spans
        self._notes: dict[int, list[Marker]] = defaultdict(list)
        for use in references.uses if references is not None else ():
            if references is not None and use.element is not None and (note := _note(use, references)) is not None:
                self._notes[use.element].append(note)
        self._named: set[str] = set()

    def html(self, part: Part) -> Markup:
        """Returns a part of the page as HTML."""
        return Markup("\n".join(self.blocks(part)))

    def _heading(self, piece: ElementPiece) -> str:
        element = self.page.elements[piece.element]
        name = section_id(element.text)
        target = ""
        if element.kind == "heading" and name not in self._named:
            self._named.add(name)
            target = f'<span class="target" id="{escape(shown(name))}"></span>'
        return target + super()._heading(piece)

    def _text(self, tag: str, piece: ElementPiece) -> str:
        number, start, end = piece
        element = self.page.elements[number]
        text = element.text[start:end] if end - start < len(element.text) else element.text
        links = [
            self._link(anchor, _place(number, anchor.start, anchor.end), before=start) for anchor in self.anchors(piece)
        ]
        marked = []
        for span in self._spans:
            if (inside := span.inside(number, len(element.text))) is not None:
                first, last = max(inside[0], start), min(inside[1], end)
                if first < last:
                    marked.append(Mark(first - start, last - start, span.label or _place(number, *inside)))
        first_of_element = f' id="e{number}"' if start == 0 else f' data-from="{start}"'
        notes = [
            note._replace(place=note.place - start)
            for note in self._notes.get(number, ())
            if start < note.place <= end or note.place == start == 0
        ]
        marked_text = mark_text(text, links, marked, notes)
        return f'<{tag}{first_of_element} data-e="{number}" dir="auto">{marked_text}</{tag}>'

    def _link(self, link: Anchor | CellLink, place: str, *, before: int = 0) -> TextLink:
        said, url = f"{place} → {link.target_title}{f'#{link.target_fragment}' if link.target_fragment else ''}", None
        if link.target_page_id is None:
            said += ", which the dump does not have"
        else:
            url = self._opened.page_url(link.target_page_id, section=link.target_fragment)
        return TextLink(link.start - before, link.end - before, url, said)

    def _linked(self, text: str, links: Links) -> str:
        return str(mark_text(text, [self._link(link, f"[{link.start}, {link.end})") for link in links]))

    def _table(self, number: int, table: Table) -> str:
        rest = ""
        if (more := len(table.rows) - TABLE_ROWS) > 0:
            url = self._opened.url(f"page/{self.page.page_id}/table/{number}", **{"from": TABLE_ROWS})
            rows = "row" if more == 1 else "rows"
            rest = f'<p class="more"><a href="{escape(url)}">{more:,} more {rows} of this table</a></p>'
        return self.rows_html(number, table, 0, TABLE_ROWS) + Markup(rest)

    def rows_html(self, number: int, table: Table, start: int, end: int) -> Markup:
        """Returns the rows of a table from ``start`` to ``end``, after its caption and header."""
        if not (table.caption or any(table.header) or any(cell.text for row in table.rows for cell in row)):
            return Markup(f'<p class="more quiet" id="t{number}">A table without text.</p>')
        label = str(escape(shown(table.caption or f"Table {number + 1}")))
        return Markup(
            f'<div class="scroll" tabindex="0" role="region" aria-label="{label}" id="t{number}">'
            f"{self.table_html(table, table.rows[start:end])}</div>"
        )


_MOST_REFERENCES = 1_000
_TOOLTIP_CHARS = 300


def _note(use: ReferenceUse, references: PageReferences) -> Marker | None:
    """Returns the marker of a reference's use in the text; None if it has no marker or is in no text."""
    if use.element is None or use.offset is None:
        return None
    if use.ref is None:
        said = (use.cleanup_tag or "").replace("_", " ")
        return Marker(use.offset, said, f"doubted: {said}", None)
    reference = references.refs[use.ref]
    if reference.number is None:
        return None
    label = reference_label(reference) + (f": {use.pages}" if use.pages else "")
    return Marker(use.offset, label, f"reference {label}: {reference.text[:_TOOLTIP_CHARS]}", f"#r{reference.ref}")


def reference_label(reference: Reference) -> str:
    """Returns the label of a reference's marker."""
    return f"{reference.group} {reference.number}".strip()


def _place(element: int, start: int, end: int) -> str:
    return f"element {element}, [{start}, {end})"


N_TYPED = 12
"""Number of titles that are suggested while a user types."""
N_FOUND = 100
N_RESULTS = 10
"""Pages found by their text that are shown at once: the texts of all of them are read."""
_N_LINKING = 8
_N_HEADINGS = 500


class _Heading(NamedTuple):
    level: int
    text: str
    url: str


def show_page(request: Request, opened: OpenRelease) -> Response:
    """Shows a page, or a part of a long one."""
    source, finder = _of_pages(opened)
    page = _page(request, source)
    spans = read_spans(request.query_params.getlist("hl"))
    parts = page_parts(page)
    number = _part_asked(request, page, parts, spans)
    uses = sorted(page.templates, key=lambda use: (use.outcome, -use.uses))
    references = source.references(page.page_id) if "refs" in opened.tables else None
    # References with a marker, by group and number.
    marked = [ref for ref in references.refs if ref.number is not None] if references is not None else []
    marked.sort(key=lambda ref: (ref.group, ref.number or 0))
    return render_view(
        request,
        opened,
        "page.html",
        title=page.title,
        data={
            **_part_data(page, parts[number]),
            "part": number + 1,
            "n_parts": len(parts),
            "references": references.refs[:_MOST_REFERENCES] if references is not None else [],
            "n_linking": finder.n_linking(page.page_id),
        },
        page=page,
        document=PageDocument(opened, page, spans, references).html(parts[number]),
        references=[(ref, reference_label(ref)) for ref in marked[:_MOST_REFERENCES]],
        web_address=web_address,
        n_unlisted=max(len(marked) - _MOST_REFERENCES, 0),
        headings=list(islice(_headings(opened, page, parts), _N_HEADINGS)),
        n_headings=sum(element.kind == "heading" for element in page.elements),
        part=number,
        n_parts=len(parts),
        templates={outcome: list(own) for outcome, own in groupby(uses, key=lambda use: use.outcome)},
        n_linking=finder.n_linking(page.page_id),
        linking=finder.linking(page.page_id, 0, _N_LINKING),
        backlinks=finder.backlinks,
        address=web_address(page.url),
        span_places=[(span, opened.page_url(page.page_id, [span])) for span in spans],
    )


def _part_data(page: Page, part: Part) -> dict[str, Any]:
    """Returns a page as JSON values, with the elements, links, tables and infoboxes of one of its parts."""
    elements = {piece.element for piece in part}
    values = page.to_dict()
    return {
        **values,
        "elements": [
            {
                **values["elements"][number],
                "index": number,
                "start": start,
                "text": page.elements[number].text[start:end],
            }
            for number, start, end in part
        ],
        "anchors": [anchor for anchor in values["anchors"] if anchor["element"] in elements],
        "tables": [
            {"number": number, "n_rows": len(table.rows), **_table_data(table, 0)}
            for number, table in enumerate(page.tables)
            if table.element in elements
        ],
        "infoboxes": [infobox for infobox in values["infoboxes"] if infobox["element"] in elements],
    }


def _table_data(table: Table, start: int) -> dict[str, Any]:
    """Returns a table with its rows from ``start`` on, as many as a view shows, as JSON values."""
    values: dict[str, Any] = to_builtins(replace(table, rows=table.rows[start : start + TABLE_ROWS]))
    return values


def show_table(request: Request, opened: OpenRelease) -> Response:
    """Shows rows of a table of a page."""
    source, _ = _of_pages(opened)
    page, number = _page(request, source), int(request.path_params["number"])
    if number >= len(page.tables):
        raise HTTPException(404, f"The page has no table {number + 1:,}.")
    table = page.tables[number]
    rows = paging(request, len(table.rows), n_rows=TABLE_ROWS)
    return render_view(
        request,
        opened,
        "table.html",
        title=f"Table {number + 1}",
        data={"page_id": page.page_id, "n_rows": rows.total, "from": rows.start, **_table_data(table, rows.start)},
        crumbs=[Crumb(page.title, opened.page_url(page.page_id))],
        page=page,
        number=number,
        paging=rows,
        table=PageDocument(opened, page).rows_html(number, table, rows.start, rows.end),
    )


def show_linking(request: Request, opened: OpenRelease) -> Response:
    """Shows the pages that link to a page."""
    source, finder = _of_pages(opened)
    page_id = int(request.path_params["page_id"])
    title = finder.title(page_id)
    if title is None:
        raise _no_page(source, page_id)
    rows = paging(request, finder.n_linking(page_id) or 0, n_rows=N_FOUND)
    found = finder.linking(page_id, rows.start, rows.end)
    return render_view(
        request,
        opened,
        "linking.html",
        title="What links here",
        data={"page_id": page_id, "n_linking": rows.total, "from": rows.start, "found": found},
        crumbs=[Crumb(title, opened.page_url(page_id))],
        page_title=title,
        page_id=page_id,
        paging=rows,
        found=found,
        backlinks=finder.backlinks,
        is_counted=finder.n_linking(page_id) is not None,
    )


class _Found(NamedTuple):
    """The search results of an open release of pages."""

    opened: OpenRelease
    exact: Sequence[FoundTitle]  #: pages identified by the text
    titles: Sequence[FoundTitle]  #: these, and the titles that start with it
    is_full: bool  #: there may be more
    is_sorted: bool  #: the index of title prefixes is available


class _Result(NamedTuple):
    """A page that was found by its text."""

    page_id: int
    title: str
    text: Markup  #: the part that fits best, with the words of the query marked
    url: str


class _Results(NamedTuple):
    """Pages of a release that were found by their text, or why there are none."""

    opened: OpenRelease
    found: Sequence[_Result]
    paging: Paging
    percent: int  #: progress of the index
    fault: str | None = None


def _found(request: Request, opened: OpenRelease, text: str, n_titles: int) -> list[_Found]:
    """Returns the results of every open release of pages, this one first."""
    releases: Sequence[OpenRelease] = request.app.state.releases
    others = [other for other in releases if other.source is not None and other is not opened]
    found = []
    for own in (opened, *others):
        _, finder = _of_pages(own)
        exact = finder.exact(text)
        known = {(entry.title, entry.page_id) for entry in exact}
        more = finder.beginning_with(text, n_titles)
        titles = [*exact, *(entry for entry in more if (entry.title, entry.page_id) not in known)]
        found.append(_Found(own, exact, titles, len(titles) >= n_titles, finder.titles.get() is not None))
    return found


def show_search(request: Request, opened: OpenRelease) -> Response:
    """Redirects to the page that a text identifies. Otherwise, shows pages whose titles start with the text, including
    pages of the other open releases, and pages of this release that contain its words.
    """
    asked = request.query_params.get("q", "").strip()
    exact = opened.finder.exact(asked)
    if len(exact) == 1 and "all" not in request.query_params and not wants_json(request):
        return redirect_to(request, opened.page_url(exact[0].page_id))
    found, results = _found(request, opened, asked, N_FOUND), _results(request, opened, asked)
    unsorted = [own for own in found if not own.is_sorted and own.opened.finder.titles.fault is None]
    return render_view(
        request,
        opened,
        "search.html",
        title="Search",
        data={
            "query": asked,
            "titles": [
                {"release": own.opened.slug, "title": title.title, "page_id": title.page_id, "note": title.note}
                for own in found
                for title in own.titles
            ],
            **_results_data(results),
        },
        asked=asked,
        found=found,
        results=results,
        is_unfinished=bool(asked) and (bool(unsorted) or (results.percent < 100 and results.fault is None)),
    )


def results_json(request: Request, opened: OpenRelease) -> Response:
    """Returns the pages of a release that have words of a text, as JSON: ten from ``from`` on, best first."""
    results = _results(request, opened, request.query_params.get("q", "").strip())
    return JSONResponse(_results_data(results))


def _results_data(results: _Results) -> dict[str, Any]:
    """Returns the pages that were found by their text, and whether the index is ready, as JSON values."""
    return {
        "ready": results.fault is None and results.percent == 100,
        "percent": results.percent,
        "fault": results.fault,
        "n_found": results.paging.total,
        "found": [{"page_id": row.page_id, "title": row.title, "url": row.url} for row in results.found],
    }


def _results(request: Request, opened: OpenRelease, query: str) -> _Results:
    source, finder = _of_pages(opened)
    index = finder.texts.get() if query else None
    if index is None:
        return _Results(opened, (), paging(request, 0), finder.texts.percent, finder.texts.fault)
    start = query_number(request, "from") or 0
    found = index.search(query, start, min(start + N_RESULTS, MOST_RESULTS))
    rows = []
    for page_id in found.ids:
        if (page := source.by_id(page_id)) is not None:
            snippet = index.snippet(page, query)
            marked = mark_text(snippet.text, marked=[Mark(begin, end, "") for begin, end in snippet.spans])
            spans = [] if snippet.place is None else [snippet.place]
            rows.append(_Result(page_id, page.title, marked, opened.page_url(page_id, spans)))
    rows_asked = paging(request, min(found.n_pages, MOST_RESULTS), n_rows=N_RESULTS)
    return _Results(opened, rows, rows_asked, 100)


def titles_json(request: Request, opened: OpenRelease) -> Response:
    """Returns the pages whose titles start with the typed text, as JSON.

    If several releases are open, each result names its release, and the limit on the number of results is divided
    among the releases.
    """
    found = _found(request, opened, request.query_params.get("q", ""), N_TYPED)
    n_others = sum(min(len(own.titles), N_TYPED // len(found)) for own in found[1:])
    rows = []
    for own, n_titles in zip(found, [N_TYPED - n_others, *[N_TYPED // len(found)] * len(found)], strict=False):
        for row in own.titles[:n_titles]:
            note = " · ".join(filter(None, (row.note, own.opened.slug if len(found) > 1 else "")))
            rows.append({"title": row.title, "note": note, "url": own.opened.page_url(row.page_id)})
    percent = min(own.opened.finder.titles.percent for own in found)
    return JSONResponse({"ready": all(own.is_sorted for own in found), "percent": percent, "found": rows})


def show_random_page(request: Request, opened: OpenRelease) -> Response:
    """Redirects to a random page."""
    _, finder = _of_pages(opened)
    page_id = finder.chance()
    if page_id is None:
        raise HTTPException(404, "The release has no pages.")
    return redirect_to(request, opened.page_url(page_id), {"Cache-Control": "no-store"})


def _of_pages(opened: OpenRelease) -> tuple[KnowledgeSource, PageFinder]:
    assert opened.source is not None  # its kind guarantees it
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


def _part_asked(request: Request, page: Page, parts: Sequence[Part], spans: Sequence[MarkedRange]) -> int:
    """Returns the number, from 0, of the part that contains what a request asks for."""
    if (asked := query_number(request, "part")) is not None:
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


def _headings(opened: OpenRelease, page: Page, parts: Sequence[Part]) -> Iterator[_Heading]:
    for number, element in enumerate(page.elements):
        if element.kind == "heading":
            part = part_with(parts, number) + 1 if len(parts) > 1 else None
            url = f"{opened.url(f'page/{page.page_id}', part=part)}#e{number}"
            yield _Heading(min(max(element.level, 2), 6), element.text, url)


PAGE_VIEWS = (
    View("/page/{page_id:int}", show_page),
    View("/page/{page_id:int}/table/{number:int}", show_table),
    View("/page/{page_id:int}/links", show_linking),
    View("/search", show_search),
    View("/titles.json", titles_json),
    View("/texts.json", results_json),
    View("/random", show_random_page),
)
