"""The commands, options, code and links that the documents show are those of the code."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbsource.files import Folder
from kbsource.lookup import KnowledgeSource
from kbsource.release.layout import BUILDING, INDEX, MANIFEST, STAGING
from kbsource.release.pages.kind import PAGES_RELEASE
from pipelines.app import make_app, option_names, parse_command
from pipelines.cli import main
from pipelines.commands import COMMANDS
from pipelines.commands.demo import demo
from tests.support.demo_datasets import GOLDEN
from tests.support.real_data import ROOT

README, MANUAL, PYTHON = ROOT / "README.md", ROOT / "docs" / "manual.md", ROOT / "docs" / "python.md"
LAYOUT = ROOT / "docs" / "release.md"
TUTORIALS = sorted((ROOT / "docs").glob("tutorial_*.md"))
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "kbsource" / "demo" / "README.md")
OF_OTHERS = {"--help", "--version", "--db", "--collection", "--file", "--no-deps", "--require-hashes"}
"""Options of every command, of mongoimport and of pip."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def blocks(path: Path, language: str) -> Iterator[str]:
    for found in _BLOCK.finditer(path.read_text("utf-8")):
        if found[1] == language:
            yield found[2]


def command_lines(path: Path) -> list[str]:
    """Gives the command lines of a document; synopses, which hold brackets or dots, are none."""
    lines = [line.removeprefix("$ ") for block in blocks(path, "") for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("kbsource ") and not re.search(r" \[|…", line)]


def all_options() -> set[str]:
    """The options of all commands."""
    found, apps = {"--json", "--storage"}, [make_app()]
    while apps:
        app = apps.pop()
        apps += [app[name] for name in app if not name.startswith("-")]
        found |= option_names(app) if app.default_command else set()
    return found


@pytest.mark.parametrize("path", [README, MANUAL], ids=lambda path: path.name)
def test_every_command_line_is_one_that_the_command_takes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Folder, "exists", lambda *_: False)  # outputs must be new, and buckets are out of reach
    lines = command_lines(path)

    assert lines
    for line in lines:
        parse_command(shlex.split(line, comments=True)[1:])


def test_the_manual_names_no_option_that_there_is_not() -> None:
    shown = set(_OPTION.findall(MANUAL.read_text("utf-8"))) - OF_OTHERS

    assert len(shown) > 20
    assert shown <= all_options()


def test_every_command_is_named_on_the_page_that_explains_it() -> None:
    for command in COMMANDS.values():
        text = (ROOT / "docs" / command.guide.partition("#")[0]).read_text("utf-8")
        assert f"kbsource {command.name}" in text, command.name


def test_the_code_of_the_readme_runs(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(README, "python")
    exec(compile(code.replace("kbsource-demo/release", str(release)), README.name, "exec"), {})

    first = capsys.readouterr().out.splitlines()[0]
    assert f"# {first}" in code


def test_the_record_of_the_readme_is_one_that_the_demo_writes() -> None:
    (record,) = blocks(README, "json")

    assert record in (GOLDEN / "fever" / "fever-dev-kilt.jsonl").read_text("utf-8").splitlines(keepends=True)


def _cells(tool: str) -> list[str]:
    found: list[str] = re.findall(rf"^\| {tool} \| (.*) \|$", README.read_text("utf-8"), re.MULTILINE)
    return found


def test_the_paragraph_of_the_readme_is_the_one_in_the_release(release: Path) -> None:
    with KnowledgeSource.open(release) as kb:
        assert _cells("kbsource") == [kb["Halvane Isles"].elements[1].text]


def test_the_paragraph_of_wikiextractor_is_what_it_writes(tmp_path: Path) -> None:
    pytest.importorskip("wikiextractor", reason="needs WikiExtractor: pip install wikiextractor==3.1.0")
    (command,) = re.findall(r"`python (-m wikiextractor\.WikiExtractor [^`]*)`", README.read_text("utf-8"))
    words = [*shlex.split(command), "--processes", "1", "--quiet", "--output", str(tmp_path)]
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)

    lines = [line for path in sorted(tmp_path.rglob("wiki_*")) for line in path.read_text("utf-8").splitlines()]
    (text,) = (page["text"] for page in map(json.loads, lines) if page["title"] == "Halvane Isles")
    assert _cells("WikiExtractor") == [text.split("\n")[0]]


