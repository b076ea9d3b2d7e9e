"""Any table as a list and its rows as cards: what is chosen, in what order, what leads where, and downloads."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from kbsource.wikidata.kind import WIKIDATA_RELEASE
from mapping.inspector.listing import Listing, Rows
from mapping.inspector.opened import OpenRelease, close_releases, open_releases
from mapping.kinds import KINDS, OWN_TABLES
from tests.support.derived_releases import HOSTILE
from tests.support.inspected import N_PAGES, REDIRECT, client_of, listed
from tests.support.reports import write_listing

NAMES = ["Ann", "ben", "Ann's \"50%_", "Cee", HOSTILE, "100 % sure", "ann_x", "Ébène"]
SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("score", pa.float64()),
        ("page_id", pa.int64()),
        ("qid", pa.string()),
        ("at", pa.timestamp("s", tz="UTC")),
        ("is_good", pa.bool_()),
        ("parts", pa.list_(pa.struct([("title", pa.string()), ("n", pa.int32())]))),
    ]
)
ROWS = [
    {
        "kind": ["a", "b", None][number % 3],
        "name": name,
        "score": None if number == 2 else (number % 4) / 4,
        "page_id": 1 + 3 * number,
        "qid": f"Q{number + 1}",
        "at": number,
        "is_good": number % 2 == 0,
        "parts": [{"title": name, "n": number}] * number,
    }
    for number, name in enumerate(NAMES)
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, pages_path: str) -> Iterator[TestClient]:
    """A release of somebody's own beside one of pages that it was made from."""
    folder = tmp_path_factory.mktemp("own")
    releases = open_releases([pages_path])
    facts = {"release": {"manifest_sha256": releases[0].sha256, "wiki": "x"}}
    close_releases(releases)
    kind = replace(OWN_TABLES, tables={**OWN_TABLES.tables, "statements": SCHEMA})
    write_listing(folder / "own", kind, {"statements": (SCHEMA, ROWS)}, report={}, facts=facts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mapping.inspector.opened.KINDS", (*KINDS[:-1], kind))
        releases = open_releases([pages_path, str(folder / "own")])
    yield client_of(*releases)
    close_releases(releases)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", "01234567"),
        ("?kind=a", "036"),
        ("?kind=a&kind=b", "013467"),
        ("?kind=-", "25"),
        ("?kind=none+of+these", ""),
        ("?kind=&q=&score.from=", "01234567"),
        ("?is_good=true&kind=a", "06"),
        ("?page_id=4", "1"),
        ("?page_id=x", ""),
        ("?q=ANN", "026"),
        ("?q=%25", "25"),
        ("?q=n_x", "6"),
        ("?q=ann's", "2"),
        ("?q=%C3%A9B", "7"),
        ("?score.from=0.5", "367"),
        ("?score.from=0.25&score.to=0.5", "156"),
        ("?sort=score", "04156372"),
        ("?sort=-score", "37615042"),
        ("?sort=-at&score.from=0.75", "73"),
        ("?columns=kind&columns=parts&q=ben", "1"),
    ],
)
def test_rows_are_chosen_and_ordered(client: TestClient, query: str, numbers: str) -> None:
    assert listed(client, f"/r/own/tables/statements{query}") == numbers


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("own/tables/statements?from=8", 404),
        ("own/tables/statements?from=x", 400),
        ("own/tables/statements?from=-1", 400),
        ("own/tables/statements?score.from=nan", 400),
        ("own/tables/statements?score.to=1e999", 400),
        ("own/tables/statements?sort=parts", 400),
        ("own/tables/statements?sort=name%3Bdrop", 400),
        ("own/tables/statements?columns=up", 400),
        ("own/tables/unknown", 404),
        ("own/tables/statements/8", 404),
        ("release/tables/pages?from=60", 404),
        ("release/tables/rejected", 200),
        ("release/tables/rejected?sort=-key&q=x", 200),
    ],
)
def test_what_is_not_there_is_told(client: TestClient, path: str, status: int) -> None:
    assert client.get(f"/r/{path}").status_code == status


@pytest.mark.parametrize(("start", "end"), [(0, 3), (28, 33), (58, 60), (7, 7)])
def test_rows_are_read_by_their_numbers_over_files_and_row_groups(opened: OpenRelease, start: int, end: int) -> None:
    rows = Rows(opened, "pages", None)
    choice = rows.choice(_Asked({}))  # type: ignore[arg-type]  # as much of a request as is asked for
    every = [row["page_id"] for row in rows.chosen(choice, 0, N_PAGES, ())]
    assert every == [1 + 3 * number for number in range(N_PAGES)]
    assert [row["number"] for row in rows.chosen(choice, start, end, ())] == list(range(start, end))
    backwards = rows.choice(_Asked({"sort": "-page_id"}))  # type: ignore[arg-type]
    assert [row["page_id"] for row in rows.chosen(backwards, start, end, ())] == every[::-1][start:end]


class _Asked:
    """A request's query."""

    def __init__(self, query: dict[str, str]) -> None:
        self.query_params = self
        self._query = query

    def get(self, name: str, default: str = "") -> str:
        return self._query.get(name, default)

    def getlist(self, name: str) -> list[str]:
        return [self._query[name]] if name in self._query else []


