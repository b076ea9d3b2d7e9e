"""A report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mapping.reports.document import (
    Block,
    Cell,
    Charts,
    Document,
    Facts,
    Marked,
    Paragraph,
    Section,
    Table,
    cell_text,
    chart_table,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$!])")
_STARTS_BLOCK = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")


def write_markdown(document: Document) -> str:
    """Gives the whole report; a chart is the table of its values."""
    lines = [f"# {_plain(document.title)}", ""]
    for section in document.sections:
        lines += _section(section, 2)
    return "\n".join(lines)


def _section(section: Section, level: int) -> Iterator[str]:
    yield from (f"{'#' * min(level, 6)} {_plain(section.title)}", "")
    for block in section.blocks:
        yield from _block(block, level)


def _block(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, Section):
        yield from _section(block, level + 1)
    elif isinstance(block, Paragraph):
        text = _plain(block.text)
        yield from (f"**{text}**" if block.is_warning else text, "")
    elif isinstance(block, Facts):
        yield from (f"- {_plain(name)}: {_cell(value)}" for name, value in block.rows)
        yield ""
    elif isinstance(block, Table):
        yield from _table(block)
    else:
        yield from _charts(block)


def _charts(block: Charts) -> Iterator[str]:
    for chart in block.charts:
        yield from _table(chart_table(chart))
        yield from (_plain(chart.about), "")
        if chart.level is not None:
            yield from (_plain(chart.level[1]), "")


def _table(table: Table) -> Iterator[str]:
    yield from (f"**{_plain(table.caption)}**", "", _row([_plain(name) for name in table.columns]))
    yield _row(["--:" if table.is_numeric(column) else ":--" for column in range(len(table.columns))])
    yield from (_row([_cell(cell) for cell in row]) for row in table.rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Marked):
        return _plain(cell_text(cell))
    return "".join(_bold(_plain(text)) if is_marked else _plain(text) for text, is_marked in cell.parts)


def _bold(text: str) -> str:
    """Gives bold text; blanks at its ends stay outside, where Markdown wants them."""
    inner = text.strip()
    return text.replace(inner, f"**{inner}**", 1) if inner else text


def _plain(text: str) -> str:
    """Gives text that Markdown shows as it is, on one line.

    >>> _plain("<script>|a_b"), _plain("- item")
    ('\\\\<script\\\\>\\\\|a\\\\_b', '\\\\- item')
    """
    escaped = _SPECIAL.sub(r"\\\1", " ".join(text.splitlines()))
    return _STARTS_BLOCK.sub(lambda found: f"{found[1]}\\{found[2]}" if not found[2].isdigit() else found[0], escaped)
