"""Queries that somebody types: they see one release, change nothing, and end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from mapping.inspector import sandbox
from mapping.inspector.opened import Opened
from mapping.inspector.sandbox import MOST_ROWS, Answer, Sandbox

SECRET = "nobody may read this"


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


def ask(box: Sandbox, opened: Opened, query: str) -> Answer:
    return box.ask(query, {name: table.files for name, table in opened.tables.items()}, opened.path)


def test_a_query_is_answered(box: Sandbox, opened: Opened) -> None:
    found = ask(box, opened, "select title, len(elements) as n, [1, 2] as l from pages order by page_id limit 2;")
    assert (found.columns, found.fault, found.is_cut) == (["title", "n", "l"], None, False)
    assert [len(found.rows), found.rows[0][2]] == [2, [1, 2]]
    assert ask(box, opened, "from pages select count(*)").rows == [[60]]
    assert ask(box, opened, "with p as (from pages) select count(*) from p, redirects").rows == [[60]]


def test_more_rows_than_are_shown_are_cut_and_that_is_said(box: Sandbox, opened: Opened) -> None:
    found = ask(box, opened, "select * from range(100000)")
    assert (len(found.rows), found.is_cut) == (MOST_ROWS, True)
    assert len(ask(box, opened, "select repeat('x', 100000)").rows[0][0]) < 3000


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{secret}')",
        "select * from read_csv('{secret}')",
        "select * from read_blob('{secret}')",
        "select * from '{secret}'",
        "from '{secret}.parquet'",
        "select * from glob('{folder}/*')",
        "select * from read_parquet('https://example.org/x.parquet')",
        "select getenv('HOME')",
        "select * from query('from read_text(''{secret}'')')",
        "select * from parquet_scan('{release}/../*')",
        "attach '{folder}/x.duckdb'",
        "copy pages to '{folder}/x.csv'",
        "copy (select 1) to '{release}/x.csv'",
        "copy (select 1 as page_id) to '{page}' (format parquet)",
        "export database '{folder}/x'",
        "create table t as select 1",
        "create view pages as select 1",
        "drop view pages",
        "insert into pages select * from pages",
        "install httpfs",
        "load httpfs",
        "set memory_limit = '100GB'",
        "set enable_external_access = true",
        "reset lock_configuration",
        "pragma enable_profiling",
        "call force_checkpoint()",
        "select 1; select 2",
        "explain analyze copy (select 1) to '{folder}/x'",
        "select * from pages where",
        "",
    ],
)
def test_nothing_else_is_read_written_or_changed(box: Sandbox, opened: Opened, tmp_path: Path, query: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    page = f"{opened.path}/{opened.tables['pages'].files[0]}"
    before = Path(page).read_bytes()
    kept = sorted(Path(opened.path).rglob("*"))
    found = ask(box, opened, query.format(secret=secret, folder=tmp_path, release=opened.path, page=page))
    assert found.fault
    assert not found.rows
    assert SECRET not in found.fault
    assert (Path(page).read_bytes(), sorted(Path(opened.path).rglob("*"))) == (before, kept)
    assert list(tmp_path.iterdir()) == [secret]
    assert ask(box, opened, "select count(*) from pages").rows == [[60]]


@pytest.mark.parametrize(
    "query",
    [
        "select len(range(2000000000))",  # no function asks whether it was interrupted
        "select sum(len(x)) from (select list(range) as x from range(2000000000))",
        "select string_agg(repeat('x', 100000), '') from range(1000000)",
        "select length(repeat('a', 4000000000))",
    ],
)
def test_what_eats_memory_is_stopped(box: Sandbox, opened: Opened, query: str) -> None:
    assert ask(box, opened, query).fault
    assert ask(box, opened, "select 1").rows == [[1]]


def test_what_does_not_end_is_ended(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "LONGEST_S", 1.5)
    box, begun = Sandbox(), time.monotonic()
    found = ask(
        box, opened, "select count(*) from range(1000000000) a, range(1000000) b where a.range * b.range % 7 = 9"
    )
    assert found.fault == "Stopped: it took more than 1.5 s."
    assert time.monotonic() - begun < 30
    assert ask(box, opened, "select 1").rows == [[1]]
    box.close()


def test_the_view_shows_the_answer_with_links_and_faults_as_text(client: TestClient) -> None:
    text = client.get("/r/release/sql", params={"query": "select page_id, title from pages limit 1"}).text
    assert "1 row" in text
    assert '<a href="/r/release/page/1">1</a>' in text
    hostile = client.get("/r/release/sql", params={"query": "select '<img src=x>' as \"<b>\""}).text
    assert "&lt;img src=x&gt;" in hostile
    assert "<img" not in hostile
    assert 'role="alert"' in client.get("/r/release/sql", params={"query": "select <script>"}).text
    assert "<script>" not in client.get("/r/release/sql", params={"query": "select <script>"}).text
    assert 'role="alert"' not in client.get("/r/release/sql").text
