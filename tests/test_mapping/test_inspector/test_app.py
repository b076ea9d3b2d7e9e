"""What every answer is: guarded, read only, and known by its address."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from kbsource.errors import SetupError
from mapping.inspector.app import inspector_app
from mapping.inspector.frame import HEADERS
from mapping.inspector.opened import OpenRelease, close_releases, every_release, open_releases
from tests.support.derived_releases import write_age, write_pages_release
from tests.support.dumps import flip
from tests.support.inspected import REDIRECT, client_of, inspected_pages, opened_release, write_inspected
from tests.support.pages import title_of


@pytest.mark.parametrize(
    "path", ["/", "/r/release/", "/static/inspector.css", "/nothing", "/r/release/titles.json?q=a"]
)
def test_every_answer_keeps_a_browser_from_running_what_is_not_ours(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in headers["Content-Security-Policy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_reading_is_possible(client: TestClient, method: str) -> None:
    answer = client.request(method, "/r/release/")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert "Content-Security-Policy" in answer.headers


def test_head_is_answered_without_a_body(client: TestClient) -> None:
    answer = client.head("/r/release/page/1")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(("host", "status"), [("localhost", 200), ("127.0.0.1", 200), ("evil.example", 400)])
def test_only_names_of_this_machine_are_answered(opened: OpenRelease, host: str, status: int) -> None:
    assert client_of(opened, host=host).get("/").status_code == status


def test_a_given_host_is_answered_too(opened: OpenRelease) -> None:
    client = TestClient(inspector_app([opened], hosts=["reader.local"]), base_url="http://reader.local:8765")
    assert client.get("/").status_code == 200


def test_no_view_has_scripts_or_styles_of_its_own(client: TestClient) -> None:
    for path in ("/", "/r/release/", "/r/release/page/1", "/r/release/search?q=art&all", "/r/release/tables/pages"):
        text = client.get(path).text
        assert text.count("<script") == text.count('<script src="/static/') >= 1
        assert "<style" not in text
        assert " style=" not in text
        assert "http://" not in text


def test_an_unknown_address_is_told_in_the_frame(client: TestClient) -> None:
    answer = client.get("/r/unknown/")
    assert answer.status_code == 404
    assert "There is nothing at this address." in answer.text


def test_releases_of_one_name_have_their_own_addresses(pages_path: str) -> None:
    releases = open_releases([pages_path] * 2)
    try:
        assert [opened.slug for opened in every_release(releases)] == ["release", "release-2"]
        assert client_of(*releases).get("/r/release-2/page/1").status_code == 200
    finally:
        close_releases(releases)


def test_a_damaged_table_is_told(opened: OpenRelease, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from kbsource.errors import DataError

    assert opened.source is not None

    def damaged(_: object, page_id: int) -> None:
        raise DataError(f"page {page_id} <damaged>")

    monkeypatch.setattr(type(opened.source), "by_id", damaged)
    answer = client.get("/r/release/page/1")
    assert answer.status_code == 500
    assert "page 1 &lt;damaged&gt;" in answer.text


def test_a_changed_bit_of_an_index_shows_no_other_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BLOCK_SHIFT", 6), ("BLOCK_BYTES", 64)):
        monkeypatch.setattr(f"kbsource.index.mapped_files.{name}", value)
    folder = Path(write_inspected(tmp_path, islice(inspected_pages(), 9)))
    titles = [title_of(number) for number in range(9)]
    asked = [f"/r/release/search?q={quote(title)}" for title in (REDIRECT, "Q77", "7", *titles)]
    asked += ["/r/release/titles.json?q=art", "/r/release/page/1/links"]

    def answers() -> list[tuple[int, str, str]] | str:
        try:
            with opened_release(str(folder)) as release:
                found = map(client_of(release).get, asked)
                return [
                    (response.status_code, response.headers.get("location", ""), response.text) for response in found
                ]
        except SetupError as error:
            return str(error)

    answers()  # which makes the side indexes
    known, n_told = answers(), 0
    for file in sorted((folder / "index").iterdir()):
        content = file.read_bytes()
        for place in range(5, len(content), len(content) // 7):
            file.write_bytes(flip(content, place, bits=2))
            found = answers()
            for told, sound in zip([found] if isinstance(found, str) else found, known, strict=False):
                text = told if isinstance(told, str) else told[2]
                is_told = re.search(rf"{file.name}.* again", text) is not None
                n_told += is_told
                assert is_told or told == sound, (file.name, place)
        file.write_bytes(content)
    assert n_told > 20


def test_the_first_page_says_what_each_release_is_and_what_it_was_made_from(tmp_path: Path) -> None:
    manifest = write_pages_release(tmp_path, list(inspected_pages()))
    ages = write_age(tmp_path / "age", ["First"], made_from=manifest)
    releases = open_releases([str(tmp_path / "release"), str(ages)])
    try:
        text = client_of(*releases).get("/").text
    finally:
        close_releases(releases)
    pages, age = re.findall(r'<li class="card">(.*?)</li>', text, re.DOTALL)
    assert re.search(r"<p>release of pages, .*?</p>\s*<p>60 pages, .*?[\d.]+\xa0kB</p>", pages)
    assert 'made from it: <a href="/r/age/">age</a>' in pages
    assert 'made from <a href="/r/release/">release</a>' in age
