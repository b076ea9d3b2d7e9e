"""Views of alignments, QAMPARI and AmbER in a real browser: flows, hostile texts, phones, and what axe finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kbsource.diff.making import make_diff
from mapping.inspector.app import inspector_app
from mapping.inspector.opened import close_releases
from tests.support.browser import DESKTOP, PHONE, Browser, browser_on, is_too_wide, serious_faults
from tests.support.derived_releases import (
    HOSTILE,
    Piece,
    Record,
    opened,
    write_age,
    write_alignment,
    write_alignments,
    write_amber,
    write_facts,
    write_pages_release,
)
from tests.support.diff_worlds import Changes, write_world
from tests.support.qampari import PAGES, drawn, question, write_qampari

pytestmark = pytest.mark.slow

HOSTILE_RTL = f"‮{HOSTILE}‬ {'x' * 2000} שלום עולם {{{{7*7}}}} </textarea></title>"
NEW = PAGES[0].elements[1].text[5:60]
VIEWS = (
    "aligned/",
    "aligned/measures",
    "aligned-fever-dev/",
    "aligned/tables/records",
    "aligned/tables/records/0",
    "aligned/tables/records/2",
    "aligned/tables/alignments",
    "aligned/sql?query=select+*+from+records",
    "aligned/sql?query=nonsense",
    "qampari/",
    "qampari/tables/questions",
    "qampari/tables/questions/0",
    "qampari/tables/questions/1",
    "qampari/tables/queries/0",
    "amber/",
    "amber/tables/sets",
    "amber/tables/sets/0",
    "amber/tables/sets/1",
    "amber/tables/names",
    "amber/tables/tuples/0",
    "diff/",
    "diff/measures",
    "diff/tables/page_changes",
    "diff/tables/page_changes/0",
    "diff/tables/page_changes/1",
    "diff/tables/span_changes",
    "age/",
    "age/tables/fates",
    "age/tables/fates/0",
    "facts/",
    "facts/tables/facts",
    "facts/tables/facts/0",
    "facts/tables/facts/1",
)


def records() -> Iterator[Record]:
    yield Record(id="1", input="First?", score=0.9, pieces=[Piece(old=f"old {NEW}", new=NEW, place=(1, 5, 1, 60))])
    yield Record(id="2", outcome="dropped", reason="page_missing", pieces=[Piece(outcome="page_missing", page_id=None)])
    hostile = Piece(old=HOSTILE_RTL, new=f"{HOSTILE_RTL} more", title=HOSTILE_RTL, page_value=HOSTILE_RTL)
    yield Record(id=HOSTILE_RTL, input=HOSTILE_RTL, answers=[HOSTILE_RTL], score=0.5, pieces=[hostile])
    yield from (Record(id=f"n{number}", score=number / 100) for number in range(80))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("browser")
    manifest = write_pages_release(folder, PAGES)
    part = write_alignment(folder / "aligned/fever/dev", records(), made_from=manifest)
    write_alignments(folder / "aligned", [("fever/dev", part)])
    questions = [question("P50__Q1", ["One", "Two"]), question(HOSTILE_RTL, [HOSTILE_RTL, "Two"], entity=HOSTILE_RTL)]
    made = [
        write_qampari(
            folder / "qampari",
            [drawn(drawn_question, number, "train") for number, drawn_question in enumerate(questions)],
            facts={"release": manifest.facts()},
        ),
        write_age(folder / "age", ["First", HOSTILE_RTL.replace("\0", "")], made_from=manifest),
        write_facts(folder / "facts", ["First", HOSTILE_RTL.replace("\0", "")], PAGES, made_from=manifest),
        write_amber(folder / "amber", ["Kate Bush", HOSTILE_RTL], PAGES, made_from=manifest),
    ]
    changes = Changes(7)
    old = write_world(folder / "old", changes.world)
    changes.change(60)
    changes.put(changes.world.pages[min(changes.world.pages)], texts=(HOSTILE_RTL.replace("\0", ""), "word " * 400))
    new = write_world(folder / "new", changes.world)
    make_diff(str(old), str(new), str(folder / "diff"))
    releases = opened(folder / "release", folder / "aligned", *made, folder / "diff", old, new)
    with browser_on(inspector_app(releases)) as browser:
        yield browser
    close_releases(releases)


@pytest.fixture
def browser(shared: Browser) -> Iterator[Browser]:
    """Fails a test that left faults in the console."""
    shared.faults.clear()
    yield shared
    assert shared.faults == []


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_and_holds_nothing_but_text(browser: Browser, view: str) -> None:
    with browser.page(f"/r/{view}") as page:
        for viewport in (DESKTOP, PHONE):
            page.set_viewport_size(viewport)
            assert not is_too_wide(page)
            assert page.locator("main img, main script, main iframe").count() == 0
            assert page.locator("h1").count() == 1


def _run(page: Any, query: str) -> None:
    page.get_by_label("Query", exact=True).locator("textarea").fill(query)
    page.get_by_role("button", name="Run").click()


def test_a_query_is_filled_in_by_an_address_and_run_by_its_button(browser: Browser) -> None:
    with browser.page("/r/aligned/sql?query=select+6*7+as+answer") as page:
        assert page.locator("textarea").input_value() == "select 6*7 as answer"
        assert page.get_by_role("region", name="Answer").count() == 0
        page.get_by_role("button", name="Run").click()
        page.get_by_role("region", name="Answer").wait_for()
        assert page.locator("td").inner_text() == "42"
        page.get_by_role("link", name="Link to this query").click()
        page.wait_for_url("**/sql?query=*")
        _run(page, "nonsense")
        assert "Parser Error" in page.get_by_role("alert").inner_text()
        assert serious_faults(page) == []
        for viewport in (DESKTOP, PHONE):
            page.set_viewport_size(viewport)
            assert not is_too_wide(page)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_query_is_stopped_by_its_button(browser: Browser, scripts: bool) -> None:
    forever = "select count(*) from range(1000000000) a, range(1000000) b where a.range * b.range % 7 = 9"
    with browser.page("/r/aligned/sql", java_script_enabled=scripts) as page:
        page.locator("textarea").fill(forever)
        page.get_by_role("button", name="Run").click(no_wait_after=True)
        page.wait_for_timeout(1500)
        page.get_by_role("button", name="Stop").click(no_wait_after=True)
        page.get_by_text("Stopped: no query of this page runs.").wait_for(timeout=8000)
        assert page.locator("textarea").input_value() == forever
        page.locator("textarea").fill("select 6*7 as answer")
        page.get_by_role("button", name="Run").click()
        page.get_by_role("region", name="Answer").wait_for()
        assert page.locator("td").inner_text() == "42"


def test_axe_finds_no_serious_fault(browser: Browser) -> None:
    assert list(browser.serious_faults(*(f"/r/{view}" for view in VIEWS))) == []


def test_records_are_chosen_read_and_seen_in_their_page(browser: Browser) -> None:
    with browser.page("/r/aligned/") as page:
        page.get_by_role("link", name="Records", exact=True).click()
        page.get_by_text("Columns and ranges").click()
        page.get_by_label("score from").fill("0.5")
        page.get_by_role("button", name="Show").click()
        for _ in range(2):
            page.get_by_role("link", name="score").click()
        assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
        assert "1–32 of 32" in page.locator(".pager").first.inner_text()
        page.locator("a.row").first.click()
        assert page.locator("h1").inner_text() == "First?"
        assert page.locator("article del").all_inner_texts() == ["old"]
        assert "1 of 32 selected" in page.locator(".pager").inner_text()
        page.get_by_role("link", name="Next →").click()
        page.get_by_role("link", name="← Previous").click()
        assert page.url.endswith("/tables/records/0?score.from=0.5&sort=-score")
        page.get_by_role("link", name="See it in its page").click()
        assert page.locator("mark").all_inner_texts() == [NEW]


def test_columns_are_chosen_and_a_query_asked_by_key(browser: Browser) -> None:
    with browser.page("/r/aligned/tables/records") as page:
        page.get_by_text("Columns and ranges").click()
        for name in ("outcome", "input"):
            page.get_by_role("checkbox", name=name, exact=True).uncheck()
        page.get_by_role("button", name="Show").click()
        assert "outcome" not in page.locator("thead").inner_text()
        page.get_by_role("link", name="SQL").click()
        page.get_by_role("textbox", name="Query").fill("select count(*) as n from records")
        page.keyboard.press("Control+Enter")
        page.get_by_role("cell", name="83").wait_for()


def test_charts_are_drawn_and_their_values_open_by_key(browser: Browser) -> None:
    with browser.page("/r/qampari/") as page:
        page.locator(".plot svg rect").first.wait_for()
        assert page.locator(".plot").count() == page.locator(".plot > svg").count() > 1
        page.focus("summary:has-text('Values')")
        page.keyboard.press("Enter")
        assert page.locator("figure details table").first.is_visible()


def test_lists_are_walked_by_keys_and_head_and_tail_stand_side_by_side(browser: Browser) -> None:
    with browser.page("/r/amber/tables/sets") as page:
        for key in ("j", "j", "k", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url("**/sets/0")
        left, right = (page.locator(".entity").nth(number).bounding_box() for number in range(2))
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] <= right["x"]


def test_everything_works_without_script(browser: Browser) -> None:
    with browser.page("/r/qampari/tables/questions", java_script_enabled=False) as page:
        page.get_by_role("textbox", name="Text").fill("miravel")
        page.get_by_role("button", name="Show").click()
        page.locator("a.row").first.click()
        assert page.locator(".proof mark").count() == 2
        assert page.locator("h3").first.inner_text().startswith("1. One")


def test_hostile_texts_are_shown_as_they_are(browser: Browser) -> None:
    with browser.page("/r/aligned/tables/records/2") as page:
        text = page.locator("article blockquote").last.text_content()
        assert "<script>alert(1)</script>" in text
        assert "{{7*7}}" in text
