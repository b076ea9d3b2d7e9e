"""Small files in a store, and a store of Amazon's protocol on this machine."""

from __future__ import annotations

import http.client
import importlib
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from kbsource.files import Folder, options_in_use, use_options


def put(path: str, content: bytes) -> None:
    """Writes a file."""
    Folder.of(path).write(content)


def get(path: str) -> bytes:
    """The content of a file."""
    return Folder.of(path).read()


def put_folder(path: str, folder: Path) -> str:
    """Writes a folder's files, and gives where they lie."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            put(f"{path}/{file.relative_to(folder).as_posix()}", file.read_bytes())
    return path


def contents_of(path: str) -> dict[str, bytes]:
    """Every file below a folder by its path in it."""
    folder = Folder.of(path)
    return {name: folder.read(name) for name in folder.files()}


@contextmanager
def options_of_stores(options: dict[str, str]) -> Iterator[list[str]]:
    """Has options of stores in this process, and gives the flags that say the same to a command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBSOURCE_STORAGE", os.environ.get("KBSOURCE_STORAGE", "{}"))  # to be restored afterwards
        use_options({**options_in_use(), **options})
        yield [f"--storage={name}={value}" for name, value in options.items()]


@contextmanager
def s3_server() -> Iterator[list[str]]:
    """Serves an object store with a bucket ``wiki``, has its options, and gives them as flags."""
    server = importlib.import_module("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        store = f"http://{host}:{port}"
        # The store is that of the process, and may hold what a test before this one wrote.
        urlopen(Request(f"{store}/moto-api/reset", method="POST")).close()
        urlopen(Request(f"{store}/wiki", method="PUT")).close()
        with options_of_stores(
            {"aws_endpoint_url": store, "aws_access_key_id": "id", "aws_secret_access_key": "secret"}
        ) as flags:
            yield flags
    finally:
        server.stop()


@contextmanager
def failing_store(*, share: float = 0.0, n_answers: int | None = None) -> Iterator[list[str]]:
    """The store in use behind a server that answers a share of the requests with 503, and after so many answers to no
    more; has its options, and gives them as flags."""
    store = options_in_use()["aws_endpoint_url"].removeprefix("http://")
    draw, answered = random.Random(1), iter(range(1_000_000) if n_answers is None else range(n_answers))

    class Failing(BaseHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if next(answered, None) is None:
                return
            if draw.random() < share:
                self.send_response(503)
                self.end_headers()
                return
            behind = http.client.HTTPConnection(store)
            behind.request(self.command, self.path, content, dict(self.headers))
            given = behind.getresponse()
            self.send_response(given.status)
            for name, value in given.getheaders():
                if name.lower() not in ("connection", "date", "server", "transfer-encoding"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(given.read())

    for method in ("GET", "PUT", "POST", "DELETE", "HEAD"):
        setattr(Failing, f"do_{method}", Failing.answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with options_of_stores({"aws_endpoint_url": f"http://127.0.0.1:{server.server_address[1]}"}) as flags:
            yield flags
        server.shutdown()
