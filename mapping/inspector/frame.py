"""Building blocks of views: their URLs, their template, paginated lists, and guards of requests."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec
import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kbsource.errors import counted
from mapping.inspector.marking import shown
from mapping.inspector.opened import OpenRelease
from mapping.inspector.saved import environment

ROWS_A_PAGE = 50
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
READING, POSTING = ("GET", "HEAD"), ("GET", "HEAD", "POST")
BODY_BYTES = 1 << 20
"""Maximum size of a request's body."""
_MOST_FIELDS = 20
JSON_BYTES = 8 << 20
"""Maximum size of a view as JSON."""


class View(NamedTuple):
    """A view of a release: its path below the release, in Starlette's syntax, and the function that answers in a
    thread.

    The same function answers at the path with ``.json``, where ``render_view`` returns the data of the view as JSON. A
    path that ends with ``.json`` itself has no second address.
    """

    path: str
    show: Callable[[Request, OpenRelease], Response]


class Tab(NamedTuple):
    """A view that is linked at the top of every view of a release: its label, and its path below the release."""

    label: str
    path: str


class Crumb(NamedTuple):
    """A step of the path to a view: its name and its URL."""

    label: str
    url: str


class Paging(NamedTuple):
    """A part of a long list: number of its first row, from 0; rows per page of the list; number of rows in total."""

    start: int
    n_rows: int
    total: int

    @property
    def end(self) -> int:
        """Returns the end of the part, one past its last row."""
        return min(self.start + self.n_rows, self.total)

    @property
    def previous(self) -> int | None:
        """Returns the first row of the previous page of the list; None on the first page."""
        return max(self.start - self.n_rows, 0) if self.start else None

    @property
    def next(self) -> int | None:
        """Returns the first row of the next page of the list; None on the last page."""
        return self.end if self.end < self.total else None


def paging(request: Request, total: int, *, n_rows: int = ROWS_A_PAGE) -> Paging:
    """Returns the rows that a request selects with ``?from=``, the number of the first row.

    Raises:
        HTTPException: this is not the number of a row.
    """
    start = query_number(request, "from") or 0
    if start and start >= total:
        raise HTTPException(404, f"There is no row {start:,}: the list has {counted(total, 'rows')}.")
    return Paging(start, n_rows, total)


def query_number(request: Request, name: str) -> int | None:
    """Returns a number from the query, or None if it is missing.

    Raises:
        HTTPException: it is not a number, or negative.
    """
    given = request.query_params.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise HTTPException(400, f"{name}={shown(given[:80])} is not a number.")
    return int(given)


def query_bound(request: Request, name: str) -> float | None:
    """Returns a numeric bound from the query, or None if it is missing or empty.

    Raises:
        HTTPException: it is not a number.
    """
    text = request.query_params.get(name, "")
    try:
        number = float(text) if text else None
    except ValueError:
        number = math.nan
    if number is not None and not math.isfinite(number):
        raise HTTPException(400, f"{name}={shown(text[:80])} is not a number.")
    return number


def json_address(url: str) -> str:
    """Returns the address of a view as JSON.

    >>> json_address("/r/demo/tables/pages?from=50"), json_address("/r/demo/")
    ('/r/demo/tables/pages.json?from=50', '/r/demo/index.json')
    """
    path, query = urlsplit(url).path, urlsplit(url).query
    return f"{path}index.json" if path.endswith("/") else f"{path}.json" + (f"?{query}" if query else "")


def wants_json(request: Request) -> bool:
    """Returns whether a request is for a view as JSON."""
    return request.url.path.endswith(".json")


