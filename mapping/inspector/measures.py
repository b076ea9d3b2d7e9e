"""Measures of releases as sections of a document: one renderer for releases of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any

import orjson

from kbsource.errors import counted
from kbsource.release.measures import Measure, Target, ToRow, ToRows
from kbsource.release.sql import identifier
from mapping.document import Block, Cell, Chart, Charts, Facts, Link, Marked, Paragraph, Section, Share, TableSection
from mapping.inspector.marking import changed_words
from mapping.inspector.opened import OpenRelease

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_ROWS = 2_000
"""Maximum number of rows of a result that are shown. If there are more, a note below the table gives their number."""
_LONGEST = 600
"""Maximum number of characters of a text in a cell."""
_FILES = ("tables", "files", "index", "manifest_sha256")


def measure_sections(opened: OpenRelease, page: str) -> Iterator[Section]:
    """Runs the measures that belong on a page of the inspector, and shows each as a section.

    Memory: the database's, and ``MOST_ROWS`` rows.
    """
    measures = [measure for measure in opened.kind.measures if measure.page == page]
    with closing(_Asking(opened)) as asking:
        for heading, group in groupby(measures, key=lambda measure: measure.heading):
            yield from _sections(heading, [(measure, asking.answer(measure)) for measure in group], opened)


@dataclass(frozen=True)
class _Answer:
    """The result of a query: its rows, or a text that is shown instead."""

    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[Any, ...]] = ()
    text: str = ""
    is_cut: bool = False

    def by(self, column: str) -> dict[str, _Answer]:
        """Returns the rows, grouped by the values of a column."""
        at = self.columns.index(column) if column in self.columns else 0
        found: dict[str, list[tuple[Any, ...]]] = {}
        for row in self.rows:
            found.setdefault(str(row[at]), []).append(row)
        return {value: replace(self, rows=rows) for value, rows in found.items()}


class _Asking:
    """Runs the measures of a release on one connection, with the tables that they share."""

    def __init__(self, opened: OpenRelease) -> None:
        self._opened = opened
        self._db: DuckDBPyConnection | None = None
        self._made: set[str] = set()

    def answer(self, measure: Measure) -> _Answer:
        """Returns the result of a measure's query."""
        if not all(self._has(table) for table in measure.needs):
            return _Answer(text=measure.if_missing)
        db = self._connection
        for name, query in measure.derived.items():
            self._make("table", name, query)
        named = {"manifest": _manifest_json(self._opened)} if "$manifest" in measure.query else None
        result = db.execute(measure.query, named)
        columns = tuple(column[0] for column in result.description or ())
        rows = result.fetchmany(MOST_ROWS + 1)
        text = "" if rows else measure.if_empty
        return _Answer(columns, rows[:MOST_ROWS], text, len(rows) > MOST_ROWS)

    def close(self) -> None:
        """Drops the shared tables."""
        if self._db is not None:
            self._db.close()

    @property
    def _connection(self) -> DuckDBPyConnection:
        if self._db is None:
            self._db = self._opened.db
        return self._db

    def _has(self, table: str) -> bool:
        """Returns whether a table exists; for a table of another release, creates a view."""
        source, _, name = table.rpartition(".")
        if not source:
            return table in self._opened.tables and bool(self._opened.tables[table].files)
        release = self._opened.sources.get(source)
        if release is None or name not in release.tables or not release.tables[name].files:
            return False
        release.database.of(release).close()  # creates its tables
        self._make("view", table, f"from {identifier(release.slug)}.{identifier(name)}")
        return True

    def _make(self, what: str, name: str, query: str) -> None:
        if name not in self._made:
            self._connection.execute(f"create temp {what} {identifier(name)} as {query}")
            self._made.add(name)


def _manifest_json(opened: OpenRelease) -> str:
    found: str = opened.cached(
        "manifest",
        lambda: orjson.dumps({name: value for name, value in opened.values.items() if name not in _FILES}).decode(),
    )
    return found


def _sections(heading: str, answers: Sequence[tuple[Measure, _Answer]], opened: OpenRelease) -> Iterator[Section]:
    """Builds a section of measures, or a section for each value of their column ``by``."""
    if not any(measure.by for measure, _ in answers):
        if blocks := tuple(_joined(block for measure, answer in answers for block in _blocks(measure, answer, opened))):
            yield Section(heading, blocks, is_folded=all(measure.is_folded for measure, _ in answers))
        return
    parts = [(measure, answer.by(measure.by)) for measure, answer in answers]
    for value in dict.fromkeys(value for _, by_value in parts for value in by_value):
        blocks = tuple(
            _joined(
                block
                for measure, by_value in parts
                if value in by_value
                for block in _blocks(measure, by_value[value], opened)
            )
        )
        yield Section(f"{heading} {value}".strip(), blocks)


