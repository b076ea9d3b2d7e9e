"""The content of views and reports: sections of paragraphs, facts, tables and charts, also as Markdown and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from kbsource.release.measures import binned, literals

NOTHING = "–"
"""Shown where there is no value."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$!])")
_FEW_COLUMNS, _FEW_CHARS = 5, 50
"""Maximum number of columns, and of characters in a row, of a table that fits into half a page."""
_STARTS_BLOCK = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")


class Share(float):
    """A part of a whole, 0 to 1, shown as a percentage."""


class TextPiece(NamedTuple):
    """A segment of text, which may be highlighted."""

    text: str
    is_marked: bool


class Marked(NamedTuple):
    """Text in segments, in order."""

    pieces: tuple[TextPiece, ...]


class Link(NamedTuple):
    """A value that links to a view of the inspector. Where there is no inspector, only the value is shown."""

    value: str | int | float
    url: str


Cell = str | int | float | Marked | Link | None
"""A cell of a table. A ``Share`` is a float."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text. ``is_warning`` is set for problems."""

    text: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with one value each."""

    rows: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines for a terminal or Python."""

    text: str


@dataclass(frozen=True, slots=True)
class TableSection:
    """Rows with one ``Cell`` per column. The first column names the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_shaded: bool = False  #: true if numbers are shaded by their ratio to the largest number

    def is_numeric(self, column: int) -> bool:
        """Returns whether a column contains only numbers."""
        cells = [plain(row[column]) for row in self.rows if row[column] is not None]
        return bool(cells) and all(isinstance(cell, int | float) for cell in cells)

    @property
    def is_narrow(self) -> bool:
        """Returns whether the table fits next to another table: it has few columns, with short texts."""
        longest = (
            max(map(len, texts))
            for texts in zip(self.columns, *(map(cell_text, row) for row in self.rows), strict=True)
        )
        return len(self.columns) <= _FEW_COLUMNS and sum(longest) <= _FEW_CHARS

    def shade(self, cell: Cell) -> int:
        """Returns how dark a cell is, from 0 to 8."""
        if not self.is_shaded or not isinstance(cell, int | float) or not cell:
            return 0
        return max(
            1, round(8 * cell / max(other for row in self.rows for other in row if isinstance(other, int | float)))
        )

    def linked(self, **urls: Callable[[Mapping[str, Any]], str | None]) -> TableSection:
        """Returns the table with some columns as links.

        Each keyword names a column; its function returns the address for the values of a row, or None for no link.
        """
        rows = []
        for row in self.rows:
            values = dict(zip(self.columns, row, strict=True))
            found = {name: urls[name](values) if name in urls and values[name] is not None else None for name in values}
            rows.append(tuple(Link(own, url) if (url := found[name]) else own for name, own in values.items()))
        return replace(self, rows=tuple(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart of a table. The first column contains the labels, the others at most three series of numbers.

    If some series are shares, only these are drawn, on a scale from 0 to 100 %. All charts of shares therefore have
    the same scale. ``columns`` suits ordered labels such as bins, ``bars`` suits names.
    """

    table: TableSection
    about: str  #: sentence that is shown below the chart
    style: Literal["columns", "bars"] = "columns"
    level: tuple[float, str] | None = None  #: value and name of a line drawn across the columns; None for no line

    def to_json(self) -> dict[str, Any]:
        """Returns the data that the script draws as a chart."""
        numbers = range(1, len(self.table.columns))
        shares = [number for number in numbers if any(isinstance(row[number], Share) for row in self.table.rows)]
        drawn = shares or numbers
        return {
            "name": self.table.caption,
            "style": self.style,
            "label": self.table.columns[0],
            "series": [self.table.columns[number] for number in drawn],
            "rows": [[cell_text(row[0]), *(row[number] for number in drawn)] for row in self.table.rows],
            "isShare": bool(shares),
            "level": self.level,
        }


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts side by side, each with its values as a table."""

    charts: tuple[Chart, ...]


def bars(caption: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]], about: str) -> Charts:
    """Returns a single bar chart."""
    return Charts((Chart(table=TableSection(caption, columns, tuple(rows)), about=about, style="bars"),))


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the blocks below it."""

    title: str
    blocks: tuple[Block, ...]
    is_folded: bool = False  #: true if the blocks are hidden until the reader opens the section


