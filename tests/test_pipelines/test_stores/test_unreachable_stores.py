"""A store that does not answer ends a command in one line; Beam by itself would ask it for ten minutes."""

from __future__ import annotations

import argparse
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from pipelines.cli import main
from pipelines.stores import object_stores
from pipelines.stores.object_stores import FLAGS, SWITCHES, check_store, parse_flags
from pipelines.stores.storage import options_in_use

KEYS = ["--s3_access_key_id=id", "--s3_secret_access_key=secret"]
COMMANDS = {
    "show": "show {0}/kb x",
    "verify": "verify {0}/kb",
    "verify with a kb": "verify . --kb {0}/kb",
    "locate": "locate {0}/kb --title x",
    "locate with a file": "locate . --title x --title-map {0}/moves",
    "export-kilt": "export-kilt {0}/kb --output -",
    "validate-kilt": "validate-kilt {0}/file.jsonl --kb {0}/kb",
    "evaluate": "evaluate qampari --gold {0}/dev.jsonl",
    "qampari-contexts": "qampari-contexts {0}/qampari --passages {0}/passages --output {0}/contexts",
    "qampari-tasks": "qampari-tasks export {0}/qampari --output {0}/tasks",
    "check-dump": "check-dump {0}/x.xml.bz2",
    "build": "build --dump {0}/x.xml.bz2 --output {0}/kb",
    "wikidata": "wikidata --dump {0}/x.json.bz2 --output {0}/wikidata",
}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment says where stores are, or what is between."""
    monkeypatch.setenv("KBSOURCE_BEAM_OPTIONS", "{}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def closed() -> int:
    """A port of this machine where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.fixture
def silent() -> Iterator[int]:
    """A port of this machine where somebody listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


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
    pytest.importorskip("boto3", reason="needs boto3: pip install 'kbsource[aws]'")
    flags = [f"--s3_endpoint_url=http://127.0.0.1:{closed}", *KEYS]

    said = f's3://bucket cannot be read or written (Could not connect to the endpoint URL: "http://127.0.0.1:{closed}/'
    _ends_in_one_line(capsys, [*command.format("s3://bucket").split(), *flags], said)


@pytest.mark.parametrize("command", [COMMANDS["show"], COMMANDS["build"]])
def test_googles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, closed: int, command: str
) -> None:
    pytest.importorskip("google.cloud.storage", reason="needs google-cloud-storage: pip install 'kbsource[gcp]'")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{closed}")

    _ends_in_one_line(capsys, [*command.format("gs://closed").split(), "--no_auth"], "gs://closed cannot be read")


@pytest.mark.parametrize("command", [COMMANDS["show"], COMMANDS["build"]])
def test_hdfs(capsys: pytest.CaptureFixture[str], closed: int, command: str) -> None:
    pytest.importorskip("hdfs", reason="needs hdfs: pip install 'kbsource[hadoop]'")
    flags = ["--hdfs_host=127.0.0.1", f"--hdfs_port={closed}", "--hdfs_user=wiki"]

    said = f"No name node of HDFS answers at 127.0.0.1:{closed}"
    _ends_in_one_line(capsys, [*command.format("hdfs://folder").split(), *flags], said)


def test_one_that_never_answers(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3", reason="needs boto3: pip install 'kbsource[aws]'")
    monkeypatch.setattr(object_stores, "_READ_TIMEOUT_S", 0.2)
    options = parse_flags([f"--s3_endpoint_url=http://127.0.0.1:{silent}", *KEYS])[0]

    with pytest.raises(SetupError, match="Read timeout on endpoint URL"):
        check_store("s3://bucket/x", options)


def test_one_whose_client_never_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setitem(object_stores._QUESTIONS, "s3", lambda *_: over.wait(60) and None)
    monkeypatch.setattr(object_stores, "ANSWER_TIMEOUT_S", 0.1)

    with pytest.raises(SetupError, match="no answer within 0 seconds"):
        check_store("s3://never/x", {})
    over.set()


def test_wrong_keys_and_buckets_that_are_none_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions = pytest.importorskip("botocore.exceptions", reason="needs boto3: pip install 'kbsource[aws]'")

    def refuse(code: str, status: int) -> None:
        class Client:
            def list_objects_v2(self, **_: object) -> None:
                answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
                raise exceptions.ClientError(answer, "ListObjectsV2")

        monkeypatch.setattr(object_stores, "s3_client", lambda options: Client())

    for code, status in (("InvalidAccessKeyId", 403), ("NoSuchBucket", 404)):
        refuse(code, status)
        with pytest.raises(SetupError, match=rf"s3://b-{status} cannot be read or written .*{code}"):
            check_store(f"s3://b-{status}/x", {})
    for code, status in (("AccessDenied", 403), ("SlowDown", 503)):
        refuse(code, status)
        check_store(f"s3://{code}/x", {})


def test_a_store_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setitem(object_stores._QUESTIONS, "s3", lambda bucket, _: asked.append(bucket))

    for path in ("s3://once/x", "s3://once/y", "s3://once"):
        check_store(path, {"s3_region_name": "r", "runner": path})

    assert asked == ["once"]


def test_flags_are_those_that_beams_file_systems_read() -> None:
    options = pytest.importorskip("apache_beam.options.pipeline_options")
    parser = argparse.ArgumentParser(add_help=False)
    for one in (options.S3Options, options.HadoopFileSystemOptions, options.AzureOptions):
        one._add_argparse_args(parser)
    beams = {action.dest: action.nargs == 0 for action in parser._actions}
    google = {"project": False, "impersonate_service_account": False, "no_auth": True}

    assert {**dict.fromkeys(FLAGS, False), **dict.fromkeys(SWITCHES, True)} == {**beams, **google}


def test_flags_of_stores_are_for_every_command_and_others_for_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["show", str(tmp_path), "x", "--s3_endpoint_url", "http://store:1", "--hdfs_full_urls"]) == 2
    assert options_in_use() == {"s3_endpoint_url": "http://store:1", "hdfs_full_urls": True}
    for wrong in (["--s3_endpoint", "x"], ["--runner", "spark"], ["more"], ["--no_auth", "more"]):
        with pytest.raises(SystemExit) as caught:
            main(["show", str(tmp_path), "x", *wrong])
        assert caught.value.code == 2
        assert "has no option or argument" in capsys.readouterr().err
