"""Whatever is sent to ``inspect`` and ``serve`` is answered or refused: no fault, no trace in the log, no file written.

``pytest tests/test_mapping/test_serving/test_http_fuzz.py --hypothesis-profile fuzz`` sends twenty times as much.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.inspector.app import inspector_app as inspector_of
from mapping.inspector.opened import close_releases, open_releases
from mapping.serving.operations import OPERATIONS, SHAPES, ServedRelease
from tests.support.browser import served as served_by
from tests.support.served import app_of

METHODS = (
    "GET",
    "POST",
    "HEAD",
    "PUT",
    "DELETE",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "G" * 40,
    "",
)
PARTS = (
    *("", "r", "release", "tables", "pages", "redirects", "rejected", "sql", "stop", "search", "titles.json", "page"),
    *(
        "1",
        "0",
        "-1",
        "9" * 30,
        "links",
        "table",
        "random",
        "measures",
        "static",
        "inspector.js",
        "vendor",
        "charts.js",
    ),
    *("..", "%2e%2e", "%00", "%ff", ".", "manifest.json", "etc", "passwd", "mcp", "openapi.json", "favicon.ico", "a;b"),
    *(quote(part) for part in ("𝔘", "\n", "'", '"', "<script>", "%s", "{{7*7}}", " ", "\\")),
    *OPERATIONS,
    *SHAPES,
)
NAMES = (
    *(
        "query",
        "q",
        "page",
        "element",
        "k",
        "from",
        "sort",
        "columns",
        "format",
        "hl",
        "part",
        "section",
        "title",
        "token",
    ),
    *(
        "page_id",
        "page_id.from",
        "page_id.to",
        "queries",
        "topk",
        "quote",
        "passage_id",
        "start_char",
        "end_char",
        "all",
    ),
    *("direction", "start", "run", "return_scores", "revision_id", "𝔘", ""),
)
VALUES = (
    *(
        "",
        "Sorn",
        "-",
        "0",
        "1",
        "-1",
        "9" * 25,
        "1e309",
        "nan",
        "0x1",
        "csv",
        "parquet",
        "title",
        "-title",
        "-page_id",
    ),
    *(
        "Q7",
        "in",
        "out",
        "a" * 3000,
        "\x00",
        "\ud800",
        "𝔘",
        "3:0-3:40,x",
        "1:0-",
        "'; drop view pages; --",
        "%",
        "_",
        "null",
    ),
    *(
        "select 1",
        "VALUES ((((",
        "with t as (copy (select 1) to 'written') select 1",
        "[]",
        "{}",
        "http://",
        "Art",
        "true",
    ),
)
HEADERS = (
    *(
        "Host: evil.example",
        "Host:",
        "Host: [::1]",
        "Host: localhost:99999",
        "Origin: null",
        "Origin: http://127.0.0.1",
    ),
    *(
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: none",
        "Content-Length: 5",
        "Content-Length: -1",
        "Content-Length: x",
    ),
    *("Content-Length: 99999999999", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Expect: 100-continue"),
    *(
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Upgrade: h2c",
        "Range: bytes=0-5",
        "Range: bytes=9-1,x",
        "Range: x",
    ),
    *("If-None-Match: x", "If-Modified-Since: yesterday", "Accept: text/event-stream", "Accept: application/json"),
    *("Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded", "Content-Type: multipart/x"),
    *(
        "Accept-Encoding: gzip;q=x",
        "Cookie: a=b; =",
        "X: \xff",
        "X : y",
        " folded",
        "no colon",
        "X: a\0b",
        "X: " + "y" * 9000,
    ),
    *("Mcp-Session-Id: x", "Mcp-Protocol-Version: 1", "Last-Event-ID: 1", "Authorization: Basic x"),
)
SENT = (
    *("", "x", "{", "[]", "null", '"x"', "1e999", '{"page": "Sorn"}', '{"query": "a", "k": 3}', '{"queries": ["a"]}'),
    *('{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', '{"jsonrpc": "2.0", "method": 7}', "[" * 5000),
    *(
        '{"page": ' + "[" * 3000,
        "5\r\nhello\r\n0\r\n\r\n",
        "ffffffffffffffff\r\n",
        "query=select+1",
        "query=%ff&token=%00",
    ),
)
ANSWER = re.compile(rb"HTTP/1\.1 (\d{3}) ")

some_text = st.sampled_from(VALUES) | st.text(max_size=30)
queries = st.lists(st.tuples(st.sampled_from(NAMES), some_text), max_size=4).map(
    lambda pairs: urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in pairs])
)
targets = st.tuples(st.lists(st.sampled_from(PARTS), max_size=6), queries).map(
    lambda own: f"/{'/'.join(own[0])}?{own[1]}"
)
bodies = st.sampled_from(SENT) | queries | st.text(max_size=200)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """What a client sends, mostly sound."""
    method, target, body = draw(st.sampled_from(METHODS)), draw(targets), draw(bodies).encode("utf-8", "surrogatepass")
    headers = draw(st.lists(st.sampled_from(HEADERS), max_size=3))
    if draw(st.integers(0, 4)):
        headers.insert(0, "Host: 127.0.0.1")
    if draw(st.integers(0, 4)):
        headers.append(f"Content-Length: {len(body)}")
    head = f"{method} {target} HTTP/1.{draw(st.sampled_from('1110x'))}\r\n" + "".join(f"{own}\r\n" for own in headers)
    sent = head.encode("latin-1", "replace") + b"Connection: close\r\n\r\n" + body
    if not draw(st.integers(0, 9)):
        sent = sent[: draw(st.integers(0, len(sent)))]
    return sent if draw(st.integers(0, 9)) else draw(st.binary(max_size=200)) + sent


@pytest.fixture(scope="module", params=["serve", "inspect"])
def server(
    request: pytest.FixtureRequest,
    served: ServedRelease,
    folders: tuple[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, Path]]:
    """The address of a server, and the folder of what it shows; the folder that it was started in is empty."""
    folder, empty = Path(folders[0]).parent, tmp_path_factory.mktemp("empty")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(empty)
        if request.param == "serve":
            app = app_of(served, has_tools=True)
            with served_by(app, longest_s=0.3, lifespan="on") as url:
                yield url, folder
        else:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
            releases = open_releases([folders[0]])
            with served_by(inspector_of(releases), longest_s=0.3, lifespan="on") as url:
                yield url, folder
            close_releases(releases)
        assert list(empty.iterdir()) == []


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        entry.path: (entry.stat().st_size, entry.stat().st_mtime_ns)
        for root, _, _ in os.walk(folder)
        for entry in os.scandir(root)
    }


@pytest.mark.slow
def test_whatever_is_sent_is_answered_or_refused(server: tuple[str, Path], caplog: pytest.LogCaptureFixture) -> None:
    url, folder = server
    address, before, logged = urlsplit(url), _files(folder), logging.getLogger("uvicorn")
    token = dict(re.findall(r'name="(token)" value="([^"]+)"', httpx.get(f"{url}/r/release/sql").text)).get("token", "")

    @given(requests())
    def send(sent: bytes) -> None:
        caplog.clear()
        sent = sent.replace(b"token=", b"token=" + token.encode() + b"&x=")
        received = b""
        with socket.create_connection((address.hostname or "", address.port or 80), timeout=20) as connection:
            try:
                connection.sendall(sent)
                while piece := connection.recv(1 << 16):
                    received += piece
            except ConnectionError:
                pass
        found = ANSWER.match(received)
        assert found or not received
        assert found is None or int(found[1]) < 500 or int(found[1]) in (501, 503), (sent, received[:2000])
        assert b"Traceback" not in received
        faults = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
        assert faults == [], sent

    logged.addHandler(caplog.handler)
    try:
        send()
    finally:
        logged.removeHandler(caplog.handler)
    assert _files(folder) == before
    assert httpx.get(url).status_code == 200
