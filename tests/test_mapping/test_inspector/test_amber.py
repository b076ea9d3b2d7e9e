"""AmbER sets in views: the list of sets, and each of them with its head beside the tail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from starlette.testclient import TestClient

from mapping.inspector.marking import shown
from tests.support.derived_releases import HOSTILE, opened, write_amber, write_pages_release
from tests.support.inspected import client_of, listed
from tests.support.pages import synthetic_pages

PAGES = list(synthetic_pages(2, n_paragraphs=3))
NAMES = ["Abe Lincoln", "Kate Bush", HOSTILE]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("amber")
    manifest = write_pages_release(folder, PAGES)
    made = write_amber(folder / "amber", NAMES, PAGES, made_from=manifest)
    return client_of(*opened(folder / "release", made))


@pytest.mark.parametrize(
    ("query", "numbers"),
    [("", "012"), ("?q=BUSH", "1"), ("?collection=human", "012"), ("?collection=nonhuman", ""), ("?q=(", "2")],
)
def test_sets_are_looked_for_by_name_and_collection(client: TestClient, query: str, numbers: str) -> None:
    query = query.replace("(", "script%3E")
    assert listed(client, f"/r/amber/tables/sets{query}") == numbers


def test_the_head_stands_in_front_of_the_tail_with_what_tells_them_apart(client: TestClient) -> None:
    text = client.get("/r/amber/tables/sets/1").text
    head, tail = text.split("<article")[1:]
    assert (">head<" in head, "10,000 views" in head, escape(PAGES[0].title) in head) == (True, True, True)
    assert (">tail<" in tail, "100 views" in tail, escape(PAGES[1].title) in tail) == (True, True, True)
    for part, page in ((head, PAGES[0]), (tail, PAGES[1])):
        span = page.elements[1].text
        assert f'<span class="quiet">{escape(span[:4])}</span><mark>{escape(span[4:20])}</mark>' in part
        assert f"/r/release/page/{page.page_id}?hl=1%3A4-1%3A20%2Cinstrument#e1" in part
        assert all(said in part for said in ("What did Kate Bush play?", "[SEP] instrument", "SUPPORTS", "a lute"))
    assert 'rel="prev" href="/r/amber/tables/sets/0"' in text
    assert 'rel="next" href="/r/amber/tables/sets/2"' in text


def test_names_are_counted_and_listed_by_outcome(client: TestClient) -> None:
    text = client.get("/r/amber/tables/names?outcome=small_gap").text
    assert ("Nobody" in text, "Kate Bush" in text, "entities are too similar in popularity" in text) == (
        True,
        False,
        True,
    )
    assert 'href="/r/amber/tables/sets?collection=human&amp;name=Kate+Bush"' in client.get("/r/amber/tables/names").text


def test_hostile_texts_stay_texts(client: TestClient) -> None:
    for url in ("/r/amber/tables/sets", "/r/amber/tables/sets/2", "/r/amber/tables/names"):
        text = client.get(url).text
        assert ("<img" in text, "<script>" in text, escape(shown(HOSTILE)) in text) == (False, False, True)


def test_without_the_pages_the_texts_stand_alone(tmp_path: Path) -> None:
    alone = opened(write_amber(tmp_path / "amber", NAMES, PAGES, made_from=None))
    text = client_of(*alone).get("/r/amber/tables/sets/0").text
    assert "are not open" in text
    assert f"<mark>{escape(PAGES[0].elements[1].text[4:20])}</mark>" in text
    assert "/page/" not in text
