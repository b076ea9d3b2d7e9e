"""Writes the rows of a table as sentences, ``header: value; header: value.``, and records the exact location of each
cell.

A cell that spans rows is repeated in each of them, as readers see it. Cells without text are left out. If a row has
more columns than the header has cells, it is unknown which header belongs to which column. The header is then a
separate sentence, and the rows have only values.

Source: UniK-QA (2022), section 3, and Chen et al. (2020), OTT-QA, whose retrievers read tables in this form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Annotated, NamedTuple

from kbsource.elements import Cell, Table
from kbsource.rows import Int32, Row
from kbsource.sentences import ends_with_mark

_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]")
_MOST_NAMED = 4
"""Maximum number of columns of a cell whose headers are written before it."""
_SHARE, _FREE = 64, 10_000
"""Limits of repeated headers and cells: this many times the characters of the table, and at least this many
characters."""


class PassageCell(Row):
    """Part of a table's caption, header or cell: a half-open range of code points of its text."""

    table: Annotated[Int32, "number of the table in the page, from 0"]
    row: Annotated[Int32 | None, "index in the table's rows; null for the caption and the header"]
    cell: Annotated[Int32 | None, "index in the row, or in the header; null for the caption"]
    start_char: Annotated[Int32, "first code point in the text of the cell"]
    end_char: Annotated[Int32, "end in the text of the cell, one past the last code point"]
    passage_start_char: Annotated[Int32, "first code point in the text of the passage"]

    @property
    def passage_end_char(self) -> int:
        """The end in the text of the passage, one past the last code point."""
        return self.passage_start_char + self.end_char - self.start_char


class RowSentence(NamedTuple):
    """A row of a table as a sentence. ``passage_start_char`` of its cells is an offset in the sentence."""

    text: str
    cells: tuple[PassageCell, ...]


class _Placed(NamedTuple):
    """A cell in a row: the columns that it covers, and its indexes in the table."""

    column: int
    n_columns: int
    row: int
    cell: int


class _Text(NamedTuple):
    """A text to be written, with its location."""

    text: str
    row: int | None
    cell: int | None


def located_text(table: Table, row: int | None, cell: int | None) -> str | None:
    """Returns the text that a ``PassageCell`` refers to, with line breaks and tabs as spaces; None if the table has no
    such cell."""
    if cell is None:
        found = table.caption if row is None else None
    elif row is None:
        found = table.header[cell] if 0 <= cell < len(table.header) else None
    else:
        cells = table.rows[row] if 0 <= row < len(table.rows) else ()
        found = cells[cell].text if 0 <= cell < len(cells) else None
    return None if found is None else _BREAKS.sub(" ", found)


def table_sentences(number: int, table: Table) -> list[RowSentence]:
    """Returns the sentences of a table: its caption, and each row with text.

    Each value follows the header of its column. If that is not possible, the header is a sentence.

    The number of characters grows linearly with the table: if headers and spanning cells would be repeated too often,
    each is written once.

    Args:
        number: position of the table in its page, from 0.
    """
    placed = _placed(table.rows, _SHARE * sum(map(len, table.rows)) + _FREE)
    width = max((cell.column + cell.n_columns for row in placed or () for cell in row), default=0)
    has_names = placed is not None and 0 < width <= len(table.header)
    if placed is not None and _n_repeated(table, placed, has_names=has_names) > _SHARE * _n_chars(table) + _FREE:
        placed, has_names = None, False
    if placed is None:
        placed = [
            [_Placed(index, 1, row, index) for index in range(len(cells))] for row, cells in enumerate(table.rows)
        ]
    sentences = [[[_Text(table.caption or "", None, None)]]]
    if not has_names:
        sentences.append([[_Text(text, None, cell)] for cell, text in enumerate(table.header)])
    sentences += (_fields(table, row, has_names=has_names) for row in placed)
    return [sentence for fields in sentences if (sentence := _sentence(number, fields)) is not None]


def _n_chars(table: Table) -> int:
    return sum(map(len, table.header)) + sum(len(cell.text) for row in table.rows for cell in row)


def _n_repeated(table: Table, placed: Iterable[Sequence[_Placed]], *, has_names: bool) -> int:
    """Returns the number of characters that the rows have with their headers and repeated cells."""
    n_chars = 0
    for cell in chain.from_iterable(placed):
        n_chars += len(table.rows[cell.row][cell.cell].text)
        if has_names and cell.n_columns <= _MOST_NAMED:
            n_chars += sum(map(len, table.header[cell.column : cell.column + cell.n_columns]))
    return n_chars


def _placed(rows: Sequence[Sequence[Cell]], most: int) -> list[list[_Placed]] | None:
    """Returns the cells of each row by their columns, with the cells that reach into it from above; None if these are
    more than ``most``."""
    grid: list[list[_Placed]] = []
    reaching: list[tuple[_Placed, int]] = []  # with the number of further rows, by column
    for number, cells in enumerate(rows):
        most -= len(reaching)
        if most < 0:
            return None
        row = list(reaching)
        column, following = 0, iter([*(placed for placed, _ in reaching), None])
        above = next(following)
        for index, cell in enumerate(cells):
            while above is not None and above.column <= column:
                column = max(column, above.column + above.n_columns)
                above = next(following)
            n_columns = max(cell.colspan, 1)
            if above is not None:
                n_columns = min(n_columns, above.column - column)
            row.append((_Placed(column, n_columns, number, index), max(cell.rowspan, 1)))
            column += n_columns
        row.sort()
        grid.append([placed for placed, _ in row])
        reaching = [(placed, n_left - 1) for placed, n_left in row if n_left > 1]
    return grid


def _fields(table: Table, row: Sequence[_Placed], *, has_names: bool) -> list[list[_Text]]:
    """Returns the fields of a row: the texts of headers, then the value."""
    fields: list[list[_Text]] = []
    for cell in row:
        value = table.rows[cell.row][cell.cell].text
        columns = range(cell.column, cell.column + cell.n_columns) if cell.n_columns <= _MOST_NAMED else range(0)
        names: dict[str, _Text] = {}
        for column in columns if has_names else ():
            name = table.header[column]
            if name.strip() not in ("", value.strip()):
                names.setdefault(name.strip(), _Text(name, None, column))
        fields.append([*names.values(), _Text(value, cell.row, cell.cell)])
    is_named = not table.header and len(fields) > 1 and table.rows[row[0].row][row[0].cell].is_header
    if is_named and fields[0][0].text.strip() and fields[1][0].text.strip():
        fields[:2] = [fields[0] + fields[1]]
    return fields


def _sentence(number: int, fields: Iterable[Sequence[_Text]]) -> RowSentence | None:
    """Returns fields as one sentence; None if none of them has a value."""
    parts: list[str] = []
    cells: list[PassageCell] = []
    at = 0
    for field in fields:
        if not field[-1].text.strip():
            continue
        separator = "" if not parts else " " if ends_with_mark(parts[-1]) else "; "
        for place, written in enumerate(field, start=1):
            bare = written.text.strip()
            start = written.text.index(bare)
            at += len(separator)
            cells.append(PassageCell(number, written.row, written.cell, start, start + len(bare), at))
            parts += separator, _BREAKS.sub(" ", bare)
            at += len(bare)
            separator = ": " if place == len(field) - 1 else ", "
    if not cells:
        return None
    return RowSentence("".join(parts) + "." * (not ends_with_mark(parts[-1])), tuple(cells))
