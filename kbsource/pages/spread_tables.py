"""Repeats the cells of a table over the rows and columns that they cover."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kbsource.elements import Cell

Rows = Sequence[Sequence[Cell]]
MOST_CHARS, MOST_CELLS = 1 << 20, 50_000
"""Maximum number of cells after spreading. A larger table results only from wrong spans, and stays as written."""
_EMPTY = Cell("", False, 1, 1, ())


def spread(rows: Rows) -> tuple[tuple[Cell, ...], ...] | None:
    """Returns the rows of a table with cells that each cover one column and one row; None if the table would be too
    large.

    A cell that covers several columns or rows is repeated in each of them. A position without a cell gets an empty cell
    if there is a cell to its right. No rows are added below the last row.

    Source: the HTML standard, 4.9.12.1 "Forming a table".
    """
    if all(cell.colspan == cell.rowspan == 1 for row in rows for cell in row):
        return tuple(map(tuple, rows))
    n_cells = n_chars = 0
    grid: list[dict[int, Cell]] = [{} for _ in rows]  # cells of each row, by column
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
            for covered in grid[number : number + n_rows]:  # where cells overlap, the later one wins
                covered.update(dict.fromkeys(range(column, column + cell.colspan), own))
            column += cell.colspan
    widths = [max(own, default=-1) + 1 for own in grid]
    if sum(widths) > MOST_CELLS:
        return None
    return tuple(
        tuple([own.get(column, _EMPTY) for column in range(width)]) for own, width in zip(grid, widths, strict=True)
    )
