"""Every option of every command with values that nobody means: taken within its bounds, or refused in a short line."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App, Argument, CycloptsError, Token

from mapping.options import LARGEST, LONGEST_TEXT
from pipelines.app import make_app, parse_fault
from pipelines.cli import main
from pipelines.terminal import printable
from tests.support import mini_wiki

pytestmark = pytest.mark.slow  # every option of every command

VALUES = {
    "empty": "",
    "blank": " ",
    "a NUL": "a\0b",
    "a line break": "a\nb",
    "a control sequence": "\x1b[31m",
    "a path out": "../../etc",
    "no option": "-",
    "negative": "-1",
    "no number": "nan",
    "infinite": "inf",
    "too small": "1e-400",
    "too large": "1e400",
    "20 digits": "9" * 20,
    "5,000 digits": "9" * 5000,
    "a long name": "a" * 5000,
    "a long path": "a/" * 60_000,
    "a long text": "a b " * 40_000,
    "a long list": "1," * 60_000,
    "a wide text": "𝕏" * 120_000,
}
MOST_CHARS = 500


def commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    """Every command that can be typed, by its names."""
    if path and app.default_command is not None:
        yield " ".join(path), app
    for name in app:
        if not name.startswith("-"):
            yield from commands(app[name], (*path, name))


@pytest.fixture(scope="module")
def options() -> dict[str, Argument]:
    """Every option and argument of every command, one of several that are the same."""
    found: dict[Any, tuple[str, Argument]] = {}
    app = make_app()
    for name, command in (("every command", app.meta), *commands(app)):
        for argument in command.assemble_argument_collection():
            if argument.parse and argument.show and not argument.children:
                is_same = (argument.name, repr(argument.hint), repr(argument.parameter))
                found.setdefault(is_same, (f"{name} {argument.name}", argument))
    return dict(found.values())


def is_bounded(value: Any) -> bool:
    """What an option took is no more than any machine and any format can work with."""
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT and "\0" not in value
    if isinstance(value, int | float):
        return isfinite(value) and abs(value) <= LARGEST
    return all(map(is_bounded, value or ()))


@pytest.mark.parametrize("hostile", VALUES)
def test_every_option_is_bounded_and_what_it_refuses_is_told_in_a_line(
    options: dict[str, Argument], hostile: str
) -> None:
    wrong = []
    for name, declared in options.items():
        argument = copy(declared)
        argument.tokens = [Token(keyword=declared.name, value=VALUES[hostile], source="cli")]
        try:
            if not is_bounded(argument.convert_and_validate()):
                wrong.append(f"{name} takes it")
        except CycloptsError as error:
            said = printable(parse_fault(error))
            if len(said) > MOST_CHARS or not said.isprintable():
                wrong.append(f"{name} says {said[:MOST_CHARS]!r}")
    assert wrong == []


BUILD = ("build", str(mini_wiki.MULTISTREAM))
DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "command",
    [
        (*BUILD, "--output", "a" * 5000),
        (*BUILD, "--output", "{tmp}/" + "a" * 250),  # there is no room for what is put behind it
        (*BUILD, "--output", ""),
        (*BUILD, "--output", "{tmp}/out", "--limit-pages", "9" * 20),
        (*BUILD, "--output", "{tmp}/out", "--worker-memory", "9" * 20),
        (*BUILD, "--output", "{tmp}/out", "--range-bytes", "1"),
        (*BUILD, "--output", "{tmp}/out", "--" + "o" * 100_000),
        ("map", "fever", "{release}", "--input", "x", "--output", "{tmp}/out", "--stem", "a" * 5000),
        ("map", "d" * 100_000),
        ("c" * 100_000,),
        ("show", "{release}", DIGITS),
        ("show", "{release}", "Q" + DIGITS[:3000]),
        ("show", "{release}", "9" * 20),
        ("show", "{release}", "no such page \n\x1b[31m" * 99),
        ("show", "r" * 100_000, "A"),
        ("locate", "{release}", "--id", DIGITS),
        ("locate", "{release}", "--id", DIGITS[:4000]),
        ("locate", "{release}", "--qid", "Q" + "9" * 20),
        ("locate", "{release}", "--evidence", "no such text " * 5000, "--title", "Halvane Isles"),
        ("report", "{release}", "--output", "{tmp}/" + "a" * 253),
        ("export-kilt", "{release}", "--output", "{tmp}/" + "a" * 253),
        ("campaign", "candidates", "gold", "run", "--output", "{tmp}/out", "--lang", "../../etc"),
        ("info", "{release}", "--storage", "x" * 100_000),
        ("info", "s3://" + "b" * 3000),
    ],
    ids=lambda command: " ".join(command)[:60],
)
def test_what_nobody_means_ends_at_once_with_a_line(
    command: tuple[str, ...], release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([word.replace("{tmp}", str(tmp_path)).replace("{release}", str(release)) for word in command])

    said = capsys.readouterr().err.splitlines()
    assert code in (1, 2)
    assert all(len(line) <= MOST_CHARS and line.isprintable() for line in said)
    if code == 2:
        assert len([line for line in said if line.startswith("kbsource")]) == 1
