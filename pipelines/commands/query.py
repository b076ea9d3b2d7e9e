"""``kbsource sql``: queries the tables of a release, in the inspector's sandbox."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from kbsource.errors import SetupError, counted
from mapping.options import AtLeast1, Like, Megabytes, NewFileOrPipe, Release, Short, release_named
from pipelines.terminal import Summary, command_line, styled, table_text

if TYPE_CHECKING:
    from kbsource.release.kind import Kind
    from mapping.inspector.sandbox import Answer, QueriedRelease

Format = Literal["table", "csv", "json", "jsonl", "parquet"]
_ENDINGS: Mapping[str, Format] = {
    "csv": "csv",
    "json": "json",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "parquet": "parquet",
}
_LIMIT = 40
_CELL_CHARS = 100
_PROCESS_MB = 900
"""Memory that the process uses in addition to the memory that DuckDB counts."""
_MOST_CHARS = 20_000


class _Queried(NamedTuple):
    """A release whose tables are queried, and its name in queries."""

    name: str  #: name of the release in queries; empty for the first release
    kind: Kind[Any]
    source: QueriedRelease
    n_rows: Mapping[str, int]


def sql(
    release: Release,
    query: Annotated[str | None, Parameter(metavar="QUERY", validator=Short(_MOST_CHARS))] = None,
    /,
    *,
    format: Format | None = None,
    output: NewFileOrPipe = "-",
    limit: AtLeast1 | None = None,
    memory: Annotated[Megabytes, Parameter(metavar="MB")] = 1000,
    with_: Annotated[
        tuple[str, ...],
        Parameter(
            "--with", metavar="NAME=RELEASE", validator=Like(r"[a-z][a-z0-9_]*=.+", "old=releases/enwiki-20190801")
        ),
    ] = (),
) -> Summary:
    """Query the tables of a release in SQL.

    Runs one DuckDB query over the tables of a release of any kind. Each table is a view with the table's name. Macros
    answer common questions: kb_text(), kb_links(), kb_infobox_values() and others. Without QUERY, the query is read
    from the standard input if that is a pipe or a file. If there is no query, prints the tables, columns and macros,
    and some queries to start from. A query can only read: it is checked, and runs in a process that opens no other
    files. Without ORDER BY, the order of the rows is not defined.

    Args:
        release: Folder of a release of any kind.
        query: A query that begins with select, from or with; by default read from the standard input.
        format: Format of the result: table (for reading), csv, json (one array), jsonl or parquet. By default chosen by
            the extension of --output, else table. Nested values are JSON in a table and in CSV.
        output: File; appears when it is complete. - writes to the standard output, except for Parquet.
        limit: Maximum number of rows to print in a table, 40 by default. The last line gives the number of further
            rows. Other formats contain all rows.
        memory: Maximum memory of the query; data beyond it is written to disk.
        with_: Another release to query, as NAME=FOLDER. Its tables and macros are called NAME.pages and NAME.kb_text().
            May be repeated.

    Examples:
        kbsource sql releases/enwiki-20261001
        kbsource sql releases/enwiki-20261001 "from kb_text() where title = 'Alan Turing'"
        kbsource sql releases/enwiki-20261001 "select title, qid from pages order by title" --output titles.csv
        kbsource sql releases/enwiki-20261001 --output links.parquet < links.sql
        kbsource sql releases/enwiki-20261001 "from pages anti join old.pages using (page_id) select title" \\
            --with old=releases/enwiki-20190801
    """
    is_piped = output in ("-", "/dev/stdout")
    form = _form(format, "" if is_piped else output)
    if limit is not None and form != "table":
        raise SetupError(
            f"--limit works only for tables; {form} contains all rows. Write limit {limit} into the query instead."
        )
    text = _read_query() if query is None else query
    queried = _opened(release, with_)
    if not text.strip():
        if query is not None:
            raise SetupError("the query is empty; leave it out to see tables, columns and queries to start from.")
        if not is_piped or form != "table":
            raise SetupError("there is no query; give one as QUERY or on the standard input.")
        return _schema(release, queried)
    return _query_summary(text, queried, form, output, is_piped=is_piped, limit=limit or _LIMIT, memory_mb=memory)


def _form(given: Format | None, output: str) -> Format:
    name = output.rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    said = _ENDINGS.get(ending)
    if given == "parquet" and not output:
        raise SetupError("--format parquet needs a file; name it with --output.")
    if given is None and output and said is None and ending != "txt":
        raise SetupError(
            f"--output {output}: the name does not end in .csv, .json, .jsonl or .parquet, so the format "
            f"is unknown; give --format."
        )
    if given is not None and said is not None and said != given:
        raise SetupError(f"--output {output} does not have the extension of {given}; rename it, or leave out --format.")
    return given or said or "table"


def _read_query() -> str:
    """Reads the query from the standard input; returns an empty string if that is a terminal or closed."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    text = sys.stdin.read(_MOST_CHARS + 1)
    if len(text) > _MOST_CHARS:
        raise SetupError(f"the query on the standard input is longer than {_MOST_CHARS:,} characters; shorten it.")
    return text


