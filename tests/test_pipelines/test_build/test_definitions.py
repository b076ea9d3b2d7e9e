"""Builds of a dump that defines its templates."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.verify import verify
from pipelines.cli import main
from pipelines.commands.dumps import build_summary
from tests.support import defined_wiki
from tests.support.builds import build_mini, open_release, rows
from tests.support.dumps import dump_xml, page_xml

pytestmark = pytest.mark.usefixtures("module_in_this_process")

PLAIN = {"page_props": None}


def paragraphs(release: Path) -> dict[str, str]:
    return {page.title: " ".join(element.text for element in page.elements[1:]) for page in open_release(release)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("defined")
    build_mini(folder / "release", dump=defined_wiki.write_dumps(folder), **PLAIN)
    return folder


def test_templates_show_what_their_definitions_say(built: Path) -> None:
    assert paragraphs(built / "release") == defined_wiki.SHOWN
    assert verify(str(built / "release"), [PAGES_RELEASE]).findings == ()


def test_the_table_of_templates_says_how_each_was_settled_and_what_it_shows(built: Path) -> None:
    table = rows(built / "release", "templates")

    assert [(row["name"], row["outcome"], row["uses"], row["shown_chars"]) for row in table] == [
        ("Juosataisa", "expanded", 1, 0),
        ("Loop", "unknown", 1, 0),
        ("Nowhere", "unknown", 1, 0),
        ("Sum", "invoked", 1, 1),
        ("Taiss:Zeime-de", "expanded", 1, 8),
        ("Twice", "expanded", 1, 8),
        ("Zeime de", "expanded", 1, 8),
        ("Zeime-de", "expanded", 1, 8),
    ]
    manifest = open_release(built / "release").manifest
    assert manifest.findings["template_definitions"] == len(defined_wiki.TEMPLATES) + 1
    assert manifest.totals.other_namespaces == len(defined_wiki.TEMPLATES) + 1


def test_modules_that_definitions_call_are_run(tmp_path: Path, built: Path) -> None:
    manifest = open_release(built / "release").manifest
    not_run = build_mini(tmp_path / "without", dump=str(built / "ltgwiki-*.xml"), templates="definitions", **PLAIN)

    assert manifest.options["templates"] == "lua"
    assert manifest.code["lupa"] == version("lupa")
    assert "loss_module" not in manifest.findings
    assert not_run.manifest.findings["loss_module"] == 1
    remark = "Some definitions call Lua modules, which --templates definitions does not run."
    assert remark in build_summary(not_run).to_text()
    assert paragraphs(tmp_path / "without")["Counted"] == "It has gates."
    assert {row["name"]: row["outcome"] for row in rows(tmp_path / "without", "templates")}["Sum"] == "unknown"


def test_a_build_whose_modules_cannot_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "lupa.lua51", None)
    dump, output = defined_wiki.write_dumps(tmp_path), tmp_path / "release"

    assert main(["build", dump, "--output", str(output)]) == 2
    said = capsys.readouterr().err
    assert "pip install 'kbsource[build]', or build without Lua modules with --templates definitions." in said
    assert not output.exists()

    build_mini(output, dump=dump, templates="definitions", **PLAIN)
    assert paragraphs(output)["Counted"] == "It has gates."


def test_with_rules_alone_definitions_are_not_even_kept(tmp_path: Path) -> None:
    summary = build_mini(tmp_path / "release", dump=defined_wiki.write_dumps(tmp_path), templates="rules", **PLAIN)

    assert paragraphs(tmp_path / "release")["Moved"] == "See and, too."
    assert summary.manifest.options["templates"] == "rules"
    assert "template_definitions" not in summary.manifest.findings
    assert "define no templates" not in build_summary(summary).to_text()


@pytest.mark.parametrize("templates", ["definitions", "lua"])
def test_a_dump_without_definitions_says_so_in_one_line(tmp_path: Path, templates: str) -> None:
    (dump := tmp_path / "wiki.xml").write_bytes(dump_xml([page_xml(1, "A", "Von {{nowrap|Halle}}, {{dal|2012}}.")]))
    summary = build_mini(tmp_path / "release", dump=dump, templates=templates, **PLAIN)

    assert build_summary(summary).to_text().count("The pages that were read define no templates (namespace 10)") == 1
    assert paragraphs(tmp_path / "release") == {"A": "Von Halle, 2012."}
