"""What a report says, whatever it is written as: sections of paragraphs, facts, tables and charts."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mapping.charts import Chart, number_text, share_text

NOTHING = "–"
"""Stands where there is no value."""
_WORDS = re.compile(r"(?:\w+|[^\w\s])\s*|\s+")


class Share(float):
    """A part of a whole, 0 to 1, shown in per cent."""


@dataclass(frozen=True, slots=True)
class Marked:
    """Text of which parts are marked, in order, each with whether it is."""

    parts: tuple[tuple[str, bool], ...]


Cell = str | int | float | Marked | None
"""Of a table; a ``Share`` is a float."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text; ``is_warning`` for what is not as it should be."""

    text: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with a value each."""

    rows: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells below the names of their columns; the first column names the row.

    Attributes:
        caption: what it is a table of.
        columns: their names.
        rows: a ``Cell`` for each column.
        is_shaded: numbers are shaded by their share of the greatest.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_shaded: bool = False

    def is_numeric(self, column: int) -> bool:
        """Says whether a column has numbers alone."""
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and all(isinstance(cell, int | float) for cell in cells)

    def shade(self, cell: Cell) -> int:
        """Gives how dark a cell is, 0 to 8."""
        if not self.is_shaded or not isinstance(cell, int | float) or not cell:
            return 0
        numbers = (other for row in self.rows for other in row if isinstance(other, int | float))
        return max(1, round(8 * cell / max(numbers)))


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts side by side, each with its values as a table."""

    charts: tuple[Chart, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


Block = Paragraph | Facts | Table | Charts | Section


@dataclass(frozen=True, slots=True)
class Document:
    """A report."""

    title: str
    sections: tuple[Section, ...]


def cell_text(cell: Cell) -> str:
    """Gives a value for reading.

    >>> cell_text(1200), cell_text(Share(0.5)), cell_text(None), cell_text(0.123456)
    ('1,200', '50.0 %', '–', '0.12')
    """
    if cell is None:
        return NOTHING
    if isinstance(cell, Marked):
        return "".join(text for text, _ in cell.parts)
    if isinstance(cell, str):
        return cell
    return share_text(cell) if isinstance(cell, Share) else number_text(cell)


def share(part: int, whole: int) -> Share | None:
    """Gives a part of a whole; None of nothing."""
    return Share(part / whole) if whole else None


def counts_table(caption: str, name: str, of: str, counts: Sequence[tuple[str, int]], total: int) -> Table:
    """Gives a table of counts, each with its share of a total.

    Args:
        caption: of the table.
        name: what each count is of.
        of: what is counted.
        counts: in order.
        total: what the shares are of.
    """
    return Table(caption, (name, of, "share"), tuple((key, n, share(n, total)) for key, n in counts))


def chart_table(chart: Chart) -> Table:
    """Gives the values of a chart."""
    columns = [[Share(value) if chart.is_share and value is not None else value for value in series.values]
               for series in chart.series]  # fmt: skip
    rows = tuple(zip(chart.labels, *columns, strict=True))
    return Table(chart.title, (chart.label_name, *(series.name for series in chart.series)), rows)


def changes(old: str, new: str) -> tuple[Marked, Marked]:
    """Gives two texts, the words marked that the other has not, in order.

    >>> changes("It has 5 isles.", "It has 6 isles.")[1].parts
    (('It has ', False), ('6 ', True), ('isles.', False))
    """
    words = _WORDS.findall(old), _WORDS.findall(new)
    plain = [[word.strip() for word in own] for own in words]
    steps = difflib.SequenceMatcher(None, plain[0], plain[1], autojunk=False).get_opcodes()
    old_parts = [("".join(words[0][first:last]), kind != "equal") for kind, first, last, _, _ in steps]
    new_parts = [("".join(words[1][first:last]), kind != "equal") for kind, _, _, first, last in steps]
    return Marked(tuple(filter(_has_text, old_parts))), Marked(tuple(filter(_has_text, new_parts)))


def _has_text(part: tuple[str, bool]) -> bool:
    return bool(part[0])
