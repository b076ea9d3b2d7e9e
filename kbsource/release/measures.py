"""What the tables of a release show, as data: a caption, a query, and how the answer is shown.

>>> by_shop = Measure(
...     "Goods by shop",
...     "select shop, count(*) as goods, avg(price) as \\"mean price\\" from goods group by shop order by shop",
...     section="Shops",
...     needs=("goods",),
...     links={"shop": ToRows("goods", {"shop": "shop"})},
... )
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple

from kbsource.runtime.database import quoted


class ToRows(NamedTuple):
    """A link to the rows of a table that have some values."""

    table: str
    where: Mapping[str, str]
    """By column of the table, the column of the answer that has its value; there is no link where one of them is null.
    The value ``-`` stands for null in the table."""


class ToRow(NamedTuple):
    """A link to the row of a table at the place that the columns ``_file_number`` and ``_row`` of the answer have."""

    table: str


Target = ToRows | ToRow | Literal["title", "entity"]
"""What a value links to: rows, one row, the page with that title, or that item or property of Wikidata."""


@dataclass(frozen=True)
class Measure:
    """A view of a release: a query over the views of its tables, with places (see ``kbsource.release.sql``).

    The names of the answer's columns are shown, but for those that begin with an underscore, which links may read. The
    order of the rows must be total. ``$manifest`` is what the manifest says, as JSON without the lists of files.
    """

    caption: str
    query: str
    _: KW_ONLY
    section: str = ""  #: heading above it; measures of one section stand together. Empty: the caption
    page: Literal["overview", "measures"] = "overview"
    """Where the inspector shows it: ``measures`` for queries that read nested columns or much else of every row."""
    about: str = ""  #: a sentence above a table, or below a chart
    form: Literal["table", "facts", "text"] = "table"
    """A table; the values of the only row, each below its column's name; or the only value as a sentence."""
    chart: Literal["bars", "columns"] | None = None
    """Draws the answer, labels in its first column and numbers in the others: bars of things that have names, columns
    of what has an order, such as bins."""
    is_shaded: bool = False  #: cells are shaded by their share of the greatest number
    shares: tuple[str, ...] = ()
    """Columns of shares, 0 to 1, shown in per cent, beside those whose names begin with ``share``."""
    links: Mapping[str, Target] = field(default_factory=dict)  #: by column; numbers that are 0 have none
    spread: str = ""
    """Column whose values become columns, in the order in which they come first, filled with the values of the column
    behind it. The columns before it name the row, whose cells must follow each other in the answer."""
    by: str = ""  #: column each of whose values has a section of its own
    compared: tuple[str, str] | None = None  #: columns of an old and a new text; the words are marked that differ
    optional: tuple[str, ...] = ()  #: columns that are left out where no row has a value
    needs: tuple[str, ...] = ()
    """Tables without which it is not shown. The table ``old.pages`` is that of the release of pages which the manifest
    calls ``old``, where that is open too; the query names it so, in quotes."""
    derived: Mapping[str, str] = field(default_factory=dict)  #: queries by name, made once as tables that it reads
    if_empty: str = ""  #: said where the answer has no rows; without it, nothing is shown then
    if_missing: str = ""  #: said where a table is missing that it needs; likewise

    @property
    def heading(self) -> str:
        """The heading above it."""
        return self.section or self.caption


def literals(name: str, columns: Iterable[str], rows: Iterable[Iterable[str | float | None]]) -> str:
    """Returns constant rows as a table of a query; columns of names that are no keywords.

    >>> literals("meanings", ["outcome", "meaning"], [("gone", "it isn't there"), ("same", None)])
    "(values ('gone', 'it isn''t there'), ('same', null)) as meanings(outcome, meaning)"
    """
    listed = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return f"(values {listed}) as {name}({', '.join(columns)})"


def _literal(value: str | float | None) -> str:
    return quoted(value) if isinstance(value, str) else "null" if value is None else repr(value)


def meanings_table(meanings: Mapping[str, str]) -> str:
    """Returns what names mean as a table of a query, ``meanings``: place, from 0; name; meaning."""
    rows = ((place, name, meaning) for place, (name, meaning) in enumerate(meanings.items()))
    return literals("meanings", ("place", "name", "meaning"), rows)


def binned(value: str, edges: Sequence[float], null: int) -> str:
    """Returns SQL for the number of a value's bin: half-open, the first below the first edge; ``null`` without a value.

    >>> binned("score", (0.5, 1.0), 9)
    'case when score is null then 9 when score < 0.5 then 0 when score < 1.0 then 1 else 2 end'
    """
    cases = " ".join(f"when {value} < {edge} then {number}" for number, edge in enumerate(edges))
    return f"case when {value} is null then {null} {cases} else {len(edges)} end"
