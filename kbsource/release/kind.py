"""Kinds of releases. A kind defines the format, the tables, the other files and the invariants of its releases.

Each kind is defined next to the code that writes its releases. ``mapping.kinds`` lists all kinds.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple

import pyarrow as pa

from kbsource.documents import MOST_BYTES, bounded_content, parsed_json, typed_value
from kbsource.errors import DataError, SetupError, shown_value
from kbsource.files import Folder, is_local, join
from kbsource.release.counts import Sum, TableCount
from kbsource.release.invariants import Checking, Invariant, M
from kbsource.release.layout import MANIFEST, is_path, is_shard, no_release, parents
from kbsource.release.manifest import (
    DAMAGED,
    DAMAGED_FILE,
    FileEntry,
    ListingManifest,
    Manifest,
    MissingFactError,
    Values,
)
from kbsource.release.measures import Measure
from kbsource.release.reader import read_table, rows_with

_PAGES = "kbsource-release"
"""Format of releases of pages, without the version."""


class MadeFrom(NamedTuple):
    """A source of a release: another release from which it was made, and with which it can be compared."""

    kind: Kind[Any]
    fact: str  #: field of the new release's manifest that contains the source's ``manifest_sha256``
    hashed: tuple[
        str, ...
    ] = ()  #: tables of the source that are read completely, so that their files must be unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class CardText:
    """Text about a kind of release for its dataset card."""

    title: str
    summary: str  #: description of the release
    main: str = ""  #: table or group of files that is loaded by default; empty for none
    holds: Sequence[Literal["wikipedia", "wikidata", "pageviews", "dataset"]]
    """Sources of the content. --licence sets the licence of the first one."""
    tasks: Sequence[str] = ()  #: task categories of the hub
    tags: Sequence[str] = ()
    limits: Sequence[str] = ()  #: limitations that users should know
    template_limits: Mapping[str, str] = field(default_factory=dict)
    """Further limitations, of which one applies, by the way in which templates were rendered: ``html``, ``rules``,
    ``definitions`` or ``lua``.
    """


@dataclass(frozen=True, eq=False, kw_only=True)
class Kind(Generic[M]):
    """The definition of a kind of release."""

    name: str  #: name of such a release in messages
    format: str  #: format of its manifests, with the version after the last hyphen
    made_by: str  #: command that makes such a release
    card: CardText | None = None  #: text for its dataset card; None if it is never published
    manifest: type[M]
    tables: Mapping[str, pa.Schema]
    required: Sequence[str] = ()  #: tables that its manifest must list
    schema_version: int | None = None  #: schema version of the tables, if its manifests have one
    further: Mapping[str, Sequence[pa.Field]] = field(default_factory=dict)  #: additional columns that tables may have
    files: Sequence[str] = ()  #: files and folders in addition to the tables
    parts: Kind[Any] | None = None  #: kind of the releases in its folders
    counts: Sequence[TableCount] = ()  #: numbers in its manifests that are counted in its tables
    sums: Sequence[Sum] = ()  #: rules for numbers in its manifests that add up
    further_faults: Callable[[M], list[str]] | None = (
        None  #: returns further contradictions among the counts of a manifest
    )
    invariants: Sequence[Invariant] = ()
    settings: Callable[[M], Mapping[str, float]] | None = None
    """Returns the numbers of a manifest that invariants and counts need, by name. They are the view ``settings``."""
    remarks: Callable[[M], list[str]] | None = (
        None  #: returns facts about an undamaged release that its users should know
    )
    views: Callable[[Checking[M]], Iterable[str]] | None = (
        None  #: adds further views for invariants, and returns their names
    )
    check: Callable[[Checking[M]], Mapping[str, int] | None] | None = None
    """Checks what no query can check. Returns further counts, or None if the files are too damaged for the check."""
    made_from: Mapping[str, MadeFrom] = field(default_factory=dict)
    """Sources of the release, by the option of ``kbsource verify`` that names their folder. Users pass all of these
    options or none.
    """
    facts: type[Any] | None = None
    """A type for the manifest's fields other than format and files, by which msgspec validates them. If None, they are
    validated by ``CommonFacts``. Fields that the type does not have are allowed.
    """
    documents: Mapping[str, type[Any]] = field(default_factory=dict)
    """Types of the JSON files that commands read besides the manifest, by path. They are used like ``facts``."""
    records: Mapping[str, type[Any]] = field(default_factory=dict)
    """Types of the lines of the JSON Lines files that commands read, by path. They are used like ``facts``."""
    queries: Sequence[tuple[str, str]] = ()
    """Pairs of an example question about the tables and the SQL query that answers it."""
    made_from_pages: bool = False  #: true if a release of pages is the only input of ``made_by``
    shown_by: Sequence[tuple[str, str]] = ()
    """Pairs of a table and the column in which ``kbsource show`` searches for a row. If two columns form the id
    (``12__0``), their names are joined by ``__``. Messages suggest the first table.
    """
    measures: Sequence[Measure] = ()  #: views of its tables, in the order shown

    @property
    def with_article(self) -> str:
        """The name with its article: ``an index of passages``."""
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"

    @property
    def owned(self) -> tuple[str, ...]:
        """Paths of everything that a release of this kind may contain besides its manifest."""
        return (*self.tables, *self.files)

    def read(self, path: str) -> M:
        """Returns the manifest of a finished release.

        Raises:
            SetupError: the manifest is missing, or has another kind or version.
            DataError: the manifest is damaged.
        """
        content, where = read_content(path), join(path, MANIFEST)
        value = parse_content(content, where)
        form = value["format"]
        if _stem(form) != _stem(self.format):
            remedy = f"name the folder that {self.made_by} wrote"
            if self.made_from_pages and _stem(form) == _PAGES:
                remedy = f"it is a release of pages, so first run {self.made_by} {shlex.quote(path)} --output DIR"
            raise SetupError(f"{where}: not {self.with_article}, because its format is {form!r}; {remedy}")
        version = value.get("schema_version") if self.schema_version is not None else None
        if form != self.format or version != self.schema_version:
            found, wanted = repr(form), repr(self.format)
            if self.schema_version is not None:
                found, wanted = f"{found}, schema version {version!r}", f"{wanted}, {self.schema_version}"
            raise SetupError(
                f"{where}: format {found}, but this kbsource reads {wanted}; use the kbsource that made "
                "it, or make it again"
            )
        own = {name: entry for name, entry in value.items() if name != "manifest_sha256"}
        manifest = self.manifest.from_json(own, where)
        if self.facts is not None:
            typed_value(own, self.facts, where, remedy=DAMAGED)
        for count in self.counts:
            try:
                count.written(manifest)
            except MissingFactError as error:
                raise DataError(f"{where}: {error}") from error
            except DataError as error:
                raise DataError(f"{where}: {error}; {DAMAGED}") from error
        if (fault := next(self._faults(manifest), None)) is not None:
            raise DataError(f"{where}: {fault}; {DAMAGED}")
        if manifest.to_bytes() != content:
            raise DataError(f"{where}: changed since it was written; {DAMAGED}")
        if (left := next(_leaving(path, [MANIFEST, *_paths(manifest)]), None)) is not None:
            raise DataError(f"{where}: {left!r} is a link to a file outside the release; download the release again")
        return manifest

    def count_faults(self, manifest: M) -> list[str]:
        """Returns descriptions of all contradictions among the counts of a manifest, and of missing counts."""
        faults = []
        try:
            for count in self.counts:
                count.written(manifest)
            faults += [fault for invariant in self.sums if (fault := invariant.fault(manifest)) is not None]
        except DataError as error:
            return [str(error)]
        return faults + (self.further_faults(manifest) if self.further_faults is not None else [])

    def read_document(self, folder: str, name: str) -> dict[str, Any]:
        """Returns the values of a file listed in ``documents``.

        Raises:
            DataError: the file is missing, is not JSON, or has a value of a wrong type; the message names the value by
                its path.
        """
        file = Folder.of(join(folder, name))
        if not file.exists():
            raise DataError(
                f"{file.url} is missing; download or build the release again, and check it with kbsource verify"
            )
        if [*_leaving(folder, [name])]:  # the manifest need not list it
            raise DataError(f"{file.url} is a link to a file outside the release; download the release again")
        value = parsed_json(bounded_content(file, remedy=DAMAGED_FILE), file.url, remedy=DAMAGED_FILE)
        typed_value(value, self.documents[name], file.url, remedy=DAMAGED_FILE)
        return Values(value, file.url, DAMAGED_FILE)

    def lines(self, folder: str, manifest: Manifest, name: str) -> Iterator[dict[str, Any]]:
        """Yields the records of a JSON Lines file. If ``records`` contains their type, they are validated. Memory: one
        record.

        Raises:
            SetupError: the manifest does not list the file.
            DataError: a line is not JSON, or has a value of a wrong type. The message contains the line number.
        """
        if all(entry.file != name for entry in manifest.files):
            raise SetupError(f"{folder} has no file {name}; name another {self.name}")
        path = join(folder, name)
        with Folder.of(path).open() as file:
            number = 0
            while line := file.readline(MOST_BYTES + 1):
                number += 1
                where = f"{path}, line {number}"
                if len(line) > MOST_BYTES:
                    raise DataError(f"{where}: longer than {MOST_BYTES >> 20} MB, the maximum; {DAMAGED_FILE}")
                value = parsed_json(line, where, remedy=DAMAGED_FILE)
                typed_value(value, self.records.get(name, dict[str, Any]), where, remedy=DAMAGED_FILE)
                yield Values(value, where, DAMAGED_FILE)

    def _faults(self, manifest: M) -> Iterator[str]:
        """Yields a message for each entry of a manifest that is not allowed in this kind of release."""
        for path in _paths(manifest):
            if not is_path(path) or path == MANIFEST:
                yield f"{shown_value(path)} is not a path in a release"
        if (twice := next(_repeated(_paths(manifest)), None)) is not None:
            yield f"{shown_value(twice)} is listed twice"
        if missing := sorted(set(self.required) - set(manifest.tables)):
            yield f"table {missing[0]} is missing"
        for table, entries in manifest.tables.items():
            if table not in self.tables:
                yield f"{self.with_article} has no table {shown_value(table)}"
            if not entries:
                yield f"the table {shown_value(table)} has no file"
            for entry in entries:
                if not is_shard(entry.file, table):
                    yield f"{shown_value(entry.file)} is not a file of the table {table}"
        folders = {part.folder for part in manifest.parts}
        if folders and self.parts is None:
            yield f"{self.with_article} has no releases in its folders"
        for path in _paths(manifest):
            if above := next((folder for folder in parents(path) if folder in folders), None):
                yield f"{shown_value(path)} is inside {shown_value(above)}, which is a separate release"

    @cached_property
    def declared(self) -> Mapping[str, Sequence[pa.Schema]]:
        """All schemas that each table may have, including the tables of releases in the release's folders."""
        inside = {} if self.parts is None else self.parts.declared
        return {table: [*self.schemas(table), *inside.get(table, ())] for table in {**self.tables, **inside}}

    def schemas(self, table: str) -> list[pa.Schema]:
        """Returns all schemas that a table may have; empty if the kind has no table of this name."""
        own = self.tables.get(table)
        if own is None:
            return []
        return [own, *([pa.schema([*own, *self.further[table]])] if table in self.further else [])]

    def rows(self, folder: str, manifest: Manifest, table: str) -> Iterator[dict[str, Any]]:
        """Reads the rows of a table in order, from the files that the manifest lists, with one row group in memory.

        Raises:
            DataError: the columns of a file are not those of the table.
        """
        return read_table(folder, manifest.tables.get(table, ()), self.schemas(table))

    def rows_with(
        self, folder: str, manifest: Manifest, table: str, column: str, value: str | int
    ) -> Iterator[dict[str, Any]]:
        """Reads as ``rows`` does, but only the rows with this value in a column of text or integers."""
        return rows_with(folder, manifest.tables.get(table, ()), self.schemas(table), column, value)


