"""Runs untrusted queries. Only queries whose syntax tree and plans consist of read operations are run.

The type of the statement is not a sufficient check: DuckDB treats ``with t as (copy (select 1) to 'x.csv') select 1``
as a SELECT. The syntax tree is checked before binding, because the binding of a table function opens files. Then every
version of the plan (as written, optimised, physical) is checked before it is executed. Both checks allow only what is
listed here, so operators of later versions of DuckDB are refused until they are listed.

The connection must also be locked down (see ``kbsource.runtime.database``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

MOST_CHARS = 20_000
"""Maximum length of a query."""
_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLE_FUNCTIONS = frozenset(
    "duckdb_columns duckdb_functions duckdb_keywords duckdb_tables duckdb_types duckdb_views generate_series histogram "
    "histogram_values json_each json_tree range repeat repeat_row unnest".split()
)
_HARMLESS_VOLATILE = frozenset({"error", "gen_random_uuid", "random", "uuid", "uuidv4", "uuidv7"})
_OPERATORS = frozenset(
    # scans of tables
    "read_parquet seq_scan column_data_scan chunk_get chunk_scan expression_get expression_scan dummy_scan "
    "empty_result "
    # table functions
    "duckdb_columns duckdb_functions duckdb_keywords duckdb_tables duckdb_types duckdb_views generate_series json_each "
    "json_tree range repeat repeat_row inout_function unnest "
    # operators on rows
    "projection filter limit limit_percent streaming_limit order_by top_n sample reservoir_sample streaming_sample "
    "blocking_sample distinct aggregate ungrouped_aggregate hash_group_by perfect_hash_group_by partitioned_aggregate "
    "window streaming_window pivot "
    # joins and set operations
    "join any_join asof_join blockwise_nl_join comparison_join cross_product delim_get delim_join delim_scan "
    "dependent_join hash_join ie_join left_delim_join nested_loop_join piecewise_merge_join positional_join "
    "positional_scan right_delim_join union except intersect "
    # common table expressions
    "cte cte_scan rec_cte rec_cte_scan rec_key_cte rec_rec_cte_scan".split()
)
"""Operators that only read. In a plan, a table function is an operator with the function's name."""
_BLANKS = re.compile(r"\s+")
_MOST_ENDS = 100
"""Maximum number of positions at which a comment at the end of a query is looked for."""
_UNPAIRED = re.compile("[\ud800-\udfff]")
_NAMES = re.compile(r"\w+")
_KIND = re.compile(r"^[A-Z][A-Za-z ]* Error: ")
_LINE = re.compile(r"^LINE (\d+):", re.MULTILINE)
_PLACE = re.compile(r"(\d+): (.*)\n( *)\^")


class RefusedQueryError(ValueError):
    """A query that is not run, because it might do more than read tables, or is too long or too deeply nested to be
    checked.
    """


def run_query(db: DuckDBPyConnection, query: str, *, macros: Collection[str] = ()) -> DuckDBPyRelation:
    """Runs an untrusted query and returns its result. The rows are computed when they are fetched, so fetching them may
    raise errors of DuckDB too.

    Args:
        macros: names of kbsource's table macros that the query may call.

    Raises:
        RefusedQueryError: the query is not a single SELECT, or would do something that is not allowed.
        duckdb.Error: the query has an error, or needs too many resources.
    """
    if len(query) > MOST_CHARS:
        raise RefusedQueryError(f"the query has {len(query):,} characters; shorten it to {MOST_CHARS:,} at most")
    if "\0" in query:
        raise RefusedQueryError("the query contains a null character; remove it")
    if _UNPAIRED.search(query):
        raise RefusedQueryError("the query contains half of a surrogate pair, which is not a character; remove it")
    statements = db.extract_statements(query)
    if not _is_select(statements):
        raise RefusedQueryError("write one query that begins with select, from or with")
    _check_tree(db, query, _TABLE_FUNCTIONS.union(macros))
    _check_plans(db, statements[0].query)
    [statement] = db.extract_statements(_without_end(db, query))
    return db.sql(statement)


def _is_select(statements: Sequence[Any]) -> bool:
    """Returns whether the statements are a single SELECT."""
    import duckdb

    try:
        return [statement.type for statement in statements] == [duckdb.StatementType.SELECT]
    except ValueError:  # a statement of a type that the Python package of DuckDB does not know
        return False


def _without_end(db: DuckDBPyConnection, query: str) -> str:
    """Returns a query without the semicolon and comments at its end. DuckDB puts it in brackets to limit or count its
    rows, which would fail with them.
    """
    tree = _tree(db, query)
    while ";" in query:
        shorter = (candidate for candidate in islice(_shorter(query), _MOST_ENDS) if _tree(db, candidate) == tree)
        if (found := next(shorter, None)) is None:
            break
        query = found
    return query


