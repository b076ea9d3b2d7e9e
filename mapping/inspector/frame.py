"""What views are made of: their addresses, the template that they fill in, lists by pages, and what guards answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kbsource.errors import counted
from mapping.document import Section
from mapping.inspector.marking import shown
from mapping.inspector.opened import Opened
from mapping.inspector.saved import environment

if TYPE_CHECKING:
    from mapping.inspector.listing import Listing

ROWS_A_PAGE = 50
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
READING = ("GET", "HEAD")


class View(NamedTuple):
    """One view of a release: its path below it, as Starlette writes paths, and what answers, in a thread."""

    path: str
    show: Callable[[Request, Opened], Response]


class Tab(NamedTuple):
    """A view that is named in the head of every view of a release: its label, and its path below the release."""

    label: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KindViews:
    """What a kind of release has beside what any has."""

    about: Callable[[Opened], Iterable[Section]]  #: what is known of one without reading rows
    measured: Callable[[Opened], Iterable[Section]] | None = None  #: what its rows say
    listings: dict[str, Listing]  #: how its tables are listed; those that it names have a tab
    views: Sequence[View] = ()
    tabs: Sequence[Tab] = ()


class Crumb(NamedTuple):
    """A step of the way to a view: what it is called, and its address."""

    label: str
    url: str


class Paging(NamedTuple):
    """Rows of a long list: number of the first one, from 0; how many a page of the list has; how many there are."""

    start: int
    n_rows: int
    total: int

    @property
    def end(self) -> int:
        """One past the last row."""
        return min(self.start + self.n_rows, self.total)

    @property
    def previous(self) -> int | None:
        """First row of the page of the list before this one; None where there is none."""
        return max(self.start - self.n_rows, 0) if self.start else None

    @property
    def next(self) -> int | None:
        """First row of the page of the list behind this one; None where there is none."""
        return self.end if self.end < self.total else None


def paging(request: Request, total: int, *, n_rows: int = ROWS_A_PAGE) -> Paging:
    """The rows that a request asks for by ``?from=``, the number of the first one.

    Raises:
        HTTPException: that is no number of a row.
    """
    start = number_asked(request, "from") or 0
    if start and start >= total:
        raise HTTPException(404, f"There is no row {start:,}: the list has {counted(total, 'rows')}.")
    return Paging(start, n_rows, total)


def number_asked(request: Request, name: str) -> int | None:
    """A number out of the query, None where it is not there.

    Raises:
        HTTPException: it is none, or a negative one.
    """
    given = request.query_params.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise HTTPException(400, f"{name}={shown(given[:80])} is no number.")
    return int(given)


def bound_asked(request: Request, name: str) -> float | None:
    """A bound of numbers out of the query, None where it is not there or empty.

    Raises:
        HTTPException: it is no number.
    """
    text = request.query_params.get(name, "")
    try:
        number = float(text) if text else None
    except ValueError:
        number = math.nan
    if number is not None and not math.isfinite(number):
        raise HTTPException(400, f"{name}={shown(text[:80])} is no number.")
    return number


def render(
    request: Request,
    opened: Opened | None,
    template: str,
    *,
    title: str,
    crumbs: Sequence[Crumb] = (),
    status: int = 200,
    **values: Any,
) -> HTMLResponse:
    """A view: a template that extends ``base.html``, filled in."""
    text = (
        environment()
        .get_template(template)
        .render(
            request=request,
            opened=opened,
            title=title,
            crumbs=crumbs,
            releases=request.app.state.releases,
            tabs=request.app.state.tabs,
            searched=request.app.state.searched(opened),
            **values,
        )
    )
    return HTMLResponse(text, status)


class GuardedAnswers:
    """Answers some methods alone, others with a refusal, and sends every answer with ``HEADERS``, which keep a browser
    from running or loading anything that is not ours."""

    def __init__(self, app: ASGIApp, methods: Sequence[str], refusal: Response) -> None:
        self._app, self._methods, self._refusal = app, methods, refusal
        refusal.headers["Allow"] = ", ".join(methods)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        if scope["method"] in self._methods:
            await self._app(scope, receive, send_guarded)
        else:
            await self._refusal(scope, receive, send_guarded)


def guards(
    hosts: Sequence[str], *, methods: Sequence[str] = READING, refusal: Response | None = None
) -> list[Middleware]:
    """What stands before an application: under other names than this machine's and ``hosts`` it is not answered, so
    that no page of the web can ask it through a browser."""
    return [
        Middleware(
            GuardedAnswers,
            methods=methods,
            refusal=refusal or PlainTextResponse("Only reading is possible.", 405),
        ),
        Middleware(TrustedHostMiddleware, allowed_hosts=[*LOCAL_HOSTS, *hosts], www_redirect=False),
    ]