def _opened(release: str, further: Sequence[str]) -> list[_Queried]:
    from kbsource.release.kind import kind_of, read_content
    from kbsource.release.sql import tables_of
    from mapping.inspector.sandbox import QueriedRelease
    from mapping.kinds import KINDS

    pairs = [("", release)]
    for value in further:
        name, _, path = value.partition("=")
        if name in ("main", "temp", "system", "information_schema", "pg_catalog") or name in (own for own, _ in pairs):
            raise SetupError(f"--with {value}: the name {name} is already in use; choose another name.")
        pairs.append((name, release_named(None, [_token(path)])))
    found = []
    for name, path in pairs:
        kind = kind_of(read_content(path), path, KINDS)
        manifest = kind.read(path)
        parts = [kind.parts.read(os.path.join(path, part.folder)) for part in manifest.parts] if kind.parts else []
        tables = {table: files for table, files in tables_of(kind, path).items() if files}
        n_rows = {
            table: sum(part.n_rows(table) for part in (manifest, *parts) if table in part.tables) for table in tables
        }
        found.append(_Queried(name, kind, QueriedRelease(path, tables, name or "main", has_places=bool(parts)), n_rows))
    return found


def _token(value: str) -> Any:
    from cyclopts import Token

    return Token(value=value)


def _query_summary(
    query: str, queried: Sequence[_Queried], form: Format, output: str, *, is_piped: bool, limit: int, memory_mb: int
) -> Summary:
    from kbsource.export import opened_output
    from mapping.inspector.sandbox import Limits, Sandbox

    limits = Limits(
        memory_mb=memory_mb,
        process_mb=memory_mb + _PROCESS_MB,
        spill_mb=None,
        longest_s=None,
        most_rows=limit,
        threads=os.cpu_count() or 1,
        counts_rows=True,
    )
    sandbox = Sandbox([queried_release.source.path for queried_release in queried], limits)
    try:
        running = sandbox.submit(
            query, [queried_release.source for queried_release in queried], form=None if form == "table" else form
        )
        answer = running.answer.result()
        _check(answer, query, memory_mb)
        if form == "table":
            return _table(answer, query, output, is_piped=is_piped)
        assert answer.file is not None
        with open(answer.file, "rb") as rows, opened_output(output) as file:
            shutil.copyfileobj(rows, file)
    finally:
        sandbox.close()
    said = f"{counted(answer.n_rows, 'rows')} of {counted(len(answer.columns), 'columns')}"
    if is_piped:
        return Summary()
    return Summary(
        f"{said} written to {output}.", values={"output": output, "rows": answer.n_rows, "columns": answer.columns}
    )


def _check(answer: Answer, query: str, memory_mb: int) -> None:
    """Raises an error with a remedy if the query failed."""
    from kbsource.release.queries import fault_line

    if answer.error is not None:
        raise answer.error
    if (fault := answer.fault) is None:
        return
    if "took too much memory" in fault or fault.startswith("Out of Memory"):
        raise SetupError(f"the query needs more than {memory_mb:,} MB; allow more with --memory, or query less data.")
    remedy = ""
    if fault.startswith(("Catalog Error", "Binder Error")):
        remedy = "; without a query, kbsource sql lists tables, columns and macros"
    elif fault.startswith("Conversion Error"):
        remedy = "; try_cast returns null instead of failing"
    raise SetupError(f"the query failed: {fault_line(fault, query)}{remedy}.")


