"""The operations as tools of MCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest

from mapping.serving.operations import OPERATIONS, Cite, Search, ServedRelease
from tests.support.installed import skip_without

skip_without("mcp")

R = TypeVar("R")


def _asked(served: ServedRelease, ask: Callable[[Any], Awaitable[R]]) -> R:
    from mcp.client.client import Client

    from mapping.serving.server import Answering, mcp_server

    async def run() -> R:
        async with Client(mcp_server(served, Answering(served))) as client:
            return await ask(client)

    return asyncio.run(run())


def test_there_is_a_tool_for_each_operation_with_its_bounds(served: ServedRelease) -> None:
    tools = _asked(served, lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == list(OPERATIONS)
    for tool in tools:
        operation = OPERATIONS[tool.name]
        assert (tool.description, tool.input_schema) == (operation.description(), operation.schema())
        assert tool.annotations.read_only_hint


def test_without_passages_no_search_is_offered(folders: tuple[str, str]) -> None:
    with ServedRelease.open(folders[0]) as bare:
        tools = _asked(bare, lambda client: client.list_tools()).tools
    assert {tool.name for tool in tools} == set(OPERATIONS) - {"search", "passage"}


@pytest.mark.parametrize(
    ("name", "request_"), [("search", Search("goats", k=2)), ("cite", Cite("Sorn", element=1, end_char=8))]
)
def test_a_tool_answers_what_its_operation_does(name: str, request_: Any, served: ServedRelease) -> None:
    asked = msgspec.to_builtins(request_)
    arguments = {key: value for key, value in asked.items() if value is not None}
    answer = _asked(served, lambda client: client.call_tool(name, arguments))
    wanted = json.loads(msgspec.json.encode(request_.answer(served)))
    assert not answer.is_error
    assert answer.structured_content == json.loads(answer.content[0].text) == wanted


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("page", {"page": "Nowhere"}, "unknown_page"),
        ("search", {"query": "a", "k": 1000}, "bad_request"),
        ("search", {"query": "a", "k": "3"}, "bad_request"),
        ("write", {}, "bad_request"),
    ],
)
def test_what_cannot_be_answered_is_told_to_the_agent(
    name: str, arguments: dict[str, Any], reason: str, served: ServedRelease
) -> None:
    answer = _asked(served, lambda client: client.call_tool(name, arguments))
    assert answer.is_error
    assert json.loads(answer.content[0].text)["reason"] == reason
