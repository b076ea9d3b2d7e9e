"""What a release of any kind holds: its files and facts, and its tables row by row."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kbsource.errors import counted
from mapping.inspector.frame import Crumb, View, paging, render
from mapping.inspector.numbered_rows import table_rows
from mapping.inspector.opened import Opened

_LISTED = ("format", "tables", "files", "index", "alignments")
_CELL_CHARS = 400
_VALUE_CHARS = 200_000


def show_overview(request: Request, opened: Opened) -> Response:
    """Shows kind, tables, files and facts of a release."""
    facts = {name: value for name, value in opened.manifest.to_json().items() if name not in _LISTED}
    return render(
        request,
        opened,
        "overview.html",
        title=opened.slug,
        tables=[
            (name, opened.manifest.n_rows(name), sum(entry.bytes for entry in entries), len(entries))
            for name, entries in opened.manifest.tables.items()
        ],
        facts=[(name, _text(value)) for name, value in sorted(facts.items())],
    )


def show_table(request: Request, opened: Opened) -> Response:
    """Shows rows of a table."""
    table = _table(request, opened)
    shown = paging(request, opened.manifest.n_rows(table))
    rows = list(table_rows(opened, table, shown.start, shown.end))
    return render(
        request,
        opened,
        "table.html",
        title=table,
        table=table,
        paging=shown,
        columns=list(rows[0]) if rows else [],
        rows=[[_brief(value) for value in row.values()] for row in rows],
    )


def show_row(request: Request, opened: Opened) -> Response:
    """Shows one row of a table, whole."""
    table, number = _table(request, opened), int(request.path_params["row"])
    rows = list(table_rows(opened, table, number, number + 1))
    if not rows:
        raise HTTPException(404, f"The table {table} has no row {number:,}.")
    return render(
        request,
        opened,
        "row.html",
        title=f"{table} {number:,}",
        crumbs=[Crumb(table, opened.url(f"tables/{table}", **{"from": number}))],
        number=number,
        n_rows=opened.manifest.n_rows(table),
        table=table,
        values=[(name, _text(value)) for name, value in rows[0].items()],
    )


def _table(request: Request, opened: Opened) -> str:
    table: str = request.path_params["table"]
    if table not in opened.manifest.tables:
        raise HTTPException(404, f"{opened.path} has no table of that name.")
    return table


def _text(value: Any) -> str:
    """Gives a value of a table or a manifest for reading: nested ones as JSON."""
    if isinstance(value, str):
        return _cut(value, _VALUE_CHARS)
    if value is None:
        return ""
    return _cut(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode(), _VALUE_CHARS)


def _brief(value: Any) -> str:
    """Gives the beginning of a value for a cell; of a list how long it is, and its first entry."""
    if isinstance(value, list) and value:
        return f"{counted(len(value), 'entries')}: {_brief(value[0])}"
    if isinstance(value, dict):
        return _cut(", ".join(f"{name}: {_brief(own)}" for name, own in value.items()), _CELL_CHARS)
    return _cut(str("" if value is None else value), _CELL_CHARS)


def _cut(text: str, n_chars: int) -> str:
    return text if len(text) <= n_chars else f"{text[:n_chars]}… ({len(text):,} characters)"


OVERVIEW_VIEWS = (
    View("/", show_overview),
    View("/tables/{table}", show_table),
    View("/tables/{table}/{row:int}", show_row),
)
"""The views that every release has."""
