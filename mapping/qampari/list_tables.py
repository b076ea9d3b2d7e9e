"""Converts the tables of "List of …" pages to lists of things, with the values that the table has for each.

Rowspans and colspans are expanded, tables of a page with the same header are joined, and the column that names the
listed things is determined.

Source: QAMPARI (2022), section 3.3, and its released code for the rules on titles, sections and columns. The paper's
classifier of key columns (Talmor et al., 2021) was not released. You can supply its answers; otherwise a rule replaces
it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import astuple

from kbsource.documents import parsed_json, typed_value
from kbsource.errors import SetupError
from kbsource.records import Cell, CellLink, Page
from kbsource.release.manifest import Count
from mapping.sources.raw_records import iter_lines

LEAST_ROWS = 5
"""Minimum number of rows of a table."""
LEAST_LINKED = 0.8
"""Minimum share of the cells of a key column that have exactly one link to an article."""
KeyRule = Literal["any", "not-last"]
"""Columns that may be the key column, which names the listed things: any column, or any but the last, as in the
released code."""

REASONS: dict[str, str] = {
    "no_header": "its first row does not consist of header cells",
    "no_key_column": "no column has a link to an article in most cells and a different value in each row",
    "section_not_in_title": "it is in a section whose name is not part of the page's title",
    "title_form": "the page's title has a colon, or ends in a bracket or in a range such as A–C",
    "too_few_rows": "it has too few rows, together with tables that have the same header",
    "wider_than_header": "a row has more columns than the header has cells, so the meaning of some columns is unknown",
}
"""Reasons for not using a table of a list page, with their meanings."""

_PREFIX = "list of "
_RANGE = re.compile(r"–.{1,2}$|-.$")
_IGNORED = re.compile(r"rank|score|^notes?$")
_WORD = re.compile(r"\w")
_EMPTY = Cell("", False, 1, 1, ())


class LinkedText(NamedTuple):
    """The contents of a cell."""

    #: without line breaks. A key without text has the title of its page; a value is empty if the cell has neither
    #: letter nor digit
    text: str
    #: the article that it links to, never the list itself; for a value the first such link, for a key the only one.
    #: None without such a link
    page_id: int | None
    title: str | None


class ListRow(NamedTuple):
    """A row of a list."""

    key: LinkedText  # the thing that the row is about
    values: tuple[LinkedText, ...]  # one value for each column of the table, including the key column


class ListTable(NamedTuple):
    """The tables of a list page that have the same header, joined into one."""

    page_id: int  # page id of the list page
    title: str  # title of the list page
    name: str  # subject of the list: the title after "List of"
    numbers: tuple[int, ...]  # positions of the joined tables in the page, from 0; the first identifies the table
    columns: tuple[str, ...]  # names, as in the header
    key_column: int  # number of the column that names the listed things
    value_columns: tuple[int, ...]  # numbers of the columns that questions can be about
    rows: tuple[ListRow, ...]  # rows in page order, without rows of header cells and rows with a single cell

    @property
    def number(self) -> int:
        """Number of the table, which identifies it within its page."""
        return self.numbers[0]


class _Grid(NamedTuple):
    """The rows of a table, each as wide as its header."""

    number: int
    rows: list[tuple[Cell, ...]]


def list_name(title: str) -> str | None:
    """Returns the subject of a list page, which is its title after "List of"; None for other pages.

    >>> list_name("List of lakes of Sweden"), list_name("Lakes of Sweden")
    ('lakes of Sweden', None)
    """
    return title[len(_PREFIX) :].strip() or None if title.lower().startswith(_PREFIX) else None


def has_list_title(title: str) -> bool:
    """Returns whether a title shows no sign of being a partial list: a colon, or a bracket or range at its end.

    >>> [has_list_title(f"List of ships {name}") for name in ("of Peru", "(A)", "A–C", "1914–18", "A-C", ": A")]
    [True, False, False, False, False, False]
    """
    return ":" not in title and not title.endswith(")") and _RANGE.search(title) is None


def list_tables(
    page: Page,
    *,
    key_columns: Mapping[tuple[str, int], int] | None = None,
    least_rows: int = LEAST_ROWS,
    least_linked: float = LEAST_LINKED,
    key_rule: KeyRule = "any",
) -> tuple[list[ListTable], Counter[str]]:
    """Returns the lists of a page, in page order, and the number of its other tables that are skipped for each of
    REASONS.

    Every table of a list page is either part of a list or counted under a reason. For other pages, both results are
    empty. Tables with the same header (ignoring case) and the same given key column are joined. The key column is the
    given one, or else the left-most
    column that meets two conditions: enough of its cells have exactly one link to an article, and no two rows of a
    table have the same text or link to the same article in it. Columns called rank, score or notes are ignored. No
    questions are made about columns without a name, or with the same name as another column.

    Args:
        key_columns: by title of the page and number of the table, for example from a classifier; may be incomplete.
        least_rows: minimum number of rows, after tables with the same header are joined.
        key_rule: which columns may be the key if none is given.

    Raises:
        SetupError: a table does not have the column that ``key_columns`` names.
    """
    left_out: Counter[str] = Counter()
    name = list_name(page.title)
    if name is None:
        return [], left_out
    if not has_list_title(page.title):
        left_out.update({"title_form": len(page.tables)} if page.tables else {})
        return [], left_out
    tables = []
    given = {} if key_columns is None else key_columns
    for header, key_column, grids in _same_headers(page, given, left_out):
        found = key_column
        if found is None:
            n_columns = len(header) - (key_rule == "not-last")
            found = _find_key_column(header[:n_columns], grids, page.page_id, least_linked)
        has_rows = sum(len(grid.rows) for grid in grids) >= least_rows
        if not has_rows or found is None:
            left_out["no_key_column" if has_rows else "too_few_rows"] += len(grids)
            continue
        rows = tuple(_as_row(cells, found, page.page_id) for grid in grids for cells in grid.rows)
        numbers, columns = tuple(grid.number for grid in grids), _value_columns(header, found)
        tables.append(ListTable(page.page_id, page.title, name, numbers, header, found, columns, rows))
    return tables, left_out


def expand_rows(rows: Iterable[Sequence[Cell]], width: int) -> list[tuple[Cell, ...]] | None:
    """Returns rows of equal width, with each cell repeated in every position that it spans; None if a row has too many
    cells.

    Cells that span more columns than exist are cut off; a position without a cell gets an empty one. If two cells cover
    the same position, the cell from the row above is used. Rows without cells are left out.

    Args:
        rows: as written, below the header.
    """
    grid: list[tuple[Cell, ...]] = []
    from_above: dict[int, tuple[Cell, int]] = {}
    for written in rows:
        if not written:
            continue
        places: dict[int, tuple[Cell, int]] = dict(from_above)
        column = 0
        for cell in written:
            while column in places:
                column += 1
            if column >= width:
                return None
            for place in range(column, min(column + cell.colspan, width)):
                places.setdefault(place, (cell, cell.rowspan))
            column = min(column + cell.colspan, width)
        grid.append(tuple(places[place][0] if place in places else _EMPTY for place in range(width)))
        from_above = {place: (cell, n_left - 1) for place, (cell, n_left) in places.items() if n_left > 1}
    return grid


def _same_headers(
    page: Page, key_columns: Mapping[tuple[str, int], int], left_out: Counter[str]
) -> list[tuple[tuple[str, ...], int | None, list[_Grid]]]:
    """Returns header, given key column and rows of tables with the same header, ordered by the first; counts the
    others."""
    headers: dict[tuple[tuple[str, ...], int | None], tuple[str, ...]] = {}
    groups: defaultdict[tuple[tuple[str, ...], int | None], list[_Grid]] = defaultdict(list)
    for number, table in enumerate(page.tables):
        section = page.elements[table.element].section
        if section and not _is_in_title(section[-1], page.title):
            left_out["section_not_in_title"] += 1
            continue
        if not table.header:
            left_out["no_header"] += 1
            continue
        rows = expand_rows(table.rows, len(table.header))
        if rows is None:
            left_out["wider_than_header"] += 1
            continue
        key_column = key_columns.get((page.title, number))
        if key_column is not None and not 0 <= key_column < len(table.header):
            raise SetupError(
                f"Key column {key_column} of table {number} of {page.title!r} does not exist: the table has the "
                f"columns 0 to {len(table.header) - 1}. Use key columns that were made from the same release."
            )
        header = tuple(_one_line(cell) for cell in table.header)
        group = tuple(text.lower() for text in header), key_column
        headers.setdefault(group, header)
        groups[group].append(_Grid(number, [row for row in rows if not _is_divider(row)]))
    return [(headers[group], group[1], grids) for group, grids in groups.items()]


def _is_in_title(section: str, title: str) -> bool:
    """Returns whether a section may contain the list. Single characters are the letters of a list in parts."""
    return len(section) <= 1 or section.lower() in title.lower()


def _is_divider(cells: tuple[Cell, ...]) -> bool:
    """Returns whether a row repeats the header, or is one cell that divides the table."""
    return len(cells) > 1 and (all(cell.is_header for cell in cells) or all(other is cells[0] for other in cells))


def _find_key_column(header: tuple[str, ...], grids: Sequence[_Grid], page_id: int, least_linked: float) -> int | None:
    n_rows = sum(len(grid.rows) for grid in grids)
    for column, name in enumerate(header):
        if _IGNORED.search(name.lower()):
            continue
        n_linked = 0
        is_distinct = True
        for grid in grids:
            keys = [_as_key(cells[column], page_id) for cells in grid.rows]
            texts = [key.text for key in keys]
            pages = [key.page_id for key in keys if key.page_id is not None]
            n_linked += len(pages)
            is_distinct = is_distinct and len(set(texts)) == len(texts) and len(set(pages)) == len(pages)
        if is_distinct and n_linked >= least_linked * n_rows:
            return column
    return None


def _value_columns(header: tuple[str, ...], key_column: int) -> tuple[int, ...]:
    names = [text.lower() for text in header]
    n_named = Counter(names)
    return tuple(
        number
        for number, name in enumerate(names)
        if number != key_column and name and n_named[name] == 1 and not _IGNORED.search(name)
    )


def _as_row(cells: tuple[Cell, ...], key_column: int, page_id: int) -> ListRow:
    return ListRow(_as_key(cells[key_column], page_id), tuple(_as_value(cell, page_id) for cell in cells))


def _as_key(cell: Cell, page_id: int) -> LinkedText:
    links = _article_links(cell, page_id)
    link = links[0] if len(links) == 1 else None
    text = _one_line(cell.text)
    if link is None:
        return LinkedText(text, None, None)
    return LinkedText(text or link.target_title, link.target_page_id, link.target_title)


def _as_value(cell: Cell, page_id: int) -> LinkedText:
    text = _one_line(cell.text)
    if not _WORD.search(text):
        return LinkedText("", None, None)
    links = _article_links(cell, page_id)
    return LinkedText(text, links[0].target_page_id, links[0].target_title) if links else LinkedText(text, None, None)


def _article_links(cell: Cell, page_id: int) -> list[CellLink]:
    return [link for link in cell.links if link.target_page_id is not None and link.target_page_id != page_id]


def _one_line(text: str) -> str:
    return " ".join(text.split())


class _KeyColumn(msgspec.Struct):
    title: str
    table: Count
    column: Count


_KEY_REMEDY = "write title, table and column as JSON; both numbers start at 0"


def read_key_columns(path: str) -> tuple[tuple[str, int, int], ...]:
    """Reads title of the page, number of the table and number of its key column from each line of a file.

    Args:
        path: JSON Lines of ``{"title", "table", "column"}``, both numbers from 0.

    Raises:
        SetupError: a line has another form, or names a table again; the message names file and line.
    """
    found: dict[tuple[str, int], int] = {}
    for raw in iter_lines(path):
        where = f"{path}, line {raw.line}"
        value = parsed_json(raw.data, where, remedy=_KEY_REMEDY, fault=SetupError)
        title, table, column = astuple(typed_value(value, _KeyColumn, where, remedy=_KEY_REMEDY, fault=SetupError))
        if (title, table) in found:
            raise SetupError(f"{where}: table {table} of {title!r} is listed twice; remove one of the lines.")
        found[title, table] = column
    return tuple((title, table, column) for (title, table), column in sorted(found.items()))
