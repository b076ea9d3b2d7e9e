"""The web application: views of the opened releases, each under its own URL. The views are also combined into one
document."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb
from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from kbsource.diff.kind import RELEASE_DIFF
from kbsource.errors import SetupError, named_faults
from kbsource.release.kind import Kind
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.age import AGE
from mapping.amber.kind import AMBER_SETS
from mapping.document import Code, Document, Paragraph, Section, to_json
from mapping.facts import FACTS
from mapping.inspector.about import (
    ReleaseCard,
    holdings,
    next_commands,
    other_values,
    provenance,
    python_lines,
    release_cards,
    release_name,
)
from mapping.inspector.age import AGE_VIEWS
from mapping.inspector.alignment import ALIGNMENT_VIEWS, ALIGNMENTS_VIEWS
from mapping.inspector.amber import AMBER_VIEWS
from mapping.inspector.benchmark import BENCHMARK_VIEWS
from mapping.inspector.diff import DIFF_VIEWS
from mapping.inspector.facts import FACTS_VIEWS
from mapping.inspector.frame import POSTING, READING, Tab, View, guards, json_address, render_view
from mapping.inspector.listing import KindViews, Listing, run_sql, show_card, show_list, show_sql, stop_sql
from mapping.inspector.measures import measure_sections
from mapping.inspector.opened import OpenRelease, every_release
from mapping.inspector.qampari import QAMPARI_VIEWS
from mapping.inspector.release_pages import PAGES_VIEWS
from mapping.inspector.sandbox import Sandbox
from mapping.inspector.saved import FOLDER
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.retrieval.benchmark_kind import BENCHMARK
from mapping.write.kind import ALIGNMENT, ALIGNMENTS

THREADS = 4
"""Views that are rendered at the same time. Each may hold a large page."""


def inspector_app(releases: Sequence[OpenRelease], *, hosts: Sequence[str] = ()) -> Starlette:
    """Returns the application that shows releases."""
    sandbox = Sandbox([opened.path for opened in releases])
    routes: list[BaseRoute] = [
        Route("/", _home),
        Route("/index.json", _home),
        Mount("/static", StaticFiles(directory=FOLDER / "static"), name="static"),
    ]
    tabs, posted = {}, set[str]()
    for opened in every_release(releases):
        own = views_of(opened.kind)
        views = [
            View("/", show_overview),
            View("/measures", show_measures),
            View("/tables/{table}", partial(show_list, listings=own.listings)),
            View("/tables/{table}/{row:int}", partial(show_card, listings=own.listings)),
            View("/sql", partial(show_sql, sandbox=sandbox)),
            *own.views,
        ]
        run, stop = (partial(answer, opened=opened, sandbox=sandbox) for answer in (run_sql, stop_sql))
        queries = [Route("/sql", run, methods=["POST"]), Route("/sql/stop", stop, methods=["POST"])]
        reading = [_route(path, view.show, opened) for view in views for path in _addresses(view.path)]
        routes.append(Mount(f"/r/{opened.slug}", routes=[*reading, *queries]))
        posted |= {opened.url("sql"), opened.url("sql/stop")}
        tabs[opened.slug] = [
            Tab("Overview", ""),
            *([Tab("Measures", "measures")] if _has_measures(opened) else []),
            *own.tabs,
            *(Tab(listing.label, f"tables/{name}") for name, listing in own.listings.items() if name in opened.tables),
            *([Tab("SQL", "sql")] if opened.tables else []),
        ]
    app = Starlette(
        routes=routes,
        lifespan=partial(_lifespan, sandbox=sandbox),
        middleware=guards(hosts, methods=lambda path: POSTING if path in posted else READING),
        exception_handlers={
            HTTPException: _fault_response,
            SetupError: _damage_response,
            duckdb.Error: _damage_response,
        },
    )
    app.state.releases = tuple(releases)
    app.state.token = secrets.token_urlsafe(32)  # token of the forms on its pages
    app.state.tabs = tabs
    app.state.searched = partial(_searched, next((opened for opened in releases if opened.source is not None), None))
    return app


@asynccontextmanager
async def _lifespan(_: Starlette, sandbox: Sandbox) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = THREADS
    yield
    sandbox.close()


def _searched(first: OpenRelease | None, opened: OpenRelease | None) -> OpenRelease | None:
    """Returns the release of pages that the search box searches, or None."""
    if opened is None:
        return first
    return opened if opened.source is not None else opened.pages or first


def _route(path: str, show: Callable[[Request, OpenRelease], Response], opened: OpenRelease) -> Route:
    def answer(request: Request) -> Response:
        with named_faults():
            return show(request, opened)

    return Route(path, answer)


def _addresses(path: str) -> list[str]:
    """Returns the paths of a view: as JSON, which would otherwise be the name of a table, and as a page."""
    return [path] if path.endswith(".json") else [json_address(path), path]


def _home(request: Request) -> Response:
    cards = release_cards(request.app.state.releases)
    return render_view(
        request, None, "home.html", title="Releases", data={"releases": list(map(_listed, cards))}, cards=cards
    )


def _listed(card: ReleaseCard) -> dict[str, Any]:
    opened = card.opened
    return {
        "name": opened.slug,
        "url": json_address(opened.url()),
        "path": opened.path,
        "kind": opened.kind.name,
        "snapshot": card.snapshot,
        "manifest_sha256": opened.sha256,
        "tables": dict(card.tables),
        "bytes": card.n_bytes,
        "made_from": [other.slug for other in card.made_from],
        "makes": [other.slug for other in card.makes],
    }


def _fault_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = _DETAILS.get(error.detail, error.detail)
    return render_view(
        request,
        None,
        "fault.html",
        title=f"{error.status_code}",
        data={"status": error.status_code, "detail": detail},
        detail=detail,
        status=error.status_code,
        headers=error.headers,
    )


_DETAILS = {
    "Not Found": "There is nothing at this address.",
    "Method Not Allowed": "This address does not accept such a request; open it in the browser.",
}
"""Starlette's messages, reworded for people."""


