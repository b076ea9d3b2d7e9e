"""Pages as plain text, Markdown and HTML: Markdown is read again by a parser of CommonMark."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from kbsource.records import Anchor, Cell, CellLink, Element, Infobox, InfoboxField, Page, Table
from tests.support.pages import pages, synthetic_pages

COMMONMARK = MarkdownIt("commonmark").enable("table")
TITLE = Element("title", 1, None, "", (), "T")


def page_of(*elements: Element, **values: object) -> Page:
    plain = replace(next(synthetic_pages(1)), anchors=(), tables=(), infoboxes=())
    return replace(plain, elements=(TITLE, *elements), **values)  # type: ignore[arg-type]  # fields of a page


def item(marker: str, text: str, ordinal: int | None = None) -> Element:
    return Element("list_item", len(marker), ordinal, marker, (), text)


def paragraph(text: str) -> Element:
    return Element("paragraph", 0, None, "", (), text)


def cell(text: str, *, is_header: bool = False, columns: int = 1, rows: int = 1) -> Cell:
    return Cell(text, is_header, columns, rows, ())


LISTS = page_of(
    Element("heading", 2, None, "", ("C#",), "C#"),
    item("*", "a"),
    item("**", "b"),
    item("#", "1. c", 1),
    item("#", "d", 2),
    item("#:", "of d"),
    item(";", "term"),
    item(":", "said of it"),
    item("***", "deep"),
)
TABLES = page_of(
    paragraph("x"),
    tables=(
        Table(1, "Cap", ("A|B", "C"), ((cell("1", rows=2), cell("2\n3")), (cell("4"),), (cell("5", columns=2),))),
        Table(1, None, (), ((cell(""),),)),
        Table(1, None, (), ((cell("only"),),)),
    ),
    infoboxes=(Infobox(0, "Infobox_x", (InfoboxField("born", "1912\nLondon", ()),)),),
)


def test_lists_as_text_and_as_markdown() -> None:
    assert LISTS.body() == "C#\n\n- a\n  - b\n1. 1. c\n2. d\n\n  of d\n\nterm\n\nsaid of it\n\n- deep"
    assert LISTS.plain() == ""
    assert LISTS.markdown() == (
        "# T\n\n## C\\#\n\n- a\n    - b\n1. 1\\. c\n2. d\n\n    of d\n\n**term**\n\nsaid of it\n\n- deep"
    )


def test_tables_and_infoboxes_as_text_and_as_markdown() -> None:
    assert TABLES.body() == "x\n\nCap\nA|B | C\n1 | 2; 3\n4\n5\n\nonly"
    assert TABLES.plain() == "x"
    assert TABLES.markdown() == (
        "# T\n\n| Infobox_x |  |\n| --- | --- |\n| born | 1912<br>London |\n\nx\n\n"
        "**Cap**\n\n| A\\|B | C |\n| --- | --- |\n| 1 | 2<br>3 |\n|  | 4 |\n| 5 |  |\n\n"
        "|  |\n| --- |\n| only |"
    )


def test_html_has_lists_spans_and_lines() -> None:
    html = TABLES.html()
    assert '<td rowspan="2" dir="auto">1</td><td dir="auto">2<br>3</td>' in html
    assert '<td dir="auto">1912<br>London</td>' in html
    assert '<ol><li value="1">' in LISTS.html().replace("\n", "")
    hostile, link = "<script> <b>", Anchor(1, 9, 12, "<b>", '"><b>', None, None, "<b>")
    cells = ((Cell(hostile, False, 1, 1, (CellLink(9, 12, "<b>", None, 4),)),),)
    table = Table(1, hostile, (hostile,), cells)
    box = Infobox(1, hostile, (InfoboxField(hostile, hostile, (CellLink(0, 8, "<b>", None, 4),)),))
    page = page_of(paragraph(hostile), anchors=(link,), tables=(table,), infoboxes=(box,))
    assert all(re.search("<script|<b>", html) is None for html in (page.html(), page.html(links=True)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a*b_c_d _e_ [f] <g> `h` \\", r"a\*b_c_d \_e\_ \[f\] \<g> \`h\` \\"),
        ("AT&T &lt;b&gt; &#60;", r"AT&T \&lt;b\&gt; \&#60;"),
        ("$a_1*b$ and $5 or $6*", r"$a_1*b$ and $5 or $6\*"),
        ("$x<y$, $<script>$", r"$x\lt y$, $\lt script>$"),
        ("# no heading", r"\# no heading"),
        ("1912. A year", r"1912\. A year"),
        ("1912 was a year", "1912 was a year"),
        ("    no code", "no code"),
    ],
)
def test_what_would_be_a_mark_is_escaped(text: str, shown: str) -> None:
    assert page_of(paragraph(text)).markdown() == f"# T\n\n{shown}"


def test_links_lead_to_the_wiki() -> None:
    link = Anchor(1, 4, 7, "[b]", "B (c)", "D e", None, "B (c)#D e")
    box = Infobox(1, "Box", (InfoboxField("in", "A\nB", (CellLink(0, 3, "A", None, 4),)),))
    page = page_of(paragraph("see [b]."), anchors=(link,), infoboxes=(box,))
    assert page.markdown(links=True).split("\n\n")[1] == r"see [\[b\]](https://en.wikipedia.org/wiki/B_%28c%29#D_e)."
    assert "| in | [A<br>B](https://en.wikipedia.org/wiki/A) |" in page.markdown(links=True)
    assert 'see <a href="https://en.wikipedia.org/wiki/B_%28c%29#D_e">[b]</a>.' in page.html(links=True)
    assert "wiki/" not in page.markdown() + page.html()


_MARKED = st.text("ab1 *_[](){}<>&#-+=~|\\`.!:;é", max_size=12)


@st.composite
def _marked_pages(draw: st.DrawFn) -> Page:
    elements = []
    for text in draw(st.lists(_MARKED, max_size=6)):
        marker = draw(st.text("*#:;", max_size=4))
        is_numbered = marker.endswith("#")
        kind = draw(st.sampled_from(("heading", "paragraph"))) if not marker else "list_item"
        level = len(marker) if marker else draw(st.integers(0, 6))
        elements.append(Element(kind, level, draw(st.integers(0, 99)) if is_numbered else None, marker, (), text))
    cells = tuple(cell(text) for text in draw(st.lists(_MARKED, min_size=1, max_size=3)))
    return page_of(*elements, tables=(Table(0, draw(_MARKED), (), (cells,)),))


@given(page=_marked_pages())
def test_markdown_shows_the_text_and_nothing_else(page: Page) -> None:
    tokens = COMMONMARK.parse(page.markdown())
    assert not {token.type for token in tokens} & {"code_block", "fence", "html_block", "blockquote_open", "hr"}
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= {"text", "strong_open", "strong_close", "text_special"}
    shown = "".join(child.content for child in inline)
    (table,) = page.tables
    texts = ["T", table.caption or "", *(row.text for row in (*table.rows[0], *page.elements[1:]))]
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", "".join(texts))


@pytest.mark.slow  # many hostile pages
@given(page=pages())
def test_every_form_takes_every_page(page: Page) -> None:
    body, plain = page.body(), page.plain()
    shown = [element for element in page.elements if element.kind in ("paragraph", "list_item")]
    assert all(element.text in body for element in shown if element.text.strip())
    assert all(element.text in plain for element in shown if element.kind == "paragraph" and element.text.strip())
    assert page.markdown(links=True).startswith("# ") or not page.title
    assert page.html(links=True).count("<article") == 0


def test_spans_of_hostile_tables_do_not_multiply_them() -> None:
    wide = tuple(cell("a", columns=2**31 - 1, rows=2**31 - 1) for _ in range(2_000))
    page = page_of(tables=(Table(0, None, (), (wide, *(((cell("b"),),) * 2_000))),))
    assert len(page.markdown()) < 3_000_000
    assert len(page.html()) < 3_000_000
