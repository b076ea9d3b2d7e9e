"""One document, written twice: both say the same, and nothing in it is taken for markup."""

from __future__ import annotations

import base64
import doctest
import hashlib
import re
import sys
from html import unescape

import pytest

from kbsource.errors import SetupError
from mapping.charts import Chart, Series
from mapping.reports import as_markdown, document
from mapping.reports.as_markdown import write_markdown
from mapping.reports.as_web_page import write_web_page
from mapping.reports.document import (
    Charts,
    Document,
    Facts,
    Marked,
    Paragraph,
    Section,
    Share,
    Table,
    changes,
)
from tests.support.reports import Shown

CHART = Chart(
    title="Bars", about="What they are.", label_name="bin", labels=("a", "b"), series=(Series("n", (1, 2000)),)
)
REPORT = Document(
    "A report",
    (
        Section(
            "First",
            (
                Paragraph("Running text."),
                Paragraph("Not as it should be.", is_warning=True),
                Facts((("wiki", "enwiki"), ("pages", 1200), ("none", None))),
                Section("Inner", (Table("Rows", ("name", "n", "share"), (("x", 5, Share(0.25)), ("y", None, None))),)),
            ),
        ),
        Section("Second", (Charts((CHART,)), Table("Shades", ("k", "n"), (("a", 8), ("b", 1)), is_shaded=True))),
    ),
)
HOSTILE = (
    '<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "</style></title>", "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)", "[a](javascript:alert(1))", "| a | b |", "`code` **bold** _it_ ~~no~~ # head", "&lt;b&gt;",
    "\u202eright to left", "a\nb\r\nc", "1. item", "- item", "]]>", "\\",
)  # fmt: skip


def hostile_report(text: str) -> Document:
    """Gives a report that has a text in every place."""
    chart = Chart(
        title=text, about=text, label_name=text, labels=(text,), series=(Series(text, (1,)), Series("s", (2,)))
    )
    marked = Marked(((text, True), (text, False)))
    blocks = (Paragraph(text), Facts(((text, text),)), Table(text, (text, text), ((text, marked),)), Charts((chart,)))
    return Document(text, (Section(text, (*blocks, Section(text, ()))),))


@pytest.mark.parametrize("module", [document, as_markdown])
def test_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # it is one


def test_both_say_the_same() -> None:
    page, markdown = Shown(write_web_page(REPORT)).text, write_markdown(REPORT)
    for text in (
        "A report", "First", "Running text.", "Not as it should be.", "wiki", "enwiki", "1,200", "Inner", "Rows",
        "share", "25.0 %", "–", "Second", "Bars", "What they are.", "2,000", "Shades",
    ):  # fmt: skip
        assert text in page, text
        assert text in markdown, text


def test_the_same_document_gives_the_same_bytes() -> None:
    assert write_web_page(REPORT) == write_web_page(REPORT)
    assert write_markdown(REPORT) == write_markdown(REPORT)


def test_markdown_has_headings_by_depth_and_tables_with_their_alignment() -> None:
    lines = write_markdown(REPORT).splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# A report", "## First", "### Inner", "## Second"]
    at = lines.index("**Rows**")
    assert lines[at + 2 : at + 6] == [
        "| name | n | share |", "| :-- | --: | --: |", "| x | 5 | 25.0 % |", "| y | – | – |",
    ]  # fmt: skip
    assert "**Not as it should be.**" in lines


def test_a_chart_has_its_values_beside_it() -> None:
    page = write_web_page(REPORT)
    inside = page[page.index("<figure>") : page.index("</figure>")]
    assert inside.index("<svg") < inside.index("<table>")
    assert "<td" in inside[inside.index("2,000") - 40 :]


def test_a_page_allows_its_own_style_and_nothing_else() -> None:
    page = write_web_page(REPORT)
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(tag[1]["content"] for tag in Shown(page).tags if tag[1].get("http-equiv"))
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    tags = Shown(page).tags
    assert not [tag for tag, _ in tags if tag in ("script", "link", "img", "iframe", "object")]
    assert not [value for _, attributes in tags for name, value in attributes.items() if name in ("src", "style")]
    assert all((attributes.get("href") or "#").startswith("#") for _, attributes in tags)
    assert page.count("<style>") == 1
    assert not re.search(r"url\(|@import", style)


def test_every_link_of_the_contents_leads_to_a_heading() -> None:
    tags = Shown(write_web_page(REPORT)).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    links = [attributes["href"] for tag, attributes in tags if tag == "a"]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link} <= set(ids)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_shown_as_it_is_and_is_no_markup(text: str) -> None:
    harmless, page = Shown(write_web_page(hostile_report("harmless"))), Shown(write_web_page(hostile_report(text)))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in harmless.tags]
    assert [sorted(attributes) for tag, attributes in page.tags if tag not in ("td", "th", "div")] == [
        sorted(attributes) for tag, attributes in harmless.tags if tag not in ("td", "th", "div")
    ]
    assert page.text.count(" ".join(text.split())) >= 10


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_does_not_end_a_cell_or_begin_a_block_of_markdown(text: str) -> None:
    bare = re.sub(r"\\.", "", write_markdown(hostile_report(text)))  # what is left without what is escaped
    assert not re.search(r"[<>`\[\]_~]", bare)
    rows = [line for line in bare.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {3, 4}
    assert len([line for line in bare.splitlines() if line.startswith("#")]) == 3


def test_words_that_changed_are_marked_in_both() -> None:
    old, new = changes("It has 5 <isles>.", "It has 6 <isles>.")
    report = Document("R", (Section("S", (Table("T", ("id", "old", "new"), (("r", old, new),)),)),))
    page = write_web_page(report)
    assert [unescape(mark) for mark in re.findall(r"<mark>(.*?)</mark>", page)] == ["5 ", "6 "]
    assert "It has **5** \\<isles\\>." in write_markdown(report)


def test_texts_without_anything_in_common_are_marked_as_a_whole() -> None:
    assert changes("a b", "c") == (Marked((("a b", True),)), Marked((("c", True),)))
    assert changes("", "c") == (Marked(()), Marked((("c", True),)))


def test_shades_follow_the_numbers() -> None:
    shaded = REPORT.sections[1].blocks[1]
    assert isinstance(shaded, Table)
    assert [shaded.shade(row[1]) for row in shaded.rows] == [8, 1]


def test_without_jinja_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(SetupError, match=r"kbsource\[inspect\].*--format markdown"):
        write_web_page(REPORT)
