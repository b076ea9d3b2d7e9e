"""The macros of ``macros.sql`` and ``references.sql`` over the tables of an open release.

The macros in these files need only DuckDB, and have the folder of a release as their first argument
(``kb_text('releases/enwiki-20261001')``). In a database that ``kbsource`` opens, the same macros read the views of the
release's tables and do not have this argument: ``kb_text()``, or ``old.kb_text()`` for a release whose views are in the
schema ``old``.

>>> [macro.call for macro in macros_of({"pages", "redirects"}) if macro.parameters]
['kb_category(category)', 'kb_sample(n_pages)']
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from kbsource.release.sql import identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from kbsource.release.kind import Kind

_FILES = ("macros.sql", "references.sql")
_MACRO = re.compile(
    r"^((?:-- [^\n]*\n)+)create or replace macro (\w+)\((\w+(?:, \w+)*)\) as table\n(.*?);$", re.DOTALL | re.MULTILINE
)
_TABLE = re.compile(r"read_parquet\((\w+) \|\| '/(\w+)/\*\.parquet'\)")


class Macro(NamedTuple):
    """A table macro over the tables of a release."""

    name: str
    parameters: tuple[str, ...]  #: names of the parameters, except the folder of the release
    meaning: str
    tables: frozenset[str]  #: tables that it reads
    query: str  #: the folder of the release is its parameter ``kb``

    @property
    def call(self) -> str:
        """A call of the macro, with the names of its parameters.

        >>> Macro("kb_category", ("category",), "", frozenset(), "").call
        'kb_category(category)'
        """
        return f"{self.name}({', '.join(self.parameters)})"


def macros_of(tables: Collection[str]) -> list[Macro]:
    """Returns the macros that need no other tables than these, in the order of the files."""
    return [macro for macro in _macros() if macro.tables <= {*tables}]


def add_macros(db: DuckDBPyConnection, tables: Collection[str], *, schema: str = "main") -> list[Macro]:
    """Adds the macros that need no other tables than these to a database, and returns them.

    Args:
        tables: names of the views in the schema.
    """
    found = macros_of(tables)
    for macro in found:
        query = _TABLE.sub(lambda table: f"{identifier(schema)}.{identifier(table[2])}", macro.query)
        name = f"{identifier(schema)}.{identifier(macro.name)}"
        db.execute(f"create or replace macro {name}({', '.join(macro.parameters)}) as table {query}")
    return found


@cache
def _macros() -> tuple[Macro, ...]:
    """Returns the macros that read a single release. The others, which have a folder of passages or alignments as a
    second argument, are only in the files.
    """
    found = []
    for file in _FILES:
        text = resources.files("kbsource").joinpath(file).read_text("utf-8")
        for said, name, parameters, query in _MACRO.findall(text):
            _, *others = parameters.split(", ")
            read = _TABLE.findall(query)
            if all(folder == "kb" for folder, _ in read):
                meaning = " ".join(line.removeprefix("-- ") for line in said.splitlines())
                found.append(Macro(name, tuple(others), meaning, frozenset(table for _, table in read), query))
    return tuple(found)


def sample_queries(kind: Kind[Any], tables: Collection[str]) -> list[tuple[str, str]]:
    """Returns pairs of a question and an example query that answers it.

    The pairs are the example queries of the kind that need no other tables than these. They are followed by a query for
    the rows of each table that no example reads.
    """
    missing = {*kind.declared, *(macro.name for macro in _macros())} - {*tables}
    missing -= {macro.name for macro in macros_of(tables)}
    found = [(question, query) for question, query in kind.queries if missing.isdisjoint(_read_by(query))]
    read = {name for _, query in found for name in _read_by(query)}
    return found + [(f"rows of {table}", f"from {table} limit 20") for table in tables if table not in read]


def _read_by(query: str) -> set[str]:
    """Returns the names after FROM and JOIN in a query of this package."""
    return set(re.findall(r"\b(?:from|join) (\w+)", query))
