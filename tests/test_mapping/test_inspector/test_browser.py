"""The inspector in a real Chromium: ways through it, keys, small and dark screens, and pages that mean no good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from msgspec.structs import replace

from kbsource.records import Infobox, InfoboxField
from mapping.inspector.app import inspector_app
from mapping.inspector.full_text import _texts
from mapping.inspector.opened import OpenRelease, close_releases, open_releases
from tests.support.browser import DESKTOP, PHONE, Browser, browser_on, is_too_wide, served
from tests.support.hostile_pages import FIRST_ID, LONG_TABLE_ROWS, TITLES, hostile_pages
from tests.support.inspected import inspected_pages, opened_release, write_inspected
from tests.support.pages import title_of

pytestmark = pytest.mark.slow

VIEWS = (
    "/",
    "/r/release/",
    "/r/release/page/1",
    "/r/release/page/1?hl=2:0-2:40,proof",
    "/r/release/page/1/links",
    "/r/release/page/1/table/0",
    "/r/release/search?q=article",
    "/r/release/search",
    "/r/release/measures",
    "/r/release/sql",
    "/r/release/tables/pages?from=80",
    "/r/release/tables/redirects/0",
    f"/r/release/page/{FIRST_ID}",
    f"/r/release/page/{FIRST_ID + len(TITLES)}",
    "/r/release/page/999",
)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenRelease]:
    """The pages of the other tests, and the hostile ones behind them."""
    pages = [*inspected_pages(), *hostile_pages()]
    with opened_release(write_inspected(tmp_path_factory.mktemp("browsed"), pages)) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(release: OpenRelease) -> Iterator[Browser]:
    with browser_on(inspector_app([release])) as browser:
        yield browser


@pytest.fixture
def browser(shared: Browser) -> Iterator[Browser]:
    """Fails a test that left faults in the console."""
    shared.faults.clear()
    yield shared
    assert shared.faults == []


def test_a_page_is_found_as_one_types_then_a_link_followed_and_the_way_back(browser: Browser) -> None:
    with browser.page("/") as page:
        page.keyboard.press("/")
        page.keyboard.type("article 7 OF")
        page.get_by_role("option", name=title_of(7)).wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/r/release/page/22")
        assert page.locator("article h1").inner_text() == title_of(7)
        link = page.locator("article p a").first
        target = link.inner_text()
        link.click()
        page.wait_for_function("title => document.querySelector('article h1').textContent === title", arg=target)
        page.go_back()
        page.wait_for_url("**/r/release/page/22")


def test_search_is_left_with_escape_and_shows_when_nothing_begins_so(browser: Browser) -> None:
    with browser.page("/r/release/page/1") as page:
        page.keyboard.press("/")
        page.keyboard.type("no such title")
        page.get_by_text("No title begins like this").wait_for()
        page.keyboard.press("Escape")
        assert page.locator("#titles").is_hidden()
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement === document.body")


def test_lists_are_walked_by_keys(browser: Browser) -> None:
    with browser.page("/r/release/search?q=article&all") as page:
        rows = page.locator("a.row")
        for keys, expected in (("jj", 1), ("k", 0), ("jjj", 3)):
            page.keyboard.type(keys)
            assert page.evaluate("document.activeElement.textContent") == rows.nth(expected).inner_text()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/page/*")


def test_the_offsets_of_what_is_selected_are_told_in_code_points(browser: Browser, release: OpenRelease) -> None:
    assert release.source is not None
    page_read = release.source.by_id(1)
    assert page_read is not None
    number = len(page_read.elements) - 1
    with browser.page("/r/release/page/1") as page:
        page.locator(f'[data-e="{number}"] .dead').evaluate("node => getSelection().selectAllChildren(node)")
        page.locator("#place", has_text=f"element {number}, [7, 14)").wait_for()


@pytest.mark.parametrize("path", VIEWS)
def test_views_fit_a_phone_and_are_dark_where_that_is_wished(browser: Browser, path: str) -> None:
    with browser.page(path, viewport=PHONE, color_scheme="dark") as page:
        assert not is_too_wide(page)
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(map(int, dark.removeprefix("rgb(").removesuffix(")").split(","))) < 64
    if path.endswith("/999"):
        browser.faults.clear()  # the console tells of every 404


def test_axe_finds_nothing_serious(browser: Browser) -> None:
    assert list(browser.serious_faults(*VIEWS)) == []
    browser.faults.clear()  # of the 404


def test_nothing_moves_while_a_page_loads(browser: Browser) -> None:
    script = """() => new Promise(done => new PerformanceObserver(list =>
        done(list.getEntries().reduce((sum, entry) => sum + entry.value, 0))
    ).observe({type: "layout-shift", buffered: true}) ?? setTimeout(() => done(0), 300))"""
    with browser.page("/r/release/page/1") as page:
        assert page.evaluate(script) < 0.01


def test_everything_but_live_search_works_without_scripts(browser: Browser) -> None:
    with browser.page("/", java_script_enabled=False) as page:
        page.fill("#q", "The old name")
        page.click("text=Search >> visible=true")
        page.wait_for_url("**/r/release/page/1")
        page.locator("article p a").first.click()
        page.wait_for_url("**/page/*")
        assert page.locator("article h1").count() == 1


@pytest.mark.parametrize("number", range(30))
def test_hostile_pages_are_shown_as_text(browser: Browser, number: int) -> None:
    with browser.page(f"/r/release/page/{FIRST_ID + number}") as page:
        for viewport in (DESKTOP, PHONE):
            page.set_viewport_size(viewport)
            assert page.locator("article h1").count() == 1
            assert not is_too_wide(page)
            assert page.locator("main script, main img, main iframe, main svg").count() == 0
            assert page.locator("a[href^='javascript'], a[href^='data']").count() == 0
            if number < len(TITLES):
                assert page.locator("article p[data-e='1']").evaluate("p => [...p.textContent].length") == len(
                    TITLES[number]
                )


def test_long_tables_and_pages_come_in_parts(browser: Browser) -> None:
    with browser.page(f"/r/release/page/{FIRST_ID + len(TITLES)}") as page:
        page.get_by_role("link", name="2,900 more rows").click()
        assert page.get_by_text(f"101–200 of {LONG_TABLE_ROWS:,}").count() == 2
    with browser.page(f"/r/release/page/{FIRST_ID + len(TITLES) + 2}") as page:
        page.get_by_role("link", name="Next part").first.click()
        page.get_by_text("This page is long: part 2 of").first.wait_for()


def test_infoboxes_stand_one_below_the_other(browser: Browser, tmp_path: Path) -> None:
    first, *others = inspected_pages()
    boxes = tuple(
        Infobox(0, name, tuple(InfoboxField(f"{name} {n}", "value", ()) for n in range(9))) for name in ("One", "Two")
    )
    folder = write_inspected(tmp_path, [replace(first, infoboxes=boxes), *others])
    with (
        opened_release(folder) as opened,
        served(inspector_app([opened])) as url,
        Browser(url, browser.chromium, browser.faults).page("/r/release/page/1") as page,
    ):
        places = page.evaluate(
            "[...document.querySelectorAll('.infobox')].map((one) => one.getBoundingClientRect().toJSON())"
        )
    upper, lower = places
    assert lower["top"] >= upper["bottom"]
    assert lower["left"] == upper["left"]


def test_what_is_made_in_the_background_appears_when_it_is_there(
    shared: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    may_end = Event()
    monkeypatch.setattr("mapping.inspector.full_text._texts", lambda texts: may_end.wait(30) and _texts(texts))
    releases = open_releases([write_inspected(tmp_path, inspected_pages())])
    try:
        with served(inspector_app(releases)) as url:
            browser = Browser(url, shared.chromium)
            with browser.page("/r/release/search?q=article&all") as page:
                page.get_by_text("The text is being indexed").wait_for()
                assert page.locator(".results").count() == 0
                may_end.set()
                page.locator(".results li").first.wait_for()
                assert page.locator("[data-unfinished]").count() == 0
            assert browser.faults == []
    finally:
        close_releases(releases)