def _table(answer: Answer, query: str, output: str, *, is_piped: bool) -> Summary:
    from kbsource.release.results import json_of

    def cell(value: Any) -> str:
        if value is None:
            return ""
        text = value if isinstance(value, str) else json_of(value).decode()
        text = " ".join(text.split())
        return text if len(text) <= _CELL_CHARS or not is_piped else f"{text[:_CELL_CHARS]}…"

    numbers = [
        place for place in range(len(answer.columns)) if any(isinstance(row[place], int | float) for row in answer.rows)
    ]
    lines = table_text([answer.columns, *([cell(value) for value in row] for row in answer.rows)], right=numbers)
    n_more = answer.n_rows - len(answer.rows)
    rest = (
        f"\n\n{n_more:,} more {'row' if n_more == 1 else 'rows'}; raise --limit, or write all rows to a file with "
        f"--output."
    )
    text = lines + (rest if n_more else "" if answer.rows else "\n\n0 rows")
    values = {"columns": answer.columns, "rows": answer.rows, "n_rows": answer.n_rows}
    if is_piped:
        return Summary(text=text, values=values)
    from kbsource.release.output import output_file

    with output_file(output) as file:
        file.write(f"{text}\n".encode())
    return Summary(f"{counted(len(answer.rows), 'rows')} written to {output}.", values={"output": output, **values})


def _schema(release: str, queried: Sequence[_Queried]) -> Summary:
    """Describes what can be queried: tables and columns with their meanings, macros, and example queries."""
    from kbsource.release.macros import macros_of, sample_queries

    parts, values = [], []
    for queried_release in queried:
        prefix = f"{queried_release.name}." if queried_release.name else ""
        if not queried_release.source.tables:
            parts.append(f"{queried_release.source.path}: {queried_release.kind.with_article} has no tables.")
            continue
        described = {table: list(_columns(queried_release.kind, table)) for table in queried_release.source.tables}
        for table, columns in described.items():
            head = (
                f"{styled(prefix + table, 'bold')}  {counted(queried_release.n_rows[table], 'rows')}. {_head(table)}"
            ).rstrip()
            parts.append(f"{head}\n{_indented(table_text(columns))}")
        macros = macros_of(queried_release.source.tables)
        if macros:
            rows = [(f"{prefix}{macro.call}", macro.meaning) for macro in macros]
            parts.append(f"{styled('macros', 'bold')}\n{_indented(table_text(rows))}")
        queries = sample_queries(queried_release.kind, queried_release.source.tables)
        if not queried_release.name:
            command = command_line("sql", release)
            lines = [f'# {question}\n{command} "{query}"' for question, query in queries]
            parts.append(f"{styled('queries', 'bold')}\n{_indented(chr(10).join(lines))}")
        values.append(
            {
                "name": queried_release.name,
                "release": queried_release.source.path,
                "tables": [
                    {
                        "name": table,
                        "rows": queried_release.n_rows[table],
                        "meaning": _head(table),
                        "columns": [dict(zip(("name", "type", "meaning"), row, strict=True)) for row in columns],
                    }
                    for table, columns in described.items()
                ],
                "macros": [{"call": macro.call, "meaning": macro.meaning} for macro in macros],
                "queries": [{"question": question, "query": query} for question, query in queries],
            }
        )
    return Summary(text="\n\n".join(parts), values={"releases": values})


def _columns(kind: Kind[Any], table: str) -> Iterator[tuple[str, str, str]]:
    from mapping.column_meanings import column_rows

    fields = {field.name: field for schema in kind.declared[table] for field in schema}
    for name, type_, meaning in column_rows(fields.values(), {}, table):
        yield name.replace("`", ""), type_, meaning.replace("\\|", "|")


def _head(table: str) -> str:
    from mapping.column_meanings import table_head

    return table_head(table)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
