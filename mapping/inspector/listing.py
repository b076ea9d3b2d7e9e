"""Shows any table of a release as a list, and its rows as cards: selection, order and links.

The URL contains the request: ``?outcome=dropped`` (or ``-`` for null), ``?score.from=0.3&score.to=0.5``, ``?q=`` for
texts, ``?sort=-score``, ``?columns=``, ``?from=50``. ``?format=csv`` or ``parquet`` downloads all selected rows.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import orjson
from duckdb import DuckDBPyConnection
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from kbsource.errors import RecordError, counted
from kbsource.release.macros import macros_of, sample_queries
from kbsource.release.results import RESULT_FORMS
from kbsource.release.sql import identifier, quoted
from kbsource.web_addresses import web_address
from mapping.column_meanings import table_head
from mapping.document import Link, Section
from mapping.inspector.frame import Crumb, Tab, View, form_of, is_gone, paging, query_bound, render_view
from mapping.inspector.marking import MarkedRange, shown
from mapping.inspector.opened import OpenRelease, TableFiles
from mapping.inspector.sandbox import LONGEST_S, MEMORY_MB, MOST_ROWS, Answer, QueriedRelease, Sandbox

Row = dict[str, Any]
NULL = "-"
"""Represents null in URLs."""
_PLACE = ("_part", "_file", "_file_number", "_row")
_ORDER = "_file_number, _row"
_FACET_VALUES, _FACETS, _SAMPLED = 24, 5, 100_000
_FACET_CHOICES = 200
_COLUMNS_SHOWN = 8
_CELL_CHARS, _VALUE_CHARS, _NESTED_ROWS = 400, 200_000, 100
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE")
_PAGE_IDS = ("page_id", "wikipedia_id")
_SPANS = (("start_element", "start_char", "end_element", "end_char"), ("element", "start_char", "element", "end_char"))


@dataclass(frozen=True, kw_only=True)
class Listing:
    """How a table is listed. Defaults follow from its columns."""

    label: str  #: label of the table's tab
    columns: Sequence[str] = ()  #: columns shown by default
    facets: Sequence[str] = ()  #: columns with few distinct values
    searched: Sequence[str] = ()  #: text columns that are searched
    computed: Mapping[str, str] = field(default_factory=dict)  #: additional columns, as SQL
    led_by: str = ""  #: column whose values link to the cards of their rows
    prepare: Callable[[OpenRelease, list[Row]], None] = lambda _, __: (
        None
    )  #: adds ``prepared`` to the rows that are shown
    prepared: Sequence[str] = ()  #: columns that ``prepare`` adds; no file contains them
    needs: Sequence[str] = ()  #: nested columns that ``prepare`` reads
    notes: Callable[[Row], Mapping[str, str]] = lambda _: {}  #: remarks on values, by column
    links: Mapping[str, Callable[[OpenRelease, Row], str | None]] = field(
        default_factory=dict
    )  #: link targets of values
    card: Callable[[Request, OpenRelease, Card], Response] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KindViews:
    """Views of a kind of release, in addition to the views that every kind has."""

    about: Callable[[OpenRelease], Iterable[Section]] = lambda _: ()
    """Builds sections of the overview without reading rows of tables. A section with the same title as a section of
    measures is placed before the content of that section."""
    measured: Callable[[OpenRelease], Iterable[Section]] | None = (
        None  #: builds sections of the overview that need rows
    )
    apart: Collection[str] = ()  #: names of manifest values that ``about`` and ``measured`` show
    listings: dict[str, Listing]  #: how tables are listed, by name; each of these tables has a tab
    views: Sequence[View] = ()  #: additional views of the release
    tabs: Sequence[Tab] = ()  #: additional tabs, which link to views


class Column(NamedTuple):
    """A column: its name, its type in SQL, and its form: text, flag, number, time or nested."""

    name: str
    type: str
    form: str


class Near(NamedTuple):
    """Position of a row among the selected rows, and its neighbours there."""

    at: int | None  #: position from 0; None if the row is not selected
    n_chosen: int  #: number of selected rows
    before: int | None  #: number of the previous row in the table; None if there is none
    behind: int | None  #: number of the next row in the table; None if there is none


class Card(NamedTuple):
    """A row shown on its own page: its number in the table, and links to its neighbours."""

    table: Rows
    number: int
    row: Row
    near: Near
    choice: Choice

    @property
    def crumbs(self) -> list[Crumb]:
        """Returns the navigation path to the card."""
        return [Crumb(self.table.label, self.table.url(**self.choice.query))]


@dataclass(frozen=True)
class Choice:
    """Selection and order of rows, as SQL and as the query of a URL."""

    query: dict[str, Any]
    where: str
    parameters: tuple[Any, ...]
    order: str


class Rows:
    """A table of an open release, which is queried for rows."""

    def __init__(self, opened: OpenRelease, name: str, listing: Listing | None) -> None:
        self.opened, self.name = opened, name
        self.listing = listing or Listing(label=name)
        self.label = self.listing.label
        self.files: TableFiles = opened.tables[name]
        further = "".join(f", {sql} as {identifier(column)}" for column, sql in self.listing.computed.items())
        self.relation = f"(select *{further} from {identifier(name)})"
        described = self._db.execute(f"describe from {self.relation}").fetchall() if self.files.files else []
        named = {own[0]: own[1] for own in described if own[0] not in _PLACE}
        self.columns = {column: Column(column, type_, _form(type_)) for column, type_ in named.items()}
        # DuckDB needs pytz to return times with a time zone.
        if zoned := [
            f"timezone('UTC', {identifier(name)}) as {identifier(name)}"
            for name, type_ in named.items()
            if "ZONE" in type_
        ]:
            self.relation = f"(select * replace ({', '.join(zoned)}) from {self.relation})"

    @classmethod
    def of(cls, opened: OpenRelease, name: str, listings: Mapping[str, Listing]) -> Rows:
        """Returns the table of that name.

        Raises:
            HTTPException: there is no such table.
        """
        if name not in opened.tables:
            raise HTTPException(404, f"{opened.path} has no table of that name.")
        key = "rows", name, name in listings  # the SQL view has no listings
        rows: Rows = opened.cached(key, lambda: cls(opened, name, listings.get(name)))
        return rows

    @property
    def _db(self) -> DuckDBPyConnection:
        return self.opened.db

    def url(self, **query: object) -> str:
        """Returns the URL of the list."""
        return self.opened.url(f"tables/{self.name}", **query)

    def row_url(self, number: int, **query: object) -> str:
        """Returns the URL of a row."""
        return self.opened.url(f"tables/{self.name}/{number}", **query)

    def choice(self, request: Request) -> Choice:
        """Returns the selection that a URL requests.

        Raises:
            HTTPException: a value is not a number, or a column does not exist.
        """
        asked = request.query_params
        query: dict[str, Any] = {}
        where: list[str] = []
        parameters: list[Any] = []
        for column in self.columns.values():
            if values := [value for value in asked.getlist(column.name) if value]:
                query[column.name] = values
                known = [value for value in values if value != NULL]
                either = [f"{identifier(column.name)} = try_cast(? as {column.type})"] * len(known)
                either += [f"{identifier(column.name)} is null"] * (len(known) < len(values))
                where.append(f"({' or '.join(either)})")
                parameters += known
            for end, sign in (("from", ">="), ("to", "<=")):
                if (bound := query_bound(request, f"{column.name}.{end}")) is not None:
                    query[f"{column.name}.{end}"] = f"{bound:g}"
                    where.append(f"{identifier(column.name)} {sign} ?")
                    parameters.append(bound)
        if text := asked.get("q", ""):
            query["q"] = text
            like = f"%{text.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
            looked = [f"{identifier(name)} ilike ? escape '!'" for name in self.searched]
            where.append(f"({' or '.join(looked) or 'false'})")
            parameters += [like] * len(self.searched)
        order = _ORDER
        if sort := asked.get("sort", ""):
            column_name = sort.removeprefix("-")
            if column_name not in self.columns or self.columns[column_name].form == "nested":
                raise HTTPException(400, f"sort={shown(sort[:80])} is not a column to sort by.")
            query["sort"] = sort
            order = f"{identifier(column_name)} {'desc' if sort[0] == '-' else 'asc'} nulls last, {_ORDER}"
        columns = asked.getlist("columns")
        if unknown := [name for name in columns if name not in self.choosable]:
            raise HTTPException(400, f"The table {self.name} has no column {shown(unknown[0][:80])}.")
        if {*columns} not in (set(), {*self.shown_columns}):
            query["columns"] = columns
        return Choice(query, f"where {' and '.join(where)}" if where else "", tuple(parameters), order)

    @property
    def choosable(self) -> list[str]:
        """Returns the columns that a list may show."""
        return [*self.columns, *self.listing.prepared]

    @property
    def searched(self) -> Sequence[str]:
        """Returns the text columns that are searched."""
        return self.listing.searched or [column.name for column in self.columns.values() if column.form == "text"]

    @property
    def shown_columns(self) -> list[str]:
        """Returns the columns shown by default: the first columns, flat ones before nested ones."""
        if self.listing.columns:
            return list(self.listing.columns)
        kept = sorted(self.columns, key=lambda name: self.columns[name].form == "nested")[:_COLUMNS_SHOWN]
        return [name for name in self.columns if name in kept]

    def count(self, choice: Choice) -> int:
        """Returns the number of selected rows."""
        if not choice.where:
            return self.files.n_rows
        asked = f"select count(*) from {self.relation} {choice.where}"
        [(n_rows,)] = self.opened.cached(
            (asked, choice.parameters), lambda: self._db.execute(asked, choice.parameters).fetchall()
        )
        return int(n_rows)

    def chosen(self, choice: Choice, start: int, end: int, columns: Sequence[str]) -> list[Row]:
        """Returns selected rows by position, with their flat columns, the given columns and ``number``."""
        wanted = [
            own.name
            for own in self.columns.values()
            if own.form != "nested" or own.name in (*columns, *self.listing.needs)
        ]
        if not choice.where and choice.order == _ORDER:
            return self._at(range(start, min(end, self.files.n_rows)), wanted)
        # Locations first: rows may be large, and all selected rows are sorted.
        places = self._db.execute(
            f"select _file_number, _row from {self.relation} {choice.where} order by {choice.order} "
            f"limit {end - start} offset {start}",
            choice.parameters,
        ).fetchall()
        numbers = [self.files.number(file, row) for file, row in places]
        found = {row["number"]: row for row in self._at(numbers, wanted)}
        return [found[number] for number in numbers]

    def _at(self, numbers: Sequence[int], columns: Sequence[str]) -> list[Row]:
        """Returns rows by their numbers, in the order of the table."""
        by_file: dict[int, list[int]] = {}
        for number in numbers:
            file, row = self.files.place(number)
            by_file.setdefault(file, []).append(row)
        if not by_file:
            return []
        # The first two conditions are pushed down to the files, which leaves few rows for the third.
        files = ", ".join(map(str, by_file))
        rows = ", ".join(sorted({str(row) for own in by_file.values() for row in own}))
        places = [f"(_file_number = {file} and _row in ({', '.join(map(str, own))}))" for file, own in by_file.items()]
        named = "".join(f", {identifier(name)}" for name in columns)
        return self._rows(
            f"select {', '.join(_PLACE)}{named} from {self.relation} "
            f"where _file_number in ({files}) and _row in ({rows}) and ({' or '.join(places)}) order by {_ORDER}"
        )

    def row(self, number: int) -> Row:
        """Returns a row by its number.

        Raises:
            HTTPException: there is no such row.
        """
        if number >= self.files.n_rows:
            raise HTTPException(404, f"The table {self.name} has no row {number:,}; it has {self.files.n_rows:,}.")
        return self._at([number], list(self.columns))[0]

    def with_value(self, **values: Any) -> list[Row]:
        """Returns the rows that have these values, in order."""
        where = " and ".join(f"{identifier(name)} = ?" for name in values)
        return self._rows(f"select * from {self.relation} where {where} order by {_ORDER}", tuple(values.values()))

    def near(self, choice: Choice, number: int) -> Near:
        """Returns the position of a row among the selected rows."""
        if not choice.where and choice.order == _ORDER:
            total = self.files.n_rows
            return Near(number, total, number - 1 if number else None, number + 1 if number + 1 < total else None)
        file, row = self.files.place(number)
        beside = ", ".join(f"{side}(_file_number) over own, {side}(_row) over own" for side in ("lag", "lead"))
        found = self._db.execute(
            f"select * from (select _file_number, _row, row_number() over own - 1, {beside} from {self.relation} "
            f"{choice.where} window own as (order by {choice.order})) where _file_number = ? and _row = ?",
            (*choice.parameters, file, row),
        ).fetchone()
        if found is None:
            return Near(None, self.count(choice), None, None)
        before, behind = (None if own is None else self.files.number(own, at) for own, at in (found[3:5], found[5:7]))
        return Near(found[2], self.count(choice), before, behind)

    def facets(self) -> dict[str, list[tuple[str, int]]]:
        """Returns the values of columns with few distinct values, with the number of their rows, the most frequent
        first."""
        found: dict[str, list[tuple[str, int]]] = self.opened.cached(("facets", self.name), self._facets)
        return found

    def _facets(self) -> dict[str, list[tuple[str, int]]]:
        names = [name for name in self.listing.facets if name in self.columns]
        if not self.listing.facets and self.columns:
            flat = [column.name for column in self.columns.values() if column.form in ("text", "flag")]
            distinct = ", ".join(f"approx_count_distinct({identifier(name)})" for name in flat)
            sampled = f"select count(*), {distinct or 0} from (from {self.relation} limit {_SAMPLED})"
            [(n_sampled, *known)] = self._db.execute(sampled).fetchall()
            few = min(_FACET_VALUES, n_sampled // 2)
            names = [name for name, n in zip(flat, known, strict=False) if 1 < n <= few][:_FACETS]
        counts = f"count(*) from {self.relation} group by 1 order by 2 desc, 1 limit {_FACET_CHOICES}"
        values = {name: f"coalesce({identifier(name)}::varchar, {quoted(NULL)})" for name in names}
        return {name: self._db.execute(f"select {value}, {counts}").fetchall() for name, value in values.items()}

    def download(self, choice: Choice, form: str) -> Response:
        """Returns the selected rows as a file. In CSV, nested values are JSON."""
        chosen = [self.columns[name] for name in choice.query.get("columns", self.columns) if name in self.columns]
        columns = ", ".join(
            f"to_json({identifier(own.name)})::varchar as {identifier(own.name)}"
            if own.form == "nested" and form == "csv"
            else identifier(own.name)
            for own in chosen
        )
        handle, path = tempfile.mkstemp(suffix=f".{form}", dir=self.opened.database.downloads)
        os.close(handle)
        try:
            self._db.execute(
                f"copy (select {columns} from {self.relation} {choice.where} order by {choice.order}) to "
                f"{quoted(path)} (format {form}{', header' if form == 'csv' else ', compression zstd'})",
                choice.parameters,
            )
        except BaseException:
            os.unlink(path)
            raise
        return FileResponse(
            path, filename=f"{self.opened.slug}-{self.name}.{form}", background=BackgroundTask(os.unlink, path)
        )

    def _rows(self, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
        answer = self._db.execute(query, parameters)
        names = [column[0] for column in answer.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
        for row in rows:
            row["number"] = self.files.number(row["_file_number"], row["_row"])
        return rows

    def cell(self, row: Row, name: str) -> ListedValue:
        """Returns a value of a row for a list."""
        value, own = row.get(name), self.listing.links.get(name)
        url = value_url(self.opened, name, value, row) if own is None else own(self.opened, row)
        return ListedValue(name, value, brief(value), url, self.listing.notes(row).get(name, ""))


class ListedValue(NamedTuple):
    """A value in a list: as stored, shortened for reading, its link target, and a remark."""

    name: str
    value: Any
    text: str
    url: str | None
    note: str


def value_url(opened: OpenRelease, name: str, value: Any, row: Mapping[str, Any]) -> str | None:
    """Returns the link target of a value.

    Ids link to pages, with the span in the same row marked. Titles link to their pages, items to Wikidata, URLs to
    themselves. For any other value, the result is None.
    """
    if value is None or isinstance(value, (list, dict, float)):
        return None
    text = str(value)
    if name.endswith(_PAGE_IDS) and opened.pages is not None and text.isdecimal():
        is_own = name in _PAGE_IDS
        places: list[list[Any]] = [[row.get(own) for own in names] for names in _SPANS if is_own]
        spans = [MarkedRange(*place) for place in places if None not in place]
        return opened.page_url(int(text), spans[:1])
    if name == "title" or name.endswith("_title"):
        return opened.title_url(text)
    return web_address(text) if name == "url" else opened.entity_url(text)


def _form(type_: str) -> str:
    if "(" in type_ or "[" in type_:
        return "number" if type_.startswith("DECIMAL") else "nested"
    if type_ == "BOOLEAN":
        return "flag"
    return "number" if type_ in _NUMBERS else "text" if type_ == "VARCHAR" else "time"


def show_list(request: Request, opened: OpenRelease, listings: Mapping[str, Listing]) -> Response:
    """Shows rows of a table, or downloads them."""
    rows = Rows.of(opened, str(request.path_params["table"]), listings)
    choice = rows.choice(request)
    form = request.query_params.get("format")
    if form in ("csv", "parquet"):
        return rows.download(choice, form)
    pages = paging(request, rows.count(choice))
    columns = list(choice.query.get("columns") or rows.shown_columns)
    found = rows.chosen(choice, pages.start, pages.end, columns)
    rows.listing.prepare(opened, found)
    led_by = rows.listing.led_by if rows.listing.led_by in columns else ""
    return render_view(
        request,
        opened,
        "list.html",
        title=rows.label,
        data={
            "table": rows.name,
            "n_rows": pages.total,
            "from": pages.start,
            "columns": columns,
            "rows": [{"number": row["number"], **{name: row.get(name) for name in columns}} for row in found],
        },
        rows=rows,
        query=choice.query,
        paging=pages,
        columns=columns,
        led_by=led_by,
        found=[(row, [rows.cell(row, name) for name in columns]) for row in found],
        facets=rows.facets(),
        ranges=[own.name for own in rows.columns.values() if own.form == "number" and own.name in columns],
        sorted_by=choice.query.get("sort", ""),
    )


def show_card(request: Request, opened: OpenRelease, listings: Mapping[str, Listing]) -> Response:
    """Shows one row completely."""
    rows = Rows.of(opened, str(request.path_params["table"]), listings)
    number = int(request.path_params["row"])
    choice = rows.choice(request)
    card = Card(rows, number, rows.row(number), rows.near(choice, number), choice)
    if rows.listing.card is not None:
        return rows.listing.card(request, opened, card)
    empty = [name for name in rows.columns if card.row[name] in (None, [])]
    return render_card(
        request,
        opened,
        card,
        "card.html",
        title=f"{rows.label} {number:,}",
        values=[(name, _value(opened, name, card.row[name], card.row)) for name in rows.columns if name not in empty],
        empty=empty,
    )


def render_card(
    request: Request,
    opened: OpenRelease,
    card: Card,
    template: str,
    *,
    title: str,
    data: Mapping[str, Any] | None = None,
    **values: Any,
) -> Response:
    """Renders a card with a template. ``values`` are added to the values of the card, ``data`` to its JSON."""
    whole = {"table": card.table.name, "number": card.number, "row": row_values(card.row), **(data or {})}
    return render_view(
        request, opened, template, title=title, data=whole, crumbs=card.crumbs, card=card, row=card.row, **values
    )


def row_values(row: Row) -> Row:
    """Returns a row without its position in the table."""
    return {name: value for name, value in row.items() if name not in (*_PLACE, "number")}


def _value(opened: OpenRelease, name: str, value: Any, row: Mapping[str, Any]) -> Any:
    """Returns a value for a card: a link, a text, or a list of these; for structs, their names and rows of values."""
    if isinstance(value, dict):
        return {
            "names": ["", ""],
            "rows": [[key, _value(opened, key, own, value)] for key, own in value.items()],
            "more": 0,
        }
    if isinstance(value, list):
        shown_values = value[:_NESTED_ROWS]
        more = len(value) - len(shown_values)
        if shown_values and isinstance(shown_values[0], dict):
            names = list(shown_values[0])
            inner = [[_value(opened, key, own.get(key), own) for key in names] for own in shown_values]
            return {"names": names, "rows": inner, "more": more}
        return {"values": [_value(opened, name, own, row) for own in shown_values], "more": more}
    url = value_url(opened, name, value, row)
    text = _cut(value_text(value), _VALUE_CHARS)
    return Link(text, url) if url else text


def value_text(value: Any) -> str:
    """Returns a value of a table or a manifest as text. Nested values become JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()


