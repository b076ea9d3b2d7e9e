"""A page as HTML: headings, nested lists, tables, links and marks."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given

from kbsource.records import Cell, CellLink, Element, Infobox, InfoboxField, Page, Table
from mapping.inspector.marking import Span, shown
from mapping.inspector.opened import Opened
from mapping.inspector.pages.page_html import Document
from mapping.inspector.pages.page_parts import page_parts
from tests.support.pages import pages, synthetic_pages

_VOID = ("wbr", "br")


class _Outline(HTMLParser):
    """Checks that tags are closed in their order, and collects the text of every element of the page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str | None]] = []
        self.texts: dict[int, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        number = dict(attrs).get("data-e")
        if number is not None:
            self.texts.setdefault(int(number), "")
        if tag not in _VOID:
            self.open.append((tag, number))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        number = next((number for _, number in reversed(self.open) if number is not None), None)
        if number is not None:
            self.texts[int(number)] += data


def _page(*elements: Element, **values: object) -> Page:
    title = Element("title", 1, None, "", (), "T")
    plain = replace(next(synthetic_pages(1)), anchors=(), tables=(), infoboxes=())
    return replace(plain, elements=(title, *elements), **values)  # type: ignore[arg-type]  # fields of a page


def _html(opened: Opened, page: Page, *spans: Span) -> str:
    return str(Document(opened, page, spans).html(page_parts(page)[0]))


def _item(level: int, text: str, ordinal: int | None = None, marker: str = "*") -> Element:
    return Element("list_item", level, ordinal, marker, (), text)


@given(page=pages())
def test_every_page_keeps_its_texts_and_closes_its_tags(opened: Opened, page: Page) -> None:
    parser = _Outline()
    for part in page_parts(page):
        parser.feed(str(Document(opened, page).html(part)))
    parser.close()
    assert parser.open == []
    assert parser.texts == {number: shown(element.text) for number, element in enumerate(page.elements)}


def test_lists_are_nested_by_level_and_kind(opened: Opened) -> None:
    page = _page(_item(1, "a", 1), _item(3, "b"), _item(1, "c", 2), _item(1, "d"), _item(2, "e", marker=";"))
    html = _html(opened, page).replace("\n", "").partition("</h1>")[2]
    bare = html.replace(' dir="auto"', "")
    for number in range(1, 6):
        bare = bare.replace(f' id="e{number}" data-e="{number}"', "")
    assert bare == (
        '<ol><li value="1"><span>a</span>'
        '<ul><li class="deeper"><ul><li><span>b</span></li></ul></li></ul></li>'
        '<li value="2"><span>c</span></li></ol>'
        '<ul><li><span>d</span><ul class="terms"><li><span>e</span></li></ul></li></ul>'
    )


def test_cells_and_fields_have_their_spans_and_links(opened: Opened) -> None:
    cell = Cell("see A", True, 2, 9, (CellLink(4, 5, "A", "B c", 4),))
    dead = InfoboxField("long_name", "X", (CellLink(0, 1, "X", None, None),))
    page = _page(tables=(Table(0, "<cap>", ("h",), ((cell,), (cell,))),), infoboxes=(Infobox(0, "Box", (dead,)),))
    html = _html(opened, page)
    assert '<th colspan="2" rowspan="2" dir="auto">see <a href="/r/release/page/4?section=B+c#s-B_c"' in html
    assert '<caption dir="auto">&lt;cap&gt;</caption>' in html
    assert '<span class="dead" title="[0, 1) → X, which the dump does not have">X</span>' in html
    assert "long_<wbr>name" in html


def test_a_table_without_text_is_told(opened: Opened) -> None:
    page = _page(tables=(Table(0, None, (), ((Cell("", False, 1, 1, ()),),)),))
    assert '<p class="more quiet" id="t0">A table without text.</p>' in _html(opened, page)


def test_marked_spans_run_over_elements(opened: Opened) -> None:
    page = _page(*(Element("paragraph", 0, None, "", (), text) for text in ("abc", "def", "ghi")))
    html = _html(opened, page, Span(1, 1, 3, 2, "gold"))
    assert 'dir="auto">a<mark title="gold">bc</mark></p>' in html
    assert 'dir="auto"><mark title="gold">def</mark></p>' in html
    assert 'dir="auto"><mark title="gold">gh</mark>i</p>' in html


def test_of_headings_with_one_name_the_first_is_led_to(opened: Opened) -> None:
    headings = [Element("heading", 2, None, "", ("A b",), "A b")] * 2
    html = _html(opened, _page(*headings))
    assert html.count('id="s-A_b"') == 1
    assert html.index('id="s-A_b"') < html.index('id="e1"')


@pytest.mark.parametrize(("level", "tag"), [(0, "h2"), (2, "h2"), (6, "h6")])
def test_headings_are_below_the_title(opened: Opened, level: int, tag: str) -> None:
    assert f"<{tag} id" in _html(opened, _page(Element("heading", level, None, "", (), "H")))
