"""``kbsource inspect``: starts, answers, and ends quietly."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from pipelines.cli import main
from pipelines.commands.serve import _listen


def test_it_prints_its_address_answers_and_ends_quietly(release: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipelines.cli", "inspect", str(release), "--port", "0"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        with urlopen(url) as answer:
            assert answer.status == 200
            assert "release of pages" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "65536"], "--port is 65536. Must be <= 65535."),
        (["--host", "no.such.host.invalid"], "--host no.such.host.invalid"),
    ],
)
def test_where_nobody_can_listen_is_told(
    release: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(release), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["inspect", str(release), "--port", str(taken.getsockname()[1])]) == 2
    assert "choose another port" in capsys.readouterr().err


def test_answers_do_not_wait_for_the_clients_word_on_their_first_piece() -> None:
    with _listen("127.0.0.1", None, 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_what_is_no_release_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path)]) == 2
    assert "no finished release" in capsys.readouterr().err


def test_a_missing_extra_is_named(
    release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Hidden:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "uvicorn":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.delitem(sys.modules, "uvicorn", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])
    assert main(["inspect", str(release)]) == 2
    assert "pip install 'kbsource[inspect]'" in capsys.readouterr().err