def brief(value: Any) -> str:
    """Returns a short form of a value for a cell. A list becomes its length and its first entry.

    >>> brief([{"text": "one"}, {"text": "two"}]), brief(1234567), brief(0.123456789)
    ('2 entries: text: one', '1234567', '0.1235')
    """
    if isinstance(value, list):
        return f"{counted(len(value), 'entries')}: {brief(value[0])}" if value else ""
    if isinstance(value, dict):
        return _cut(", ".join(f"{name}: {brief(own)}" for name, own in value.items()), _CELL_CHARS)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return _cut(str("" if value is None else value), _CELL_CHARS)


def _cut(text: str, n_chars: int) -> str:
    return text if len(text) <= n_chars else f"{text[:n_chars]}… ({len(text):,} characters)"


def show_sql(request: Request, opened: OpenRelease, sandbox: Sandbox) -> Response:
    """Shows a form for SQL. A query in the URL is filled in but not run, because any web page can make a browser open a
    URL."""
    return _render_sql(request, opened, sandbox, query=request.query_params.get("query", "").strip())


async def run_sql(request: Request, opened: OpenRelease, sandbox: Sandbox) -> Response:
    """Runs the query of the form, and shows the result or, if it has a ``format``, sends it as a file; the query is
    stopped when the browser leaves."""
    form = await _own_form(request)
    query = form.get("query", "").strip()
    shown = partial(_render_sql, request, opened, sandbox, query=query)
    if not query:
        return await run_in_threadpool(shown)
    saved = next((known for known in RESULT_FORMS if known == form.get("format")), None)
    try:
        running = sandbox.submit(
            query, [QueriedRelease(opened.path, _queried(opened))], name=form.get("run", ""), form=saved
        )
    except RecordError as error:
        busy = Answer([], [], fault=f"{error.reason}: {error.detail}")
        headers = {"Retry-After": f"{LONGEST_S:.0f}"}
        return await run_in_threadpool(shown, found=busy, status=503, headers=headers)
    answer, gone = asyncio.wrap_future(running.answer), asyncio.ensure_future(is_gone(request))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        running.stop()  # unless it has ended
        gone.cancel()
    found = answer.result() if answer.done() and not answer.cancelled() else Answer([], [], fault="Stopped.")
    if found.file is not None:
        removing = BackgroundTask(os.unlink, found.file)
        return FileResponse(found.file, filename=f"{opened.slug}-query.{saved}", background=removing)
    return await run_in_threadpool(shown, found=found)


