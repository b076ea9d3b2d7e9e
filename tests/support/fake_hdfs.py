"""A name node of HDFS as far as WebHDFS shows it, with its files in memory.

What it refuses is what HDFS refuses: to overwrite, to move onto something or into a folder that is not there.
Source: https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html, 2026-11-21.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_ROOT = "/webhdfs/v1"


class FakeHdfs:
    """A context manager; listens on a free port of the loopback address.

    Attributes:
        port: where it listens.
        files: content by path.
        folders: paths.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.folders = {"/"}
        self._forbidden: set[str] = set()
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"hdfs": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    def __enter__(self) -> FakeHdfs:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def status(self, path: str, suffix: str = "") -> dict[str, Any]:
        """Gives what WebHDFS calls a FileStatus."""
        is_file = path in self.files
        return {
            "pathSuffix": suffix,
            "type": "FILE" if is_file else "DIRECTORY",
            "length": len(self.files[path]) if is_file else 0,
            "modificationTime": 0,
        }

    def forbid(self, path: str) -> None:
        """Lets nobody look into a folder any more."""
        self._forbidden.add(path)

    def is_forbidden(self, path: str) -> bool:
        """Says whether nobody may look into a folder."""
        return path in self._forbidden

    def has(self, path: str) -> bool:
        """Says whether a file or a folder is there."""
        return path in self.files or path in self.folders

    def make_folders(self, path: str) -> None:
        """Makes a folder and those above it."""
        self.folders |= {path, *map(str, PurePosixPath(path).parents)}

    def children(self, path: str) -> list[str]:
        """Gives the paths of what lies in a folder itself."""
        return sorted(
            child for child in {*self.files, *self.folders} if child != "/" and str(PurePosixPath(child).parent) == path
        )

    def move(self, source: str, target: str) -> bool:
        """Moves a file."""
        if source not in self.files or self.has(target) or str(PurePosixPath(target).parent) not in self.folders:
            return False
        self.files[target] = self.files.pop(source)
        return True

    def delete(self, path: str) -> bool:
        """Deletes a file, or a folder with all that is in it."""
        was_there = self.has(path)
        below = f"{path.rstrip('/')}/"
        self.files = {
            path_of_file: content
            for path_of_file, content in self.files.items()
            if path_of_file != path and not path_of_file.startswith(below)
        }
        self.folders = {folder for folder in self.folders if folder != path and not folder.startswith(below)}
        return was_there


class _Handler(BaseHTTPRequestHandler):
    hdfs: FakeHdfs
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def _answer(self) -> None:
        url = urlsplit(self.path)
        given = {name: values[-1] for name, values in parse_qs(url.query).items()}
        path = unquote(url.path.removeprefix(_ROOT)) or "/"
        body = self._body()
        with self.hdfs.lock:
            getattr(self, f"_{given['op'].lower()}")(path, given, body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), **{"Content-Type": "application/json"})

    def _refuse(self, status: int, kind: str, message: str) -> None:
        fault = {"RemoteException": {"exception": kind, "javaClassName": kind, "message": message}}
        self._send(status, json.dumps(fault).encode(), **{"Content-Type": "application/json"})

    def _not_there(self, path: str) -> None:
        self._refuse(404, "FileNotFoundException", f"File does not exist: {path}")

    def _getfilestatus(self, path: str, given: dict[str, str], body: bytes) -> None:
        if self.hdfs.has(path):
            self._send_json({"FileStatus": self.hdfs.status(path)})
        else:
            self._not_there(path)

    def _liststatus(self, path: str, given: dict[str, str], body: bytes) -> None:
        if not self.hdfs.has(path):
            self._not_there(path)
            return
        if self.hdfs.is_forbidden(path):
            self._refuse(403, "AccessControlException", f"Permission denied: user=wiki, access=EXECUTE, inode={path}")
            return
        if path in self.hdfs.files:
            found = [self.hdfs.status(path)]
        else:
            found = [self.hdfs.status(child, PurePosixPath(child).name) for child in self.hdfs.children(path)]
        self._send_json({"FileStatuses": {"FileStatus": found}})

    def _open(self, path: str, given: dict[str, str], body: bytes) -> None:
        if path not in self.hdfs.files:
            self._not_there(path)
            return
        start = int(given.get("offset", 0))
        end = start + int(given["length"]) if "length" in given else None
        self._send(200, self.hdfs.files[path][start:end])

    def _create(self, path: str, given: dict[str, str], body: bytes) -> None:
        if "datanode" not in given:
            where = f"http://127.0.0.1:{self.hdfs.port}{self.path}&datanode=1"
            self._send(307, b"", Location=where)
        elif self.hdfs.has(path) and given.get("overwrite") != "true":
            self._refuse(403, "FileAlreadyExistsException", f"{path} already exists")
        else:
            self.hdfs.make_folders(str(PurePosixPath(path).parent))
            self.hdfs.files[path] = body
            self._send(201, b"")

    def _mkdirs(self, path: str, given: dict[str, str], body: bytes) -> None:
        self.hdfs.make_folders(path)
        self._send_json({"boolean": True})

    def _rename(self, path: str, given: dict[str, str], body: bytes) -> None:
        self._send_json({"boolean": self.hdfs.move(path, given["destination"])})

    def _delete(self, path: str, given: dict[str, str], body: bytes) -> None:
        self._send_json({"boolean": self.hdfs.delete(path)})
