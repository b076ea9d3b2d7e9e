"""Numbers in a manifest that SQL queries can count in the tables of the release. They are counted when the release is
committed, and again by ``kbsource verify``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from kbsource.errors import DataError, shown_value
from kbsource.release.manifest import Count, Manifest, Values
from kbsource.runtime.database import identifier, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Path: TypeAlias = tuple[str, ...]
"""The location of a number in a manifest: the names of the fields, outermost first."""
SETTINGS = "settings"
"""Name of the table (_part, name, n) with the numbers that ``Kind.settings`` reads from each manifest."""


@dataclass(frozen=True, slots=True)
class TableCount:
    """A number in a manifest, or several numbers by name, with the query that counts it in the tables.

    >>> goats = TableCount("counts.goats", "select count(*) from goats", summary="goats")
    >>> by_colour = TableCount("counts.by_colour", "select colour, count(*) from goats group by all")
    """

    path: str | None
    """Its location in the manifest, with dots between the names of fields; None if the number is only reported by
    ``verify``."""
    query: str
    """The query. It returns one number, or rows with the names of fields below ``path`` and a number. It reads the
    tables of a single release, and ``settings`` (name, n).
    """
    names: Collection[str | Path] | None = None
    """For several numbers: the names that the manifest always contains, with 0 if the query has no row for a name. If
    empty, the manifest contains only the names in the result. None for a single number.
    """
    summary: str = ""  #: name of the number in the summary of ``verify``

    @property
    def fields(self) -> Path:
        """The names of the fields in the path."""
        return () if self.path is None else tuple(self.path.split("."))

    def paths(self) -> Iterator[Path]:
        """Iterates over the paths that every manifest of the kind contains."""
        if self.path is not None:
            for name in ((),) if self.names is None else self.names:
                yield (*self.fields, *((name,) if isinstance(name, str) else name))

    def written(self, manifest: Manifest) -> dict[Path, int]:
        """Returns the numbers in a manifest, by path.

        Raises:
            DataError: a number is missing, or is not a count.
        """
        if self.path is None:
            return {}
        if wanted := [*self.paths()]:
            return {path: _count_at(manifest, path) for path in wanted}
        by_name = _value_at(manifest, self.fields)
        if not isinstance(by_name, Mapping):
            raise DataError(f"{self.path}: Expected `object` in place of {shown_value(by_name)}")
        return {(path := (*self.fields, name)): _as_count(value, path) for name, value in by_name.items()}

    def counted(self, db: DuckDBPyConnection, tables: Collection[str], *, schema: str, part: str) -> dict[Path, int]:
        """Returns the numbers counted in the tables, by path.

        Args:
            tables: names of the views of the release.
            schema: schema of these views.
            part: folder of the release, which selects its rows of ``settings``.
        """
        found = dict.fromkeys(self.paths(), 0)
        own = [
            f"{identifier(name)} as (from {identifier(schema)}.{identifier(name)})"
            for name in sorted(self.tables(tables))
        ]
        own.append(f"{SETTINGS} as (select name, n from main.{SETTINGS} where _part = {quoted(part)})")
        for *names, number in db.execute(f"with {', '.join(own)} select * from ({self.query})").fetchall():
            found[(*self.fields, *map(str, names))] = int(number or 0)
        return found

    def tables(self, known: Collection[str]) -> set[str]:
        """Returns the known tables whose names are words in the query, so that it may read them."""
        return {*known} & {*re.findall(r"\w+", self.query)}


@dataclass(frozen=True, slots=True)
class Sum:
    """A rule that numbers of a manifest add up to another number. Each number is named by its path, with dots between
    the names of fields. An object counts as the sum of its fields.

    >>> invariant = Sum("records.read", ("records.examples", "records.merged", "records.rejected"))
    """

    total: str
    parts: Sequence[str]

    def fault(self, manifest: Manifest) -> str | None:
        """Returns a description of how a manifest breaks the rule, or None."""
        total, *parts = (_total_at(manifest, tuple(path.split("."))) for path in (self.total, *self.parts))
        if total == sum(parts):
            return None
        said = " + ".join(f"{path} {n}" for path, n in zip(self.parts, parts, strict=True))
        return f"{self.total} is {total}, not {said} = {sum(parts)}"


def add_settings(db: DuckDBPyConnection, settings: Mapping[str, Mapping[str, float]]) -> None:
    """Adds the table ``settings``. The argument ``settings`` maps the folder of each release to its settings."""
    db.execute(f"create table {SETTINGS} (_part varchar, name varchar, n double)")
    rows = [(part, name, float(n)) for part, own in settings.items() for name, n in own.items()]
    if rows:
        db.executemany(f"insert into {SETTINGS} values (?, ?, ?)", rows)


def with_numbers(facts: Mapping[str, Any], counts: Iterable[TableCount], found: Mapping[Path, int]) -> dict[str, Any]:
    """Returns the facts of a manifest, with the results of some counts inserted at their paths."""
    values = dict(facts)

    def fields_at(path: Path) -> dict[str, Any]:
        inner = values
        for name in path:
            inner[name] = dict(inner.get(name, {}))
            inner = inner[name]
        return inner

    for count in counts:
        if count.path is not None and count.names is not None:
            fields_at(count.fields)
    for (*above, last), n in found.items():
        fields_at(tuple(above))[last] = n
    return values


def _value_at(manifest: Manifest, path: Path) -> Any:
    value: Any = manifest.fact(path[0])
    for name in path[1:]:
        if not isinstance(value, Mapping):
            raise DataError(f"{'.'.join(path)}: Expected `object` in place of {shown_value(value)}")
        value = (value if isinstance(value, Values) else Values(value))[name]
    return value


def _count_at(manifest: Manifest, path: Path) -> int:
    return _as_count(_value_at(manifest, path), path)


def _as_count(value: Any, path: Path) -> int:
    try:
        return msgspec.convert(value, Count)
    except msgspec.ValidationError as error:
        raise DataError(f"{'.'.join(path)}: {error}") from error


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, int]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    else:
        yield path, _as_count(value, path)


def _total_at(manifest: Manifest, path: Path) -> int:
    return sum(n for _, n in _leaves(_value_at(manifest, path), path))
