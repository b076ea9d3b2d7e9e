"""A report in a real browser: nothing is fetched, nothing but its own runs, everybody can read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mapping.document import Chart, Charts, Document, Section, Share, TableSection
from mapping.inspector.saved import saved_page
from mapping.schema import CROSSWALK
from tests.support.browser import open_browser, serious_faults
from tests.support.pages import synthetic_pages
from tests.support.passages import page, write_kb
from tests.support.reports import JUDGED, report_of_releases, span_row, write_alignment

pytestmark = pytest.mark.slow

HOSTILE = '"><script>document.title = "owned"</script><img src="http://127.0.0.1:9/x.png" onerror="alert(1)">'
RTL = "\u202eثقافة العالم"
LONG = "x" * 3000


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report on two releases."""
    folder = tmp_path_factory.mktemp("report")
    odd = [page(9001 + number, text, f"{{{{{text}}}}}") for number, text in enumerate((HOSTILE, RTL, LONG))]
    kb = write_kb(folder, [*synthetic_pages(20, n_paragraphs=2), *odd], rows_per_shard=15)
    rows = [
        span_row(
            number,
            number / 8,
            title=text,
            text=text,
            entailment=number / 8,
            contradiction=0.1,
            is_chosen_by_model=False,
        )
        for number, text in enumerate((HOSTILE, RTL, LONG, "plain", "text"))
    ]
    place = {"wikipedia_id": "1", "section": "S", "start_paragraph_id": 1}
    moved = {f"{side}_{name}": value for side in ("old", "new") for name, value in place.items()}
    crossed = [{"example_id": "r", "output": 0, "evidence": 0, "outcome": "near", "score": 0.5, **moved}]
    aligned = write_alignment(folder / "aligned", rows, schema=JUDGED, crosswalk=(CROSSWALK, crossed))
    path = folder / "report.html"
    path.write_text(saved_page(report_of_releases(kb, aligned)), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as running:
        yield running


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
def test_a_report_runs_nothing_else_fetches_nothing_and_has_no_serious_fault(
    browser: Any, report: str, scheme: str, width: int
) -> None:
    said: list[str] = []
    asked: list[str] = []
    tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: said.append(dialog.message))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(report)
    for details in tab.query_selector_all("details"):
        details.evaluate("element => { element.open = true }")
    assert (said, asked, tab.title()) == ([], [report], "Report on 2 releases")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("document.querySelectorAll('.plot svg rect').length") > 20
    assert serious_faults(tab) == []
    tab.close()


def test_keys_alone_lead_to_the_values_of_a_chart(browser: Any, report: str) -> None:
    tab = browser.new_page()
    tab.goto(report)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the report"
    tab.focus("summary >> nth=0")
    tab.keyboard.press("Enter")
    assert tab.locator("details >> nth=0").locator("table").is_visible()
    tab.close()


def test_bars_of_the_same_thing_have_the_same_scale_and_what_goes_on_shows_it(browser: Any, tmp_path: Path) -> None:
    """Two charts of shares, two of one name with other numbers, and a table that is wider than the page."""

    def chart(name: str, of: str, *values: float) -> Chart:
        rows = tuple((f"row {number}", value) for number, value in enumerate(values))
        return Chart(table=TableSection(name, ("row", of), rows), about="", style="bars")

    shares = Charts((chart("One", "share", Share(0.5)), chart("Other", "share", Share(0.25), Share(0.1))))
    counts = Charts((chart("Views", "views", 100), chart("Views", "views", 50)))
    many = Charts((chart("Kinds", "n", *range(1, 40)),))
    wide = TableSection(
        "Wide", tuple(f"column {number}" for number in range(30)), (tuple("x" * 20 for _ in range(30)),)
    )
    path = tmp_path / "report.html"
    path.write_text(saved_page(Document("Charts", (Section("All", (shares, counts, many, wide)),))), "utf-8")
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    tab.goto(path.as_uri())
    bars = tab.eval_on_selector_all(
        ".plot", "plots => plots.map(plot => [...plot.querySelectorAll('rect')].map(bar => bar.getBBox().width))"
    )
    assert bars[0][0] == pytest.approx(2 * bars[1][0], rel=0.02)
    assert bars[1][0] == pytest.approx(2.5 * bars[1][1], rel=0.02)
    assert bars[2][0] == pytest.approx(2 * bars[3][0], rel=0.02)
    long = tab.locator(".plot").nth(4)
    assert long.evaluate("plot => plot.scrollHeight > plot.clientHeight && plot.tabIndex === 0")
    assert tab.locator(".plot").first.evaluate("plot => plot.tabIndex") == -1
    shown = tab.locator(".blocks > .scroll").evaluate(
        "table => [table.scrollWidth > table.clientWidth, getComputedStyle(table).backgroundAttachment]"
    )
    assert shown == [True, "local, local, scroll, scroll, scroll"]
    assert serious_faults(tab) == []
    tab.close()
