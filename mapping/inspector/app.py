"""The application: views of opened releases, each release below its own address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from kbsource.errors import SetupError
from mapping.inspector.frame import Tab, View, Views, render
from mapping.inspector.guarded_answers import GuardedAnswers
from mapping.inspector.opened import Opened, every_release
from mapping.inspector.overview_views import OVERVIEW_VIEWS
from mapping.inspector.pages.views import PAGES_VIEWS

STATIC = Path(__file__).parent / "static"
THREADS = 4
"""Views that are made at once; each may hold a large page."""
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")

ALL_VIEWS: tuple[Views, ...] = (PAGES_VIEWS,)
"""The views of every kind that has its own."""


def make_app(releases: Sequence[Opened], *, hosts: Sequence[str] = ()) -> Starlette:
    """Gives the application that shows releases.

    Args:
        releases: opened; whoever opened them closes them.
        hosts: names under which it may be asked for, beside those of the machine itself.
    """
    routes: list[BaseRoute] = [
        Route("/", _home),
        Mount("/static", StaticFiles(directory=STATIC), name="static"),
    ]
    tabs = {}
    for opened in every_release(releases):
        own = [views for views in ALL_VIEWS if opened.kind in views.kinds]
        views = [*(view for group in own for view in group.views), *OVERVIEW_VIEWS]
        routes.append(Mount(f"/r/{opened.slug}", routes=[_route(view, opened) for view in views]))
        tabs[opened.slug] = [Tab("Overview", ""), *(tab for group in own for tab in group.tabs)]
    app = Starlette(
        routes=routes,
        lifespan=_lifespan,
        middleware=[
            Middleware(GuardedAnswers),
            Middleware(TrustedHostMiddleware, allowed_hosts=[*LOCAL_HOSTS, *hosts], www_redirect=False),
        ],
        exception_handlers={HTTPException: _say_fault, SetupError: _say_damage},
    )
    app.state.releases = tuple(releases)
    app.state.tabs = tabs
    app.state.searched = partial(_searched, next((opened for opened in releases if opened.source is not None), None))
    return app


@asynccontextmanager
async def _lifespan(_: Starlette) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = THREADS
    yield


def _searched(first: Opened | None, opened: Opened | None) -> Opened | None:
    """Gives the release of pages whose titles the search in the head looks through; None without any."""
    if opened is None:
        return first
    return opened if opened.source is not None else opened.pages or first


def _route(view: View, opened: Opened) -> Route:
    def answer(request: Request) -> Response:
        return view.show(request, opened)

    return Route(view.path, answer)


def _home(request: Request) -> Response:
    return render(request, None, "home.html", title="Releases")


def _say_fault(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = "There is nothing at this address." if error.detail == "Not Found" else error.detail
    return render(request, None, "fault.html", title=f"{error.status_code}", detail=detail, status=error.status_code)


def _say_damage(request: Request, error: Exception) -> Response:
    return render(request, None, "fault.html", title="500", detail=str(error), status=500)
