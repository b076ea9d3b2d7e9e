"""Tables of list pages as lists: which are used, their grid, their key column."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kbsource.errors import SetupError
from kbsource.records import Cell, CellLink, Element, Page, Table
from mapping.qampari.list_tables import (
    REASONS,
    LinkedText,
    ListTable,
    expand_rows,
    has_list_title,
    list_name,
    list_tables,
    read_key_columns,
)

LIST_PAGE = 900


def _cell(text: str, *targets: int | None, colspan: int = 1, rowspan: int = 1, is_header: bool = False) -> Cell:
    """A cell whose links lead to these pages."""
    links = tuple(CellLink(0, len(text), f"Title {target}", None, target) for target in targets)
    return Cell(text, is_header, colspan, rowspan, links)


def _table(header: Sequence[str], rows: Sequence[Sequence[Cell]], *, element: int = 0) -> Table:
    return Table(element, None, tuple(header), tuple(map(tuple, rows)))


def _lakes(n_rows: int = 5, *, first: int = 1, element: int = 0, header: Sequence[str] = ("Lake", "County")) -> Table:
    numbers = range(first, first + n_rows)
    return _table(header, [[_cell(f"Lake {number}", number), _cell("Skåne")] for number in numbers], element=element)


def _page(*tables: Table, title: str = "List of lakes of Sweden", sections: Sequence[tuple[str, ...]] = ()) -> Page:
    """A page whose elements are its title and one heading for each of ``sections``."""
    elements = [Element("title", 1, None, "", (), title)]
    elements += [Element("heading", 2, None, "", section, section[-1]) for section in sections]
    values: dict[str, Any] = dict.fromkeys(Page.__struct_fields__, ())
    return Page(**values | {"page_id": LIST_PAGE, "title": title, "elements": tuple(elements), "tables": tables})


def _only(page: Page, **options: Any) -> ListTable:
    (table,), left_out = list_tables(page, **options)
    assert not left_out
    return table


def test_the_last_column_can_be_kept_from_being_the_key() -> None:
    rows = [[_cell("Skåne"), _cell(f"Lake {number}", number)] for number in range(1, 6)]
    page = _page(_table(("County", "Lake"), rows))

    assert _only(page).key_column == 1
    assert list_tables(page, key_rule="not-last") == ([], Counter({"no_key_column": 1}))
    (given,), _ = list_tables(page, key_rule="not-last", key_columns={(page.title, 0): 1})
    assert given.key_column == 1


def test_a_list_has_its_name_its_columns_and_a_row_for_each_thing() -> None:
    table = _only(_page(_lakes()))

    assert (table.page_id, table.title, table.name) == (LIST_PAGE, "List of lakes of Sweden", "lakes of Sweden")
    assert (table.number, table.numbers, table.columns) == (0, (0,), ("Lake", "County"))
    assert (table.key_column, table.value_columns, len(table.rows)) == (0, (1,), 5)
    assert table.rows[1].key == LinkedText("Lake 2", 2, "Title 2")
    assert table.rows[1].values == (LinkedText("Lake 2", 2, "Title 2"), LinkedText("Skåne", None, None))


@pytest.mark.parametrize("title", ["Lakes of Sweden", "Lists of lakes", "A list of lakes", "List of", "Listing of x"])
def test_pages_that_are_no_lists_have_no_tables_and_no_reasons(title: str) -> None:
    assert list_name(title) is None
    assert list_tables(_page(_lakes(), title=title)) == ([], Counter())


@pytest.mark.parametrize(
    "title",
    ["List of lakes: A", "List of lakes (Sweden)", "List of lakes, A–C", "List of ships 1914–18", "List of lakes A-C"],
)
def test_a_title_of_a_part_of_a_list_is_no_list(title: str) -> None:
    assert not has_list_title(title)
    assert list_tables(_page(_lakes(), _lakes(), title=title)) == ([], Counter(title_form=2))


@pytest.mark.parametrize(
    "title", ["List of lakes", "List of non-fiction", "List of lakes 1914–1918", "List of Kosovo–Albania treaties"]
)
def test_hyphens_and_longer_ranges_are_no_parts(title: str) -> None:
    assert has_list_title(title)


@pytest.mark.parametrize(
    ("section", "is_used"), [("Sweden", True), ("LAKES", True), ("Q", True), ("Former", False), ("", True)]
)
def test_the_section_is_a_part_of_the_title_or_a_letter(section: str, is_used: bool) -> None:
    page = _page(_lakes(element=1), sections=[("History", section)])

    tables, left_out = list_tables(page)
    assert (len(tables), left_out) == ((1, {}) if is_used else (0, {"section_not_in_title": 1}))


def test_a_table_in_the_lead_has_no_section() -> None:
    assert len(_only(_page(_lakes(element=0), sections=[("Former",)])).rows) == 5


@pytest.mark.parametrize(("n_rows", "is_used"), [(4, False), (5, True)])
def test_a_list_has_five_rows(n_rows: int, is_used: bool) -> None:
    tables, left_out = list_tables(_page(_lakes(n_rows)))

    assert (len(tables), left_out) == ((1, {}) if is_used else (0, {"too_few_rows": 1}))
    assert len(list_tables(_page(_lakes(n_rows)), least_rows=4)[0]) == 1


def test_tables_with_the_same_header_are_one() -> None:
    page = _page(
        _lakes(3), _lakes(5, header=("Pond", "County")), _lakes(2, first=4, header=("LAKE", "county")), _lakes(2)
    )

    lakes, ponds = list_tables(page)[0]
    assert (lakes.numbers, lakes.columns, ponds.numbers) == ((0, 2, 3), ("Lake", "County"), (1,))
    assert [row.key.page_id for row in lakes.rows] == [1, 2, 3, 4, 5, 1, 2]


def test_a_table_without_header_or_with_wider_rows_is_left_out() -> None:
    wide = _table(("Lake", "Area"), [[_cell("Lake", 1), _cell("1"), _cell("2")]] * 5)

    assert list_tables(_page(_table((), []), wide)) == ([], Counter(no_header=1, wider_than_header=1))


def test_rows_of_header_cells_and_rows_of_one_cell_are_no_rows() -> None:
    again = [_cell("Lake", is_header=True), _cell("County", is_header=True)]
    divider = [_cell("Lakes in the south", 77, colspan=9)]
    lakes = _lakes()
    table = _only(_page(structs.replace(lakes, rows=(tuple(divider), *lakes.rows, tuple(again)))))

    assert [row.key.page_id for row in table.rows] == [1, 2, 3, 4, 5]


def test_the_key_column_is_the_left_most_that_is_linked_and_distinct() -> None:
    rows = [[_cell("Skåne", 50), _cell(f"Town {number}"), _cell(f"Lake {number}", number)] for number in range(1, 6)]
    table = _only(_page(_table(("County", "Town", "Lake"), rows)))

    assert (table.key_column, table.value_columns) == (2, (0, 1))


@pytest.mark.parametrize(("n_linked", "is_used"), [(7, False), (8, True)])
def test_four_fifths_of_a_key_column_have_exactly_one_link(n_linked: int, is_used: bool) -> None:
    others: list[Cell] = [_cell("Lake 98"), _cell("Lake 99", 98, 99), _cell("Lake 97", None)]
    keys = [_cell(f"Lake {number}", number) for number in range(1, n_linked + 1)] + others[: 10 - n_linked]

    tables, left_out = list_tables(_page(_table(("Lake",), [[key] for key in keys])))
    assert (len(tables), left_out) == ((1, {}) if is_used else (0, {"no_key_column": 1}))
    if is_used:
        assert [row.key.page_id for row in tables[0].rows[8:]] == [None, None]


@pytest.mark.parametrize("last", [_cell("Lake 1", 9), _cell("Lake 9", 1)], ids=["text", "page"])
def test_two_rows_of_a_table_with_one_text_or_page_make_no_key_column(last: Cell) -> None:
    rows = [[_cell(f"Lake {number}", number)] for number in range(1, 9)] + [[last]]

    assert list_tables(_page(_table(("Lake",), rows))) == ([], Counter(no_key_column=1))


@pytest.mark.parametrize("name", ["Rank", "World ranking", "Score", "Note", "Notes", "NOTES"])
def test_columns_called_rank_score_or_notes_are_neither_keys_nor_values(name: str) -> None:
    rows = [[_cell(f"{number}", 100 + number), _cell(f"Lake {number}", number)] for number in range(1, 6)]
    table = _only(_page(_table((name, "Lake"), rows)))

    assert (table.key_column, table.value_columns) == (1, ())


def test_columns_without_a_name_of_their_own_are_not_asked_about() -> None:
    rows = [[_cell(f"Lake {number}", number), *(_cell("x") for _ in range(5))] for number in range(1, 6)]
    table = _only(_page(_table(("Lake", "", "Area", "Notebook", "area", "Endnotes"), rows)))

    assert table.value_columns == (3, 5)


def test_a_given_key_column_stands() -> None:
    page = _page(_lakes(), _lakes())

    given = _only(page, key_columns={(page.title, 0): 1, (page.title, 1): 1, ("List of ponds", 0): 0})
    assert (given.key_column, given.value_columns, given.rows[0].key) == (1, (0,), LinkedText("Skåne", None, None))
    found, other = list_tables(page, key_columns={(page.title, 1): 1})[0]
    assert (found.key_column, found.numbers, other.key_column, other.numbers) == (0, (0,), 1, (1,))


@pytest.mark.parametrize("column", [-1, 2])
def test_a_given_key_column_must_be_there(column: int) -> None:
    with pytest.raises(SetupError, match=rf"Key column {column} of table 0 of 'List of lakes of Sweden'.*0 to 1"):
        list_tables(_page(_lakes()), key_columns={("List of lakes of Sweden", 0): column})


def test_texts_are_one_line_and_links_to_the_list_itself_do_not_count() -> None:
    rows = [
        [_cell(f" Lake\n{number} ", LIST_PAGE, number), _cell("a\n\nb", LIST_PAGE, None, 70, 71), _cell(" — ", 5)]
        for number in range(1, 6)
    ]
    row = _only(_page(_table(("Lake", "Rivers", "Use"), rows))).rows[0]

    assert row.key == LinkedText("Lake 1", 1, "Title 1")
    assert row.values[1:] == (LinkedText("a b", 70, "Title 70"), LinkedText("", None, None))


def test_a_key_without_text_is_called_like_its_page() -> None:
    rows = [[_cell("" if number == 3 else f"Lake {number}", number)] for number in range(1, 6)]

    assert _only(_page(_table(("Lake",), rows))).rows[2].key == LinkedText("Title 3", 3, "Title 3")


@st.composite
def _tilings(draw: st.DrawFn) -> tuple[int, list[list[int]], list[list[Cell]]]:
    """A width, a grid of numbers in rectangles, and the rows of cells that write it."""
    n_rows, width = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    grid = [[-1] * width for _ in range(n_rows)]
    rows: list[list[Cell]] = []
    number = 0
    for top in range(n_rows):
        rows.append([])
        for left in range(width):
            if grid[top][left] >= 0:
                continue
            right = left + 1
            # A row has a cell of its own, since one without is left out.
            n_down = draw(st.integers(1, n_rows - top)) if left else 1
            while right < width and grid[top][right] < 0 and draw(st.booleans()):
                right += 1
            for row in grid[top : top + n_down]:
                row[left:right] = [number] * (right - left)
            rows[-1].append(_cell(str(number), colspan=right - left, rowspan=n_down))
            number += 1
    return width, grid, rows


@given(_tilings())
def test_spans_that_fit_together_give_back_the_grid_that_they_were_cut_from(
    tiling: tuple[int, list[list[int]], list[list[Cell]]],
) -> None:
    width, grid, rows = tiling
    expanded = expand_rows(rows, width)

    assert expanded is not None
    assert [[int(cell.text) for cell in row] for row in expanded] == grid


_CELLS = st.builds(
    _cell,
    st.sampled_from(["", "a", "b", "c"]),
    st.sampled_from([1, 2, 3, None]),
    colspan=st.integers(1, 9999),
    rowspan=st.integers(1, 9999),
)


@given(st.lists(st.lists(_CELLS, max_size=4), max_size=6), st.integers(1, 4))
def test_rows_are_as_wide_as_the_header_and_hold_every_cell_whatever_the_spans(
    rows: list[list[Cell]], width: int
) -> None:
    expanded = expand_rows(rows, width)

    if expanded is not None:
        written = [row for row in rows if row]
        assert len(expanded) == len(written)
        for row, cells in zip(expanded, written, strict=True):
            assert len(row) == width
            assert all(any(table_row is cell for table_row in row) for cell in cells)


_TABLES = st.builds(
    _table,
    st.sampled_from([(), ("Lake",), ("Lake", "County")]),
    st.lists(st.lists(_CELLS, min_size=1, max_size=3), max_size=7),
    element=st.integers(0, 2),
)


@given(st.lists(_TABLES, max_size=4), st.sampled_from(["List of lakes", "List of lakes (A)"]))
def test_every_table_of_a_list_page_is_used_or_counted(tables: list[Table], title: str) -> None:
    page = _page(*tables, title=title, sections=[("Lakes",), ("Ponds",)])

    found, left_out = list_tables(page, least_rows=1, least_linked=0.5)
    assert sum(len(list_table.numbers) for list_table in found) + left_out.total() == len(tables)
    assert left_out.keys() <= REASONS.keys()


def _line(title: object = "List of lakes", table: object = 0, column: object = 1) -> str:
    return json.dumps({"title": title, "table": table, "column": column})


def _read(path: Path, *lines: str) -> tuple[tuple[str, int, int], ...]:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return read_key_columns(str(path))


def test_columns_come_by_title_and_table_whatever_the_order_of_the_lines(tmp_path: Path) -> None:
    lines = [_line("List of Ålänningar", 2, 0), _line("List of lakes", 10, 3), _line("List of lakes", 9, 4)]
    expected = (("List of lakes", 9, 4), ("List of lakes", 10, 3), ("List of Ålänningar", 2, 0))

    assert _read(tmp_path / "keys.jsonl", *lines) == _read(tmp_path / "keys.jsonl", *reversed(lines)) == expected


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl.gz"
    path.write_bytes(gzip.compress(_line().encode()))

    assert read_key_columns(str(path)) == (("List of lakes", 0, 1),)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: Expected `object`.*as JSON"),
        ('{"title": "List of lakes", "table": 1}', "line 2: .*`column`.*as JSON"),
        (_line(7, 1), r"line 2: Expected `str`.*`\$\.title`"),
        (_line(table="1"), r"line 2: Expected `int`.*`\$\.table`"),
        (_line(table=True), r"line 2: Expected `int`.*`\$\.table`"),
        (_line(table=1, column=1.0), r"line 2: Expected `int`.*`\$\.column`"),
        (_line(table=-1), "line 2: .*from 0 on"),
        (_line(table=1, column=-2), "line 2: .*from 0 on"),
        (_line(column=2), "line 2: table 0 of 'List of lakes' is listed twice"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    with pytest.raises(SetupError, match=f"{path}, {match}"):
        _read(path, _line(), line)