def test_a_table_is_shown_by_pages_of_rows(client: TestClient) -> None:
    first, second = (client.get(f"/r/release/tables/pages{query}").text for query in ("", "?from=50"))
    assert "1–50 of 60" in first
    assert 'rel="next" href="/r/release/tables/pages?from=50"' in first
    assert "51–60 of 60" in second
    assert 'rel="prev" href="/r/release/tables/pages"' in second


def test_columns_of_few_values_are_facets_with_their_numbers(client: TestClient) -> None:
    text = client.get("/r/own/tables/statements").text
    assert re.findall(r'<option value="([ab-])">(?:[ab]|none) \((\d)\)', text) == [("a", "3"), ("b", "3"), ("-", "2")]
    assert '<select name="name">' not in text


def test_ids_titles_and_items_lead_somewhere(client: TestClient) -> None:
    text = client.get("/r/own/tables/statements?q=ben").text
    assert '<a href="/r/release/page/4">4</a>' in text
    assert 'href="https://www.wikidata.org/wiki/Q2" rel="noreferrer"' in text
    assert '<a href="/r/release/search?q=ben">ben</a>' in client.get("/r/own/tables/statements/1").text
    assert client.get("/r/release/tables/pages/0").headers["location"] == "/r/release/page/1"
    led = re.findall(r'href="(/r/release/page/\d+)"', client.get("/r/release/tables/redirects").text)
    assert "/r/release/page/1" in led
    assert [client.get(url).status_code for url in set(led)] == [200] * len(set(led))


def test_of_several_spans_the_place_of_a_row_is_marked(opened: OpenRelease) -> None:
    from mapping.inspector.listing import value_url

    row = {"page_id": 4, "element": 2, "start_char": 5, "end_char": 9}
    assert value_url(opened, "page_id", 4, row) == "/r/release/page/4?hl=2%3A5-2%3A9#e2"
    assert value_url(opened, "old_page_id", 4, row) == "/r/release/page/4"
    assert value_url(opened, "url", "javascript:alert(1)", {}) is None


def test_a_row_is_shown_whole_with_its_neighbours(client: TestClient) -> None:
    assert REDIRECT in client.get("/r/release/tables/redirects/0").text
    text = client.get("/r/own/tables/statements/3?kind=a").text
    assert ">Cee<" in text
    assert text.count("<td><span") == 2 * 3 - 3  # the numbers of three parts; their titles are links
    assert "2 of 3 selected" in text
    assert 'rel="prev" href="/r/own/tables/statements/0?kind=a"' in text
    assert 'rel="next" href="/r/own/tables/statements/6?kind=a"' in text
    assert "Without a value: kind, score." in client.get("/r/own/tables/statements/2").text
    assert "not selected" in client.get("/r/own/tables/statements/1?kind=a").text
    worst = client.get("/r/own/tables/statements/4?sort=score").text
    assert 'rel="prev" href="/r/own/tables/statements/0?sort=score"' in worst
    assert "2 of 8" in worst


def test_chosen_rows_are_downloaded(client: TestClient) -> None:
    answer = client.get("/r/own/tables/statements?kind=a&sort=-page_id&format=csv")
    assert 'filename="own-statements.csv"' in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert list(rows[0]) == SCHEMA.names
    assert [row["page_id"] for row in rows] == ["19", "10", "1"]
    assert rows[1]["parts"] == '[{"title":"Cee","n":3},{"title":"Cee","n":3},{"title":"Cee","n":3}]'
    every = client.get("/r/own/tables/statements?format=parquet").content
    table = pq.read_table(io.BytesIO(every))
    assert table.column_names == SCHEMA.names
    assert [row["name"] for row in table.to_pylist()] == NAMES
    assert table.to_pylist()[3]["parts"] == ROWS[3]["parts"]
    some = client.get("/r/own/tables/statements?columns=name&q=ben&format=csv").text
    assert some.splitlines() == ["name", "ben"]


def test_downloads_leave_nothing_behind(client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert client.get("/r/own/tables/statements?format=parquet").status_code == 200
    assert list(tmp_path.iterdir()) == []


def test_hostile_texts_stay_texts(client: TestClient) -> None:
    for path in ("statements", "statements/4", "statements?q=script", f"statements?kind={quote(HOSTILE)}"):
        text = client.get(f"/r/own/tables/{path}").text
        assert "<img" not in text
        assert "<script>" not in text
    assert "alert(1)" in unescape(client.get("/r/own/tables/statements/4").text)


def test_a_kind_without_views_of_its_own_has_those_of_its_tables(client: TestClient) -> None:
    text = client.get("/r/own/").text
    assert '<a href="/r/own/tables/statements">Statements</a>' in text
    assert '<a href="/r/own/sql">SQL</a>' in text
    assert set(WIKIDATA_RELEASE.tables) <= set(OWN_TABLES.tables)


def test_computed_columns_are_chosen_by_and_need_no_file(opened: OpenRelease) -> None:
    listing = Listing(label="x", computed={"n": "len(elements)"})
    rows = Rows(opened, "pages", listing)
    choice = rows.choice(_Asked({"n.from": "1", "sort": "n"}))  # type: ignore[arg-type]
    found: list[dict[str, Any]] = rows.chosen(choice, 0, 2, ("title",))
    assert all(row["n"] >= 1 for row in found)
    assert set(found[0]) & {"elements", "anchors"} == set()
