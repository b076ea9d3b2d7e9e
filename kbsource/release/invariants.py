"""The invariants of releases. Each has a slug, a meaning, and SQL that finds its violations.

>>> sold = Invariant("negative_price", "a price is below 0", "case when price < 0 then [name] end", table="goods")
>>> known = Invariant(
...     "unknown_shop",
...     "goods are of a shop that is not there",
...     "select _file, name from goods anti join shops using (shop_id)",
...     needs=("shops",),
... )
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import pyarrow as pa

from kbsource.errors import value_fault
from kbsource.files import Folder, join
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import Manifest
from kbsource.release.reader import row_groups
from kbsource.runtime.database import identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

M = TypeVar("M", bound=Manifest)
T = TypeVar("T")
_SHOWN = 160


@dataclass(frozen=True)
class Invariant:
    """A rule that every release of a kind must satisfy. Several invariants may have the same slug, such as
    ``invalid_page``; only the first of them needs a meaning.

    Its query reads the views of ``kbsource.release.sql``, which have the columns of ``places``. The views of a source
    to compare with are in a schema named after the source. The view ``settings`` (_part, name, n) contains the results
    of ``Kind.settings``.
    """

    slug: str
    meaning: str  #: what a violation means
    violations: str = ""
    """SQL that finds violations. With ``table``, it is an expression over one row of that table: a list of descriptions
    of the row's violations, or null. Without ``table``, it is a query with one row per violation: the file, and a
    description. Empty if ``Kind.check`` checks the invariant in Python.
    """
    table: str = ""  #: table whose rows ``violations`` checks, if any; all its invariants are checked in one scan
    needs: tuple[str, ...] = ()
    """Names of the tables and sources that the query reads. If a table is incomplete or a source was not passed, the
    invariant is not checked.
    """


def invariants(
    slug: str, meaning: str, *violations: str, table: str = "", needs: tuple[str, ...] = ()
) -> tuple[Invariant, ...]:
    """Returns one invariant for each query. All of them have the same slug, meaning and needs."""
    return tuple(Invariant(slug, meaning, query, table, needs) for query in violations)


COMMON = (
    Invariant("manifest", "the manifest changed since it was written"),
    Invariant("missing", "a listed file is missing"),
    Invariant("unlisted", "a file is not listed in the manifest"),
    Invariant("size", "a file has a different size"),
    Invariant("sha256", "a file's content changed"),
    Invariant("unreadable", "a file does not have the format that its name states"),
    Invariant("schema", "a table's columns differ from its schema"),
    Invariant("rows", "a file has a different number of rows"),
    Invariant("statistics", "a row group's statistics do not match its ids"),
    Invariant("counts", "counts do not add up"),
)
"""Invariants of every kind of release."""


def meanings(invariants: Iterable[Invariant]) -> dict[str, str]:
    """Returns the meaning of a violation of each invariant, by slug."""
    return {invariant.slug: invariant.meaning for invariant in reversed([*invariants]) if invariant.meaning}


@dataclass(frozen=True, slots=True)
class Finding:
    """The violations of an invariant in a file: their number, an example, and their meaning."""

    file: str
    rule: str
    n_cases: int
    example: str
    meaning: str


class Findings:
    """Collects findings. For each file and invariant, it keeps the first example."""

    def __init__(self, invariants: Iterable[Invariant]) -> None:
        self._meanings = meanings(invariants)
        self._found: dict[tuple[str, str], Finding] = {}

    def add(self, file: str, rule: str, example: str, n_cases: int = 1) -> None:
        """Adds violations of an invariant in a file."""
        before = self._found.get((file, rule))
        if before is not None:
            n_cases, example = n_cases + before.n_cases, before.example
        self._found[file, rule] = Finding(file, rule, n_cases, example, self._meanings[rule])

    def has(self, file: str, rule: str) -> bool:
        """Returns whether a file is known to violate an invariant."""
        return (file, rule) in self._found

    def sorted(self) -> tuple[Finding, ...]:
        """Returns the findings, sorted by file and invariant."""
        return tuple(finding for _, finding in sorted(self._found.items()))


def check(db: DuckDBPyConnection, invariants: Iterable[Invariant], given: Collection[str], found: Findings) -> None:
    """Finds the violations of invariants, and adds them to ``found``.

    Args:
        db: connection with the views that the invariants read.
        invariants: the invariants. An invariant is skipped if ``given`` lacks a name in its ``needs``.
        given: names of the complete tables, and of the sources to compare with.
    """
    import duckdb

    of_rows: dict[str, list[Invariant]] = {}
    queries: list[Invariant] = []
    for invariant in invariants:
        if invariant.violations and {*invariant.needs} <= {*given}:
            (of_rows.setdefault(invariant.table, []) if invariant.table else queries).append(invariant)
    for table, group in of_rows.items():
        _check_rows(db, table, group, found)
    for invariant in queries:
        query = f"select file, count(*), min(what) from ({invariant.violations}) as broken(file, what) group by file"
        try:
            for file, n_cases, example in db.execute(query).fetchall():
                found.add(file or MANIFEST, invariant.slug, str(example), n_cases)
        except duckdb.DataError as error:
            found.add(MANIFEST, invariant.slug, f"{_UNCHECKED}: {value_fault(error)}")


_UNCHECKED = "not checked, because a value cannot be computed with"


def _check_rows(
    db: DuckDBPyConnection, table: str, invariants: Sequence[Invariant], found: Findings, file: str | None = None
) -> None:
    """Finds rows of a table, or of one of its files, that violate invariants.

    If DuckDB fails on a value, the invariants are checked one by one, and if this fails too, file by file.
    """
    import duckdb

    cases = ", ".join(f"({invariant.violations}) as broken_{number}" for number, invariant in enumerate(invariants))
    sums = ", ".join(f"coalesce(sum(len(broken_{n})), 0), min(broken_{n}[1])" for n in range(len(invariants)))
    source = f"{identifier(table)}{'' if file is None else ' where _file = $file'}"
    query = f"select _file, {sums} from (select _file, {cases} from {source}) group by _file"
    try:
        rows = db.execute(query, {} if file is None else {"file": file}).fetchall()
    except duckdb.DataError as error:
        if len(invariants) > 1:
            for invariant in invariants:
                _check_rows(db, table, [invariant], found, file)
        elif file is None:
            for (own,) in db.execute(f"select distinct _file from {identifier(table)}").fetchall():
                _check_rows(db, table, invariants, found, own)
        else:
            found.add(file, invariants[0].slug, f"{_UNCHECKED}: {value_fault(error)}")
        return
    for own, *results in rows:
        for invariant, n_cases, example in zip(invariants, results[::2], results[1::2], strict=True):
            if n_cases:
                found.add(own, invariant.slug, str(example), int(n_cases))


@dataclass(frozen=True, slots=True)
class Checking(Generic[M]):
    """A release that is being verified, as passed to ``Kind.check``."""

    path: str
    name: str  # name of the kind
    manifest: M
    sources: Mapping[str, str]  # folders of the releases to compare with, by name
    found: Findings
    db: DuckDBPyConnection
    given: set[str]  # names of complete tables, of sources, and of the views that ``Kind.views`` added
    listed: Collection[str]  # all files in the manifest
    sound: AbstractSet[str]  # unchanged files with the right number of rows

    def has_files(self, needed: Iterable[str], *, exactly: bool = False) -> bool:
        """Returns whether files are listed and undamaged, so that their content can be compared. Missing files are
        reported.

        Args:
            exactly: also report every file of the manifest that is not in ``needed``.
        """
        wanted = set(needed)
        for file in sorted(wanted - set(self.listed)):
            self.found.add(file, "missing", f"every {self.name} has this file")
        odd = sorted(set(self.listed) - wanted) if exactly else []
        for file in odd:
            self.found.add(MANIFEST, "manifest", f"{file} is not one of its files")
        return not odd and wanted <= {*self.sound}

    def lines(self, file: str) -> Generator[bytes]:
        """Yields the lines of a file, with their line ends."""
        with Folder.of(join(self.path, file)).open() as opened:
            yield from opened

    def batches(self, table: str, columns: Sequence[str] | None = None) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yields pairs of file and rows for a complete table, or for some of its columns, in order. Memory: one row
        group.
        """
        for entry in self.manifest.tables[table]:
            for group in row_groups(join(self.path, entry.file), columns):
                for batch in group.combine_chunks().to_batches():
                    yield entry.file, batch

    def remade(self, file: str, rule: str) -> Remade:
        """Opens a file for a comparison with its recomputed content."""
        return Remade(self, file, rule)

    def same(
        self, file: str, rule: str, stored: Iterable[T], wanted: Iterable[T], named: Callable[[T], object] = repr
    ) -> None:
        """Compares the rows of a file with recomputed rows, up to the first difference. All stored rows are read."""
        rows = iter(stored)
        for number, (row, other) in enumerate(zip_longest(rows, wanted)):
            if row != other:
                said = " instead of ".join(
                    "nothing" if value is None else str(named(value))[:_SHOWN] for value in (row, other)
                )
                self.found.add(file, rule, f"number {number}: {said}")
                break
        deque(rows, maxlen=0)


