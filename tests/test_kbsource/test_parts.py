"""Parts that a text does without: kinds, sections with all below them, and what becomes of what stood there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kbsource.errors import SetupError
from kbsource.parts import KINDS, Without, split_names
from kbsource.records import Cell, Element, Infobox, InfoboxField, Page, Table
from tests.support.pages import synthetic_pages


def elements_of(*written: str) -> Iterator[Element]:
    """Elements as wikitext would have them: ``== Heading ==``, ``* item``, else paragraphs."""
    path: list[tuple[int, str]] = []
    yield Element("title", 1, None, "", (), "T")
    for line in written:
        level = len(line) - len(line.lstrip("="))
        text = line.strip("= *")
        if level:
            path = [*((own, heading) for own, heading in path if own < level), (level, text)]
        section = tuple(heading for _, heading in path)
        if level:
            yield Element("heading", level, None, "", section, text)
        elif line.startswith("*"):
            yield Element("list_item", 1, None, "*", section, text)
        else:
            yield Element("paragraph", 0, None, "", section, text)


def page_of(*written: str, tables: tuple[int, ...] = (), infoboxes: tuple[int, ...] = ()) -> Page:
    """A page with tables and infoboxes behind the elements of these numbers; the title is 0."""
    return replace(
        next(synthetic_pages(1)),
        elements=tuple(elements_of(*written)),
        anchors=(),
        tables=tuple(Table(at, None, (), ((Cell(f"table {at}", False, 1, 1, ()),),)) for at in tables),
        infoboxes=tuple(Infobox(at, "Infobox", (InfoboxField("box", f"{at}", ()),)) for at in infoboxes),
    )


def body(page: Page, *without: str) -> list[str]:
    return page.body(without=without).split("\n\n")


ALAN = page_of(
    "Alan is a name.",
    "== Life ==",
    "=== Youth ===",
    "He was young.",
    "* first school",
    "=== Work ===",
    "He worked.",
    "== See also ==",
    "* Ada",
    "== References ==",
    "Notes stand here.",
    "=== Sources ===",
    "* A book",
    "==== Old ones ====",
    "Very old.",
    "== Trivia ==",
    "Little is known.",
    tables=(4, 5, 13, 17),
    infoboxes=(0,),
)


def test_plain_text_begins_with_the_first_sentence_and_has_no_heading_above_nothing() -> None:
    assert ALAN.plain().split("\n\n") == [
        "Alan is a name.", "Life", "Youth", "He was young.", "Work", "He worked.", "References", "Notes stand here.",
        "Sources", "Old ones", "Very old.", "Trivia", "Little is known.",
    ]  # fmt: skip


def test_body_text_has_lists_and_tables_too() -> None:
    assert body(ALAN)[:6] == ["Alan is a name.", "Life", "Youth", "He was young.", "table 4", "- first school"]
    assert "box" not in ALAN.body()


@pytest.mark.parametrize("name", ["References", "references", " REFERENCES "])
def test_a_section_goes_with_its_subsections_and_tables(name: str) -> None:
    left = body(ALAN, name)
    assert "Notes stand here." not in left
    assert {"Sources", "- A book", "Old ones", "Very old.", "table 13"} & {*left} == set()
    assert left[-5:] == ["See also", "- Ada", "Trivia", "Little is known.", "table 17"]


def test_a_subsection_goes_alone() -> None:
    left = body(ALAN, "sources")
    assert "Notes stand here." in left
    assert {"Sources", "- A book", "Old ones", "Very old.", "table 13"} & {*left} == set()


def test_a_heading_whose_text_is_gone_goes_too() -> None:
    assert body(ALAN, "youth", "work")[:2] == ["Alan is a name.", "See also"]
    assert "See also" not in body(ALAN, "lists")
    assert "## See also" not in ALAN.markdown(without="lists")


def test_kinds() -> None:
    assert [text for text in body(ALAN, "tables") if text.startswith("table")] == []
    assert [text for text in body(ALAN, "Lists") if text.startswith("- ")] == []
    headless = body(ALAN, "HEADINGS")
    assert headless[:3] == ["Alan is a name.", "He was young.", "table 4"]
    assert {element.text for element in ALAN.elements if element.kind == "heading"} & {*headless} == set()
    assert "| Infobox |" in ALAN.markdown()
    assert "Infobox" not in ALAN.markdown(without="infoboxes")
    assert ALAN.markdown(without="headings").startswith("# T\n\n| Infobox |")
    assert "Infobox" not in ALAN.html(without="infoboxes")


def test_a_table_stays_in_its_place_when_the_item_before_it_goes() -> None:
    assert body(ALAN, "lists")[3:6] == ["He was young.", "table 4", "table 5"]
    html = ALAN.html(without="lists")
    assert html.index("He was young.") < html.index("table 4") < html.index("table 5") < html.index("Work")
    boxed = page_of("* item", "x", tables=(1,), infoboxes=(1, 0))
    assert boxed.markdown(without="lists").split("\n\n")[1:] == [
        "| Infobox |  |\n| --- | --- |\n| box | 0 |", "| Infobox |  |\n| --- | --- |\n| box | 1 |",
        "|  |\n| --- |\n| table 1 |", "x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("Einzelnachweise", "einzelnachweise"),
        ("Straße", "STRASSE"),
        ("Siehe auch", "siehe  auch"),
        ("Примечания", "ПРИМЕЧАНИЯ"),
        ("Références", "re\u0301fe\u0301rences"),
        ("参考文献", "参考文献"),
        ("مراجع", "مراجع"),
        ("Εξωτερικοί σύνδεσμοι", "ΕΞΩΤΕΡΙΚΟΊ ΣΎΝΔΕΣΜΟΙ"),
    ],
)
def test_headings_of_any_language(heading: str, name: str) -> None:
    page = page_of("First.", f"== {heading} ==", "gone", "== Z ==", "last")
    assert page.plain(without=[name]) == "First.\n\nZ\n\nlast"
    assert page.plain(without=f"lists, {name}") == "First.\n\nZ\n\nlast"


def test_names_with_commas_are_quoted_or_come_in_a_sequence() -> None:
    page = page_of("First.", "== Honours, awards ==", "gone", "== Awards ==", "last")
    assert (
        page.plain(without='"honours, awards"') == page.plain(without=["honours, awards"]) == "First.\n\nAwards\n\nlast"
    )
    assert page.plain(without="honours, awards") == "First.\n\nHonours, awards\n\ngone"
    assert split_names(" a ,, b, ") == ["a", "b"]
    for text in ('"a', '"a" b', "a\nb"):
        with pytest.raises(SetupError, match="in double quotes"):
            split_names(text)


def test_sections_are_counted_by_the_names_that_were_given() -> None:
    without = Without(["References", "SOURCES", "Nowhere", "tables"])
    for _ in range(2):
        without.parts(ALAN)
    assert without.n_sections == {"References": 2, "SOURCES": 2, "Nowhere": 0}


def test_pages_of_these_columns_alone_are_enough_for_plain_text() -> None:
    class Elements:
        elements = ALAN.elements

    assert Page.plain(Elements()) == ALAN.plain()  # type: ignore[arg-type]


def test_an_empty_page_is_an_empty_text() -> None:
    empty = page_of(tables=(0,), infoboxes=(0,))
    assert (empty.plain(), empty.body(), empty.body(without="tables")) == ("", "table 0", "")
    assert empty.markdown(without=KINDS) == "# T"


_LINES = st.sampled_from(["text", "", "* item", *(f"{'=' * n} {name} {'=' * n}" for n in (2, 3, 4) for name in "ab")])


@given(
    lines=st.lists(_LINES, max_size=12), without=st.lists(st.sampled_from([*KINDS, "a", "b"]), unique=True, min_size=1)
)
def test_what_is_left_out_is_what_a_slow_reading_says(lines: list[str], without: list[str]) -> None:
    page = page_of(*lines, tables=tuple(range(0, len(lines), 3)))
    kinds = {"lists": "list_item", "headings": "heading"}
    gone = {
        number for number, element in enumerate(page.elements)
        if any(heading in without for heading in element.section)
        or any(element.kind == kind for name, kind in kinds.items() if name in without)
    }  # fmt: skip
    is_boxed = {
        table.element for table in page.tables
        if "tables" not in without and not any(heading in without for heading in page.elements[table.element].section)
    }  # fmt: skip
    for number, element in enumerate(page.elements):
        if element.kind != "heading":
            continue
        below = [number]
        for later in range(number + 1, len(page.elements)):
            if page.elements[later].kind == "heading" and page.elements[later].level <= element.level:
                break
            below.append(later)
        has_text = any(
            page.elements[number_below].kind != "heading"
            and page.elements[number_below].text
            and number_below not in gone
            for number_below in below
        )
        if not has_text and not is_boxed & {*below}:
            gone.add(number)
    parts = Without(without).parts(page)
    assert list(parts.elements) == [number for number in range(len(page.elements)) if number not in gone]
    assert sorted(box.content.element for boxes in parts.boxes.values() for box in boxes) == sorted(is_boxed)
    assert {*parts.boxes} <= {*parts.elements}