def redirect_to(request: Request, url: str, headers: Mapping[str, str] | None = None) -> Response:
    """Redirects to another view; a request for JSON is redirected to that view as JSON."""
    return RedirectResponse(json_address(url) if wants_json(request) else url, 303, headers)


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Returns a value as JSON, or an error message if the value is too large."""
    content = orjson.dumps(value, default=_json_value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    if len(content) > JSON_BYTES:
        detail = f"The view has {len(content):,} bytes as JSON, more than {JSON_BYTES:,}; choose fewer columns."
        content, status = orjson.dumps({"status": 413, "detail": detail}), 413
    return Response(content, status, headers, media_type="application/json")


def _json_value(value: Any) -> Any:
    """Converts a value of a type that orjson cannot write to a type that it can write."""
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, tuple):
        return value._asdict() if hasattr(value, "_asdict") else list(value)
    return float(value) if isinstance(value, float | Decimal) else str(value)


def render_view(
    request: Request,
    opened: OpenRelease | None,
    template: str,
    *,
    title: str,
    data: Mapping[str, Any],
    crumbs: Sequence[Crumb] = (),
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """Renders a view with a template that extends ``base.html``, or as JSON.

    Args:
        data: the content of the view, as JSON values; the view as JSON consists of it, the title and the release.
        values: for the template.
    """
    if wants_json(request):
        release = None if opened is None else {"name": opened.slug, "manifest_sha256": opened.sha256}
        return json_response({"title": title, "release": release, **data}, status=status, headers=headers)
    query = request.url.query
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
            as_json=json_address(request.url.path + (f"?{query}" if query else "")) if status == 200 else None,
            **values,
        )
    )
    return HTMLResponse(text, status, headers)


class RequestError(NamedTuple):
    """The error with which a request is rejected: HTTP status, a reason for programs, and a message for people that
    names the problem and the remedy.
    """

    status: int
    reason: str
    detail: str


_TOO_LARGE = RequestError(413, "too_large", f"The body of the request is too large. Send at most {BODY_BYTES:,} bytes.")
_TWO_ENDS = RequestError(
    400, "bad_request", "The request has both Content-Length and Transfer-Encoding; send only one of them."
)


def error_text(error: RequestError) -> Response:
    """Returns a rejection as text, for people."""
    return PlainTextResponse(error.detail, error.status)


class GuardedAnswers:
    """Answers only allowed requests.

    The method has to be allowed, the host has to be a name of this server, and the request must not come from a page of
    another site. Every answer has ``HEADERS``, which keep browsers from running or loading anything that is not from
    this server.
    """

    def __init__(
        self,
        app: ASGIApp,
        methods: Callable[[str], Sequence[str]],
        hosts: Sequence[str],
        respond: Callable[[RequestError], Response],
    ) -> None:
        self._app, self._methods, self._respond = app, methods, respond
        self._hosts = {host.lower().strip("[]") for host in (*LOCAL_HOSTS, *hosts)}

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

        methods = self._methods(scope["path"])
        headers = Headers(scope=scope)
        has_two_ends = "transfer-encoding" in headers and "content-length" in headers
        error = _TWO_ENDS if has_two_ends else self._request_error(scope["method"], methods, headers)
        try:
            if error is None and scope["method"] == "POST":
                body = await _body_of(receive)
                error, receive = (_TOO_LARGE, receive) if body is None else (None, _again(body, receive))
            if error is None:
                await self._app(scope, receive, send_guarded)
                return
        except ClientDisconnect:
            return  # the client has left
        answer = self._respond(error)
        if has_two_ends:
            answer.headers["Connection"] = "close"  # the following bytes may be the rest of its body
        elif error.status == 405:
            answer.headers["Allow"] = ", ".join(methods)
        await answer(scope, receive, send_guarded)

    def _request_error(self, method: str, methods: Sequence[str], headers: Headers) -> RequestError | None:
        named = headers.getlist("host")
        host = named[0] if len(named) == 1 else ""
        if host_name(host) not in self._hosts:
            known = ", ".join(sorted(self._hosts))
            return RequestError(
                400, "wrong_host", f"This server answers only as {known}; start it with --host to give it another name."
            )
        if not _is_own_site(headers, host):
            return RequestError(
                403, "other_site", "A page of another site made this request. Open the address in the browser yourself."
            )
        if method not in methods:
            return RequestError(
                405, "wrong_method", f"This address does not support {method}. Use {' or '.join(methods)}."
            )
        return None


async def _body_of(receive: Receive) -> bytes | None:
    """Returns the body of a request, or None if it is too large.

    It is read here, before the application starts, so that no application gets an incomplete body.

    Raises:
        ClientDisconnect: the client left before the end of the body.
    """
    body, has_more = bytearray(), True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
        if len(body) > BODY_BYTES:
            return None
    return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Returns a receiver that first returns the body that was read, then the messages after it."""
    read = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return read.pop() if read else await receive()

    return receive_again


def host_name(host: str) -> str:
    """Returns the name in a Host header, without its port; empty if the header is malformed.

    >>> host_name("localhost:8765"), host_name("[::1]:8765"), host_name("a@b"), host_name("localhost:x")
    ('localhost', '::1', '', '')
    """
    found = _HOST.fullmatch(host)
    return (found["name"] or found["address"]).lower() if found else ""


_HOST = re.compile(r"(?:(?P<name>[\w.-]+)|\[(?P<address>[\da-fA-F:.]+)\])(?::\d{1,5})?", re.ASCII)


def _is_own_site(headers: Headers, host: str) -> bool:
    """Returns whether a request does not come from a page of another site. Browsers name the page in headers; other
    programs do not send these headers."""
    if any(site not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")):
        return False
    origins = headers.getlist("origin")
    return all(origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower()) for origin in origins)


def guards(
    hosts: Sequence[str],
    *,
    methods: Callable[[str], Sequence[str]],
    respond: Callable[[RequestError], Response] = error_text,
) -> list[Middleware]:
    """Returns the middleware that checks requests before an application, see ``GuardedAnswers``.

    Args:
        hosts: further names of the server, besides the names of this machine.
        methods: returns the allowed methods of a path.
    """
    return [Middleware(GuardedAnswers, methods=methods, hosts=hosts, respond=respond)]


async def form_of(request: Request) -> dict[str, str]:
    """Returns the fields of a form. If a name occurs several times, its last value is returned.

    Raises:
        HTTPException: it cannot be read.
    """
    try:
        text = (await request.body()).decode()
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS))
    except ValueError as error:  # includes UnicodeDecodeError
        raise HTTPException(400, f"The form cannot be read: {error}.") from error


async def is_gone(request: Request) -> None:
    """Waits until the client has closed its connection. The body of the request must be read first."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