class Remade:
    """Compares a file with its recomputed content, up to the first difference, because all later content has moved.
    ``Checking.remade`` returns it; use it as a context manager.
    """

    def __init__(self, checking: Checking[Any], file: str, rule: str) -> None:
        self._checking, self._file, self._rule = checking, file, rule
        self._is_same = True

    def __enter__(self) -> Self:
        self._stored = Folder.of(join(self._checking.path, self._file)).open()
        return self

    def write(self, piece: bytes, name: str = "") -> None:
        """Compares the next part of the file. ``name`` names it in messages."""
        if self._is_same and (stored := self._stored.read(len(piece))) != piece:
            pairs = enumerate(zip(stored, piece, strict=False))
            at = next((n for n, (byte, other) in pairs if byte != other), min(len(stored), len(piece)))
            self._differs(f"{name} from byte {at}: {stored[at : at + _SHOWN].decode('utf-8', 'replace')}".lstrip())

    def skip_line(self) -> None:
        """Skips a line that cannot be compared."""
        self._stored.readline()

    def _differs(self, how: str) -> None:
        self._is_same = False
        self._checking.found.add(self._file, self._rule, how)

    def __exit__(self, error: object, *_: object) -> None:
        if error is None and self._is_same and (rest := self._stored.read(_SHOWN)):
            self._differs(f"more content than expected: {rest.decode('utf-8', 'replace')}")
        self._stored.close()
