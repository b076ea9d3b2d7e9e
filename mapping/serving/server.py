"""Answers operations within limits: as HTTP routes, and as MCP tools over standard input and output or over a route.

In a GET request, the parameters of an operation are in the URL; in a POST request, they are JSON. The server limits the
number of requests answered at once, the number of waiting requests, and the time of each.

Source: Model Context Protocol, by its official SDK for Python.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kbsource import __version__
from kbsource.errors import RecordError, SetupError, named_faults
from mapping.inspector.frame import BODY_BYTES as BODY_BYTES
from mapping.inspector.frame import POSTING, guards, is_gone
from mapping.serving.openapi import openapi
from mapping.serving.operations import OPERATIONS, SHAPES, STATUS, Request, ServedRelease

THREADS, MOST_WAITING, LONGEST_S = 4, 64, 10.0
"""Maximum number of requests answered at once, maximum number of running and waiting requests, and seconds until an
answer is cancelled."""
_SOON_S = 0.05
_REASONS = {404: "unknown_address", 405: "wrong_method"}
_INSTRUCTIONS = (
    "A snapshot of Wikipedia in which every text has a position: page, revision, element, characters. Search or read, "
    "cite what you use, and check a quote before you rely on it."
)


class Answering:
    """Answers requests in threads. All callers are on one event loop.

    A request with several steps queues again for each step, so that long requests do not block short ones. A request
    that takes too long, or whose client has left, is cancelled: no further step is started. A started step keeps its
    thread until it ends, so at most ``THREADS`` steps run at once.
    """

    def __init__(self, served: ServedRelease, *, longest_s: float = LONGEST_S) -> None:
        self._served, self._longest_s, self._n_waiting = served, longest_s, 0
        self._threads = ThreadPoolExecutor(THREADS)

    async def answer(
        self, operation: type[Request], parameters: bytes | dict[str, Any], *, strict: bool = True
    ) -> bytes:
        """Returns the answer of an operation as JSON.

        Args:
            parameters: as JSON, or by name.
            strict: if False, numbers may be texts, as in a URL.

        Raises:
            RecordError: a key of ``operations.STATUS``.
        """
        try:
            if isinstance(parameters, bytes):
                request = msgspec.json.decode(parameters, type=operation)
            else:
                request = msgspec.convert(parameters, operation, strict=strict)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            names = ", ".join(field.encode_name for field in msgspec.structs.fields(operation))
            raise RecordError("bad_request", f"{error}; the parameters are {names}") from error
        if self._n_waiting >= MOST_WAITING:
            raise RecordError("busy", f"{MOST_WAITING} requests are waiting; send the request again later")
        steps = request.steps(self._served)
        self._n_waiting += 1
        work: Future[bytes | None] | None = None
        try:
            async with asyncio.timeout(self._longest_s):
                content = None
                while content is None:
                    work = self._threads.submit(self._next, steps)
                    content = await asyncio.shield(asyncio.wrap_future(work))
                return content
        except TimeoutError as error:
            raise RecordError("too_slow", f"no answer within {self._longest_s:g} s; request less") from error
        finally:
            if work is None or work.cancel() or work.done():
                self._n_waiting -= 1
            else:  # it still has a thread
                asyncio.wrap_future(work).add_done_callback(self._end)

    def _end(self, work: asyncio.Future[bytes | None]) -> None:
        self._n_waiting -= 1
        if not work.cancelled():
            work.exception()  # the caller is gone, so its exception is not needed

    def _next(self, steps: Iterator[dict[str, Any] | None]) -> bytes | None:
        """Runs the next step and returns the answer as JSON, or None if there is no answer yet."""
        try:
            with named_faults():
                answer = next(steps)
        except SetupError as error:
            raise RecordError("damaged", str(error)) from error
        return None if answer is None else msgspec.json.encode(answer)


def server_app(
    served: ServedRelease,
    answering: Answering,
    *,
    hosts: Sequence[str] = (),
    tools: Starlette | None = None,
) -> Starlette:
    """Returns the application that answers for a release, including the application of MCP."""

    async def head(request: HttpRequest) -> Response:
        manifest = served.source.manifest
        names = [f"/{name}" for name in operations]
        return JSONResponse(
            {"release": served.sha256, "wiki": manifest.site.dbname, "date": manifest.dump.date, "operations": names}
        )

    async def describe(request: HttpRequest) -> Response:
        return JSONResponse(description)

    operations = {**OPERATIONS, **SHAPES}
    description = openapi(operations)
    own = [_route(f"/{name}", operation, answering) for name, operation in operations.items()]
    return Starlette(
        routes=[Route("/", head), Route("/openapi.json", describe), *own, *(tools.routes if tools else ())],
        middleware=guards(
            hosts, methods=lambda _: POSTING, respond=lambda error: _reason_response(error.reason, error.detail)
        ),
        exception_handlers={HTTPException: _error_response, RecordError: _error_response},
        lifespan=tools.router.lifespan_context if tools else None,
    )


def _route(path: str, operation: type[Request], answering: Answering) -> Route:
    lists = {name for name, own in operation.schema()["properties"].items() if own.get("type") == "array"}

    async def answer(request: HttpRequest) -> Response:
        if request.method == "POST":
            work = answering.answer(operation, await request.body())
        else:
            given = request.query_params
            asked = {name: given.getlist(name) if name in lists else given[name] for name in given}
            work = answering.answer(operation, asked, strict=False)
        return Response(await _until_gone(request, work), media_type="application/json")

    return Route(path, answer, methods=["GET", "POST"])


async def _until_gone(request: HttpRequest, work: Coroutine[Any, Any, bytes]) -> bytes:
    """Returns the result of a coroutine, which is cancelled if the client leaves.

    Raises:
        ClientDisconnect: the client has left.
    """
    answered = asyncio.ensure_future(work)
    try:
        # Most requests are answered so fast that their clients need not be watched.
        await asyncio.wait((answered,), timeout=_SOON_S)
        if not answered.done():
            gone = asyncio.ensure_future(is_gone(request))
            try:
                await asyncio.wait((answered, gone), return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
        if not answered.done():
            raise ClientDisconnect
        return answered.result()
    finally:
        answered.cancel()  # unless it has ended


def _error_response(request: HttpRequest, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        reason = _REASONS.get(error.status_code, "bad_request")
        error = RecordError(reason, f"{request.method} {request.url.path}: {error.detail}")
    assert isinstance(error, RecordError)
    return _reason_response(error.reason, error.detail)


def _reason_response(reason: str, detail: str) -> Response:
    return JSONResponse({"reason": reason, "detail": detail}, STATUS[reason])


def mcp_server(served: ServedRelease, answering: Answering) -> Server[Any]:
    """Returns a server with a tool for each operation that the release can answer."""
    offered = {
        name: operation
        for name, operation in OPERATIONS.items()
        if served.system is not None or not operation.of_passages
    }

    async def list_tools(*_: Any) -> ListToolsResult:
        hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
        tools = [
            Tool(name=name, description=operation.description(), input_schema=operation.schema(), annotations=hints)
            for name, operation in offered.items()
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(context: ServerRequestContext[Any, Any], asked: CallToolRequestParams) -> CallToolResult:
        try:
            if asked.name not in offered:
                raise RecordError("bad_request", f"there is no tool {asked.name}; the tools are {', '.join(offered)}")
            work = answering.answer(offered[asked.name], asked.arguments or {})
            request = context.request  # over HTTP; None over standard input, where the end of the input ends everything
            content = await (_until_gone(request, work) if isinstance(request, HttpRequest) else work)
        except ClientDisconnect:  # it has no reader
            return CallToolResult(content=[], is_error=True)
        except RecordError as error:
            said = TextContent(text=json.dumps({"reason": error.reason, "detail": error.detail}))
            return CallToolResult(content=[said], is_error=True)
        return CallToolResult(content=[TextContent(text=content.decode())], structured_content=json.loads(content))

    return Server(
        "kbsource", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def answer_stdio(server: Server[Any]) -> None:
    """Answers requests from standard input until it ends."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def mcp_app(server: Server[Any]) -> Starlette:
    """Returns the application that serves MCP at ``/mcp``, by streamable HTTP without sessions.

    Its lifespan handler must run. The application in front of it checks the host.
    """
    off = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app: Starlette = server.streamable_http_app(stateless_http=True, json_response=True, transport_security=off)
    return app
