"""Views of alignments, QAMPARI and AmbER in a real browser: flows, hostile texts, phones, and what axe finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mapping.inspector.app import make_app
from mapping.inspector.opened import close_releases
from tests.support.browser import DESKTOP, PHONE, Browser, browser_on, is_too_wide
from tests.support.derived_releases import (
    HOSTILE,
    Piece,
    Record,
    opened,
    write_alignment,
    write_alignments,
    write_amber,
    write_pages_release,
)
from tests.support.qampari import PAGES, drawn, question, write_qampari

HOSTILE_RTL = f"‮{HOSTILE}‬ {'x' * 2000} שלום עולם {{{{7*7}}}} </textarea></title>"
NEW = PAGES[0].elements[1].text[5:60]
VIEWS = (
    "aligned/outcomes",
    "aligned-fever-dev/outcomes",
    "aligned/records",
    "aligned/records/0",
    "aligned/records/2",
    "qampari/outcomes",
    "qampari/questions",
    "qampari/questions/0",
    "qampari/questions/1",
    "qampari/queries",
    "amber/outcomes",
    "amber/sets",
    "amber/sets/0",
    "amber/sets/1",
    "amber/names",
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
            [drawn(each, number, "train") for number, each in enumerate(questions)],
            facts={"release": manifest.facts()},
        ),
        write_amber(folder / "amber", ["Kate Bush", HOSTILE_RTL], PAGES, made_from=manifest),
    ]
    releases = opened(folder / "release", folder / "aligned", *made)
    with browser_on(make_app(releases)) as browser:
        yield browser
    close_releases(releases)


@pytest.fixture
def browser(shared: Browser) -> Iterator[Browser]:
    """Fails a test that left faults in the console."""
    shared.faults.clear()
    yield shared
    assert shared.faults == []


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_and_holds_nothing_but_text(browser: Browser, view: str, viewport: dict[str, int]) -> None:
    with browser.page(f"/r/{view}", viewport=viewport) as page:
        assert not is_too_wide(page)
        assert page.locator("main img, main script, main iframe").count() == 0
        assert page.locator("h1").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser: Browser, scheme: str) -> None:
    found = [fault for view in VIEWS for fault in browser.serious_faults(f"/r/{view}", color_scheme=scheme)]
    assert found == []


def test_records_are_chosen_read_and_seen_in_their_page(browser: Browser) -> None:
    with browser.page("/r/aligned/outcomes") as page:
        page.get_by_role("link", name="Records", exact=True).click()
        page.get_by_label("Order").select_option("best")
        page.get_by_label("BLEU from").fill("0.5")
        page.get_by_role("button", name="Show").click()
        assert "1–32 of 32" in page.locator(".pager").first.inner_text()
        page.locator("a.row").first.click()
        assert page.locator("h1").inner_text() == "First?"
        assert page.locator("article del").all_inner_texts() == ["old"]
        assert "1 of 32 chosen" in page.locator(".pager").inner_text()
        page.get_by_role("link", name="Next →").click()
        page.get_by_role("link", name="← Previous").click()
        assert page.url.endswith("/records/0?least=0.5&sort=best")
        page.get_by_role("link", name="See it in its page").click()
        assert page.locator("mark").all_inner_texts() == [NEW]


def test_lists_are_walked_by_keys_and_head_and_tail_stand_side_by_side(browser: Browser) -> None:
    with browser.page("/r/amber/sets") as page:
        for key in ("j", "j", "k", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url("**/sets/0")
        left, right = (page.locator(".entity").nth(number).bounding_box() for number in range(2))
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] <= right["x"]


def test_everything_works_without_script(browser: Browser) -> None:
    with browser.page("/r/qampari/questions", java_script_enabled=False) as page:
        page.get_by_label("Question contains").fill("miravel")
        page.get_by_role("button", name="Show").click()
        page.locator("a.row").first.click()
        assert page.locator(".proof mark").count() == 2
        assert page.locator("h3").first.inner_text().startswith("1. One")


def test_hostile_texts_are_shown_as_they_are(browser: Browser) -> None:
    with browser.page("/r/aligned/records/2") as page:
        text = page.locator("article blockquote").last.text_content()
        assert "<script>alert(1)</script>" in text
        assert "{{7*7}}" in text
