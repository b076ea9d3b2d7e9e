"""A hub of models on this machine, which answers as the Hugging Face hub does, and remembers what it was asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
"""The commit of every model."""


@dataclass
class FakeHub:
    """A hub.

    Attributes:
        url: for ``HF_ENDPOINT``.
        models: folder of each model, by name.
        asked: paths of the requests.
    """

    url: str
    models: Mapping[str, Path]
    asked: list[str] = field(default_factory=list)

    @property
    def fetched(self) -> set[str]:
        """The files that were asked for."""
        return {path.partition(f"/resolve/{COMMIT}/")[2] for path in self.asked if "/resolve/" in path}


@contextmanager
def fake_hub(models: Mapping[str, Path]) -> Iterator[FakeHub]:
    """Serves models at an address of its own."""
    hub = FakeHub("", models)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Prints nothing."""

        def do_HEAD(self) -> None:
            self._answer(is_head=True)

        def do_GET(self) -> None:
            self._answer(is_head=False)

        def _answer(self, *, is_head: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(path)
            is_api = path.startswith("/api/models/")
            owner, name, *rest = path.removeprefix("/api/models" if is_api else "").lstrip("/").split("/")
            folder = hub.models.get(f"{owner}/{name}")
            of_commit = len(rest) < 2 or rest[1] in ("main", COMMIT)
            if folder is None or not of_commit:
                return self._send(b"{}", is_head, status=404, error="RevisionNotFound" if folder else "RepoNotFound")
            files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
            if not is_api:
                return self._send((folder / "/".join(rest[2:])).read_bytes(), is_head)
            if rest[:1] == ["tree"]:
                rows = [
                    {"type": "file", "path": file, "size": (folder / file).stat().st_size, "oid": "0" * 40}
                    for file in files
                ]
                return self._send(json.dumps(rows).encode(), is_head)
            facts = {"id": f"{owner}/{name}", "sha": COMMIT, "siblings": [{"rfilename": file} for file in files]}
            return self._send(json.dumps(facts).encode(), is_head)

        def _send(self, body: bytes, is_head: bool, *, status: int = 200, error: str | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hashlib.sha1(body, usedforsecurity=False).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
            if error is not None:
                self.send_header("X-Error-Code", error)
            self.end_headers()
            if not is_head:
                self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
