"""``kbsource demo``: the steps, and those that cannot be taken."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines.app import parse_command
from pipelines.cli import main
from pipelines.commands import demo
from pipelines.commands.demo import STEPS, step_arguments
from tests.support.blocked import OTHERS, command_without
from tests.support.real_data import ROOT


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commands that were run; instead of running they make what they would write."""
    names: list[str] = []

    def run(arguments: Sequence[str]) -> int:
        names.append(arguments[0])
        if "--output" in arguments:
            Path(arguments[arguments.index("--output") + 1]).mkdir(parents=True)
        return 0

    monkeypatch.setattr(demo, "run_step", run)
    return names


def test_every_step_is_a_command_of_files_that_there_are() -> None:
    for step in STEPS:
        arguments = step_arguments(step, "out")
        parse_command(arguments)
        given = [word for word in shlex.split(step.arguments) if word.startswith("@")]
        files = [word for word in arguments if word.startswith(("/", "kbsource/demo/"))]
        assert len(given) == len(files)
        assert all(Path(file).exists() for file in files)


def test_all_steps_are_taken_and_the_last_line_opens_the_inspector(
    taken: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--output", str(tmp_path / "out")]) == 0

    text = capsys.readouterr().out
    assert len(taken) == len(STEPS)
    assert "Skipped" not in text
    names = ("release", "aligned", "amber", "qampari", "passages", "benchmark")
    assert text.splitlines()[-1].endswith(" ".join(["kbsource inspect", *(f"{tmp_path}/out/{name}" for name in names)]))
    assert text.count("$ kbsource ") == len(STEPS)


def test_steps_that_lack_an_extra_are_left_out_and_named(
    taken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "first_missing", lambda extra: "spacy" if extra == "align" else None)
    assert main(["demo", "--output", str(tmp_path / "out")]) == 0

    text = capsys.readouterr().out
    assert taken == ["wikidata", "verify", "build", "verify", "info", "show", "pageviews", "show", "export-kilt"]
    assert "Passages for a retriever: spacy is not installed: pip install 'kbsource[align]'" in text
    assert "the step that makes amber/ was skipped." in text
    assert text.splitlines()[-1].endswith(f"kbsource inspect {tmp_path}/out/release")


def test_a_step_that_fails_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "run_step", lambda arguments: 1)

    with pytest.raises(SystemExit, match="1"):
        main(["demo", "--output", str(tmp_path / "out")])
    assert "step 1 ended with exit code 1" in capsys.readouterr().err


def test_what_is_there_is_not_touched(taken: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").touch()

    assert main(["demo", "--output", str(tmp_path)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert not taken


def test_the_base_alone_can_make_nothing(tmp_path: Path) -> None:
    done = command_without(OTHERS, ["demo", "--output", str(tmp_path / "out")])

    assert done.returncode == 2
    assert done.stderr == "kbsource demo: no step can run: duckdb is not installed: pip install 'kbsource[build]'\n"
    assert not done.stdout


def test_make_demo_takes_the_same_steps() -> None:
    assert "kbsource demo --output" in (ROOT / "Makefile").read_text()