def _queried(opened: OpenRelease) -> dict[str, list[str]]:
    """Returns the files of the tables that a query may read, by table."""
    return {name: table.files for name, table in opened.tables.items() if table.files}


def _meanings(opened: OpenRelease, table: str) -> dict[str, str]:
    """Returns the meaning of each column of a table."""
    fields = [field for schema in opened.kind.declared[table] for field in schema]
    return {field.name: (field.metadata or {}).get(b"description", b"").decode() for field in fields}


async def stop_sql(request: Request, opened: OpenRelease, sandbox: Sandbox) -> Response:
    """Stops the query that the same page started, and shows the page again."""
    form = await _own_form(request)
    sandbox.stop(form.get("run", ""))  # unless the browser has already left its request
    said = "Stopped: no query of this page runs."
    query = form.get("query", "").strip()
    return await run_in_threadpool(_render_sql, request, opened, sandbox, query=query, found=Answer([], [], fault=said))


async def _own_form(request: Request) -> dict[str, str]:
    """Returns the form of a page that this process rendered.

    Raises:
        HTTPException: it is from another process.
    """
    form = await form_of(request)
    if not hmac.compare_digest(form.get("token", "").encode(), request.app.state.token.encode()):
        raise HTTPException(403, "The page is older than this run of the inspector. Open it again, then run the query.")
    return form


def _render_sql(
    request: Request, opened: OpenRelease, sandbox: Sandbox, *, query: str, found: Answer | None = None, **options: Any
) -> Response:
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows] if found else []
    return render_view(
        request,
        opened,
        "sql.html",
        title="SQL",
        data={
            "query": query,
            "tables": {name: _meanings(opened, name) for name in _queried(opened)},
            "macros": macros_of(_queried(opened)),
            "queries": dict(sample_queries(opened.kind, _queried(opened))),
        },
        query=query,
        found=found,
        rows=[[(brief(value), value_url(opened, name, value, row)) for name, value in row.items()] for row in rows],
        tables=[(Rows.of(opened, name, {}), table_head(name), _meanings(opened, name)) for name in _queried(opened)],
        macros=macros_of(_queried(opened)),
        queries=sample_queries(opened.kind, _queried(opened)),
        forms=RESULT_FORMS,
        limits=(MOST_ROWS, LONGEST_S, MEMORY_MB),
        missing=sandbox.missing,
        token=request.app.state.token,
        run=secrets.token_urlsafe(16),
        **options,
    )