Block = Paragraph | Facts | Code | TableSection | Charts | Section


@dataclass(frozen=True, slots=True)
class Document:
    """A report or view about releases."""

    title: str
    sections: tuple[Section, ...]


def plain(cell: Cell) -> Any:
    """Returns a cell's value without its link."""
    return cell.value if isinstance(cell, Link) else cell


def cell_text(cell: Cell) -> str:
    """Returns a cell's value as text for readers.

    >>> cell_text(1200), cell_text(Share(0.5)), cell_text(None), cell_text(0.123456), cell_text(-2.0)
    ('1,200', '50.0 %', '–', '0.12', '-2')
    """
    cell = plain(cell)
    if cell is None:
        return NOTHING
    if isinstance(cell, Marked):
        return "".join(piece.text for piece in cell.pieces)
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Share):
        return f"{cell:.1%}".replace("%", " %")
    return f"{cell:,.2f}".rstrip("0").rstrip(".") if isinstance(cell, float) else f"{cell:,}"


def share(part: int, whole: int) -> Share | None:
    """Returns a part's share of a whole; None if the whole is 0."""
    return Share(part / whole) if whole else None


def counts_table(caption: str, name: str, of: str, counts: Sequence[tuple[str, int]], total: int) -> TableSection:
    """Returns a table of the counts of ``of`` by ``name``, each with its share of the total."""
    return TableSection(caption, (name, of, "share"), tuple((key, n, share(n, total)) for key, n in counts))


BLEU_BINS = ("no span", "0.00–0.25", "0.25–0.50", "0.50–0.75", "0.75–1.00", "1.00")
ENTAILMENT_BINS = ("0.0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1.0", "not judged")


def entailment_bin(value: str) -> str:
    """Returns SQL for the number of a probability's bin in ``ENTAILMENT_BINS``."""
    return binned(value, (0.2, 0.4, 0.6, 0.8), len(ENTAILMENT_BINS) - 1)


def crossed_query(table: str, *, score: str, support: str, where: str = "") -> str:
    """Returns SQL that counts the rows of a table by bins of BLEU and bins of a model's probability.

    Args:
        score: SQL for the BLEU of a row.
        support: SQL for the probability that the text supports its record.
        where: a condition over ``counts`` (the columns ``n`` and ``n_judged``, over all rows); if it is false, the
            result has no rows.
    """
    bins = literals("bleu_bins", ("row", "bleu"), enumerate(BLEU_BINS))
    supports = literals("supports", ("place", "support"), enumerate(ENTAILMENT_BINS))
    return f"""
        with counts as (
            select {binned(score, (0.0, 0.25, 0.5, 0.75, 1.0), 0)} as row, {entailment_bin(support)} as place,
                count(*) as n, count({support}) as n_judged from {table} group by all)
        select bleu as "BLEU", if(place = {len(ENTAILMENT_BINS) - 1}, support, 'entailment ' || support) as support,
            coalesce(n, 0) as spans
        from {bins} cross join {supports} left join counts using (row, place)
        where exists (from counts {where}) order by row, place"""