def _damage_response(request: Request, error: Exception) -> Response:
    data = {"status": 500, "detail": str(error)}
    return render_view(request, None, "fault.html", title="500", data=data, detail=str(error), status=500)


_OWN: dict[Kind[Any], KindViews] = {
    PAGES_RELEASE: PAGES_VIEWS,
    ALIGNMENT: ALIGNMENT_VIEWS,
    ALIGNMENTS: ALIGNMENTS_VIEWS,
    QAMPARI_RELEASE: QAMPARI_VIEWS,
    AMBER_SETS: AMBER_VIEWS,
    RELEASE_DIFF: DIFF_VIEWS,
    BENCHMARK: BENCHMARK_VIEWS,
    AGE: AGE_VIEWS,
    FACTS: FACTS_VIEWS,
}
"""Views of every kind that has its own views."""


def views_of(kind: Kind[Any]) -> KindViews:
    """Returns the views of a kind of release. A kind without its own views gets views of its tables."""
    return _OWN.get(kind) or KindViews(
        listings={name: Listing(label=name.replace("_", " ").capitalize()) for name in kind.tables}
    )


def _has_measures(opened: OpenRelease) -> bool:
    """Returns whether a release has measures beyond the overview."""
    is_measured = views_of(opened.kind).measured is not None or opened.kind.parts is not None
    return is_measured or any(measure.page == "measures" for measure in opened.kind.measures)


def about_view(opened: OpenRelease) -> tuple[Section, ...]:
    """Returns the sections of the overview: the measures of a release, its contents, its inputs, and other values."""
    found: tuple[Section, ...] = opened.cached("about", lambda: tuple(_about(opened)))
    return found


def _about(opened: OpenRelease) -> Iterator[Section]:
    own = views_of(opened.kind)
    if remarks := tuple(Paragraph(said, is_warning=True) for said in remarks_of(opened)):
        yield Section("To be known", remarks)
    results = tuple(_together(measure_sections(opened, "overview"), own.about(opened)))
    yield from results
    has_counts = any(measure.page == "overview" for measure in opened.kind.measures)
    yield replace(holdings(opened, has_counts=has_counts), is_folded=bool(results))
    yield provenance(opened)
    yield other_values(opened, own.apart)


def remarks_of(opened: OpenRelease) -> list[str]:
    """Returns the remarks that users of a release should know."""
    return [] if opened.kind.remarks is None else opened.kind.remarks(opened.manifest)


def measures(opened: OpenRelease) -> tuple[Section, ...]:
    """Returns sections with the measures of a release's rows. They are cached, so the rows are read only once."""
    found: tuple[Section, ...] = opened.cached("measures", lambda: tuple(_measures(opened)))
    return found


def _measures(opened: OpenRelease) -> Iterator[Section]:
    measured = views_of(opened.kind).measured
    yield from _together(measure_sections(opened, "measures"), measured(opened) if measured else ())
    for part, folder in zip(opened.parts, opened.manifest.parts, strict=True):
        overview = _together(measure_sections(part, "overview"), views_of(part.kind).about(part))
        yield Section(folder.folder.replace("/", ", "), (*overview, *measures(part)), is_folded=len(opened.parts) > 1)


def _together(measured: Iterable[Section], others: Iterable[Section]) -> Iterator[Section]:
    """Puts the sections of measures before the others. Two sections with the same title are joined; the measures come
    last."""
    left = {section.title: section for section in others}
    for section in measured:
        own = left.pop(section.title, None)
        yield section if own is None else replace(section, blocks=(*own.blocks, *section.blocks))
    yield from left.values()


def show_overview(request: Request, opened: OpenRelease) -> Response:
    """Shows what a release is, its inputs, its counts, and how to open it."""
    path = opened.path.rstrip("/")
    commands = [f"{command}  # {said}" for command, said in next_commands(path, opened.kind)]
    lines = [*python_lines(path, opened.kind, opened.manifest), "", *commands]
    every = about_view(opened)
    folded = [section for section in every if section.is_folded]
    opening = Section("How to open it", (Code("\n".join(lines)),), is_folded=True)
    sections = (*(section for section in every if not section.is_folded), opening, *folded)
    return _show(request, opened, release_name(opened.kind, opened.values), opened.slug, sections)


def show_measures(request: Request, opened: OpenRelease) -> Response:
    """Shows the measures of a release's rows."""
    return _show(request, opened, "Measures", "Measures", measures(opened))


def _show(request: Request, opened: OpenRelease, heading: str, title: str, sections: Sequence[Section]) -> Response:
    data = to_json(Document(heading, tuple(sections)))
    return render_view(request, opened, "overview.html", title=title, data=data, heading=heading, sections=sections)


def _results_first(opened: OpenRelease) -> tuple[Section, ...]:
    """Returns the sections of a report: what the release shows, then, folded, what it holds and was made from."""
    every = (*about_view(opened), *measures(opened))
    return tuple(sorted(every, key=lambda section: section.is_folded))


def report_on(releases: Sequence[OpenRelease]) -> Document:
    """Returns a report on releases, results first, with one section per release if there are several."""
    reports = [Document(release_name(opened.kind, opened.values), _results_first(opened)) for opened in releases]
    if len(reports) == 1:
        return reports[0]
    sections = tuple(Section(report.title, report.sections) for report in reports)
    return Document(f"Report on {len(reports)} releases", sections)
