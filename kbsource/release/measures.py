"""Measures: tables and charts about a release. Each has a caption, a query over the release's tables, and a form in
which the result is shown.

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
    """Column of the table -> column of the result with the value to look for. If one of the values is null, there is no
    link. The value ``-`` finds rows with null.
    """


class ToRow(NamedTuple):
    """A link to one row of a table, which the columns ``_file_number`` and ``_row`` of the result identify."""

    table: str


Target = ToRows | ToRow | Literal["title", "entity"]
"""Target of a link: rows, a single row, the page whose title is the value, or the item or property of Wikidata with
that id.
"""


@dataclass(frozen=True)
class Measure:
    """A query about a release, and the form in which its result is shown. The query reads the views of the tables, with
    the columns of ``places`` (see ``kbsource.release.sql``).

    The result's columns are shown under their names. Columns whose names begin with an underscore are not shown; links
    read them. The query must determine the order of the rows completely. ``$manifest`` is the content of the manifest
    as JSON, without the lists of files.
    """

    caption: str
    query: str
    _: KW_ONLY
    section: str = ""  #: heading of the section that contains the measure; if empty, the caption
    is_folded: bool = False  #: true if the section is closed until a reader opens it
    page: Literal["overview", "measures"] = "overview"
    """Page of the inspector that shows the measure. Slow queries, which read nested columns or most of every row, are
    on ``measures``.
    """
    about: str = ""  #: a sentence above a table, or below a chart
    form: Literal["table", "facts", "text"] = "table"
    """``table``: all rows. ``facts``: the values of a single row, each with the name of its column. ``text``: a single
    value, which is a sentence.
    """
    chart: Literal["bars", "columns"] | None = None
    """Chart of the result, with labels from the first column and numbers from the others: ``bars`` for named things,
    ``columns`` for ordered things, such as bins."""
    is_shaded: bool = False  #: true if each cell is shaded in proportion to the largest number
    shares: tuple[str, ...] = ()
    """Columns with values from 0 to 1 that are shown in per cent. Columns whose names begin with ``share`` always
    are.
    """
    links: Mapping[str, Target] = field(
        default_factory=dict
    )  #: targets of links, by column; the number 0 is not linked
    spread: str = ""
    """Column to pivot: its values become columns, in the order of their first occurrence, and the next column contains
    the cells. The columns before it identify a row of the pivoted table. Rows of the result with the same
    identification must be consecutive.
    """
    by: str = ""  #: column; there is a separate section for each of its values
    compared: tuple[str, str] | None = (
        None  #: column of an old text and column of a new text; the words that differ are marked
    )
    optional: tuple[str, ...] = ()  #: columns that are left out if no row has a value
    needs: tuple[str, ...] = ()
    """Tables without which the measure is not shown. ``old.pages`` is the table ``pages`` of the release that the
    manifest calls ``old``, if this release is open too; in a query, the name is in quotes.
    """
    derived: Mapping[str, str] = field(
        default_factory=dict
    )  #: subqueries by name, which ``query`` reads; each runs once
    if_empty: str = ""  #: text to show if the result has no rows; empty for none
    if_missing: str = ""  #: text to show if a table in ``needs`` is missing; empty for none

    @property
    def heading(self) -> str:
        """The heading of the section that contains the measure."""
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
    """Returns the meanings of names as a table ``meanings`` for a query, with the columns place (from 0), name and
    meaning.
    """
    rows = ((place, name, meaning) for place, (name, meaning) in enumerate(meanings.items()))
    return literals("meanings", ("place", "name", "meaning"), rows)


def binned(value: str, edges: Sequence[float], null: int) -> str:
    """Returns an SQL expression for the number of the bin that contains a value. Null is in the bin ``null``. Bins are
    half-open, and bin 0 is below the first edge.

    >>> binned("score", (0.5, 1.0), 9)
    'case when score is null then 9 when score < 0.5 then 0 when score < 1.0 then 1 else 2 end'
    """
    cases = " ".join(f"when {value} < {edge} then {number}" for number, edge in enumerate(edges))
    return f"case when {value} is null then {null} {cases} else {len(edges)} end"