def _joined(blocks: Iterable[Block]) -> Iterator[Block]:
    """Puts consecutive charts side by side, and joins consecutive facts into one block."""
    waiting: Block | None = None
    for block in blocks:
        if isinstance(waiting, Charts) and isinstance(block, Charts):
            waiting = Charts((*waiting.charts, *block.charts))
        elif isinstance(waiting, Facts) and isinstance(block, Facts):
            waiting = Facts((*waiting.rows, *block.rows))
        else:
            if waiting is not None:
                yield waiting
            waiting = block
    if waiting is not None:
        yield waiting


def _blocks(measure: Measure, answer: _Answer, opened: OpenRelease) -> Iterator[Block]:
    """Builds the blocks that show the result of a measure."""
    if not answer.rows:
        if answer.text:
            yield Paragraph(answer.text)
        return
    if measure.form == "text":
        yield Paragraph(str(answer.rows[0][0]))
        return
    columns, rows = _cells(measure, answer, opened)
    if measure.form == "facts":
        yield Facts(tuple(zip(columns, rows[0], strict=True)))
        return
    table = TableSection(measure.caption, columns, tuple(rows), is_shaded=measure.is_shaded)
    if measure.chart is not None:
        yield Charts((Chart(table=table, about=measure.about, style=measure.chart),))
    else:
        if measure.about:
            yield Paragraph(measure.about)
        yield table
    if answer.is_cut:
        yield Paragraph(f"There are more: these are the first {counted(len(answer.rows), 'rows')} of the query.")


def _cells(measure: Measure, answer: _Answer, opened: OpenRelease) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Returns the columns and rows that are shown."""
    rows = []
    for row in answer.rows:
        values = dict(zip(answer.columns, row, strict=True))
        cells = {name: _cell(measure, name, values, opened) for name in values if _is_shown(measure, name)}
        if measure.compared is not None:
            cells |= _compared(*measure.compared, cells)
        rows.append(cells)
    names = [*rows[0]]
    if measure.spread:
        return _spread(names[: names.index(measure.spread)], measure.spread, rows)
    shown = [name for name in names if name not in measure.optional or any(row[name] is not None for row in rows)]
    return tuple(shown), [tuple(row[name] for name in shown) for row in rows]


def _spread(
    key: Sequence[str], column: str, rows: Sequence[Mapping[str, Cell]]
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Pivots rows: rows with the same key become one row, and each value of ``column`` becomes a column that holds the
    values of the column after it."""
    spread: dict[str, None] = {}
    found = []
    for of_key, group in groupby(rows, key=lambda row: tuple(row[name] for name in key)):
        values = {}
        for row in group:
            cells = iter(row.items())
            next(name for name, _ in cells if name == column)
            values[str(row[column])] = next(cells)[1]
        spread |= dict.fromkeys(values)
        found.append((of_key, values))
    return (*key, *spread), [(*of_key, *(values.get(name) for name in spread)) for of_key, values in found]


def _is_shown(measure: Measure, column: str) -> bool:
    return not column.startswith("_") and column != measure.by


def _cell(measure: Measure, column: str, values: Mapping[str, Any], opened: OpenRelease) -> Cell:
    value = values[column]
    is_share = column.startswith("share") or column in measure.shares
    cell = Share(value) if is_share and value is not None else _plain(value)
    target = measure.links.get(column)
    if target is None or not cell or not isinstance(cell, str | int | float):
        return cell
    url = _url(target, column, values, opened)
    return cell if url is None else Link(cell, url)


def _plain(value: Any) -> Cell:
    """Returns a value as it is shown; long texts are truncated."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _url(target: Target, column: str, values: Mapping[str, Any], opened: OpenRelease) -> str | None:
    """Returns the address that a value links to."""
    if isinstance(target, ToRows):
        asked = {own: values[name] for own, name in target.where.items()}
        return None if None in asked.values() else opened.url(f"tables/{target.table}", **asked)
    if isinstance(target, ToRow):
        number = opened.tables[target.table].number(values["_file_number"], values["_row"])
        return opened.url(f"tables/{target.table}/{number}")
    lead: Callable[[str], str | None] = opened.title_url if target == "title" else opened.entity_url
    return lead(str(values[column]))


def _compared(old: str, new: str, cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """Returns two texts with their differing words marked."""
    pieces = changed_words(*(str(cells[name] or "") for name in (old, new)))
    return {name: Marked(tuple(own)) for name, own in zip((old, new), pieces, strict=True)}
