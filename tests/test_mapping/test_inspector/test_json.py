"""Every view of the inspector as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from starlette.testclient import TestClient

from kbsource.records import Cell
from mapping.document import Share
from mapping.inspector import frame
from mapping.inspector.frame import json_address, json_response
from mapping.inspector.opened import OpenRelease
from mapping.inspector.page_view import TABLE_ROWS
from tests.support.hostile_pages import hostile_pages
from tests.support.inspected import N_PAGES, REDIRECT, client_of, opened_release, write_inspected
from tests.support.pages import title_of


def test_every_view_has_a_link_to_its_json(client: TestClient, opened: OpenRelease) -> None:
    for url in (
        "/",
        "/r/release/",
        "/r/release/measures",
        "/r/release/tables/pages?from=50&sort=-page_id",
        "/r/release/tables/redirects/0",
        "/r/release/page/1",
        "/r/release/page/1/links",
        "/r/release/search?q=art&all=1",
        "/r/release/sql",
    ):
        page = client.get(url)
        address = json_address(url)
        assert page.status_code == 200, url
        assert f'href="{address.replace("&", "&amp;")}"' in page.text
        answer = client.get(address)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        release = answer.json()["release"]
        assert release == (None if url == "/" else {"name": "release", "manifest_sha256": opened.sha256})


def test_json_has_what_the_view_shows(client: TestClient) -> None:
    def told(path: str) -> dict[str, object]:
        value: dict[str, object] = client.get(path).json()
        return value

    [release] = told("/index.json")["releases"]  # type: ignore[misc]
    assert (release["name"], release["url"]) == ("release", "/r/release/index.json")
    rows = told("/r/release/tables/pages.json?from=50&columns=title&columns=elements")
    assert (rows["n_rows"], rows["from"], rows["columns"]) == (N_PAGES, 50, ["title", "elements"])
    listed = rows["rows"]
    assert [row["number"] for row in listed] == list(range(50, N_PAGES))  # type: ignore[attr-defined]
    assert listed[0]["elements"][0]["text"] == listed[0]["title"]  # type: ignore[index]
    row = told("/r/release/tables/redirects/0.json")
    assert row["row"]["title"] == REDIRECT  # type: ignore[index]
    assert not any(name.startswith("_") for name in row["row"])  # type: ignore[attr-defined]
    linking = told("/r/release/page/1/links.json")
    assert linking["n_linking"] == len(linking["found"])  # type: ignore[arg-type]
    assert set(told("/r/release/sql.json?query=select+1")) >= {"query", "tables", "macros", "queries"}
    # One page has that title: the page leads to it, the JSON says so.
    found = told(f"/r/release/search.json?q={title_of(7)}")["titles"]
    assert [(title["title"], title["page_id"]) for title in found] == [(title_of(7), 22)]  # type: ignore[attr-defined]
    assert client.get("/r/release/tables/pages/0.json").headers["location"] == "/r/release/page/1.json"
    assert client.get("/r/release/random.json").headers["location"].endswith(".json")


def test_a_page_is_told_by_its_parts(tmp_path: Path) -> None:
    pages = list(hostile_pages())
    with opened_release(write_inspected(tmp_path, pages)) as opened:
        client = client_of(opened)
        for page in pages:
            parts = [client.get(f"/r/release/page/{page.page_id}.json?part=1").json()]
            n_parts = parts[0]["n_parts"]
            parts += [client.get(f"/r/release/page/{page.page_id}.json?part={n}").json() for n in range(2, n_parts + 1)]
            texts: dict[int, str] = {}
            for element in (element for part in parts for element in part["elements"]):
                texts[element["index"]] = texts.get(element["index"], "") + element["text"]
            assert list(texts.values()) == [element.text for element in page.elements]
            assert [own["n_rows"] for part in parts for own in part["tables"]] == [len(own.rows) for own in page.tables]
        long = next(
            (page, number) for page in pages for number, own in enumerate(page.tables) if len(own.rows) > TABLE_ROWS
        )
        address = f"/r/release/page/{long[0].page_id}/table/{long[1]}.json?from={TABLE_ROWS}"
        rest = client.get(address).json()
        assert rest["from"] == TABLE_ROWS
        assert len(rest["rows"]) == min(len(long[0].tables[long[1]].rows) - TABLE_ROWS, TABLE_ROWS)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/r/release/page/999.json", 404, "The release has no page 999."),
        ("/r/release/tables/pages.json?from=x", 400, "from=x is not a number."),
        ("/r/release/tables/nothing.json", 404, "has no table of that name"),
        ("/r/nothing/index.json", 404, "There is nothing at this address."),
    ],
)
def test_faults_are_json_too(client: TestClient, path: str, status: int, said: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json()["status"] == status
    assert said in answer.json()["detail"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_json_is_bounded(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "JSON_BYTES", 1000)
    answer = client.get("/r/release/tables/pages.json")
    assert answer.status_code == 413
    assert "more than 1,000; choose fewer columns" in answer.json()["detail"]


class _Pair(NamedTuple):
    one: int
    other: str


def test_values_of_any_kind_are_json() -> None:
    value = {
        "pair": _Pair(1, "x"),
        "share": Share(0.5),
        "decimal": Decimal("1.5"),
        "none": float("nan"),
        "nested": (1,),
    }
    value["time"] = datetime(2026, 1, 1, tzinfo=UTC)
    value["cell"] = Cell("<b>", True, 1, 1, ())
    told = orjson.loads(json_response(value).body)
    assert told["pair"] == {"one": 1, "other": "x"}
    assert (told["share"], told["decimal"], told["none"], told["nested"]) == (0.5, 1.5, None, [1])
    assert told["time"].startswith("2026-01-01T00:00:00")
    assert told["cell"]["text"] == "<b>"
