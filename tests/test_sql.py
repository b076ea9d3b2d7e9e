"""No query depends on the order in which threads deliver rows: aggregates and limits that need an order have one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.real_data import ROOT

ANY_ROWS = {
    ("kbsource/release/macros.py", "from {} limit 20"),  # shows users some rows of a table
    ("mapping/inspector/listing.py", "select count(*), {} from (from {} limit {})"),  # counts values in a sample
}
"""Queries that any rows of a table answer."""
_SQL = re.compile(r"\b(select|from)\b[\s\S]*\b(from|select|limit|group|order)\b", re.IGNORECASE)
_AGGREGATE = re.compile(
    r"\b(list|array_agg|string_agg|group_concat|listagg|first|last|any_value|arbitrary|mode|histogram)\s*\(", re.I
)
_BEST = re.compile(r"\b(?:arg_?(?:max|min)(?:_null)?|max_by|min_by)\s*\(", re.I)
_LIMIT = re.compile(r"\blimit\s+(?:\?|\$|\{|\d)", re.I)
_ORDER = re.compile(r"\border\s+by\b", re.I)


def texts(source: str) -> Iterator[str]:
    """The SQL among the strings of a module; ``{}`` takes the place of what an f-string inserts."""
    tree = ast.parse(source)
    documentation = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    parts = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if node in documentation or node in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        text = re.sub(r"--[^\n]*", "", text)
        if _SQL.search(text):
            yield text


def inside(text: str, start: int) -> str:
    """The text from a position up to the bracket that closes it."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth < 0:
            return text[start:at]
    return text[start:]


def before(text: str, end: int) -> str:
    """The text of the query that a position ends, without what is in brackets."""
    depth, found = 0, []
    for at in range(end - 1, -1, -1):
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if depth < 0:
            break
        if not depth and text[at] not in "([{":
            found.append(text[at])
    return "".join(reversed(found))


def faults(text: str) -> Iterator[str]:
    """What in a query may change with the number of threads."""
    for hit in _AGGREGATE.finditer(text):
        if not _ORDER.search(inside(text, hit.end())):
            yield f"{hit[1]}() without an order"
    for hit in _BEST.finditer(text):
        if not inside(text, hit.end()).rstrip().endswith("_id"):
            yield f"{hit[0]}…) by something that several rows may have"
    for hit in _LIMIT.finditer(text):
        orders = _ORDER.split(before(text, hit.start()))
        if len(orders) == 1:
            yield "limit without an order"
        elif re.search(r"\bdesc(\s+nulls\s+\w+)?\s*$", orders[-1], re.I) and not re.search(r"_id\s+desc", orders[-1]):
            yield "limit by a number that several rows may have"


def test_every_order_that_a_query_depends_on_is_total() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {fault}: {' '.join(text.split())[:200]}"
        for package in ("kbsource", "mapping", "pipelines")
        for path in sorted((ROOT / package).rglob("*.py"))
        for text in texts(path.read_text("utf-8"))
        if (path.relative_to(ROOT).as_posix(), text) not in ANY_ROWS
        for fault in faults(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select list(title) from pages", "list() without an order"),
        ("select list(title order by page_id) from pages", None),
        ("select string_agg(title, ', ') from pages order by title", "string_agg() without an order"),
        ("select first(title) from pages group by page_id", "first() without an order"),
        ("select arg_max(title, views) from pages", "arg_max(…) by something that several rows may have"),
        ("select arg_max(title, page_id) from pages", None),
        ("select title from pages limit 10", "limit without an order"),
        ("select title from (select * from pages order by title) limit 10", "limit without an order"),
        ("select title from pages order by views desc limit 10", "limit by a number that several rows may have"),
        ("select title from pages order by views desc, title limit {}", None),
    ],
)
def test_what_depends_on_threads_is_found(query: str, expected: str | None) -> None:
    assert list(faults(query)) == ([] if expected is None else [expected])
