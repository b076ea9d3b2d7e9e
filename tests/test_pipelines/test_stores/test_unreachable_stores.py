"""A store that does not answer ends a command in one line; Beam by itself would ask it for ten minutes."""

from __future__ import annotations

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.files import options_in_use
from kbsource.stores import store_of
from pipelines.cli import main

KEYS = ["--storage=aws_access_key_id=id", "--storage=aws_secret_access_key=secret"]
COMMANDS = {
    "show": "show {0}/kb x",
    "verify": "verify {0}/kb",
    "verify with a kb": "verify . --kb {0}/kb",
    "locate": "locate {0}/kb --title x",
    "locate with a file": "locate . --title x --title-map {0}/moves",
    "export": "export {0}/kb --output -",
    "export-kilt": "export-kilt {0}/kb --output -",
    "validate-kilt": "validate-kilt {0}/kb {0}/file.jsonl",
    "evaluate": "evaluate qampari {0}/dev.jsonl --predictions {0}/predictions.jsonl",
    "qampari-contexts": "qampari-contexts {0}/qampari {0}/passages --output {0}/contexts",
    "qampari-tasks": "qampari-tasks export {0}/qampari --output {0}/tasks",
    "check-dump": "check-dump {0}/x.xml.bz2",
    "check-text": "check-text {0}/x.ndjson",
    "build": "build {0}/x.xml.bz2 --output {0}/kb",
    "wikidata": "wikidata {0}/x.json.bz2 --output {0}/wikidata",
}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment says where stores are, or what is between."""
    monkeypatch.setenv("KBSOURCE_STORAGE", "{}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def closed() -> int:
    """A port of this machine where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _ends_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    start = time.monotonic()
    code = main(arguments)
    captured = capsys.readouterr()

    assert code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"kbsource {arguments[0]}: ")
    assert said in captured.err
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_amazons_protocol(capsys: pytest.CaptureFixture[str], closed: int, command: str) -> None:
    flags = [f"--storage=aws_endpoint_url=http://127.0.0.1:{closed}", *KEYS]

    said = "s3://bucket cannot be read or written (Generic S3 error: Error performing list request"
    _ends_in_one_line(capsys, [*command.format("s3://bucket").split(), *flags], said)


@pytest.mark.parametrize("command", [COMMANDS["show"], COMMANDS["build"]])
def test_googles(capsys: pytest.CaptureFixture[str], closed: int, command: str) -> None:
    flags = [f"--storage=google_base_url=http://127.0.0.1:{closed}", "--storage=google_bearer_token=x"]

    _ends_in_one_line(capsys, [*command.format("gs://closed").split(), *flags], "gs://closed cannot be read")


@pytest.mark.parametrize("command", [COMMANDS["show"], COMMANDS["build"]])
def test_hdfs(capsys: pytest.CaptureFixture[str], closed: int, command: str) -> None:
    pytest.importorskip("hdfs", reason="needs hdfs: pip install 'kbsource[hadoop]'")
    flags = ["--storage=hdfs_host=127.0.0.1", f"--storage=hdfs_port={closed}"]

    said = f"No name node of HDFS answers at 127.0.0.1:{closed}"
    _ends_in_one_line(capsys, [*command.format("hdfs://folder").split(), *flags], said)


@pytest.mark.parametrize(
    ("code", "status", "is_refused"),
    [
        ("InvalidAccessKeyId", 403, True),
        ("NoSuchBucket", 404, True),
        ("AccessDenied", 403, False),  # who may not list may still be allowed to read
        ("SlowDown", 503, False),  # may pass
    ],
)
def test_wrong_keys_and_buckets_that_are_none_are_named(code: str, status: int, is_refused: bool) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>No.</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = (
            ("aws_access_key_id", "id"),
            ("aws_endpoint_url", f"http://127.0.0.1:{server.server_address[1]}"),
            ("aws_secret_access_key", "x"),
        )
        if is_refused:
            with pytest.raises(SetupError, match=rf"s3://b cannot be read or written .*{code}: No\.\)\. Check the b"):
                store_of("s3://b", options)
        else:
            store_of("s3://b", options)
        server.shutdown()


def test_flags_of_stores_are_for_every_command_and_others_for_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = ["--storage", "aws_endpoint_url=http://store:1", "--storage=HDFS-USER=wiki"]
    assert main(["show", str(tmp_path), "x", *given]) == 2
    assert options_in_use() == {"aws_endpoint_url": "http://store:1", "hdfs_user": "wiki"}
    capsys.readouterr()
    for wrong, said in (
        (["--storage", "x"], "--storage x: give KEY=VALUE, like aws_endpoint_url=http://store:9000"),
        (["--storage"], "--storage needs a value. See kbsource --help."),
        (
            ["--storage", "color=red"],
            "--storage color: there is no such option. The name is that of an environment variable",
        ),
        (["--runner", "spark"], "there is no option --runner. See kbsource show --help."),
        (["more"], "more: kbsource show accepts only RELEASE and PAGE. "),
    ):
        assert main(["show", str(tmp_path), "x", *wrong]) == 2
        assert capsys.readouterr().err.startswith(f"kbsource show: {said}")
