"""Repeats the cells of a table over the rows and columns that they cover."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kbsource.elements import Cell

Rows = Sequence[Sequence[Cell]]
MOST_CHARS, MOST_CELLS = 1 << 20, 50_000
"""Maximum size of a table after spreading. A larger table, which only results from wrong spans, stays as written."""
_EMPTY = Cell("", False, 1, 1, ())


def spread(rows: Rows) -> tuple[tuple[Cell, ...], ...] | None:
    """Returns the rows of a table with a cell in every column; None if the table would become too large.

    A cell that covers several columns or rows is repeated in each, and each copy covers one column and one row. A
    column that no cell covers gets an empty cell if a column to its right has a cell. No rows are added below the last
    row.

    Source: the HTML standard, 4.9.12.1 "Forming a table".
    """
    if all(cell.colspan == cell.rowspan == 1 for row in rows for cell in row):
        return tuple(map(tuple, rows))
    n_cells = n_chars = 0
    grid: list[dict[int, Cell]] = [{} for _ in rows]  # by column
    for number, row in enumerate(rows):
        column = 0
        for cell in row:
            while column in grid[number]:
                column += 1
            n_rows = min(cell.rowspan, len(rows) - number)
            n_cells += cell.colspan * n_rows
            n_chars += cell.colspan * n_rows * len(cell.text)
            if n_cells > MOST_CELLS or n_chars > MOST_CHARS:
                return None
            own = cell if cell.colspan == cell.rowspan == 1 else replace(cell, colspan=1, rowspan=1)
            for covered in grid[number : number + n_rows]:  # where cells overlap, the later one is shown
                covered.update(dict.fromkeys(range(column, column + cell.colspan), own))
            column += cell.colspan
    widths = [max(own, default=-1) + 1 for own in grid]
    if sum(widths) > MOST_CELLS:
        return None
    return tuple(
        tuple([own.get(column, _EMPTY) for column in range(width)]) for own, width in zip(grid, widths, strict=True)
    )
