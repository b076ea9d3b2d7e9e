"""Plain text by ``kbsource export``: of the mini-wiki, in its language; what is left out, and what no page has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbsource.lookup import KnowledgeSource
from pipelines.cli import main
from tests.support import mini_wiki
from tests.support.builds import build_mini
from tests.support.dumps import dump_xml, header_xml, page_xml

RIVER = """{{Infobox Fluss|NAME=Heidel|LÄNGE=12 km}}
:''Zum Dorf siehe Heidel (Dorf).''
Die Heidel ist ein Fluss. Sie ist kurz.

== Verlauf ==
Sie fließt nach Norden.
* durch Moor
=== Zuflüsse ===
{| class="wikitable"
! Name !! Länge
|-
| Aa || 3 km
|}
== Maße ==
Sie ist schmal.
== Einzelnachweise ==
=== Karten ===
Eine Karte.
== Weblinks ==
* [https://example.org Bild]
"""


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("german")
    pages = [page_xml(1, "Heidel", RIVER), page_xml(2, "Leer", ""), page_xml(3, "Liste", "* a\n* b")]
    dump = folder / "dewiki-20260101-pages-articles.xml"
    dump.write_bytes(dump_xml(pages, header=header_xml(lang="de", dbname="dewiki")))
    return build_mini(folder / "kb", dump=dump, page_props=None).output


def lines_of(*typed: str, output: Path) -> dict[str, dict[str, Any]]:
    """The lines that a command writes, by title."""
    assert main(["export", *typed, "--format", "jsonl", "--output", str(output), "--force"]) == 0
    return {line["title"]: line for line in map(json.loads, output.read_text("utf-8").splitlines())}


FIRST_WORDS = {
    "Halvane Isles": "The Halvane Isles (Halvanë Iskela, ",
    "Ostermoor": "Ostermoor is a market town on South Halvane.",  # a hatnote and an infobox stand before it
    "River Ullane": "The River Ullane is the longest river of the Halvane Isles.",
    "Halvanic language": "Halvanic (halvanë, ",
    "潮の歌": "潮の歌 (潮の歌, Shio no uta, ",
}


@pytest.mark.parametrize("form", ["plain", "body"])
def test_text_begins_with_the_first_sentence(release: Path, tmp_path: Path, form: str) -> None:
    lines = lines_of(str(release), "--text", form, output=tmp_path / "a.jsonl")
    assert len(lines) == mini_wiki.N_ARTICLES
    assert {tuple(line) for line in lines.values()} == {("id", "url", "title", "text")}
    words = {title: lines[title]["text"] for title in FIRST_WORDS if form == "plain" or title != "Ostermoor"}
    assert [title for title, text in words.items() if not text.startswith(FIRST_WORDS[title])] == []
    assert not any(line["text"].startswith(line["title"] + "\n") for line in lines.values())


def test_forms_of_a_page(release: Path, tmp_path: Path) -> None:
    texts = {
        form: lines_of(str(release), "Halvane Isles", "--text", form, output=tmp_path / "a.jsonl")["Halvane Isles"]
        for form in ("plain", "body", "markdown")
    }
    paragraphs = texts["plain"]["text"].split("\n\n")
    assert paragraphs[2:5] == [
        "Geography",
        "The isles lie on the Sundering Bank. They fall in three groups:",
        "Climate",
    ]
    assert "External links" not in paragraphs  # a list alone stands below it
    assert (
        "1. North Halvane, with Port Sellick and Brindle Quay\n2. South Halvane\n  1. the Moors"
        in texts["body"]["text"]
    )
    assert texts["body"]["text"].endswith("External links\n\n- Government of the Halvane Isles")
    assert "capital: " not in texts["body"]["text"]
    assert texts["markdown"]["text"].startswith("# Halvane Isles\n\n| Infobox country |")
    assert texts["markdown"]["qid"] == "Q9000012"


def test_text_files_are_plain(release: Path, tmp_path: Path) -> None:
    output = tmp_path / "a.txt"
    assert main(["export", str(release), "--output", str(output)]) == 0
    with KnowledgeSource.open(release) as kb:
        assert output.read_text("utf-8") == "".join(f"{page.plain()}\n\n\n" for page in kb)
    assert main(["export", str(release), "--text", "body", "--output", str(output), "--force"]) == 0
    with KnowledgeSource.open(release) as kb:
        assert output.read_text("utf-8") == "".join(f"{page.body()}\n\n\n" for page in kb)


def test_what_is_left_out_is_told_with_its_count(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "a.jsonl"
    typed = [
        "export",
        str(release),
        "--text",
        "body",
        "--without",
        "References, see ALSO,, Refrences",
        "--without",
        "table",
    ]
    assert main([*typed, "--output", str(output)]) == 0
    said = capsys.readouterr()
    assert [line.split() for line in said.out.splitlines()[:4]] == [
        ["sections", "left", "out:", "References", "2"],
        ["sections", "left", "out:", "see", "ALSO", "3"],
        ["sections", "left", "out:", "Refrences", "0"],
        ["sections", "left", "out:", "table", "0"],
    ]
    warnings = [line for line in said.err.splitlines() if "warning" in line]
    assert warnings == said.err.splitlines()[-2:]
    assert "--without Refrences: no section was left out, because no written page has this heading." in warnings[0]
    assert warnings[1].endswith("Did you mean tables?")
    texts = [json.loads(line)["text"] for line in output.read_text("utf-8").splitlines()]
    assert not any("\n\nSee also\n" in text or "\n\nReferences\n" in text for text in texts)

    assert main([*typed, "--output", str(output), "--force", "--json"]) == 0
    said = capsys.readouterr()
    values = json.loads(said.out)
    assert values["sections_left_out"] == {"References": 2, "see ALSO": 3, "Refrences": 0, "table": 0}
    assert (values["output"], values["pages"], values["records"]) == ([str(output)], 66, 66)
    assert "--without Refrences: no section was left out" in said.err


@pytest.mark.parametrize("name", ["infoboxes", "tables", "lists", "headings"])
@pytest.mark.parametrize("format", ["markdown", "html"])
def test_each_kind_of_part(release: Path, tmp_path: Path, name: str, format: str) -> None:
    marks = {
        "markdown": {"infoboxes": "| Infobox ", "tables": "| Today's article", "lists": "\n- ", "headings": "\n## "},
        "html": {"infoboxes": 'class="infobox"', "tables": "<table>", "lists": "<li", "headings": "<h2"},
    }[format]
    texts = []
    for without in ([], ["--without", name.upper()]):
        output = tmp_path / f"{len(without)}"
        assert main(["export", str(release), "--format", format, *without, "--output", str(output)]) == 0
        texts.append(output.read_text("utf-8"))
    before, after = ({name_of_mark: text.count(mark) for name_of_mark, mark in marks.items()} for text in texts)
    assert before[name] > after[name] == 0
    assert {mark for mark in marks if mark != name and after[mark] == 0} == set()


def test_sections_of_a_german_wiki(german: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "a.jsonl"
    plain = lines_of(german, "--text", "plain", output=output)
    assert plain["Heidel"]["text"].split("\n\n") == [
        "Die Heidel ist ein Fluss. Sie ist kurz.", "Verlauf", "Sie fließt nach Norden.", "Maße", "Sie ist schmal.",
        "Einzelnachweise", "Karten", "Eine Karte.",
    ]  # fmt: skip
    assert plain["Leer"]["text"] == plain["Liste"]["text"] == ""
    capsys.readouterr()
    body = lines_of(german, "--text", "body", "--without", "EINZELNACHWEISE, maße, weblinks, tables", output=output)
    assert body["Heidel"]["text"].split("\n\n") == [
        "Zum Dorf siehe Heidel (Dorf).", "Die Heidel ist ein Fluss. Sie ist kurz.", "Verlauf",
        "Sie fließt nach Norden.", "- durch Moor",
    ]  # fmt: skip
    assert body["Liste"]["text"] == "- a\n- b"
    assert "warning" not in capsys.readouterr().err
    lines_of(german, "--text", "plain", "--without", "references", output=output)
    assert "warning: --without references: no section was left out" in capsys.readouterr().err


def test_text_goes_to_the_standard_output_without_a_file(
    release: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", str(release), "Ostermoor", "--format", "jsonl", "--text", "plain", "--without", "x"]) == 0
    said = capfdbinary.readouterr()
    assert json.loads(said.out)["text"].startswith("Ostermoor is a market town")
    assert said.err.splitlines()[-2:] == [
        b"1 page written to the standard output, 1 record.",
        b"kbsource export: warning: --without x: no section was left out, because no written page has this heading.",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "html", "--text", "plain"], "--text works only with --format text and jsonl, not with html"),
        (["--text", "markdown"], "give --format markdown"),
        (["--text", "plain", "--links", "--format", "jsonl"], "plain text has no links"),
        (["--without", ", "], "It contains no name"),
        (["--without", '"see also'], "a name with a comma in double quotes"),
        (["--text", "wiki"], "--text"),
    ],
)
def test_what_cannot_be_is_refused(
    release: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["export", str(release), *arguments]) == 2
    assert message in capsys.readouterr().err
