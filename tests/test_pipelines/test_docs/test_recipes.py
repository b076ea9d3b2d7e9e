"""Every recipe of docs/recipes.md, links.md and infoboxes.md, and every macro, is run over the mini-wiki."""

from __future__ import annotations

import re
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from pipelines.cli import main
from tests.support.real_data import ROOT

RECIPES = (ROOT / "docs" / "recipes.md").read_text("utf-8")
MACROS = resources.files("kbsource").joinpath("macros.sql").read_text("utf-8")
TITLE, CATEGORY = "Halvane Isles", "Halvane Isles"


@pytest.fixture
def pages(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Page]:
    """The pages of the mini-wiki, which lies where the recipes look for a release."""
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "enwiki-20261001").symlink_to(release)
    monkeypatch.chdir(tmp_path)
    return list(KnowledgeSource.open(release))


@pytest.fixture
def db() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(MACROS)
    return connection


def code(heading: str, language: str) -> list[str]:
    (section,) = (part for part in RECIPES.split("\n## ") if part.startswith(heading))
    found = re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return [text.replace("Alan Turing", TITLE).replace("Computer scientists", CATEGORY) for text in found]


def run(heading: str) -> dict[str, Any]:
    (text,) = code(heading, "python")
    names: dict[str, Any] = {}
    exec(compile(text, heading, "exec"), names)
    return names


def buckets(db: duckdb.DuckDBPyConnection) -> dict[int, int]:
    return dict(db.execute("select page_id, bucket from kb_buckets('releases/enwiki-20261001')").fetchall())


def test_macros(db: duckdb.DuckDBPyConnection, pages: list[Page]) -> None:
    shown = [query for query in re.findall(r"`((?:from|select) [^`]*)`", RECIPES) if "(KB" in query]
    named = set(re.findall(r"macro (kb_\w+)", MACROS)) - {"kb_pages"}
    assert {name for query in shown for name in re.findall(r"kb_\w+", query)} == named
    answers: dict[str, list[dict[str, Any]]] = {}
    for query in shown:
        query = query.replace("Alan Turing", TITLE).replace("Computer scientists", CATEGORY)
        query = query.replace("Infobox person", "Infobox country").replace("birth_date", "capital")
        table = db.sql(query.replace("KB", "'releases/enwiki-20261001'")).to_arrow_table()
        answers[re.findall(r"kb_\w+", query)[0]] = table.to_pylist()
    assert all(answers.values())
    (page,) = (page for page in pages if page.title == TITLE)
    assert answers["kb_text"][0]["text"].startswith(f"# {TITLE}\n\nThe Halvane Isles (")
    assert [row["title"] for row in answers["kb_redirects"]] == [*page.redirects]
    values = [field.text for box in page.infoboxes for field in box.fields if field.name == "capital"]
    assert [row["value"] for row in answers["kb_infobox_values"]] == values
    assert len(answers["kb_links"]) == sum(len(page.anchors) for page in pages)
    assert all(row["context"][row["start"] : row["end"]] == row["text"] for row in answers["kb_links"])
    assert len(answers["kb_elements"]) == sum(len(page.elements) for page in pages)
    assert len(answers["kb_table_rows"]) == sum(len(table.rows) for page in pages for table in page.tables)


def test_queries(db: duckdb.DuckDBPyConnection, pages: list[Page]) -> None:
    by_hand, joined = code("DuckDB", "sql")
    qid, linked = by_hand.split(";\n\n")
    (page,) = (page for page in pages if page.title == TITLE)
    found = db.execute(qid.replace("Q7251", page.qid or "")).fetchall()
    assert found == [(page.page_id, TITLE, page.elements[1].text)]
    targets = [anchor.target_page_id for page in pages for anchor in page.anchors if anchor.target_page_id is not None]
    assert all(targets.count(target) == n for target, n, _ in db.execute(linked).fetchall())
    rows = db.execute(joined).fetchall()
    assert len(rows) == 10
    for title, index, text, target in rows:
        (page,) = (page for page in pages if page.title == title)
        assert (text, target) in {
            (anchor.text, anchor.target_title) for anchor in page.anchors if anchor.element == index
        }


def test_polars(pages: list[Page]) -> None:
    names = run("Polars")
    assert names["texts"].collect()["text"].to_list() == [page.text for page in pages]
    contexts = names["contexts"].collect()
    assert contexts["cut"].to_list() == contexts["text"].to_list()
    assert len(contexts) == sum(len(page.anchors) for page in pages)
    assert names["of_category"].collect()["title"].to_list() == [
        page.title for page in pages if CATEGORY in page.categories
    ]


def test_pandas(pages: list[Page]) -> None:
    names = run("pandas")
    assert names["pages"]["text"].to_list() == [page.text for page in pages]
    keyed = {(page.page_id, n): element.text for page in pages for n, element in enumerate(page.elements)}
    assert names["elements"].set_index(["page_id", "index"])["text"].to_dict() == keyed
    assert len(names["values"]) == sum(len(box.fields) for page in pages for box in page.infoboxes)


def test_datasets(db: duckdb.DuckDBPyConnection, pages: list[Page]) -> None:
    names = run("datasets")
    held = buckets(db)
    assert [row["page_id"] for row in names["train"]] == [page.page_id for page in pages if held[page.page_id] < 90]
    assert {page.page_id: names["bucket"](page.page_id) for page in pages} == held


def test_beam(pages: list[Page], tmp_path: Path) -> None:
    run("Beam")
    markdown = (tmp_path / "pages.md-00000-of-00001").read_text("utf-8")
    assert all(page.markdown() in markdown for page in pages)
    headings = [(page.title, element.text) for page in pages for element in page.elements if element.kind == "heading"]
    lines = (tmp_path / "headings.tsv-00000-of-00001").read_text("utf-8").splitlines()
    assert sorted(tuple(line.split("\t")) for line in lines) == sorted(headings)


def _blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text("utf-8").replace("Alan Turing", TITLE)
    text = text.replace("Infobox person", "Infobox country").replace("birth_date", "capital")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def _run_command(page: str) -> int:
    """Runs the first command of a page."""
    command, *_ = _blocks(page, "")
    return main(shlex.split(command.replace("\\\n", ""))[1:])


def test_the_link_graph(db: duckdb.DuckDBPyConnection, pages: list[Page]) -> None:
    graph, ranked = _blocks("links.md", "sql")
    db.execute(graph)
    edges = [
        (page.page_id, anchor.target_page_id) for page in pages for anchor in page.anchors if anchor.target_page_id
    ]
    assert db.execute("select sum(links) from 'links.parquet'").fetchall() == [(len(edges),)]
    assert db.execute("select source, target from 'links.parquet'").fetchall() == sorted(set(edges))
    assert _run_command("links.md") == 0
    assert db.execute("select source, target from 'edges.csv'").fetchall() == sorted(set(edges))
    (target, n), *_ = db.execute(ranked).fetchall()
    assert n == sum(linked == target for _, linked in set(edges))


def test_infobox_values(db: duckdb.DuckDBPyConnection, pages: list[Page], capsys: pytest.CaptureFixture[str]) -> None:
    (query,), (python,) = _blocks("infoboxes.md", "sql"), _blocks("infoboxes.md", "python")
    assert db.execute(query).fetchall() == [(TITLE, "Port Sellick")]
    assert _run_command("infoboxes.md") == 0
    assert capsys.readouterr().out.split("\n")[1].split() == [*TITLE.split(), "Port", "Sellick"]
    exec(compile(python, "infoboxes.md", "exec"), {})
    assert "Infobox country capital Port Sellick\n" in capsys.readouterr().out
