"""Commands that serve releases: as web pages for people, and over HTTP and MCP for programs and agents."""

from __future__ import annotations

import asyncio
import socket
import sys
import webbrowser
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from kbsource.errors import SetupError
from mapping.options import FLAT, Name, Release, Releases, System, whole_number
from mapping.retrieval.system_options import SystemOptions
from pipelines.terminal import Summary, print_text

if TYPE_CHECKING:
    from starlette.applications import Starlette

Host = Annotated[Name, Parameter(metavar="HOST")]
Port = Annotated[int | None, Parameter(metavar="PORT", converter=whole_number, validator=Number(gte=0, lte=65535))]

_INSPECT_PORT, _SERVE_PORT, _WAITING = 8765, 8766, 64


def inspect(
    releases: Releases,
    /,
    *,
    host: Host = "127.0.0.1",
    port: Port = None,
    open: bool = False,
) -> Summary:
    """Browse releases in a web browser.

    Serves web pages on this machine that show releases of any kind: rendered pages with their incoming links and
    losses, a search for titles that completes what you type, and every table, row by row. The command never writes to a
    release, and the pages load nothing from elsewhere.

    Args:
        releases: Folders of releases of any kind.
        host: Name or address to listen on; by default this machine only. Requests that name another host are
            refused, except for the names of this machine.
        port: Port to listen on; by default 8765, or a free port if it is in use; 0 for a free port.
        open: Open the page in this machine's browser.

    Examples:
        kbsource inspect releases/enwiki-20261001
        kbsource inspect releases/enwiki-20261001 aligned/fever --open
    """
    from mapping.inspector.app import inspector_app
    from mapping.inspector.opened import close_releases, open_releases

    opened = open_releases(releases)
    try:
        _run(inspector_app(opened, hosts=[host]), host, port, usual=_INSPECT_PORT, open=open)
    finally:
        close_releases(opened)
    return Summary()


def serve(
    release: Release,
    /,
    *,
    passages: Release | None = None,
    system: System = "bm25",
    options: Annotated[SystemOptions, FLAT] = SystemOptions(),
    stdio: bool = False,
    host: Host = "127.0.0.1",
    port: Port = None,
) -> Summary:
    """Serve a release of pages to programs and agents.

    Serves search, pages, sections, passages, links and citations as JSON on this machine. Search is also available in
    the formats of DSPy's ColBERTv2 client (/api/search) and Search-R1's retriever (/retrieve). Agents can use an MCP
    server (/mcp). Every answer contains release, page, revision, element and character offsets. /check reports whether
    a quote is at a given position. The command never writes to a release. Requests are limited, and nothing about them
    is stored.

    Args:
        release: Folder of a release of pages.
        passages: Passages of the release, which searches return.
        system: Retrieval system for searches, as for kbsource search.
        stdio: Run only an MCP server over standard input and output, for an agent that starts this command.
        host: Name or address to listen on; by default this machine only. Requests that name another host are
            refused, except for the names of this machine.
        port: Port to listen on; by default 8766, or a free port if it is in use; 0 for a free port.

    Examples:
        kbsource serve releases/enwiki-20261001 --passages passages/enwiki-20261001
        kbsource serve releases/enwiki-20261001 --passages passages/enwiki-20261001 --system aliases+bm25 \\
            --linking linking/enwiki-20261001 --stdio
    """
    from mapping.retrieval.systems import open_system
    from mapping.serving.operations import ServedRelease
    from mapping.serving.server import Answering, answer_stdio, mcp_app, mcp_server, server_app

    with ExitStack() as stack:
        served = stack.enter_context(ServedRelease.open(release))
        if passages is not None:
            served.search_in(passages, stack.enter_context(open_system(passages, system, options)))
        elif system != "bm25" or options != SystemOptions():
            raise SetupError(
                "--passages is missing, and the other options are for searching passages. Give "
                "--passages, or leave the others out."
            )
        answering = Answering(served)
        tools = mcp_server(served, answering)
        if stdio:
            asyncio.run(answer_stdio(tools))
        else:
            _run(server_app(served, answering, hosts=[host], tools=mcp_app(tools)), host, port, usual=_SERVE_PORT)
    return Summary()


def _run(app: Starlette, host: str, port: int | None, *, usual: int, open: bool = False) -> None:
    """Serves an application until the user presses Ctrl-C, and prints its URL."""
    import uvicorn

    from mapping.inspector.connection import server_config

    try:
        with _listen(host, port, usual) as listening:
            url = _url(host, listening.getsockname()[1])
            print_text(f"{url}  (Ctrl-C ends it)")
            sys.stdout.flush()
            if open:
                webbrowser.open(url)
            uvicorn.Server(server_config(app)).run(sockets=[listening])
    except KeyboardInterrupt:
        pass


def _url(host: str, port: int) -> str:
    """Returns the URL of a server.

    >>> _url("::1", 80)
    'http://[::1]:80/'
    """
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _listen(host: str, port: int | None, usual: int) -> socket.socket:
    """Opens a socket. Uses a free port if no port was requested and the usual port is in use.

    Raises:
        SetupError: listening there is not possible.
    """
    wanted = [usual, 0] if port is None else [port]
    for number in wanted:
        try:
            family, _, _, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
        except (OSError, UnicodeError) as error:
            raise SetupError(f"--host {host}: {error}; name an address of this machine.") from error
        try:
            listening = socket.create_server(address, family=family, backlog=_WAITING)
            # Accepted sockets inherit this; otherwise an answer in two parts waits 40 ms for the client between them.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listening
        except OSError as error:
            fault = error
    raise SetupError(
        f"--host {host} --port {wanted[-1]}: {fault}; choose another port, or leave --port out."
    ) from fault
