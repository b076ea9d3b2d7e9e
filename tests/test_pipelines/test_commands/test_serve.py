"""``kbsource serve``: starts, answers by HTTP and MCP, ends quietly, and refuses what does not fit."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("tantivy")

from pipelines.cli import main
from tests.support.installed import skip_without
from tests.support.served import write_served

skip_without("mcp")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_served(tmp_path_factory.mktemp("served"))


async def _by_mcp(server: Any) -> tuple[list[str], dict[str, Any]]:
    """The tools of a server, and what it checks."""
    from mcp.client.client import Client

    async with Client(server) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        checked = await client.call_tool("check", {"quote": "rises in Brack", "page": "Sorn", "element": 3})
        return tools, checked.structured_content


def test_it_answers_programs_and_agents_and_ends_quietly(folders: tuple[str, str], tmp_path: Path) -> None:
    from mcp import StdioServerParameters

    release, corpus = folders
    command = ["-m", "pipelines.cli", "serve", release, "--passages", corpus]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, *command, "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        asked = Request(f"{url}retrieve", json.dumps({"queries": ["goats"]}).encode())
        with urlopen(asked) as answer:
            assert json.load(answer)["result"][0][0]["title"] == "Tey"
        by_http = asyncio.run(_by_mcp(f"{url}mcp"))
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "")
    assert process.returncode == 0
    by_stdio = asyncio.run(
        _by_mcp(StdioServerParameters(command=sys.executable, args=[*command, "--stdio"], env=environment))
    )
    assert by_stdio == by_http
    assert (by_http[1]["match"], by_http[1]["element"]) == ("elsewhere", 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{none}"], "no finished release"),
        (["{corpus}"], "not a release of pages"),
        (["{release}", "--passages", "{release}"], "not a corpus of passages"),
        (["{release}", "--passages", "{corpus}", "--index", "{none}"], "QUERY to make it"),
        (["{release}", "--index", "{corpus}-bm25"], "--passages is missing"),
        (["{release}", "--passages", "{corpus}", "--system", "aliases"], "needs --linking"),
        (["{release}", "--port", "70000"], "--port is 70000"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(
    arguments: list[str], said: str, folders: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"release": folders[0], "corpus": folders[1], "none": str(tmp_path)}
    assert main(["serve", *(part.format(**places) for part in arguments)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
