"""Views of a release, declared as data: a caption, a query over its tables, and how the result is shown.

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
    """A link to the rows of a table with certain values."""

    table: str
    where: Mapping[str, str]
    """The column of the result that contains the value, by column of the table. If one of the values is null, there is
    no link; the value ``-`` finds rows with null.
    """


class ToRow(NamedTuple):
    """A link to the row of a table that the columns ``_file_number`` and ``_row`` of the result identify."""

    table: str


Target = ToRows | ToRow | Literal["title", "entity"]
"""Target of a link: rows, a single row, the page whose title is the value, or the item or property of Wikidata with
that id.
"""


@dataclass(frozen=True)
class Measure:
    """A query whose result shows something about a release. It reads the views of the tables, with the columns of
    ``places`` (see ``kbsource.release.sql``).

    The columns of the result are shown by name, except columns whose names begin with an underscore, which only links
    read. The order of the rows must be total. ``$manifest`` is the content of the manifest without the lists of files,
    as JSON.
    """

    caption: str
    query: str
    _: KW_ONLY
    section: str = ""  #: heading above all measures of the section; if empty, the caption
    is_folded: bool = False  #: its section is shown only when opened
    page: Literal["overview", "measures"] = "overview"
    """Page of the inspector that shows it: ``measures`` for slow queries, which read nested columns or most of every
    row."""
    about: str = ""  #: a sentence above a table, or below a chart
    form: Literal["table", "facts", "text"] = "table"
    """``table``: all rows; ``facts``: the values of the only row, each with its column's name; ``text``: the only
    value, as a sentence."""
    chart: Literal["bars", "columns"] | None = None
    """Draws the result, with labels from its first column and numbers from the others: ``bars`` for things with names,
    ``columns`` for things with an order, such as bins."""
    is_shaded: bool = False  #: shade each cell by its share of the largest number
    shares: tuple[str, ...] = ()
    """Columns of shares from 0 to 1, shown in per cent, in addition to columns whose names begin with ``share``."""
    links: Mapping[str, Target] = field(default_factory=dict)  #: targets by column; a 0 is not linked
    spread: str = ""
    """Column whose values become columns, in order of first occurrence. The next column contains their values. The
    columns before it identify the row; the cells of a row must be consecutive rows of the result.
    """
    by: str = ""  #: column whose values each get a section of their own
    compared: tuple[str, str] | None = None  #: columns of an old and a new text, whose differing words are marked
    optional: tuple[str, ...] = ()  #: columns that are left out if no row has a value
    needs: tuple[str, ...] = ()
    """Tables that it needs to be shown. ``old.pages`` is the table of the release of pages that the manifest calls
    ``old``, if that release is open too; the query uses this name in quotes."""
    derived: Mapping[str, str] = field(default_factory=dict)  #: queries by name, run once each; ``query`` reads them
    if_empty: str = ""  #: text shown if the result has no rows; if empty, nothing is shown then
    if_missing: str = ""  #: text shown if a table in ``needs`` is missing; as for ``if_empty``

    @property
    def heading(self) -> str:
        """The heading of the group that contains it."""
        return self.section or self.caption


def literals(name: str, columns: Iterable[str], rows: Iterable[Iterable[str | float | None]]) -> str:
    """Returns constant rows as a table for a query. The names of the columns must not be keywords.

    >>> literals("meanings", ["outcome", "meaning"], [("gone", "it isn't there"), ("same", None)])
    "(values ('gone', 'it isn''t there'), ('same', null)) as meanings(outcome, meaning)"
    """
    listed = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return f"(values {listed}) as {name}({', '.join(columns)})"


def _literal(value: str | float | None) -> str:
    return quoted(value) if isinstance(value, str) else "null" if value is None else repr(value)


def meanings_table(meanings: Mapping[str, str]) -> str:
    """Returns the meanings of names as the table ``meanings`` for a query: place, from 0; name; meaning."""
    rows = ((place, name, meaning) for place, (name, meaning) in enumerate(meanings.items()))
    return literals("meanings", ("place", "name", "meaning"), rows)


def binned(value: str, edges: Sequence[float], null: int) -> str:
    """Returns SQL for the number of a value's bin; ``null`` for null. Bins are half-open; the first is below the first
    edge.

    >>> binned("score", (0.5, 1.0), 9)
    'case when score is null then 9 when score < 0.5 then 0 when score < 1.0 then 1 else 2 end'
    """
    cases = " ".join(f"when {value} < {edge} then {number}" for number, edge in enumerate(edges))
    return f"case when {value} is null then {null} {cases} else {len(edges)} end"