@dataclass(frozen=True, eq=False, kw_only=True)
class ListingKind(Kind[ListingManifest]):
    """A kind whose manifests consist of JSON values and a list of files."""

    manifest: type[ListingManifest] = ListingManifest

    def listing(self, entries: Sequence[FileEntry], facts: Mapping[str, Any]) -> ListingManifest:
        """Returns the manifest of a release with these files."""
        return ListingManifest.of(self.format, entries, facts)


def _paths(manifest: Manifest) -> Iterator[str]:
    """Iterates over the paths of everything that a manifest lists."""
    yield from (entry.file for entry in manifest.entries())
    yield from (part.folder for part in manifest.parts)


def _repeated(paths: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            yield path
        seen.add(path)


def _leaving(folder: str, paths: Iterable[str]) -> Iterator[str]:
    """Yields the paths in a local folder that lead outside it through a symbolic link."""
    if not is_local(folder):
        return
    root = os.path.join(os.path.realpath(folder), "")
    is_inside: dict[str, bool] = {}  # results by folder, because many files are in few folders
    for path in paths:
        place = os.path.dirname(path)
        if place not in is_inside:
            is_inside[place] = os.path.join(os.path.realpath(join(folder, place)), "").startswith(root)
        full = join(folder, path)
        if not is_inside[place] or (os.path.islink(full) and not os.path.realpath(full).startswith(root)):
            yield path


def _stem(form: object) -> str:
    """Returns a format without its version.

    >>> _stem("kbsource-release-1")
    'kbsource-release'
    """
    return str(form).rpartition("-")[0]


def read_content(path: str) -> bytes:
    """Returns the content of the manifest of a folder.

    Raises:
        SetupError: the folder has no manifest.
    """
    file = Folder.of(join(path, MANIFEST))
    if not file.exists():
        raise SetupError(f"{path}: {no_release(path)}")
    return bounded_content(file, remedy=DAMAGED)


def parse_content(content: bytes, where: str) -> dict[str, Any]:
    """Returns the values of a manifest of any kind; ``where`` names it in errors.

    Raises:
        SetupError: the content is JSON, but not a manifest.
        DataError: the content is not JSON.
    """
    value = parsed_json(content, where, remedy=DAMAGED)
    if not isinstance(value, dict) or not isinstance(value.get("format"), str):
        raise SetupError(f"{where}: not a manifest of kbsource; name the folder of a release")
    return value


def kind_of(content: bytes, where: str, kinds: Sequence[Kind[Any]]) -> Kind[Any]:
    """Returns the kind of a release, in any version, from the content of its manifest.

    Raises:
        SetupError: the kind is unknown.
        DataError: the manifest is damaged.
    """
    form = parse_content(content, where)["format"]
    for kind in kinds:
        if _stem(form) == _stem(kind.format):
            return kind
    known = ", ".join(kind.format for kind in kinds)
    raise SetupError(f"{where}: its format is {form!r}, but one of {known} is needed; name another folder")
