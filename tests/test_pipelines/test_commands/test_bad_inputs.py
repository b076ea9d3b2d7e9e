"""Every command with what no command can use: it says so in a line of its own, with an exit code, and at once."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kbsource.errors import SetupError
from kbsource.release.pages.kind import PAGES_RELEASE
from pipelines.cli import main
from pipelines.commands import COMMANDS
from tests.support import mini_wiki
from tests.support.derived_releases import Piece, Record, write_alignment
from tests.support.dumps import flip

BUILD = ("build", str(mini_wiki.MULTISTREAM), "--max-rejects", "1", "--output", "{out}")
MAP_OPTIONS = ("{release}", "--split", "dev", "--output", "{out}")
FILES = (
    ("check-dump", "{bad}"),
    ("check-text", "{bad}"),
    ("build", "{bad}", "--output", "{out}"),
    (*BUILD, "--page-props", "{bad}"),
    (*BUILD, "--siteinfo", "{bad}"),
    ("wikidata", "{bad}", "--output", "{out}"),
    ("locate", "{release}", "--input", "{bad}"),
    *(("map", dataset, *MAP_OPTIONS, "--input", "{bad}") for dataset in ("fever", "hotpotqa", "nq", "jsonl", "trex")),
    ("map", "kilt", *MAP_OPTIONS, "--from-kb", "{release}", "--input", "{bad}"),
    ("map", "all", "{release}", "--config", "{bad}", "--output", "{out}"),
    ("validate-kilt", "{release}", "{bad}"),
    ("evaluate", "qampari", "{bad}", "--predictions", "{bad}"),
    ("evaluate", "kilt", "{bad}", "{bad}"),
    ("campaign", "candidates", "{bad}", "{bad}", "--output", "{out}"),
    ("campaign", "tasks", "{bad}", "--output", "{out}"),
    ("qampari", "{release}", "{release}", "--relations", "{bad}", "--output", "{out}"),
)
"""Commands that want a file."""
FOLDERS = (
    ("verify", "{bad}"),
    ("info", "{bad}"),
    ("show", "{bad}", "12"),
    ("sql", "{bad}", "select 1"),
    ("locate", "{bad}", "--title", "x", "--evidence", "x"),
    ("export", "{bad}", "--output", "{out}"),
    ("export-kilt", "{bad}", "--output", "{out}"),
    (*BUILD, "--wikidata", "{bad}"),
    ("nli", "--model", "{bad}", "--premise", "x", "--hypothesis", "x"),
    ("passages", "{bad}", "--output", "{out}"),
    ("qampari", "{bad}", "{bad}", "--model", "none", "--output", "{out}"),
    ("qampari-tasks", "export", "{bad}", "--output", "{out}"),
    ("qampari-contexts", "{bad}", "{bad}", "--output", "{out}"),
)
"""Commands that want a folder."""


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def noise(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(3000))


def nested(path: Path) -> None:
    path.write_text('{"id": "1", "input": ' + "[" * 100_000 + "]" * 100_000 + "}\n")


BAD: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "folder": Path.mkdir,
    "empty": Path.touch,
    "noise": noise,
    "nested": nested,
    "pipe": a_pipe,
}


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"demo"}))  # which needs nothing
def test_a_command_without_arguments_says_what_it_needs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"kbsource {name}: ")


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", [*FILES, *FOLDERS], ids=lambda command: "_".join(command)[:60])
def test_what_no_command_can_use_is_named(
    command: tuple[str, ...], kind: str, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad"
    BAD[kind](bad)
    places = {"{bad}": str(bad), "{release}": str(release), "{out}": str(tmp_path / "out")}
    given = [places.get(word, word) for word in command]

    code = main(given)

    captured = capsys.readouterr()
    said = captured.err + captured.out
    assert code in (1, 2)
    assert "bad" in said or (kind == "nested" and "1 malformed_json" in said)
    assert "Errno" not in said
    assert "error: bad: /" not in said
    assert "line 1: line 1" not in said
    assert all(char.isprintable() or char == "\n" for char in captured.err)
    if command in FOLDERS and kind not in ("missing", "folder", "nested"):
        assert "not a folder" in said or "no such folder" in said


@pytest.mark.parametrize("path", ["../escaped.parquet", "/etc/passwd", "pages/./x", "pages//x"])
def test_a_path_that_leads_out_of_a_release_is_refused(path: str, release: Path, tmp_path: Path) -> None:
    manifest = json.loads((release / "manifest.json").read_bytes())
    manifest["tables"]["pages"][0]["file"] = path
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SetupError, match="is not a path in a release"):
        PAGES_RELEASE.read(str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("change", ["cut", "emptied", "swapped", "flipped"])
@pytest.mark.parametrize("pattern", ["index/*", "pages/*"])
def test_a_damaged_file_of_a_release_is_told_in_a_line(
    pattern: str, change: str, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in sorted(release.glob(pattern)):
        copy = shutil.copytree(release, tmp_path / file.name / "release")
        content = file.read_bytes()
        other = next(path for path in sorted(release.glob("*/*")) if path.suffix == file.suffix and path != file)
        changed = {
            "cut": content[: len(content) // 2],
            "emptied": b"",
            "swapped": other.read_bytes(),
            "flipped": flip(content, len(content) // 3, bits=1),
        }[change]
        (copy / file.relative_to(release)).write_bytes(changed)
        for command in (
            ["show", str(copy), "12"],
            ["show", str(copy), "Port Sellick"],
            ["locate", str(copy), "--title", "Port Selik", "--evidence", "a harbour"],
            ["export-kilt", str(copy), "--output", str(tmp_path / "out.jsonl")],
            ["verify", str(copy)],
        ):
            code = main(command)
            assert code in (0, 1, 2)
            assert command[0] != "verify" or code == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if not line.startswith(("kbsource ", "verify: ", "export: ", "Similar", "  "))] == []


@pytest.mark.parametrize("table", ["records", "misses"])
@pytest.mark.parametrize("column", ["example_id", "outcome"])
def test_a_table_without_a_column_is_told_in_a_line(
    table: str, column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_alignment(tmp_path / "aligned", [Record(id="4", pieces=[Piece()])])
    for file in (folder / table).iterdir():
        found = pq.read_table(file)
        pq.write_table(
            found.rename_columns([f"{name}x" if name == column else name for name in found.schema.names]), file
        )
    assert main(["show", str(folder), "4"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{table}-00000-of-" in line
    assert f"has no column {column}" in line
    assert "kbsource verify" in line
