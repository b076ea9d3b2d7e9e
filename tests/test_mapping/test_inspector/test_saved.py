"""One document, written twice: both say the same, and nothing in it is taken for markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html import unescape

import pytest

from kbsource.errors import SetupError
from mapping.document import (
    Chart,
    Charts,
    Document,
    Facts,
    Link,
    Marked,
    Paragraph,
    Section,
    Share,
    TableSection,
    TextPiece,
    to_markdown,
)
from mapping.inspector.marking import shown
from mapping.inspector.saved import FOLDER, environment, saved_page
from tests.support.reports import Shown

CHART = Chart(table=TableSection("Bars", ("bin", "n"), (("a", 1), ("b", 2000))), about="What they are.")
REPORT = Document(
    "A report",
    (
        Section(
            "First",
            (
                Paragraph("Running text."),
                Paragraph("Not as it should be.", is_warning=True),
                Facts((("wiki", "enwiki"), ("pages", 1200), ("none", None))),
                Section(
                    "Inner", (TableSection("Rows", ("name", "n", "share"), (("x", 5, Share(0.25)), ("y", None, None))),)
                ),
            ),
        ),
        Section("Second", (Charts((CHART,)), TableSection("Shades", ("k", "n"), (("a", 8), ("b", 1)), is_shaded=True))),
    ),
)
HOSTILE = (
    '<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "</style></title>", "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)", "[a](javascript:alert(1))", "| a | b |", "`code` **bold** _it_ ~~no~~ # head", "&lt;b&gt;",
    "\u202eright to left", "a\nb\r\nc", "1. item", "- item", "]]>", "\\",
)  # fmt: skip


def hostile_report(text: str) -> Document:
    """Gives a report that has a text in every place."""
    chart = Chart(table=TableSection(text, (text, text, "s"), ((text, 1, 2),)), about=text)
    marked = Marked((TextPiece(text, True), TextPiece(text, False)))
    blocks = (
        Paragraph(text),
        Facts(((text, text),)),
        TableSection(text, (text, text), ((text, marked),)),
        Charts((chart,)),
    )
    return Document(text, (Section(text, (*blocks, Section(text, ()))),))


def test_both_say_the_same() -> None:
    page, markdown = Shown(saved_page(REPORT)).text, to_markdown(REPORT)
    for text in (
        "A report", "First", "Running text.", "Not as it should be.", "wiki", "enwiki", "1,200", "Inner", "Rows",
        "share", "25.0 %", "–", "Second", "Bars", "What they are.", "2,000", "Shades",
    ):  # fmt: skip
        assert text in page, text
        assert text in markdown, text


def test_the_same_document_gives_the_same_bytes() -> None:
    assert saved_page(REPORT) == saved_page(REPORT)
    assert to_markdown(REPORT) == to_markdown(REPORT)


def test_markdown_has_headings_by_depth_and_tables_with_their_alignment() -> None:
    lines = to_markdown(REPORT).splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# A report", "## First", "### Inner", "## Second"]
    at = lines.index("**Rows**")
    assert lines[at + 2 : at + 6] == [
        "| name | n | share |", "| :-- | --: | --: |", "| x | 5 | 25.0 % |", "| y | – | – |",
    ]  # fmt: skip
    assert "**Not as it should be.**" in lines


def test_a_chart_has_its_values_beside_it() -> None:
    page = saved_page(REPORT)
    inside = page[page.index("<figure") : page.index("</figure>")]
    assert json.loads(unescape(inside.split("data-plot='")[1].split("'")[0]))["rows"] == [["a", 1], ["b", 2000]]
    assert "<td" in inside[inside.index("2,000") - 40 :]


def test_a_page_allows_its_own_style_and_scripts_and_nothing_else() -> None:
    page = saved_page(REPORT)
    hashes = {
        tag: [hashed(own) for own in re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)]
        for tag in ("style", "script")
    }
    policy = next(tag[1]["content"] for tag in Shown(page).tags if tag[1].get("http-equiv"))
    assert policy == (
        f"default-src 'none'; style-src {hashes['style'][0]}; script-src {' '.join(hashes['script'])} ; "
        "base-uri 'none'; form-action 'none'"
    )
    assert [len(own) for own in hashes.values()] == [1, 3]
    tags = Shown(page).tags
    assert not [tag for tag, _ in tags if tag in ("link", "img", "iframe", "object")]
    assert not [value for _, attributes in tags for name, value in attributes.items() if name in ("src", "style")]
    assert all((attributes.get("href") or "#").startswith("#") for _, attributes in tags)


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_what_ships_is_what_its_makers_published() -> None:
    vendor = FOLDER / "static" / "vendor"
    said = dict(
        re.findall(r"^\| (\S+\.js) \|.*\| ([0-9a-f]{64}) \|$", (vendor / "README.md").read_text(), re.MULTILINE)
    )
    assert said == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in vendor.glob("*.js")}


def test_links_lead_nowhere_in_a_file_of_its_own() -> None:
    table = TableSection("T", ("a", "b"), ((Link("x", "/r/x/"), Link(5, "https://www.wikidata.org/wiki/Q5")),))
    document = Document("R", (Section("S", (table,)),))
    page = saved_page(document)
    assert "/r/x/" not in page
    assert 'href="https://www.wikidata.org/wiki/Q5" rel="noreferrer">5</a>' in page
    assert "| x | 5 |" in to_markdown(document)


def test_every_link_of_the_contents_leads_to_a_heading() -> None:
    tags = Shown(saved_page(REPORT)).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    links = [attributes["href"] for tag, attributes in tags if tag == "a"]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link} <= set(ids)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_shown_as_it_is_and_is_no_markup(text: str) -> None:
    harmless, page = Shown(saved_page(hostile_report("harmless"))), Shown(saved_page(hostile_report(text)))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in harmless.tags]
    assert [sorted(attributes) for tag, attributes in page.tags if tag not in ("td", "th", "div")] == [
        sorted(attributes) for tag, attributes in harmless.tags if tag not in ("td", "th", "div")
    ]
    assert page.text.count(" ".join(shown(text).split())) >= 10


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_does_not_end_a_cell_or_begin_a_block_of_markdown(text: str) -> None:
    bare = re.sub(r"\\.", "", to_markdown(hostile_report(text)))  # what is left without what is escaped
    assert not re.search(r"[<>`\[\]_~]", bare)
    rows = [line for line in bare.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {3, 4}
    assert len([line for line in bare.splitlines() if line.startswith("#")]) == 3


def test_shades_follow_the_numbers() -> None:
    shaded = REPORT.sections[1].blocks[1]
    assert isinstance(shaded, TableSection)
    assert [shaded.shade(row[1]) for row in shaded.rows] == [8, 1]


def test_without_jinja_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    environment.cache_clear()
    with pytest.raises(SetupError, match=r"kbsource\[inspect\]"):
        saved_page(REPORT)
