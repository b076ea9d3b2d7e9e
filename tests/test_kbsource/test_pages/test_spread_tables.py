"""Cells repeated over the rows and columns that they cover."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.elements import Cell
from kbsource.pages.spread_tables import MOST_CELLS, MOST_CHARS, spread


def rows_of(written: str) -> list[list[Cell]]:
    """Reads rows separated by ``/`` of cells such as ``a`` or ``a2x3``, which covers two columns and three rows."""
    rows = []
    for row in written.split("/"):
        cells = [(cell[0], *(map(int, cell[1:].split("x")) if cell[1:] else (1, 1))) for cell in row.split()]
        rows.append([Cell(text, False, colspan, rowspan, ()) for text, colspan, rowspan in cells])
    return rows


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a b/c d", "a b/c d"),
        ("a2x1/b c", "a a/b c"),
        ("a1x2 b/c", "a b/a c"),
        ("a b1x2/c", "a b/c b"),
        ("a2x2 b/c/d e f", "a a b/a a c/d e f"),
        ("a1x9 b/c", "a b/a c"),  # no rows are made below the last
        ("a b/c1x1 d3x1", "a b/c d d d"),
        ("a1x3/b/", "a/a b/a"),
        # a cell from above in the last columns, with none before it
        ("a b c1x2/d", "a b c/d _ c"),
        # cells that overlap: the later one is shown
        ("a b1x2/c2x1", "a b/c c"),
        ("a b1x3/c2x1/", "a b/c c/_ b"),
        ("", ""),
    ],
)
def test_cells_are_repeated(written: str, expected: str) -> None:
    found = spread(rows_of(written))
    assert found is not None
    assert "/".join(" ".join(cell.text or "_" for cell in row) for row in found) == expected
    assert all(cell.colspan == cell.rowspan == 1 for row in found for cell in row)


def test_a_table_that_would_be_too_large_is_refused() -> None:
    side = int(MOST_CELLS**0.5) + 1
    rows = [[Cell("", False, side, side, ())], *[[] for _ in range(side)]]
    assert spread(rows) is None
    assert spread([[Cell("x" * (MOST_CHARS // 2), False, 3, 1, ())]]) is None
    assert spread([[Cell("x" * (MOST_CHARS // 2), False, 2, 1, ())]]) is not None


CELLS = st.builds(Cell, st.sampled_from("abc"), st.booleans(), st.integers(1, 4), st.integers(1, 4), st.just(()))


@given(st.lists(st.lists(CELLS, max_size=4), max_size=5))
def test_every_cell_is_there_unless_a_later_one_covers_it(rows: list[list[Cell]]) -> None:
    found = spread(rows)
    assert found is not None
    assert len(found) == len(rows)
    for row, own in zip(rows, found, strict=True):
        texts = iter([cell.text for cell in own])
        assert all(cell.text in texts for cell in row)  # in order
        assert len(own) >= sum(cell.colspan for cell in row)
        assert not own or own[-1].text
    if all(cell.colspan == cell.rowspan == 1 for row in rows for cell in row):
        assert found == tuple(map(tuple, rows))