def _shorter(query: str) -> Iterator[str]:
    """Yields shorter versions of a query: without white space at its end, and without a comment at its end, for each
    position where a comment may begin, last first. A semicolon stays.
    """
    if query != (stripped := query.rstrip()):
        yield stripped
    else:
        mark = "/*" if query.endswith("*/") else "--"
        at = query.rfind(mark, 0 if mark == "/*" else query.rfind("\n") + 1)
        while at >= 0:
            yield query[:at]
            at = query.rfind(mark, 0 if mark == "/*" else query.rfind("\n") + 1, at)


def _tree(db: DuckDBPyConnection, query: str) -> str:
    [(text,)] = db.execute("select json_serialize_sql(?)", [query]).fetchall()
    return str(text)


def fault_line(fault: str, query: str) -> str:
    r"""Returns an error message of DuckDB about a query as one line, with its position in the query.

    >>> fault_line("Catalog Error: no table a!\n\nLINE 1: from a\n             ^", "from a")
    'no table a! (line 1, column 6)'
    """
    said, _, shown = fault.partition("\n\nLINE ")
    said = _KIND.sub("", " ".join(said.split()), count=1).rstrip(".")
    place = _PLACE.match(shown)
    if place is None:
        return said
    line = int(place[1])
    cut, column = place[2], len(place[3]) - len(f"LINE {line}: ")
    lines = query.split("\n")
    start = lines[line - 1].find(cut.removeprefix("...").removesuffix("...")) if line <= len(lines) else -1
    if start < 0:  # DuckDB has rewritten the query and shows the new one
        return said
    if cut.startswith("..."):  # DuckDB leaves out the beginning of a long line
        column += start - len("...")
    return f"{said} (line {line}, column {column + 1})"


def _check_tree(db: DuckDBPyConnection, query: str, table_functions: Collection[str]) -> None:
    tree = _decoded(_tree(db, query))
    if tree["error"]:
        raise RefusedQueryError(f"the query cannot be checked: {tree['error_message']}")
    with_effects = _functions_with_effects(db)
    parts = list(_objects(tree["statements"]))
    if _NODES.isdisjoint(str(part.get("type")) for part in parts):
        raise RefusedQueryError(
            "the query cannot be checked, because this version of DuckDB writes syntax trees in another form"
        )
    for part in parts:
        kind = part.get("type")
        if isinstance(kind, str) and kind.endswith("_NODE") and kind not in _NODES:
            raise RefusedQueryError(f"the query contains {_short(kind)}; only read-only queries are allowed")
        if kind == "TABLE_FUNCTION" and (name := part["function"]["function_name"].lower()) not in table_functions:
            raise RefusedQueryError(f"the query calls {_short(name)}(); only the tables of the release can be read")
        if (name := part.get("function_name")) is not None and name.lower() in with_effects:
            raise RefusedQueryError(f"the query calls {_short(name)}(), which does more than compute a value")


def _functions_with_effects(db: DuckDBPyConnection) -> set[str]:
    """Returns the names of functions that do more than compute a value, and of DuckDB's macros that call such
    functions.
    """
    volatile = "select lower(function_name) from duckdb_functions() where stability = 'VOLATILE'"
    found = {name for (name,) in db.execute(volatile).fetchall()} - _HARMLESS_VOLATILE
    macros = db.execute(
        "select lower(function_name), lower(macro_definition) from duckdb_functions() "
        "where internal and macro_definition is not null"
    ).fetchall()
    while more := {name for name, text in macros if not found.isdisjoint(_NAMES.findall(text))} - found:
        found |= more
    return found


def _check_plans(db: DuckDBPyConnection, query: str) -> None:
    import duckdb

    try:
        plans = dict(db.execute(f"explain (format json)\n{query}").fetchall())
    except duckdb.Error as error:
        raise type(error)(_LINE.sub(lambda line: f"LINE {int(line[1]) - 1}:", str(error))) from error
    operators = {
        version: [str(part.get("name")) for part in _objects(_decoded(text)) if "children" in part]
        for version, text in plans.items()
    }
    if not all(operators.get(version) for version in ("logical_plan", "physical_plan")):
        raise RefusedQueryError(
            "the query cannot be checked, because this version of DuckDB writes plans in another form"
        )
    for name in chain.from_iterable(operators.values()):
        if _BLANKS.sub("", name).lower() not in _OPERATORS:
            raise RefusedQueryError(
                f"the query would run the operator {_short(name)}; only read-only queries are allowed"
            )


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields all objects in a JSON value, in no particular order."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _decoded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:  # DuckDB writes valid JSON; the decoder limits its depth
        raise RefusedQueryError("the query is nested too deeply to be checked; simplify it") from error


def _short(name: str) -> str:
    return name.strip().replace("\n", " ")[:80]
