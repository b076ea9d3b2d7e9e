"""The views of pages: the page, what is beside it, search, what links here, any page."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kbsource.files import LocalStorage
from mapping.inspector.opened import Opened, close_releases, open_releases
from tests.support.inspected import REDIRECT, client_of
from tests.support.pages import title_of


def test_a_page_has_its_text_and_what_is_beside_it(client: TestClient) -> None:
    text = client.get("/r/release/page/4").text
    for expected in (
        f">{title_of(1)}</h1>",
        'href="https://www.wikidata.org/wiki/Q1001"',
        'href="https://en.wikipedia.org/w/index.php?title=Article_1&amp;oldid=900000001"',
        "Category 1",
        "<dt>ref</dt><dd>1</dd>",
        "Infobox person",
        'class="infobox"',
        'href="/r/release/page/4#e4"',
    ):
        assert expected in text


def test_links_lead_to_pages_and_say_their_offsets(client: TestClient, opened: Opened) -> None:
    assert opened.source is not None
    page = opened.source.by_id(4)
    assert page is not None
    anchor = page.anchors[0]
    assert (
        f'<a href="/r/release/page/{anchor.target_page_id}" title="element {anchor.element}, '
        f'[{anchor.start}, {anchor.end}) → {anchor.target_title}">{anchor.text}</a>'
    ) in client.get("/r/release/page/4").text


def test_redirects_are_named(client: TestClient) -> None:
    assert f"<bdi>{REDIRECT}</bdi>" in client.get("/r/release/page/1").text


def test_what_links_here_is_every_page_with_an_anchor_to_it(client: TestClient, opened: Opened) -> None:
    assert opened.source is not None
    for target in (1, 4, 100):
        expected = [page for page in opened.source if any(own.target_page_id == target for own in page.anchors)]
        assert opened.finder.n_linking(target) == len(expected)
        found = opened.finder.linking(target, 0, 99)
        assert [(row.page_id, row.title) for row in found] == [(page.page_id, page.title) for page in expected]
        assert opened.finder.linking(target, 1, 2) == found[1:2]
    text = client.get("/r/release/page/4/links").text
    assert all(f"<bdi>{row.title}</bdi>" in text for row in opened.finder.linking(4, 0, 99))


@pytest.mark.parametrize(
    ("asked", "page_id"),
    [
        (title_of(3), 10),
        ("ARTICLE_3 of in", 0),
        (REDIRECT, 1),
        ("7", 7),
        ("Q1002", 7),
        ("q1002", 7),
        ("https://en.wikipedia.org/wiki/Article_3_of_in", 10),
    ],
)
def test_search_leads_to_what_is_named(client: TestClient, asked: str, page_id: int) -> None:
    answer = client.get("/r/release/search", params={"q": asked})
    if page_id:
        assert (answer.status_code, answer.headers["Location"]) == (303, f"/r/release/page/{page_id}")
    else:
        assert answer.status_code == 200
        assert title_of(3) in answer.text


def test_search_lists_what_begins_so_in_any_case(client: TestClient) -> None:
    found = client.get("/r/release/titles.json", params={"q": "aRTICLE 1 OF"}).json()
    assert found == {
        "ready": True,
        "percent": 100,
        "found": [{"title": title_of(1), "note": "", "url": "/r/release/page/4"}],
    }
    (redirect,) = client.get("/r/release/titles.json", params={"q": "the old"}).json()["found"]
    assert redirect == {"title": REDIRECT, "note": f"→ {title_of(0)}", "url": "/r/release/page/1"}
    assert "No title begins like this" in client.get("/r/release/search?q=zzz").text


def test_a_number_and_an_item_are_told_beside_titles(client: TestClient) -> None:
    for asked, note in (("7", "page 7"), ("Q1002", "item Q1002")):
        assert client.get("/r/release/titles.json", params={"q": asked}).json()["found"][0]["note"] == note


def test_any_page_is_one_of_the_release(client: TestClient, opened: Opened) -> None:
    assert opened.source is not None
    answers = {client.get("/r/release/random").headers["Location"] for _ in range(20)}
    assert len(answers) > 1
    assert answers <= {f"/r/release/page/{page.page_id}" for page in opened.source}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("page/2", 404),
        ("page/99999999999999999999999", 404),
        ("page/1?part=2", 404),
        ("page/1?part=x", 400),
        ("page/1?part=1", 200),
        ("page/1/table/0", 200),
        ("page/1/table/1", 404),
        ("page/2/links", 404),
        ("page/1?hl=nonsense&hl=99:0-99:5", 200),
        ("page/1?section=Lists+and+%3Cb%3E", 200),
        ("search", 200),
        ("search?q=%00%FF", 200),
    ],
)
def test_addresses_that_lead_nowhere_are_told(client: TestClient, path: str, status: int) -> None:
    assert client.get(f"/r/release/{path}").status_code == status


def test_a_side_index_that_cannot_be_made_is_told(
    pages_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    releases = open_releases([(pages_path, LocalStorage())])
    try:
        assert releases[0].finder.backlinks.wait() is None
        assert releases[0].finder.titles.wait() is None
        client = client_of(*releases)
        assert "Cannot be counted: " in client.get("/r/release/page/1").text
        assert "cannot be searched by their beginnings" in client.get("/r/release/search?q=art").text
    finally:
        close_releases(releases)


def test_the_release_is_not_written_to(client: TestClient, pages_path: str) -> None:
    files = {path: path.stat().st_mtime_ns for path in Path(pages_path).rglob("*")}
    for path in ("", "page/1", "page/1/links", "search?q=a", "tables/pages"):
        client.get(f"/r/release/{path}")
    assert {path: path.stat().st_mtime_ns for path in Path(pages_path).rglob("*")} == files
