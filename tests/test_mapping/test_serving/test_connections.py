"""The servers on the wire: requests that do not end, that end twice, and clients that hang up."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from mapping.inspector.connection import server_config
from mapping.serving.operations import Search, ServedRelease
from tests.support.browser import served as served_by
from tests.support.served import app_of

LONGEST_S = 0.5
HEAD = b"Host: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def url(served: ServedRelease) -> Iterator[str]:
    with served_by(app_of(served, has_tools=True), longest_s=LONGEST_S, lifespan="on") as address:
        yield address


@pytest.fixture(autouse=True)
def _nothing_is_logged(url: str, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.WARNING] == []


class _Open(logging.Handler):
    is_open = True

    def close(self) -> None:
        self.is_open = False
        super().close()


def test_a_server_leaves_the_log_handlers_of_the_process_open() -> None:
    handler = _Open()
    server_config(Starlette())
    assert handler.is_open


def _connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 80), timeout=20)


def _all_of(connection: socket.socket) -> bytes:
    """What comes until the server closes."""
    received = b""
    while piece := connection.recv(1 << 16):
        received += piece
    return received


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\n", b"X: x\r\n"),
        (b"POST /search HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000\r\n\r\n", b"x"),
        (b"POST /mcp HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n", b"x"),
        (b"POST /search HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"GET / HTTP/1.1\r\n" + HEAD + b"\r\nGET / HTTP/1.1\r\n", b"X: x\r\n"),
        (b"PUT /search HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000\r\n\r\n", b"x"),
    ],
)
def test_what_is_sent_too_slowly_is_closed(url: str, begun: bytes, rest: bytes) -> None:
    with _connected(url) as connection:
        connection.sendall(begun)
        start = time.monotonic()
        connection.settimeout(LONGEST_S / 5)
        while time.monotonic() - start < 20:
            try:
                connection.sendall(rest)
                if not connection.recv(1 << 16):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert LONGEST_S * 0.8 < time.monotonic() - start < LONGEST_S + 10


def test_a_connection_is_kept_over_requests_that_are_sent_to_their_end(url: str) -> None:
    with httpx.Client() as client:
        for _ in range(4):
            assert client.get(f"{url}/resolve?page=Sorn").status_code == 200
            time.sleep(LONGEST_S / 3)
        assert client.post(f"{url}/resolve", json={"page": "Sorn"}).status_code == 200


def test_a_slow_answer_is_awaited(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Search, served: ServedRelease) -> dict[str, bool]:
        time.sleep(2.5 * LONGEST_S)
        return {"slow": True}

    monkeypatch.setattr(Search, "answer", answer)
    assert httpx.post(f"{url}/search", json={"query": "a"}).json() == {"slow": True}


@pytest.mark.parametrize("lengths", [b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"])
def test_a_request_with_two_ends_is_refused_and_the_connection_closed(url: str, lengths: bytes) -> None:
    with _connected(url) as connection:
        body = b'14\r\n{"page": "Sorn"}    \r\n0\r\n\r\n'
        hidden = b"GET /openapi.json HTTP/1.1\r\n" + HEAD + b"\r\n"
        connection.sendall(b"POST /resolve HTTP/1.1\r\n" + HEAD + lengths + b"\r\n" + body + hidden)
        received = _all_of(connection)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in received.lower()
    assert b'"reason":"bad_request"' in received
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /search HTTP/1.1\r\n" + HEAD + b"Content-Length: 100\r\n\r\nhalf",
        b"POST /mcp HTTP/1.1\r\n" + HEAD + b"Accept: application/json, text/event-stream\r\n"
        b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\nhalf",
        b"POST /search HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nha",
        b"GET /page?page=Sorn HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"GET /page?page=Sorn HTTP/1.1\r\n" + HEAD + b"\r\n" * 2,
        b"GET / HT",
        b"GET /mcp HTTP/1.1\r\n" + HEAD + b"Accept: text/event-stream\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)
def test_a_client_that_hangs_up_leaves_no_trace(url: str, sent: bytes) -> None:
    for _ in range(5):
        connection = _connected(url)
        # Reset rather than closed in order, as by a process that was killed.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.sendall(sent)
        time.sleep(0.02)
        connection.close()
    assert httpx.get(f"{url}/resolve?page=Sorn").status_code == 200


def _tool_call(name: str, **arguments: object) -> bytes:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    body = json.dumps(asked).encode()
    head = b"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
    return b"POST /mcp HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n%b" % (HEAD, head, len(body), body)


@pytest.mark.parametrize(
    "sent",
    [b"GET /search?query=a HTTP/1.1\r\n" + HEAD + b"\r\n", _tool_call("search", query="a")],
    ids=["route", "tool"],
)
def test_the_work_for_a_client_that_leaves_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    begun: list[float] = []
    is_at_work = threading.Event()

    def steps(request: Search, served: ServedRelease) -> Iterator[dict[str, bool] | None]:
        for _ in range(600):
            begun.append(time.monotonic())
            is_at_work.set()
            time.sleep(0.1)
            yield None
        yield {"slow": True}

    monkeypatch.setattr(Search, "steps", steps)
    with _connected(url) as connection:
        connection.sendall(sent)
        assert is_at_work.wait(5)
    while time.monotonic() < begun[-1] + 1:
        time.sleep(0.05)
    assert len(begun) < 300  # of 600, each of which takes a tenth of a second


def test_many_slow_clients_keep_nobody_else_waiting(url: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        slow = [_connected(url) for _ in range(100)]
        for connection in slow:
            connection.sendall(b"POST /search HTTP/1.1\r\n" + HEAD + b"Content-Length: 100\r\n\r\nhalf")
        assert threads.submit(httpx.get, f"{url}/resolve?page=Sorn").result(10).status_code == 200
        for connection in slow:
            assert _all_of(connection) == b""
            connection.close()


class Answers:
    """An application whose answers are longer than the buffers of the system, in pieces or in one."""

    N_BYTES = 24 << 20

    def __init__(self) -> None:
        self.n_ended = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        n_pieces = int(scope["path"].strip("/"))
        piece = b"x" * (self.N_BYTES // n_pieces)
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % self.N_BYTES)]}
        )
        for _ in range(n_pieces):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        self.n_ended += 1


@pytest.mark.parametrize("n_pieces", [1, 96])
def test_an_answer_that_is_not_read_is_given_up(n_pieces: int) -> None:
    answers = Answers()
    with (
        served_by(cast(Starlette, answers), longest_s=LONGEST_S, lifespan="off") as address,
        socket.socket() as connection,
    ):
        connection.settimeout(20)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((urlsplit(address).hostname, urlsplit(address).port))
        connection.sendall(b"GET /%d HTTP/1.1\r\n%s\r\n" % (n_pieces, HEAD))
        deadline = time.monotonic() + 20
        while not answers.n_ended and time.monotonic() < deadline:
            connection.recv(1)  # keeps the connection alive, and reads nearly nothing
            time.sleep(0.05)
        assert answers.n_ended == 1  # what it held is free again
        assert len(_all_of(connection)) < answers.N_BYTES // 2


@pytest.mark.parametrize("n_pieces", [1, 96])
def test_an_answer_that_is_read_with_pauses_comes_whole(n_pieces: int) -> None:
    with (
        served_by(cast(Starlette, Answers()), longest_s=LONGEST_S, lifespan="off") as address,
        _connected(address) as connection,
    ):
        connection.sendall(b"GET /%d HTTP/1.1\r\n%sConnection: close\r\n\r\n" % (n_pieces, HEAD))
        n_read = 0
        while piece := connection.recv(1 << 20, socket.MSG_WAITALL):
            n_read += len(piece)
            time.sleep(LONGEST_S / 10)
        assert n_read > Answers.N_BYTES
