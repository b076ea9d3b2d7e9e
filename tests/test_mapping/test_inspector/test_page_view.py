"""A page as HTML, its parts, and the views around it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from msgspec.structs import replace
from starlette.testclient import TestClient

from kbsource.records import Cell, CellLink, Element, Infobox, InfoboxField, Page, Table
from mapping.inspector.marking import MarkedRange, shown
from mapping.inspector.opened import OpenRelease, close_releases, open_releases
from mapping.inspector.page_view import PART_CHARS, PageDocument, Part, page_parts, part_with
from tests.support.inspected import REDIRECT, client_of, inspected_pages, write_inspected
from tests.support.pages import pages, synthetic_pages, title_of


def _parts(*sizes: int) -> list[Part]:
    page = next(synthetic_pages(1))
    elements = tuple(Element("paragraph", 0, None, "", (), "x" * size) for size in sizes)
    return page_parts(replace(page, elements=elements, anchors=(), tables=(), infoboxes=()))


def test_a_page_of_usual_size_is_one_part() -> None:
    (part,) = _parts(10, 0, 5_000)
    assert part == ((0, 0, 10), (1, 0, 0), (2, 0, 5_000))


def test_long_elements_are_cut_and_nothing_is_left_out() -> None:
    sizes = (7, 2 * PART_CHARS + 1, 0, 150_000, 150_000)
    parts = _parts(*sizes)
    pieces = [piece for part in parts for piece in part]
    for number, size in enumerate(sizes):
        own = [(start, end) for element, start, end in pieces if element == number]
        assert [start for start, _ in own] == [0, *(end for _, end in own[:-1])]
        assert own[-1][1] == size
    assert max(sum(end - start for _, start, end in part) for part in parts) <= 1.25 * PART_CHARS


def test_a_place_is_found_in_its_part() -> None:
    parts = _parts(7, 2 * PART_CHARS + 1, 9)
    for number, part in enumerate(parts):
        for element, start, end in part:
            assert part_with(parts, element, start) == number
            assert part_with(parts, element, max(end - 1, start)) == number
    assert part_with(parts, 99) == len(parts) - 1


_VOID = ("wbr", "br")


class _Outline(HTMLParser):
    """Checks that tags are closed in their order, and collects the text of every element of the page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str | None]] = []
        self.texts: dict[int, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        number = dict(attrs).get("data-e")
        if number is not None:
            self.texts.setdefault(int(number), "")
        if tag not in _VOID:
            self.open.append((tag, number))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        number = next((number for _, number in reversed(self.open) if number is not None), None)
        if number is not None:
            self.texts[int(number)] += data


def _page(*elements: Element, **values: object) -> Page:
    title = Element("title", 1, None, "", (), "T")
    plain = replace(next(synthetic_pages(1)), anchors=(), tables=(), infoboxes=())
    return replace(plain, elements=(title, *elements), **values)  # type: ignore[arg-type]  # fields of a page


def _html(opened: OpenRelease, page: Page, *spans: MarkedRange) -> str:
    return str(PageDocument(opened, page, spans).html(page_parts(page)[0]))


def _item(level: int, text: str, ordinal: int | None = None, marker: str = "*") -> Element:
    return Element("list_item", level, ordinal, marker, (), text)


@given(page=pages())
def test_every_page_keeps_its_texts_and_closes_its_tags(opened: OpenRelease, page: Page) -> None:
    parser = _Outline()
    for part in page_parts(page):
        parser.feed(str(PageDocument(opened, page).html(part)))
    parser.close()
    assert parser.open == []
    assert parser.texts == {number: shown(element.text) for number, element in enumerate(page.elements)}


def test_lists_are_nested_by_level_and_kind(opened: OpenRelease) -> None:
    page = _page(_item(1, "a", 1), _item(3, "b"), _item(1, "c", 2), _item(1, "d"), _item(2, "e", marker=";"))
    html = _html(opened, page).replace("\n", "").partition("</h1>")[2]
    bare = html.replace(' dir="auto"', "")
    for number in range(1, 6):
        bare = bare.replace(f' id="e{number}" data-e="{number}"', "")
    assert bare == (
        '<ol><li value="1"><span>a</span>'
        '<ul><li class="deeper"><ul><li><span>b</span></li></ul></li></ul></li>'
        '<li value="2"><span>c</span></li></ol>'
        '<ul><li><span>d</span><ul class="terms"><li><span>e</span></li></ul></li></ul>'
    )


def test_cells_and_fields_have_their_spans_and_links(opened: OpenRelease) -> None:
    cell = Cell("see A", True, 2, 9, (CellLink(4, 5, "A", "B c", 4),))
    dead = InfoboxField("long_name", "X", (CellLink(0, 1, "X", None, None),))
    page = _page(tables=(Table(0, "<cap>", ("h",), ((cell,), (cell,))),), infoboxes=(Infobox(0, "Box", (dead,)),))
    html = _html(opened, page)
    assert '<th colspan="2" rowspan="2" dir="auto">see <a href="/r/release/page/4?section=B+c#s-B_c"' in html
    assert '<caption dir="auto">&lt;cap&gt;</caption>' in html
    assert '<span class="dead" title="[0, 1) → X, which the dump does not have">X</span>' in html
    assert "long_<wbr>name" in html


def test_a_table_without_text_is_told(opened: OpenRelease) -> None:
    page = _page(tables=(Table(0, None, (), ((Cell("", False, 1, 1, ()),),)),))
    assert '<p class="more quiet" id="t0">A table without text.</p>' in _html(opened, page)


def test_marked_spans_run_over_elements(opened: OpenRelease) -> None:
    page = _page(*(Element("paragraph", 0, None, "", (), text) for text in ("abc", "def", "ghi")))
    html = _html(opened, page, MarkedRange(1, 1, 3, 2, "gold"))
    assert 'dir="auto">a<mark title="gold">bc</mark></p>' in html
    assert 'dir="auto"><mark title="gold">def</mark></p>' in html
    assert 'dir="auto"><mark title="gold">gh</mark>i</p>' in html


def test_of_headings_with_one_name_the_first_is_led_to(opened: OpenRelease) -> None:
    headings = [Element("heading", 2, None, "", ("A b",), "A b")] * 2
    html = _html(opened, _page(*headings))
    assert html.count('id="s-A_b"') == 1
    assert html.index('id="s-A_b"') < html.index('id="e1"')


@pytest.mark.parametrize(("level", "tag"), [(0, "h2"), (2, "h2"), (6, "h6")])
def test_headings_are_below_the_title(opened: OpenRelease, level: int, tag: str) -> None:
    assert f"<{tag} id" in _html(opened, _page(Element("heading", level, None, "", (), "H")))


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


def test_links_lead_to_pages_and_say_their_offsets(client: TestClient, opened: OpenRelease) -> None:
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


def test_what_links_here_is_every_page_with_an_anchor_to_it(client: TestClient, opened: OpenRelease) -> None:
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


def test_any_page_is_one_of_the_release(client: TestClient, opened: OpenRelease) -> None:
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


def test_search_names_its_release_and_asks_all_that_are_open(pages_path: str, tmp_path: Path) -> None:
    other = write_inspected(
        tmp_path / "other", [replace(page, title=f"New {page.title}") for page in inspected_pages()]
    )
    releases = open_releases([pages_path, other])
    try:
        for release in releases:
            release.finder.titles.wait()
        client = client_of(releases[0])
        assert 'URL in release"' in client.get("/r/release/").text
        assert "Pages for “<bdi>art</bdi>” in release</h1>" in client.get("/r/release/search?q=art").text
        client = client_of(*releases)
        assert 'URL in release-2 and 1 more"' in client.get("/r/release-2/").text
        text = client.get("/r/release/search?q=new").text
        assert re.findall("<h2>(.*?)</h2>", text) == ["release", "release-2", "In the text of release"]
        assert "/r/release-2/page/1" in text
        exact = client.get("/r/release-2/search", params={"q": f"New {title_of(3)}"})
        assert (exact.status_code, exact.headers["location"]) == (303, "/r/release-2/page/10")
        both = client.get("/r/release/titles.json?q=article").json()["found"]
        assert {link["note"].split(" · ")[-1] for link in both} == {"release"}
        (name, *more) = client.get("/r/release/titles.json?q=the").json()["found"]
        assert (name["note"], [source["url"] for source in more]) == (
            f"→ {title_of(0)} · release",
            ["/r/release-2/page/1"],
        )
    finally:
        close_releases(releases)


def test_a_side_index_that_cannot_be_made_is_told(
    pages_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    releases = open_releases([pages_path])
    try:
        assert releases[0].finder.backlinks.wait() is None
        assert releases[0].finder.titles.wait() is None
        client = client_of(*releases)
        assert "The links cannot be counted: " in client.get("/r/release/page/1").text
        assert "cannot be searched by their beginnings" in client.get("/r/release/search?q=art").text
    finally:
        close_releases(releases)


def test_the_release_is_not_written_to(client: TestClient, pages_path: str) -> None:
    files = {path: path.stat().st_mtime_ns for path in Path(pages_path).rglob("*")}
    for path in ("", "page/1", "page/1/links", "search?q=a", "tables/pages"):
        client.get(f"/r/release/{path}")
    assert {path: path.stat().st_mtime_ns for path in Path(pages_path).rglob("*")} == files
