"""Releases of strangers: whatever their names are, they are refused in a line, and nothing of them is run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mapping.inspector.opened import close_releases, open_releases
from pipelines.cli import main
from tests.support.derived_releases import Piece, Record, write_alignment, write_amber
from tests.support.diff_worlds import made_diff
from tests.support.inspected import client_of
from tests.support.pages import synthetic_pages
from tests.support.qampari import drawn, question, write_qampari
from tests.support.strangers import LOOT, copied, entry_of, hostile_name, sealed, writes

Capsys = pytest.CaptureFixture[str]
Values = dict[str, Any]
PAGES = "pages/pages-00000-of-00002.parquet"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases and their diff, as ``old``, ``new`` and ``diff``."""
    folder = tmp_path_factory.mktemp("world")
    made_diff(folder / "made", seed=1, n_changes=3)
    for name in ("old", "new"):
        (folder / "made" / name / "release").rename(folder / name)
    (folder / "made" / "diff").rename(folder / "diff")
    return folder


def add_table(name: str, file: str) -> Callable[[Path], None]:
    """Lists a copy of the first file of pages as the file of a further table."""

    def change(folder: Path) -> None:
        values = json.loads((folder / "manifest.json").read_text())
        path = folder / file.format(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / PAGES, path)
        values["tables"][name] = [entry_of(folder, file.format(name=name))]
        (folder / "manifest.json").write_bytes(sealed(values))

    return change


def rename_column(name: str) -> Callable[[Path], None]:
    """Gives the first column of all files of pages another name."""

    def change(folder: Path) -> None:
        values = json.loads((folder / "manifest.json").read_text())
        for number, entry in enumerate(values["tables"]["pages"]):
            table = pq.read_table(folder / entry["file"])
            pq.write_table(table.rename_columns([name, *table.column_names[1:]]), folder / entry["file"])
            values["tables"]["pages"][number] = entry_of(folder, entry["file"])
        (folder / "manifest.json").write_bytes(sealed(values))

    return change


def with_values(change: Callable[[Values], Any]) -> Callable[[Path], None]:
    """Changes what the manifest says."""

    def changed(folder: Path) -> None:
        values = json.loads((folder / "manifest.json").read_text())
        change(values)
        (folder / "manifest.json").write_bytes(sealed(values))

    return changed


def first(values: Values) -> Values:
    """The first file of pages."""
    entry: Values = values["tables"]["pages"][0]
    return entry


def link(path: str, target: str) -> Callable[[Path], None]:
    """Puts a link where a file or folder is, to one outside."""

    def change(folder: Path) -> None:
        outside = folder.parent / f"outside-{Path(path).name}"
        shutil.move(folder / path, outside)
        (folder / path).symlink_to(target.format(outside=outside))

    return change


