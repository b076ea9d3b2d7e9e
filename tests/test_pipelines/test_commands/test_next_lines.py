"""Lines that begin with "Next": they can be typed as they are, or say what is to be filled in."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.app import parse_command
from pipelines.cli import main
from pipelines.commands.align import sorted_verdicts
from pipelines.terminal import PLACEHOLDERS, Summary, command_line, next_words, show_line
from tests.support import mini_wiki
from tests.support.real_data import ROOT


def next_line(text: str) -> str:
    """The command line that a command printed as the next one."""
    (line,) = (line for line in text.splitlines() if line.startswith("Next"))
    return line.partition(": ")[2]


def test_a_line_with_names_to_fill_in_says_which(capsys: pytest.CaptureFixture[str]) -> None:
    Summary(next=command_line("evaluate", "kilt", "gold/FILE", "PREDICTIONS")).show(as_json=False)
    assert capsys.readouterr().out == (
        "Next, with your own names for FILE and PREDICTIONS: kbsource evaluate kilt gold/FILE PREDICTIONS\n"
    )
    assert next_words("kbsource verify out") == "Next"


def test_names_to_fill_in_are_known() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "pipelines" / "commands").glob("*.py")]
    calls = [call for text in sources for call in re.findall(r"command_line\((?:[^()]|\([^()]*\))*\)", text)]
    assert len(calls) > 30
    words = {word for call in calls for word in re.findall(r'[/"]([A-Z]{2,})"', call)}
    assert words >= {"FILE", "PREDICTIONS"}
    assert words <= PLACEHOLDERS


def test_a_path_with_many_blanks_is_never_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pipelines.terminal.columns_of", lambda _: 40)
    Summary(next=command_line("inspect", "a   folder/" + "x" * 60)).show(as_json=False)
    assert shlex.split(next_line(capsys.readouterr().out)) == ["kbsource", "inspect", "a   folder/" + "x" * 60]


def test_a_title_like_an_option_is_shown(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(show_line(str(release), "-30-"))[1:]) == 1
    assert "no page for '-30-'" in capsys.readouterr().err


def test_a_dump_names_its_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder := tmp_path / "with blanks").mkdir()
    dump = folder / mini_wiki.MULTISTREAM.name
    dump.symlink_to(mini_wiki.MULTISTREAM)
    assert main(["check-dump", str(dump)]) == 0
    typed = shlex.split(next_line(capsys.readouterr().out))
    assert typed == ["kbsource", "build", str(dump), "--output", "releases/miniwiki-20260101"]
    assert parse_command(typed[1:]) is not None


def test_what_is_next_to_a_published_folder_works(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", str(release), "--output", str(tmp_path / "for a hub"), "--copy"]) == 0
    said = capsys.readouterr().out
    assert f"hf upload OWNER/NAME '{tmp_path}/for a hub' --repo-type dataset" in said
    assert main(shlex.split(next_line(said))[1:]) == 0


def test_make_ends_with_the_line_that_activates_the_environment() -> None:
    # These tests may be run by make themselves, whose flags are for its own children.
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(["make", "-n", "demo"], cwd=ROOT, env=alone, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == 'echo ". .venv-demo/bin/activate"'
    assert "--quiet" not in done.stdout
    done = subprocess.run(["make", "-n", "test"], cwd=ROOT, env=alone, capture_output=True, text=True, check=True)
    tests = done.stdout
    assert "about seven minutes" in tests[: tests.index("pytest")]


def test_the_line_that_lists_verdicts_is_python(tmp_path: Path) -> None:
    path = tmp_path / "verdicts of o'neill.jsonl"
    path.write_text('{"entailment": 0.5}\n{"entailment": 0.1}\n')
    _, *typed = shlex.split(sorted_verdicts(str(path)))
    done = subprocess.run([sys.executable, *typed], capture_output=True, text=True, check=True)
    assert done.stdout.index("0.1") < done.stdout.index("0.5")
