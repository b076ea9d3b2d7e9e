"""The report on a release of pages, beside counts made with plain loops."""

from __future__ import annotations

import dataclasses
import doctest
import hashlib
from collections import Counter
from pathlib import Path

import pytest

from kbsource.files import LocalStorage
from kbsource.records import BadRecord, Cell, Infobox, InfoboxField, Page, Table
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from mapping.reports import any_report, page_counts
from mapping.reports.as_markdown import write_markdown
from mapping.reports.document import Document, Paragraph, Section
from mapping.reports.page_counts import count_pages, sampled_rows
from mapping.reports.pages_report import pages_document
from tests.support.builds import open_release
from tests.support.pages import synthetic_pages
from tests.support.passages import page
from tests.support.releases import TitleRow, write_release

STORAGE = LocalStorage()
LEAKY = page(1001, "Leaky", "Left {{here}} and [[there]].", "Nothing.")
CELLS = dataclasses.replace(
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


def manifest_of(release: Path) -> PagesManifest:
    return PAGES_RELEASE.read(str(release))


def files_of(release: Path) -> list[str]:
    return [str(release / entry.file) for entry in manifest_of(release).tables["pages"]]


def section(document: Document, title: str) -> Section:
    return next(own for own in document.sections if own.title == title)


def text_of(own: Section) -> str:
    return write_markdown(Document("", (own,)))


@pytest.mark.parametrize("module", [any_report, page_counts])
def test_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # it is one


def test_pages_are_counted_as_a_plain_loop_counts_them(release: Path) -> None:
    counts = count_pages(files_of(release), STORAGE, n_sampled=5)
    stored = list(open_release(release))
    for name, measure in {
        "elements": lambda own: len(own.elements),
        "characters": lambda own: sum(len(element.text) for element in own.elements),
        "anchors": lambda own: len(own.anchors),
        "tables": lambda own: len(own.tables),
        "infoboxes": lambda own: len(own.infoboxes),
    }.items():
        values = [measure(own) for own in stored]
        found = counts.distributions[name]
        assert (found.total, found.most) == (sum(values), max(values)), name
        assert dict(Counter(value.bit_length() for value in values)) == {
            number: n for number, n in enumerate(found.bins.tolist()) if n
        }
    assert counts.resolved == sum(anchor.target_page_id is not None for own in stored for anchor in own.anchors)


def test_the_sample_is_that_of_the_least_hashes_in_order_whatever_the_shards(release: Path) -> None:
    files = files_of(release)
    counts = count_pages(files, STORAGE, n_sampled=7)
    titles = [row["title"] for row in sampled_rows(files, counts.sample, STORAGE)]
    least = sorted(PAGES, key=lambda own: hashlib.sha256(str(own.page_id).encode()).digest())[:7]
    assert titles == [own.title for own in PAGES if own in least]


def test_a_release_without_pages_has_a_report(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty", [])
    assert "0 articles" in write_markdown(pages_document(str(empty), manifest_of(empty), STORAGE))


def test_the_law_is_shown_to_hold_by_file(release: Path) -> None:
    manifest = manifest_of(release)
    law = text_of(section(pages_document(str(release), manifest, STORAGE), "Counts and their law"))
    assert "| dump.xml | 47 | 42 | 0 | 3 | 2 | holds |" in law
    assert "All counts agree" in law
    assert "| malformed\\_xml | 2 | 4.3 % | tags that do not match |" in law


def test_a_broken_law_is_a_warning(release: Path) -> None:
    manifest = manifest_of(release)
    counts = dataclasses.replace(manifest.totals, pages_read=99)
    law = section(
        pages_document(str(release), dataclasses.replace(manifest, totals=counts), STORAGE), "Counts and their law"
    )
    assert [block.text for block in law.blocks if isinstance(block, Paragraph) and block.is_warning]
    assert "is broken" in text_of(law)
    assert "All counts agree" not in text_of(law)


def test_leaks_are_told_by_place(release: Path) -> None:
    leaks = text_of(section(pages_document(str(release), manifest_of(release), STORAGE), "Leaks"))
    assert "| elements | 1 | 2.4 % |" in leaks
    assert "| tables and infoboxes | 1 | 2.4 % |" in leaks
    assert "| Leaky | element 1, paragraph | Left \\{\\{here\\}\\} and \\[\\[there\\]\\]. |" in leaks
    assert [f"| {kind}" in leaks for kind in ("\\<ref", "'''", "\\[\\[", "\\}\\}")] == [True] * 4


def test_inputs_sizes_losses_and_distributions_are_there(release: Path) -> None:
    manifest = dataclasses.replace(manifest_of(release), findings={"loss_ref": 9, "loss_file": 10, "anchors": 4})
    text = write_markdown(pages_document(str(release), manifest, STORAGE))
    assert f"| dump.xml | 10 | {'0' * 64} | input |" in text
    assert text.index("| file | 10 |") < text.index("| ref | 9 |")
    assert "| anchors | 4 |" in text
    assert "**Elements a page**" in text
    assert f"- manifest sha256: {manifest.sha256}" in text
