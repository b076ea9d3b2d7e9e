"""Every release: what it holds, and its tables row by row."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from mapping.inspector.numbered_rows import table_rows
from mapping.inspector.opened import Opened
from tests.support.inspected import N_PAGES, REDIRECT


def test_the_overview_names_tables_and_facts(client: TestClient, opened: Opened) -> None:
    text = client.get("/r/release/").text
    assert "release of pages" in text
    assert opened.sha256 in text
    for table in opened.manifest.tables:
        assert f'href="/r/release/tables/{table}"' in text


@pytest.mark.parametrize(("start", "end"), [(0, 3), (28, 33), (58, 99), (60, 70)])
def test_rows_are_read_by_their_numbers_over_files_and_row_groups(opened: Opened, start: int, end: int) -> None:
    every = [row["page_id"] for row in table_rows(opened, "pages", 0, N_PAGES)]
    assert every == [1 + 3 * number for number in range(N_PAGES)]
    assert [row["page_id"] for row in table_rows(opened, "pages", start, end)] == every[start:end]


def test_a_table_is_shown_by_pages_of_rows(client: TestClient) -> None:
    first, second = (client.get(f"/r/release/tables/pages{query}").text for query in ("", "?from=50"))
    assert "1–50 of 60" in first
    assert 'rel="next" href="/r/release/tables/pages?from=50"' in first
    assert "51–60 of 60" in second
    assert 'rel="prev" href="/r/release/tables/pages"' in second


def test_a_row_is_shown_whole(client: TestClient) -> None:
    text = client.get("/r/release/tables/redirects/0").text
    assert REDIRECT in text
    assert "final_title" in text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("tables/pages?from=60", 404),
        ("tables/pages?from=x", 400),
        ("tables/pages?from=-1", 400),
        ("tables/unknown", 404),
        ("tables/redirects/1", 404),
        ("tables/rejected", 200),
    ],
)
def test_what_is_not_there_is_told(client: TestClient, path: str, status: int) -> None:
    assert client.get(f"/r/release/{path}").status_code == status
