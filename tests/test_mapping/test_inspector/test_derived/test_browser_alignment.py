"""Views of alignments, QAMPARI and AmbER in a real browser: flows, hostile texts, phones, and what axe finds."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mapping.inspector.app import make_app
from tests.support.inspected import (
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

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")

WIDTHS = {"desktop": (1280, 800), "phone": (360, 740)}
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
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    import uvicorn

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
    app = make_app(opened(folder / "release", folder / "aligned", *made))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Looked:
    """A page of the browser, with everything that went wrong in it."""

    def __init__(self, browser: Any, *, width: str = "desktop", scheme: str = "light", script: bool = True) -> None:
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        self.context = browser.new_context(viewport=size, color_scheme=scheme, java_script_enabled=script)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))


@pytest.fixture
def look(browser: Any) -> Iterator[Any]:
    looked: list[Looked] = []

    def start(**how: Any) -> Any:
        looked.append(Looked(browser, **how))
        return looked[-1].page

    yield start
    for each in looked:
        each.context.close()
        assert each.faults == []


@pytest.mark.parametrize("width", WIDTHS)
def test_every_view_fits_and_says_nothing_in_the_console(look: Any, address: str, width: str) -> None:
    page = look(width=width)
    for view in VIEWS:
        answer = page.goto(f"{address}/r/{view}")
        assert answer.status == 200, view
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width][0], view
        assert page.locator("main img, main script, main iframe").count() == 0, view
        assert page.locator("h1").count() == 1, view


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(look: Any, address: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, axe = look(scheme=scheme), Axe()
    for view in VIEWS:
        page.goto(f"{address}/r/{view}")
        found = axe.run(page).response["violations"]
        serious = [
            (fault["id"], fault["nodes"][0]["html"]) for fault in found if fault["impact"] in ("serious", "critical")
        ]
        assert serious == [], view


def test_records_are_chosen_read_and_seen_in_their_page(look: Any, address: str) -> None:
    page = look()
    page.goto(f"{address}/r/aligned/outcomes")
    page.get_by_role("link", name="Records", exact=True).click()
    page.get_by_label("Order").select_option("best")
    page.get_by_label("BLEU from").fill("0.5")
    page.get_by_role("button", name="Show").click()
    assert "1–32 of 32" in page.locator(".pager").first.inner_text()
    page.locator("a.row").first.click()
    assert page.locator("h1").inner_text() == "First?"
    assert page.locator("del").all_inner_texts()[1:] == ["old"]
    assert "1 of 32 chosen" in page.locator(".pager").inner_text()
    page.get_by_role("link", name="Next →").click()
    page.get_by_role("link", name="← Previous").click()
    assert page.url.endswith("/records/0?least=0.5&sort=best")
    shared = page.url
    assert page.goto(shared).status == 200
    assert page.get_by_role("link", name="See it in its page").get_attribute("href").startswith("/r/release/page/")


def test_lists_are_walked_by_keys(look: Any, address: str) -> None:
    page = look()
    page.goto(f"{address}/r/amber/sets")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sets/0")
    assert page.locator(".entity h2").count() == 2
    left, right = (page.locator(".entity").nth(number).bounding_box() for number in range(2))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]


def test_everything_works_without_script(look: Any, address: str) -> None:
    page = look(script=False)
    page.goto(f"{address}/r/qampari/questions")
    page.get_by_label("Question contains").fill("miravel")
    page.get_by_role("button", name="Show").click()
    page.locator("a.row").first.click()
    assert page.locator(".proof mark").count() == 2
    assert page.locator("h3").first.inner_text().startswith("1. One")


def test_hostile_texts_are_shown_as_they_are(look: Any, address: str) -> None:
    page = look()
    page.goto(f"{address}/r/aligned/records/2")
    text = page.locator("article blockquote").last.text_content()
    assert "<script>alert(1)</script>" in text
    assert "{{7*7}}" in text
