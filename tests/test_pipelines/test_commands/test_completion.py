"""What the shell is told while somebody types."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.cli import COMMANDS, main

pytest.importorskip("argcomplete", reason="needs argcomplete: pip install 'kbsource[completion]'")


def completions(line: str, folder: Path) -> list[str]:
    """Gives what bash would offer behind a line, by the protocol of argcomplete."""
    answer = folder / "answer"
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    command = [sys.executable, "-m", "pipelines.cli"]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return [found.strip() for found in answer.read_text().split("\n")]


def test_commands_are_completed(tmp_path: Path) -> None:
    assert set(completions("kbsource ", tmp_path)) >= {command.name for command in COMMANDS}
    assert completions("kbsource qampari-c", tmp_path) == ["qampari-contexts"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("kbsource build --limit", ["--limit-pages"]),
        ("kbsource show release A --js", ["--json"]),
        ("kbsource map fever --wiki-p", ["--wiki-pages"]),
        ("kbsource campaign cand", ["candidates"]),
        ("kbsource campaign candidates --least-o", ["--least-overlap"]),
        ("kbsource completion z", ["zsh"]),
    ],
)
def test_options_and_choices_are_completed(line: str, found: list[str], tmp_path: Path) -> None:
    assert completions(line, tmp_path) == found


def test_paths_are_completed(tmp_path: Path) -> None:
    (tmp_path / "releases").mkdir()

    assert completions(f"kbsource info {tmp_path}/rel", tmp_path) == [f"{tmp_path}/releases/"]


def test_bash_itself_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert script.startswith('# ~/.bashrc gets this line: eval "$(kbsource completion bash)"\n')
    (tmp_path / "kbsource").write_text(f'#!/bin/sh\nexec {sys.executable} -m pipelines.cli "$@"\n')
    (tmp_path / "kbsource").chmod(0o755)
    typed = "COMP_LINE='kbsource verify --q' COMP_POINT=19 COMP_TYPE=9 COMP_WORDS=(kbsource verify --q) COMP_CWORD=2"
    code = f"{script}\n{typed}\n_python_argcomplete kbsource verify --q\nprintf '%s' \"${{COMPREPLY[@]}}\"\n"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": os.getcwd()}
    done = subprocess.run(["bash", "-c", code], env=environment, capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "--qampari", done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_theirs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0

    assert "kbsource" in capsys.readouterr().out
