"""Google Cloud Storage as far as its XML interface shows it, with its objects in memory.

Source: https://cloud.google.com/storage/docs/xml-api/reference-methods, 2026-11-21.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class FakeGoogle:
    """A context manager with a bucket ``wiki``; listens on a free port of the loopback address."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.generations: dict[str, int] = {}
        self.n_writes = 0
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"google": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeGoogle:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def write(self, key: str, content: bytes) -> None:
        """Writes an object as a new generation."""
        self.n_writes += 1
        self.objects[key], self.generations[key] = content, self.n_writes


class _Handler(BaseHTTPRequestHandler):
    google: FakeGoogle
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _key(self) -> str | None:
        """The key that is asked for; None, once refused, in another bucket."""
        bucket, _, key = unquote(urlsplit(self.path).path).removeprefix("/").partition("/")
        if bucket == "wiki":
            return key
        self._send(404, b"<?xml version='1.0'?><Error><Code>NoSuchBucket</Code><Message>none</Message></Error>")
        return None

    def do_GET(self) -> None:
        key = self._key()
        with self.google.lock:
            if key == "":
                self._list()
            elif key in self.google.objects:
                content, status = self.google.objects[key], 200
                if (asked := self.headers.get("Range")) is not None:
                    start, _, end = asked.removeprefix("bytes=").partition("-")
                    whole, status = len(content), 206
                    content = content[int(start) : int(end) + 1]
                    shown = f"bytes {start}-{int(start) + len(content) - 1}/{whole}"
                    self._send(status, content, **self._facts(key), Content_Range=shown)
                else:
                    self._send(status, content, **self._facts(key))
            elif key is not None:
                self._send(404)

    def _facts(self, key: str) -> dict[str, str]:
        generation = str(self.google.generations[key])
        return {
            "ETag": f'"{generation}"',
            "x_goog_generation": generation,
            "Last_Modified": "Mon, 23 Nov 2026 08:00:00 GMT",
        }

    def _list(self) -> None:
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-23T08:00:00.000Z</LastModified>"
            f"<ETag>&quot;1&quot;</ETag><Size>{len(content)}</Size></Contents>"
            for key, content in sorted(self.google.objects.items())
            if key.startswith(prefix)
        )
        self._send(200, f"<?xml version='1.0'?><ListBucketResult>{entries}</ListBucketResult>".encode())

    def do_HEAD(self) -> None:
        key = self._key()
        with self.google.lock:
            if key in self.google.objects:
                self._send(200, **self._facts(key), Content_Length=str(len(self.google.objects[key])))
            else:
                self._send(404)

    def do_PUT(self) -> None:
        key, body = self._key(), self.rfile.read(int(self.headers.get("Content-Length") or 0))
        wanted = self.headers.get("x-goog-if-generation-match")
        source = self.headers.get("x-goog-copy-source")
        with self.google.lock:
            if key is None:
                return
            if wanted is not None and int(wanted) != self.google.generations.get(key, 0):
                self._send(412)
                return
            if source is not None:
                body = self.google.objects[unquote(source).removeprefix("/").partition("/")[2]]
            self.google.write(key, body)
            self._send(200, **self._facts(key))

    def do_DELETE(self) -> None:
        key = self._key()
        with self.google.lock:
            if key is None:
                return
            status = 204 if self.google.objects.pop(key, None) is not None else 404
            self.google.generations.pop(key, None)
            self._send(status)