def test_the_demo_has_one_folder_everywhere() -> None:
    places = {path: path.read_text("utf-8") for path in (README, ROOT / "Makefile", ROOT / ".gitignore", *TUTORIALS)}

    assert demo.__kwdefaults__ == {"output": "kbsource-demo"}
    assert {path.name for path, text in places.items() if "kbsource-demo" not in text} == {"tutorial_wiki.md"}
    assert not [path for path, text in places.items() if re.search(r"(?<!kbsource-)demo[-_/]out|mini-out", text)]


def test_the_code_of_the_page_of_releases_runs(release: Path) -> None:
    codes = list(blocks(LAYOUT, "python"))

    assert len(codes) >= 2
    for code in codes:
        exec(compile(code.replace("releases/enwiki-20261001", str(release)), LAYOUT.name, "exec"), {})


def test_the_code_of_the_python_page_runs_from_top_to_bottom(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "miniwiki-20260101").symlink_to(release)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code = "\n".join(blocks(PYTHON, "python"))
    exec(compile(code, PYTHON.name, "exec"), {})
    said = capsys.readouterr().out
    assert said.startswith(re.findall(r"print\(kb\)  # (.*)", code)[0])
    assert "\nTrue True False 66\nNone <Page 12 'Halvane Isles'" in said
    assert "[link" not in said


@pytest.mark.slow  # only mypy knows whether the package is typed for those who use it
def test_the_code_of_the_python_page_is_typed(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text("\n".join(blocks(PYTHON, "python")) + "\nreveal_type(kb['x'].timestamp)\n")
    assert (ROOT / "kbsource" / "py.typed").exists()
    options = ["--strict", "--config-file", "", "--ignore-missing-imports", f"--cache-dir={tmp_path}"]
    command, paths = [sys.executable, "-m", "mypy", *options, "example.py"], {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=paths, capture_output=True, text=True, check=False)
    own = [line for line in done.stdout.splitlines() if line.startswith("example.py")]
    assert [line.split(": ", 1)[1] for line in own] == ['note: Revealed type is "datetime.datetime"'], done.stdout


def test_what_alignment_prints_is_what_it_says(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = (block for block in blocks(ROOT / "docs" / "alignment.md", "") if block.startswith("$ kbsource "))
    command, shown = example.removeprefix("$ kbsource ").split("\n", 1)

    assert main(shlex.split(command.replace("releases/miniwiki-20260101", str(release)))) == 0
    assert capsys.readouterr().out.replace(str(release), "releases/miniwiki-20260101") == shown


def test_every_key_of_the_manifest_is_explained(release: Path) -> None:
    section = LAYOUT.read_text("utf-8").split("## The manifest\n", 1)[1].split("\n## ", 1)[0]

    for name in (*PAGES_RELEASE.read(str(release)).to_json(), "manifest_sha256"):
        assert f"`{name}`" in section, name


def test_every_count_of_the_manifest_is_explained(release: Path) -> None:
    section = LAYOUT.read_text("utf-8").split("## Counts\n", 1)[1].split("\n## ", 1)[0]

    for name in PAGES_RELEASE.read(str(release)).findings:
        family = re.sub(r"^(loss|redirects)_.*", r"\1_…", name)
        assert f"`{family}`" in section, name


def test_every_place_in_a_release_is_explained(release: Path) -> None:
    text = LAYOUT.read_text("utf-8")
    places = {path.name for path in release.iterdir()}

    assert INDEX in places
    for name in (*(f"{place}/" for place in places - {MANIFEST}), MANIFEST, BUILDING, f"{STAGING}/"):
        assert f"`{name}`" in text, name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in _LINK.findall(re.sub(r"`[^`\n]*`", "", path.read_text("utf-8"))):
        if "://" in target:
            continue
        file, _, section = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        assert page.exists(), target
        if section:
            headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert section in anchors, target
