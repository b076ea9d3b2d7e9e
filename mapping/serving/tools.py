"""The operations as tools of an MCP server, over standard input and output, or as a route.

Source: Model Context Protocol, by its official SDK for Python.
"""

from __future__ import annotations

import json
from typing import Any

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations
from starlette.applications import Starlette

from kbsource import __version__
from kbsource.errors import RecordError
from mapping.serving.answering import Answering
from mapping.serving.operations import OPERATIONS, Request, Served

_INSTRUCTIONS = (
    "A snapshot of Wikipedia in which every text has a place: page, revision, element, characters. Search or read, "
    "cite what you use, and check a quote before you rely on it."
)


def mcp_server(served: Served, answering: Answering) -> Server[Any]:
    """A server with a tool for each operation that the release can answer."""
    offered = {name: one for name, one in OPERATIONS.items() if served.index is not None or not one.of_passages}

    async def list_tools(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(name, operation) for name, operation in offered.items()])

    async def call_tool(_: Any, asked: CallToolRequestParams) -> CallToolResult:
        try:
            if asked.name not in offered:
                raise RecordError("bad_request", f"there is no tool {asked.name}; there are {', '.join(offered)}")
            content = await answering.answer(offered[asked.name], asked.arguments or {})
        except RecordError as error:
            said = TextContent(text=json.dumps({"reason": error.reason, "detail": error.detail}))
            return CallToolResult(content=[said], is_error=True)
        return CallToolResult(content=[TextContent(text=content.decode())], structured_content=json.loads(content))

    return Server(
        "kbsource", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _tool(name: str, operation: type[Request]) -> Tool:
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    return Tool(name=name, description=operation.said(), input_schema=operation.schema(), annotations=hints)


async def answer_stdio(server: Server[Any]) -> None:
    """Answers what comes by standard input until it ends."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def mcp_app(server: Server[Any]) -> Starlette:
    """The route ``/mcp``, and the lifespan that it needs: streamable HTTP without sessions. What stands before it
    checks the host."""
    off = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app: Starlette = server.streamable_http_app(stateless_http=True, json_response=True, transport_security=off)
    return app