def flat_values(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Flattens nested JSON: iterates over its values, each named by its path. A list of strings is one value.

    >>> list(flat_values({"pages": {"read": 2}, "lang": ["en", "de"], "bins": [{"n": 1}]}))
    [('pages read', 2), ('lang', 'en, de'), ('bins 0 n', 1)]
    """
    if isinstance(value, list) and all(isinstance(inner, str) for inner in value):
        value = ", ".join(value)
    inside = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    if inside is None:
        yield name, value if not isinstance(value, bool) else str(value).lower()
        return
    for key, inner in inside:
        yield from flat_values(inner, f"{name} {key}".strip())


def to_markdown(document: Document) -> str:
    """Returns a document as Markdown. A chart is rendered as the table of its values."""
    lines = [f"# {_escaped(document.title)}", ""]
    for section in document.sections:
        lines += _lines(section, 1)
    return "\n".join(lines)


def _lines(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, Section):
        yield from (f"{'#' * min(level + 1, 6)} {_escaped(block.title)}", "")
        for inner in block.blocks:
            yield from _lines(inner, level + 1)
    elif isinstance(block, Paragraph):
        text = _escaped(block.text)
        yield from (f"**{text}**" if block.is_warning else text, "")
    elif isinstance(block, Facts):
        yield from (f"- {_escaped(name)}: {_cell(value)}" for name, value in block.rows)
        yield ""
    elif isinstance(block, Code):
        yield from ("```", block.text, "```", "")
    elif isinstance(block, TableSection):
        yield from (f"**{_escaped(block.caption)}**", "", _row([_escaped(name) for name in block.columns]))
        yield _row(["--:" if block.is_numeric(column) else ":--" for column in range(len(block.columns))])
        yield from (_row([_cell(cell) for cell in row]) for row in block.rows)
        yield ""
    else:
        for chart in block.charts:
            yield from _lines(chart.table, level)
            yield from (_escaped(chart.about), "")
            if chart.level is not None:
                yield from (_escaped(chart.level[1]), "")


def to_json(document: Document) -> dict[str, Any]:
    """Returns a document as JSON values.

    Sections and blocks have a ``kind``. A cell is its value; a link is an object with ``value`` and ``url``, and a text
    with marked words is an object with ``text`` and ``marked``, the half-open spans of these words.
    """
    return {"title": document.title, "sections": [_block_values(section) for section in document.sections]}


def _block_values(block: Block) -> dict[str, Any]:
    if isinstance(block, Section):
        return {"kind": "section", "title": block.title, "blocks": [_block_values(inner) for inner in block.blocks]}
    if isinstance(block, Paragraph):
        return {"kind": "paragraph", "text": block.text, "is_warning": block.is_warning}
    if isinstance(block, Facts):
        return {"kind": "facts", "values": [{"name": name, "value": _cell_value(cell)} for name, cell in block.rows]}
    if isinstance(block, Code):
        return {"kind": "code", "text": block.text}
    if isinstance(block, TableSection):
        rows = [[_cell_value(cell) for cell in row] for row in block.rows]
        return {"kind": "table", "caption": block.caption, "columns": list(block.columns), "rows": rows}
    charts = [
        {**_block_values(chart.table), "kind": chart.style, "about": chart.about, "level": chart.level}
        for chart in block.charts
    ]
    return {"kind": "charts", "charts": charts}


def _cell_value(cell: Cell) -> Any:
    if isinstance(cell, Link):
        return {"value": cell.value, "url": cell.url}
    if isinstance(cell, Marked):
        ends = list(accumulate(len(piece.text) for piece in cell.pieces))
        spans = [[end - len(piece.text), end] for end, piece in zip(ends, cell.pieces, strict=True) if piece.is_marked]
        return {"text": cell_text(cell), "marked": spans}
    return float(cell) if isinstance(cell, Share) else cell


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Marked):
        return _escaped(cell_text(cell))
    return "".join(_bold(_escaped(text)) if is_marked else _escaped(text) for text, is_marked in cell.pieces)


def _bold(text: str) -> str:
    """Returns bold text. Spaces at its ends stay outside, as Markdown requires."""
    inner = text.strip()
    return text.replace(inner, f"**{inner}**", 1) if inner else text


def _escaped(text: str) -> str:
    """Returns text that Markdown shows unchanged, on one line.

    >>> _escaped("<script>|a_b"), _escaped("- item")
    ('\\\\<script\\\\>\\\\|a\\\\_b', '\\\\- item')
    """
    escaped = _SPECIAL.sub(r"\\\1", " ".join(text.splitlines()))
    return _STARTS_BLOCK.sub(lambda found: f"{found[1]}\\{found[2]}" if not found[2].isdigit() else found[0], escaped)
