"""``kbsource sql``: queries over a release, what they print and write, and what is said where they fail."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.parquet as pq
import pytest

from kbsource.lookup import KnowledgeSource
from kbsource.runtime.beat import Beat
from mapping.inspector import sandbox
from pipelines.cli import main

TITLE = "Halvane Isles"


class _NoGuard:
    """Answers queries where it is."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def run(self, task: Mapping[str, Any], *, stopped: Event) -> Any:
        assert not stopped.is_set()
        return json.loads(json.dumps(sandbox.answer(json.loads(json.dumps(task)), Beat.unshared())))

    def close(self) -> None:
        """Has nothing to close."""


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers queries without a process of their own, whose start takes longer; what it may do has tests elsewhere."""
    monkeypatch.setattr(sandbox, "Guard", _NoGuard)


def ask(monkeypatch: pytest.MonkeyPatch, *arguments: str, given: str = "") -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    return main(["sql", *arguments])


def test_a_table_says_how_many_rows_are_left(
    release: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    n_pages = len(list(KnowledgeSource.open(release)))
    query = "select page_id, title from pages order by page_id;  -- all of them"
    assert ask(monkeypatch, str(release), query, "--limit", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:2]] == [["page_id", "title"], ["1", "Main", "Page"]]
    assert lines[-1] == f"{n_pages - 2} more rows; raise --limit, or write all rows to a file with --output."
    assert ask(monkeypatch, str(release), "--limit", "2", "--json", given=query) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["columns"], said["rows"][0], said["n_rows"]) == (["page_id", "title"], [1, "Main Page"], n_pages)


@pytest.mark.usefixtures("in_this_process")
def test_files_have_all_rows(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = list(KnowledgeSource.open(release))
    query = "select title, categories, qid from pages order by page_id"
    wanted = [{"title": page.title, "categories": [*page.categories], "qid": page.qid} for page in pages]
    assert ask(monkeypatch, str(release), query, "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [{**row, "categories": json.loads(row["categories"]), "qid": row["qid"] or None} for row in rows] == wanted
    for ending in ("json", "jsonl", "parquet"):
        path = tmp_path / f"rows.{ending}"
        assert ask(monkeypatch, str(release), query, "--output", str(path)) == 0
        assert f"{len(pages)} rows of 3 columns written to {path}." in capsys.readouterr().out
    assert json.loads((tmp_path / "rows.json").read_text("utf-8")) == wanted
    assert [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text("utf-8").splitlines()] == wanted
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == wanted
    before = (tmp_path / "rows.json").read_bytes()
    assert ask(monkeypatch, str(release), "select 1", "--output", str(tmp_path / "rows.json")) == 2
    assert "rows.json" in capsys.readouterr().err
    assert (tmp_path / "rows.json").read_bytes() == before
    assert ask(monkeypatch, str(release), "select 1 as a", "--output", str(tmp_path / "rows.json"), "--force") == 0
    assert json.loads((tmp_path / "rows.json").read_text("utf-8")) == [{"a": 1}]


@pytest.mark.usefixtures("in_this_process")
def test_macros_and_a_second_release(
    release: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"""select own.title, old.text = own.text as same, len(old.text) > 100 as long
        from kb_text() as own join old.kb_text() as old using (page_id) where own.title = '{TITLE}'"""
    assert ask(monkeypatch, str(release), query, "--with", f"old={release}", "--format", "jsonl") == 0
    assert json.loads(capsys.readouterr().out) == {"title": TITLE, "same": True, "long": True}


def test_without_a_query_the_tables_are_described(
    release: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask(monkeypatch, str(release)) == 0
    said = capsys.readouterr().out
    assert f'kbsource sql {release} "select title, name, value from kb_infobox_values() order by title, name' in said
    assert "kb_category(category)  Pages of a category" in said
    assert ask(monkeypatch, str(release), "--json") == 0
    (described,) = json.loads(capsys.readouterr().out)["releases"]
    pages = next(table for table in described["tables"] if table["name"] == "pages")
    assert (pages["meaning"].startswith("One row per"), pages["rows"] > 50) == (True, True)
    assert all(column["meaning"] for column in pages["columns"])
    assert {"name": "elements › text", "type": "string", "meaning": "text"}.keys() == pages["columns"][0].keys()


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["select * form pages"], 'syntax error at or near "pages" (line 1, column 15).'),
        (["from page"], 'Did you mean "pages"? (line 1, column 6); without a query, kbsource sql lists tables'),
        (["select 1,\n  titel from pages"], "(line 2, column 3)"),
        (["from read_text('/etc/passwd')"], "the query calls read_text()"),
        (["drop view pages"], "write one query that begins with select, from or with."),
        (["from pages", "--memory", "1"], "the query needs more than 1 MB; allow more with --memory"),
        ([" "], "the query is empty; leave it out"),
        (["select 1", "--format", "parquet"], "--format parquet needs a file; name it with --output."),
        (["select 1", "--output", "x"], "give --format"),
        (["select 1", "--format", "csv", "--limit", "3"], "--limit works only for tables"),
        (["select 1", "--with", "main=x"], "the name main is already in use"),
        (["select 1", "--with", "x"], "Write it like old=releases/enwiki-20190801"),
        (["select interval 1 day as i", "--output", "%/x.parquet"], "cast the column in the query"),
        (["select error('late') from range(9)", "--output", "%/x.csv"], "the query failed: late."),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(
    release: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    arguments = [argument.replace("%", str(tmp_path)) for argument in arguments]
    assert ask(monkeypatch, str(release), *arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
