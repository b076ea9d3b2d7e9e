"""``kbsource inspect``: releases as web pages on this machine."""

from __future__ import annotations

import argparse
import socket
import webbrowser

from pipelines.commands.flags.common import Command

_PORT = 8765
_HIGHEST_PORT = 65535
_WAITING = 64


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("releases", metavar="RELEASE", nargs="+", help="folders of releases of any kind")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="name or address to listen at, under which alone it may be asked for (default: %(default)s, this machine)",
    )
    parser.add_argument(
        "--port", type=int, help=f"port to listen at (default: {_PORT}, or a free one where it is taken)"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser of this machine")


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from pipelines.stores.storage import storage_for

    try:
        import uvicorn

        from mapping.inspector.app import make_app
        from mapping.inspector.opened import close_releases, open_releases
    except ModuleNotFoundError as error:
        if error.name not in ("uvicorn", "starlette", "jinja2", "markupsafe"):
            raise
        raise SetupError(f"{error.name} is not installed: pip install 'kbsource[inspect]'.") from error
    releases = open_releases([(path, storage_for(path)) for path in args.releases])
    try:
        with _listen(args.host, args.port) as listening:
            url = _url(args.host, listening.getsockname()[1])
            print(f"{url}  (Ctrl-C ends it)", flush=True)
            if args.open:
                webbrowser.open(url)
            config = uvicorn.Config(make_app(releases, hosts=[args.host]), log_level="error", server_header=False)
            uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        close_releases(releases)
    return 0


def _url(host: str, port: int) -> str:
    """
    >>> _url("::1", 80)
    'http://[::1]:80/'
    """
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _listen(host: str, port: int | None) -> socket.socket:
    """Opens a socket; at another port where the usual one is taken and none was asked for.

    Raises:
        SetupError: nobody may listen there.
    """
    from kbsource.errors import SetupError

    if port is not None and not 0 <= port <= _HIGHEST_PORT:
        raise SetupError(f"--port is {port}; give 0, for a free one, to {_HIGHEST_PORT}.")
    wanted = [_PORT, 0] if port is None else [port]
    for number in wanted:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
            listening = socket.socket(family, kind, protocol)
        except (OSError, UnicodeError) as error:
            raise SetupError(f"--host {host}: {error}; name an address of this machine.") from error
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_WAITING)
            return listening
        except OSError as error:
            listening.close()
            fault = error
    raise SetupError(f"--host {host} --port {wanted[-1]}: {fault}; name another port, or leave it out.") from fault


COMMAND = Command(
    name="inspect",
    summary="read releases as web pages",
    description="Serves web pages on this machine that show releases of any kind: pages as a person reads them, with\n"
    "what links to them and what was lost; titles found as one types; every table row by row. Nothing is written\n"
    "to a release, nothing is loaded from elsewhere. Needs kbsource[inspect].",
    examples=(
        "kbsource inspect releases/enwiki-20261001",
        "kbsource inspect releases/enwiki-20261001 aligned/fever --open",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
