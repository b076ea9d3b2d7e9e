"""The operations as routes: by GET with their parameters in the address, by POST with them as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kbsource.errors import RecordError
from mapping.inspector.frame import READING, guards
from mapping.serving.answering import Answering
from mapping.serving.operations import OPERATIONS, SHAPES, STATUS, Request, Served

BODY_BYTES = 1 << 20
"""Of a request."""
_REASONS = {404: "unknown_address", 405: "wrong_method"}


def make_app(
    served: Served,
    answering: Answering,
    *,
    hosts: Sequence[str] = (),
    tools: Starlette | None = None,
) -> Starlette:
    """The application that answers for a release, and within it that of MCP."""

    async def head(request: HttpRequest) -> Response:
        manifest = served.source.manifest
        names = [f"/{name}" for name in operations]
        return JSONResponse(
            {"release": served.sha256, "wiki": manifest.site.dbname, "date": manifest.dump.date, "operations": names}
        )

    operations = {**OPERATIONS, **SHAPES}
    own = [_route(f"/{name}", operation, answering) for name, operation in operations.items()]
    return Starlette(
        routes=[Route("/", head), *own, *(tools.routes if tools else ())],
        middleware=guards(hosts, methods=(*READING, "POST")),
        exception_handlers={HTTPException: _say_unknown, RecordError: _say_reason},
        lifespan=tools.router.lifespan_context if tools else None,
    )


def _route(path: str, operation: type[Request], answering: Answering) -> Route:
    async def answer(request: HttpRequest) -> Response:
        if request.method == "POST":
            content = await answering.answer(operation, await _body(request))
        else:
            content = await answering.answer(operation, dict(request.query_params), strict=False)
        return Response(content, media_type="application/json")

    return Route(path, answer, methods=["GET", "POST"])


async def _body(request: HttpRequest) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            raise RecordError("too_large", f"a request has {BODY_BYTES} bytes at most")
    return bytes(body)


def _say_reason(_: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, RecordError)
    return JSONResponse({"reason": error.reason, "detail": error.detail}, STATUS[error.reason])


def _say_unknown(request: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    reason = _REASONS.get(error.status_code, "bad_request")
    return _say_reason(request, RecordError(reason, f"{request.method} {request.url.path}: {error.detail}"))
