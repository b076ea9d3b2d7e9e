"""What commands print in a terminal, and what in a pipe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.cli import main
from pipelines.terminal import shortened, table_text
from tests.support.terminals import run_in_terminal

COLOUR = re.compile(r"\x1b\[\d+m")
ROW = re.compile(r"\S {2,}\S")


@pytest.mark.parametrize(
    ("line", "columns", "shown"),
    [
        ("Halvane", 7, "Halvane"),
        ("Halvane", 6, "Halva…"),
        ("é" * 3, 3, "é" * 3),
        ("東京", 3, "東…"),
        ("東京", 4, "東京"),
    ],
)
def test_a_line_is_cut_by_the_columns_that_it_takes(line: str, columns: int, shown: str) -> None:
    assert shortened(line, columns) == shown


def test_wide_letters_take_two_columns_of_a_table() -> None:
    assert table_text([("東京", "1"), ("Rome", "20")], right=[1]) == "東京   1\nRome  20"


@pytest.mark.parametrize("command", ["info", "templates"])
def test_rows_are_cut_in_a_terminal_and_whole_in_a_pipe(
    command: str, release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown = run_in_terminal([command, str(release)], columns=60)
    assert main([command, str(release)]) == code == 0
    whole = capsys.readouterr().out

    plain = COLOUR.sub("", shown)
    rows = [line for line in plain.splitlines() if ROW.search(line)]
    assert max(map(len, rows)) == 60
    assert any(row.endswith("…") for row in rows)
    assert [shortened(line, 60) if ROW.search(line) else line for line in whole.splitlines()] == plain.splitlines()
    assert "\x1b" not in whole


def test_what_is_sound_is_green_in_a_terminal_alone(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run_in_terminal(["verify", str(release)], columns=60)[1]

    assert "\x1b[32mSound\x1b[0m: " in shown
    assert main(["verify", str(release)]) == 0
    assert "\x1b" not in "".join(capsys.readouterr())


def test_a_fault_is_red_in_terminals_that_want_colour(tmp_path: Path) -> None:
    command = ["show", str(tmp_path / "nowhere"), "A"]
    code, shown = run_in_terminal(command, columns=60)

    assert code == 2
    assert shown.startswith("\x1b[31mkbsource show:\x1b[0m ")
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, shown = run_in_terminal(command, columns=60, **plain)
        assert shown.startswith("kbsource show: ")
        assert not COLOUR.search(shown)