ATTACKS: dict[str, tuple[Callable[[Path, Path], Callable[[Path], None]], str]] = {
    "name of a table": (lambda loot, own: add_table(hostile_name(loot), PAGES.replace("00000", "00007")), "no table"),
    "name of a table and its folder": (
        lambda loot, own: add_table("x\"; copy (select 1) to 'loot.txt'; --", "{name}/{name}-00000-of-00001.parquet"),
        "no table",
    ),
    "table that aims at its manifest": (
        lambda loot, own: add_table(hostile_name(own / "manifest.json"), PAGES.replace("00000", "00007")),
        "no table",
    ),
    "name of a column": (lambda loot, own: rename_column(hostile_name(loot)), "column"),
    "column that aims at its manifest": (
        lambda loot, own: rename_column(f'x" from pages; {writes(own / "manifest.json")}; --'),
        "column",
    ),
    "name of a file": (
        lambda loot, own: with_values(lambda values: first(values).update(file=f"pages/x']); {writes(loot)}; --")),
        "not a file of the table pages",
    ),
    "wildcards": (
        lambda loot, own: with_values(lambda values: first(values).update(file="pages/*.parquet")),
        "not a file of the table pages",
    ),
    "file of another table": (
        lambda loot, own: with_values(lambda values: first(values).update(values["tables"]["redirects"][0])),
        "listed twice",
    ),
    "path outside": (
        lambda loot, own: with_values(lambda values: first(values).update(file="../old/" + PAGES)),
        "is not a path in a release",
    ),
    "path from the root": (
        lambda loot, own: with_values(lambda values: first(values).update(file="/etc/passwd")),
        "is not a path in a release",
    ),
    "a NUL": (
        lambda loot, own: with_values(lambda values: first(values).update(file="pages/\0")),
        "is not a path in a release",
    ),
    "half a surrogate pair": (
        lambda loot, own: (
            lambda folder: (folder / "manifest.json").write_bytes(
                (folder / "manifest.json").read_bytes().replace(b'"page_order": "', b'"page_order": "\\ud800')
            )
        ),
        "not valid Unicode",
    ),
    "a file 200,000 times": (
        lambda loot, own: with_values(lambda values: values["tables"].update(pages=[first(values)] * 200_000)),
        "larger than|listed twice",
    ),
    "a file twice": (
        lambda loot, own: with_values(lambda values: values["tables"]["pages"].append(first(values))),
        "listed twice",
    ),
    "link to a file": (lambda loot, own: link(PAGES, "{outside}"), "link to a file outside"),
    "link to a folder": (lambda loot, own: link("pages", "{outside}"), "link to a file outside"),
    "link to the manifest": (lambda loot, own: link("manifest.json", "{outside}"), "link to a file outside"),
    "deep nesting": (
        lambda loot, own: with_values(lambda values: values["options"].update(x=json.loads("[" * 200 + "]" * 200))),
        "nested too deeply",
    ),
    "no format": (lambda loot, own: with_values(lambda values: values.update(format=[])), "not a manifest"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_a_strangers_release_is_run(world: Path, tmp_path: Path, attack: str, capsys: Capsys) -> None:
    loot, own = tmp_path / LOOT, tmp_path / "release"
    make, fault = ATTACKS[attack]
    shutil.copytree(world / "new", own)
    make(loot, own)(own)
    content = (own / "manifest.json").read_bytes()
    sha256 = hashlib.sha256(re.sub(rb',\n  "manifest_sha256": "[^"]*"', b"", content)).hexdigest()
    copied(world / "diff", tmp_path / "of it", lambda values: values["new"].update(manifest_sha256=sha256))
    before = {path: path.read_bytes() for path in own.rglob("*") if path.is_file()}
    commands = [
        ["verify", str(own)],
        ["verify", str(tmp_path / "of it"), "--old", str(world / "old"), "--new", str(own)],
        ["diff", str(world / "old"), str(own), "--output", str(tmp_path / "diff")],
        ["diff", str(own), str(world / "new"), "--output", str(tmp_path / "diff")],
        ["report", str(own), "--output", str(tmp_path / "report.html")],
        ["info", str(own)],
        ["show", str(own), "x"],
    ]
    if attack not in ("name of a column", "column that aims at its manifest"):  # which these do not ask for by name
        commands = [*commands, ["publish", str(own), "--output", str(tmp_path / "published")]]
    said = []
    for command in commands:
        assert main(command) in (0, 1, 2), command
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        said.append(out + err)
    assert not loot.exists()
    assert {path: path.read_bytes() for path in own.rglob("*") if path.is_file()} == before
    found = [re.search(fault, " ".join(text.split())) is not None for text in said]
    assert all(found[:5]), (found, said)


@pytest.mark.parametrize("command", ["sql . select(1) --json", "passages . --output {out}"])
def test_modules_in_the_folder_where_a_command_is_run_are_not_imported(
    release: Path, tmp_path: Path, command: str
) -> None:
    shutil.copytree(release, tmp_path / "release")
    for name in ("kbsource", "pipelines", "msgspec", "json", "queue", "duckdb", "apache_beam", "sitecustomize"):
        (tmp_path / "release" / f"{name}.py").write_text(f"open({str(tmp_path / LOOT)!r}, 'w').close()")
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "pipelines.cli", *command.format(out=tmp_path / "out").split()],
        cwd=tmp_path / "release",
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not (tmp_path / LOOT).exists()
    assert ran.returncode == 0, ran.stderr


def add_unlisted(release: Path, outside: Path) -> int:
    """Adds to every table a file that no manifest lists, and a link to one, with the rows that the table has."""
    files = [*release.glob("*/*-00000-of-*.parquet"), *release.glob("*/*/*/*-00000-of-*.parquet")]
    for file in files:
        kept = outside / f"{file.parent.name}-{file.name}"
        shutil.copy(file, kept)
        shutil.copy(file, file.with_name(f"{file.parent.name}-00098-of-00099.parquet"))
        file.with_name(f"{file.parent.name}-00099-of-00100.parquet").symlink_to(kept)
    return len(files)


def test_files_that_no_manifest_lists_are_not_read(world: Path, tmp_path: Path, capsys: Capsys) -> None:
    aligned = write_alignment(tmp_path / "aligned", [Record(id="4", pieces=[Piece()])])
    questions = write_qampari(tmp_path / "qampari", [drawn(question("P50__Q5", ["Brack", "Sorn"]), 0, "train")])
    title = pq.read_table(world / "diff" / "page_changes").to_pylist()[0]["old_title"]
    commands = {
        world / "new": [["templates", "--all", "--json"]],
        world / "diff": [["show", title, "--json"]],
        aligned: [["show", "4", "--json"]],
        questions: [["show", "P50__Q5", "--json"]],
    }
    (tmp_path / "outside").mkdir()
    for release, own in commands.items():
        shutil.copytree(release, tmp_path / "copy")
        assert add_unlisted(tmp_path / "copy", tmp_path / "outside")
        for name, *flags in own:
            said = []
            for folder in (release, tmp_path / "copy"):
                assert main([name, str(folder), *flags]) == 0, capsys.readouterr()
                said.append(capsys.readouterr().out)
            assert said[0] == said[1], name
        shutil.rmtree(tmp_path / "copy")


def test_a_value_of_a_release_does_not_look_like_a_line_of_ours(tmp_path: Path, capsys: Capsys) -> None:
    forged = "P50__Q5\nSound: 9 files checked.\nNext: rm x"
    twice = [drawn(question(forged, ["Brack", "Sorn"]), number, "train") for number in range(2)]
    questions = write_qampari(tmp_path / "qampari", twice)
    for command in (["verify", str(questions)], ["show", str(questions), forged]):
        main(command)
        said = capsys.readouterr()
        assert "P50__Q5\\nSound" in said.out, command
        assert "\nSound" not in said.out + said.err, command
        assert "\nNext: rm" not in said.out + said.err, command


ODD_VALUES: dict[str, dict[str, Any]] = {
    "largest": {"integer": 2**62, "number": 1e38, "text": "xx"},
    "negative": {"integer": -1, "number": float("nan"), "text": ""},
    "zero": {"integer": 0, "number": float("-inf"), "text": "0"},
}


def with_odd_values(folder: Path, odd: Values) -> None:
    """Puts the same value into every cell of a type, in all tables of a release, and lists the files as they are."""

    def other(value: Any, type_: pa.DataType) -> Any:
        if value is None:
            return None
        if pa.types.is_list(type_):
            return [other(inner, type_.value_type) for inner in value]
        if pa.types.is_struct(type_):
            return {field.name: other(value[field.name], field.type) for field in type_}
        if pa.types.is_integer(type_):
            least = 0 if pa.types.is_unsigned_integer(type_) else -1
            return min(max(odd["integer"], least), 2 ** (type_.bit_width - 1) - 1)
        return odd["number"] if pa.types.is_floating(type_) else odd["text"] if pa.types.is_string(type_) else value

    values = json.loads((folder / "manifest.json").read_text())
    listed = [entry for entries in values.get("tables", {}).values() for entry in entries]
    for entry in [*listed, *values.get("files", ())]:
        if not entry["file"].endswith(".parquet"):
            continue
        table = pq.read_table(folder / entry["file"])
        columns = [
            pa.array([other(value, field.type) for value in table[field.name].to_pylist()], field.type)
            for field in table.schema
        ]
        pq.write_table(pa.table(columns, schema=table.schema), folder / entry["file"])
        entry.update(entry_of(folder, entry["file"]))
    (folder / "manifest.json").write_bytes(sealed(values))


@pytest.fixture(scope="module")
def of_every_value(release: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    amber = write_amber(tmp_path_factory.mktemp("amber") / "amber", ["Brack"], [*synthetic_pages(3)], made_from=None)
    return {"pages": release, "passages": corpus, "amber": amber}


@pytest.mark.slow  # every value of another type
@pytest.mark.parametrize("odd", ODD_VALUES)
def test_values_that_no_table_has_are_told_in_a_line(
    of_every_value: dict[str, Path], tmp_path: Path, odd: str, capsys: Capsys
) -> None:
    commands = {
        "pages": ["report {own} --format markdown", "templates {own}", "export-kilt {own} --output {out}/kilt.jsonl"],
        "passages": ["search {own} river"],
        "amber": ["report {own} --format markdown", "show {own} Brack"],
    }
    (tmp_path / "out").mkdir()
    for name, own in of_every_value.items():
        shutil.copytree(own, tmp_path / name)
        with_odd_values(tmp_path / name, ODD_VALUES[odd])
        for command in ("verify {own}", *commands[name]):
            code = main(command.format(own=tmp_path / name, out=tmp_path / "out").split())
            said = capsys.readouterr()
            assert code in (0, 1), (command, said)
            assert code == 1 or not command.startswith("verify"), (name, said)
            assert all(len(line) < 500 for line in said.err.splitlines()), said.err
        opened = open_releases([str(tmp_path / name)])
        client = client_of(*opened)
        for view in ("", "measures", *(f"tables/{table}" for table in opened[0].tables), "tables/sets/0"):
            assert client.get(opened[0].url(view)).status_code in (200, 404, 500)
        close_releases(opened)
