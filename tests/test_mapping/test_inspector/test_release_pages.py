"""The report on a release of pages, beside counts made with plain loops."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from kbsource.records import BadRecord, Cell, Infobox, InfoboxField, Page, Table
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.pages.measures import MARKUP, MEASURES, SAMPLED
from kbsource.release.sql import add_release, connected
from mapping.document import Document, Paragraph, Section, cell_text, plain, to_markdown
from mapping.document import TableSection as Shown
from mapping.inspector.app import about_view
from mapping.inspector.opened import close_releases, open_releases
from tests.support.builds import open_release
from tests.support.pages import synthetic_pages
from tests.support.passages import page
from tests.support.releases import TitleRow, write_release
from tests.support.reports import report_of_releases, report_text

BOLD = "'''"
LEAKY = page(1001, "Leaky", "Left {{here}} and [[there]].", "Nothing.")
CELLS = structs.replace(
    page(1002, "Cells", "Clean."),
    tables=(Table(0, "A '''caption''", (), ((Cell("<ref", False, 1, 1, ()),),)),),
    infoboxes=(Infobox(0, "Box", (InfoboxField("name", "}}", ()),)),),
)
PAGES = [*synthetic_pages(40, n_paragraphs=3), LEAKY, CELLS]
BAD = [BadRecord("read", "7", "malformed_xml", "x", "dump.xml", 3)] * 2


def write(folder: Path, pages: list[Page]) -> Path:
    folder.mkdir(exist_ok=True)
    titles = [TitleRow(own.page_id, own.title) for own in pages]
    write_release(folder, pages, titles=titles, rejected=BAD, rows_per_shard=30)
    return folder / "release"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pages"), PAGES)


@pytest.fixture(scope="module")
def report(release: Path) -> Document:
    return report_of_releases(release)


def section(document: Document, title: str) -> Section:
    return next(own for own in document.sections if own.title == title)


def text_of(own: Section) -> str:
    return to_markdown(Document("", (own,)))


def test_pages_are_counted_as_a_plain_loop_counts_them(release: Path, report: Document) -> None:
    text = text_of(section(report, "Contents of the pages"))
    stored = list(open_release(release))
    for name, measure in {
        "elements": lambda own: len(own.elements),
        "characters": lambda own: sum(len(element.text) for element in own.elements),
        "anchors": lambda own: len(own.anchors),
        "tables": lambda own: len(own.tables),
        "infoboxes": lambda own: len(own.infoboxes),
    }.items():
        values = [measure(own) for own in stored]
        mean = cell_text(sum(values) / len(values))
        assert f"| {name} | {sum(values):,} | {mean} | {max(values):,} |" in text
        table = text[text.index(f"**{name.capitalize()} per page**") :]
        for number, n in Counter(value.bit_length() for value in values).items():
            assert f"| {bin_name(number)} | {n} |" in table[: table.index("Each column covers")]
    resolved = sum(anchor.target_page_id is not None for own in stored for anchor in own.anchors)
    assert f"- lead to an article of the release: {resolved:,}" in text


def test_the_sample_is_that_of_the_least_hashes_in_order_whatever_the_shards(release: Path) -> None:
    sampled = next(measure.derived["sampled"] for measure in MEASURES if "sampled" in measure.derived)
    with connected(reads=[str(release)]) as db:
        add_release(db, PAGES_RELEASE, str(release), places=True)
        query = f"select title from pages join ({sampled.replace(str(SAMPLED), '7')}) using (page_id) order by page"
        titles = [title for (title,) in db.execute(query).fetchall()]
    least = sorted(PAGES, key=lambda own: hashlib.sha256(str(own.page_id).encode()).digest())[:7]
    assert titles == [own.title for own in PAGES if own in least]


def bin_name(number: int) -> str:
    """The numbers of so many bits."""
    if number <= 1:
        return str(number)
    if number > 10:
        least = 1 << (number - 11)
        unit, size = ("K", 1) if least < 1024 else ("M", 1024)
        return f"{least // size}{unit}–{2 * least // size}{unit}"
    return f"{1 << (number - 1)}–{(1 << number) - 1}"


def test_bins_are_named_by_powers_of_two() -> None:
    measure = next(measure for measure in MEASURES if measure.caption == "Elements per page")
    with connected() as db:
        db.register("given", pa.table({"elements": [1 << bits >> 1 for bits in range(26)]}))
        db.execute("create table sizes as from given")
        rows = db.execute(measure.query).fetchall()
    assert rows == [(bin_name(bits), 1) for bits in range(26)]


def test_leaks_are_those_that_a_plain_loop_finds(tmp_path: Path) -> None:
    texts = ["{{a}} b", f"{BOLD}x{BOLD}" + "y" * 50 + "[[z]]\u00a0<ref", "n {{" * 30, "clean", f"a }} 𝔘 {BOLD} b"]
    pages = [page(number, f"Page {number}", *texts[number % 3 :], texts[number % 5]) for number in range(1, 6)]
    report = report_of_releases(write(tmp_path / "leaky", pages))
    [found] = [
        block for block in section(report, "Leaks").blocks if getattr(block, "caption", "") == "First occurrences"
    ]
    assert isinstance(found, Shown)
    wanted = [
        (own.title, f"element {number}, {element.kind}", element.text[max(0, match.start() - 40) : match.end() + 40])
        for own in pages
        for number, element in enumerate(own.elements)
        for match in re.finditer(MARKUP, element.text)
    ][:20]
    assert [(plain(title), place, text) for title, place, text in found.rows] == wanted


def test_a_release_without_pages_has_a_report(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty", [])
    assert "0 articles" in report_text(empty)


COUNTS = "Counts"


def _manifest(release: Path) -> PagesManifest:
    return PAGES_RELEASE.read(str(release))


def _changed(release: Path, **values: Any) -> Document:
    """What is said of a release whose manifest says something else."""
    (opened,) = open_releases([str(release)])
    changed = dataclasses.replace(opened, manifest=dataclasses.replace(_manifest(release), **values))
    found = Document("", about_view(changed))
    close_releases([opened])
    return found


def test_the_law_is_shown_to_hold_by_file(report: Document) -> None:
    counts = text_of(section(report, COUNTS))
    assert "| dump.xml | 47 | 42 | 0 | 3 | 2 | yes |" in counts
    assert "All counts agree" in counts
    assert "| malformed\\_xml | 2 | 4.3 % | tags that do not match |" in counts


def test_a_broken_law_is_a_warning(release: Path) -> None:
    counts = section(_changed(release, totals=dataclasses.replace(_manifest(release).totals, pages_read=99)), COUNTS)
    assert [block.text for block in counts.blocks if isinstance(block, Paragraph) and block.is_warning]
    assert "| no |" in text_of(counts)
    assert "All counts agree" not in text_of(counts)


def test_leaks_are_told_by_place(report: Document) -> None:
    leaks = text_of(section(report, "Leaks"))
    assert "| elements | 1 | 2.4 % |" in leaks
    assert "| tables and infoboxes | 1 | 2.4 % |" in leaks
    assert "| Leaky | element 1, paragraph | Left \\{\\{here\\}\\} and \\[\\[there\\]\\]. |" in leaks
    assert [f"| {kind}" in leaks for kind in ("\\<ref", "'''", "\\[\\[", "\\}\\}")] == [True] * 4


def test_inputs_sizes_losses_and_distributions_are_there(release: Path) -> None:
    text = to_markdown(_changed(release, findings={"loss_ref": 9, "loss_file": 10, "anchors": 4}))
    assert f"| dump.xml | 10 | {'0' * 64} | input |" in text
    assert text.index("| file | 10 |") < text.index("| ref | 9 |")
    assert "| anchors | 4 |" in text
    assert "- manifest sha256: " in text
    assert "- wiki: " in text
