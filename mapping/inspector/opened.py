"""Releases opened for reading, each under a name for addresses, with its tables in a database."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from threading import RLock
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from duckdb import DuckDBPyConnection

from kbsource.files import Folder, base_name, is_local, join
from kbsource.lookup import KnowledgeSource
from kbsource.release.kind import Kind, kind_of, read_content
from kbsource.release.manifest import Manifest
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.reader import checked_schemas
from kbsource.release.sql import add_tables, connected, identifier
from kbsource.temporary import TemporaryFolder
from kbsource.wikidata.kind import WIKIDATA_RELEASE
from mapping.inspector.finder import PageFinder
from mapping.inspector.marking import Span, spans_query
from mapping.kinds import KINDS

MEMORY_MB = 120
"""What the database takes, at most."""
_SOURCES = ("release", "old", "new")
"""What a manifest calls the releases of pages that something was made from."""
_BLANKS = re.compile(r"\s")
_OTHERS = re.compile(r"[^a-z0-9]+")
_ENTITY = re.compile(r"[QP][1-9]\d{0,17}")


class Database:
    """The tables of all open releases, one schema each; made when it is asked for first. Threads may share it.

    Args:
        paths: folders of the releases.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._stack, self._turn = ExitStack(), RLock()
        self._db: DuckDBPyConnection | None = None
        self._known: set[str] = set()

    def of(self, opened: Opened) -> DuckDBPyConnection:
        """A connection in which the tables of a release stand under their names."""
        with self._turn:
            if self._db is None:
                self.downloads = self._stack.enter_context(TemporaryFolder())
                writes = [self.downloads]
                self._db = self._stack.enter_context(connected(reads=self._paths, writes=writes, memory_mb=MEMORY_MB))
            if opened.slug not in self._known:
                tables = {name: table.files for name, table in opened.tables.items() if table.files}
                add_tables(self._db, opened.kind.declared, tables, opened.path, schema=opened.slug, places=True)
                self._known.add(opened.slug)
            db = self._db.cursor()
        db.execute(f"use {identifier(opened.slug)}")
        return db

    def close(self) -> None:
        """Forgets all of it."""
        self._stack.close()


class TableFiles(NamedTuple):
    """The files of a table in the order of their paths, releases inside the release among them, and their rows."""

    files: list[str]
    starts: list[int]  #: number of the first row of each file, and one past that of the last row

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return self.starts[-1]

    def place(self, number: int) -> tuple[int, int]:
        """Number of the file, and number in it, of a row by its number in the table."""
        at = bisect_right(self.starts, number) - 1
        return at, number - self.starts[at]

    def number(self, file: int, row: int) -> int:
        """Number of a row by its place."""
        return self.starts[file] + row


@dataclass(frozen=True, eq=False)
class Opened:
    """A release that is open."""

    slug: str  #: its name in addresses
    path: str
    kind: Kind[Any]
    manifest: Manifest
    database: Database
    source: KnowledgeSource | None = None  #: of a release of pages, its pages
    parts: tuple[Opened, ...] = ()  #: releases in its folders
    sources: Mapping[str, Opened] = field(default_factory=dict)
    """Opened releases of pages that it was made from, by what its manifest calls them; of many by their sha256."""
    items: Opened | None = None  #: an opened release of Wikidata
    _kept: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> str:
        """Names the release, as ``Manifest.sha256`` does."""
        return self.manifest.sha256

    @cached_property
    def values(self) -> dict[str, Any]:
        """What its manifest says, as JSON values."""
        return self.manifest.to_json()

    @cached_property
    def finder(self) -> PageFinder:
        """The ways to its pages, where it is a release of pages."""
        assert self.source is not None
        return PageFinder(self.path, self.source.manifest, self.source)

    @cached_property
    def tables(self) -> dict[str, TableFiles]:
        """Its tables by name, those of releases in its folders put together."""
        found: dict[str, list[tuple[str, int]]] = {}
        folders = ["", *(part.folder for part in self.manifest.parts)]
        for folder, manifest in zip(folders, [self.manifest, *(part.manifest for part in self.parts)], strict=True):
            for name, entries in manifest.tables.items():
                found.setdefault(name, []).extend((join(folder, entry.file), entry.rows or 0) for entry in entries)
        return {
            name: TableFiles([file for file, _ in own], list(accumulate((rows for _, rows in own), initial=0)))
            for name, own in ((name, sorted(own)) for name, own in found.items())
        }

    @property
    def db(self) -> DuckDBPyConnection:
        """A connection to its tables, each with ``_part``, ``_file`` and ``_row``."""
        return self.database.of(self)

    def kept(self, key: Any, make: Any) -> Any:
        """What ``make`` gave for a key when it was asked for first; a release does not change."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def part(self, folder: str) -> Opened:
        """The release in one of its folders; itself where it has none."""
        folders = [part.folder for part in self.manifest.parts]
        return self.parts[folders.index(folder)] if folder in folders else self

    def url(self, path: str = "", **query: object) -> str:
        """The address of one of its views; what is None is left out of the query, and parts of ``path`` that are data
        must be quoted."""
        given = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        return f"/r/{self.slug}/{path}" + (f"?{given}" if given else "")

    def page_url(self, page_id: int, spans: Sequence[Span] = (), *, section: str | None = None) -> str:
        """The address of a page of ``pages``, which shows the spans marked and begins with the first of them, or with
        a section."""
        pages = self.pages
        assert pages is not None  # nothing links to pages that are not open
        if spans:
            return pages.url(f"page/{page_id}", hl=spans_query(spans)) + f"#e{spans[0].element}"
        if section:
            return pages.url(f"page/{page_id}", section=section) + f"#{quote(section_id(section))}"
        return pages.url(f"page/{page_id}")

    def title_url(self, title: str) -> str | None:
        """The address that leads to the page of a title; None where pages are not open."""
        return None if self.pages is None else self.pages.url("search", q=title)

    def entity_url(self, entity: str) -> str | None:
        """The address of an item or property: of the opened release of Wikidata, else Wikidata's own."""
        if _ENTITY.fullmatch(entity) is None:
            return None
        if (items := self if self.kind is WIKIDATA_RELEASE else self.items) is None:
            return f"https://www.wikidata.org/wiki/{'Property:' if entity[0] == 'P' else ''}{entity}"
        if entity[0] == "P":
            return items.url("tables/properties", property_id=entity)
        return items.url("tables/items", item_id=entity)

    @property
    def made_from(self) -> Opened | None:
        """The opened release of pages that it was made from, of a diff the newer one; None where that is not open."""
        return self.sources.get("release") or self.sources.get("new")

    @property
    def pages(self) -> Opened | None:
        """The opened release of pages that it is, or else was made from; None where that is not open."""
        return self if self.source is not None else self.made_from


def section_id(text: str) -> str:
    """The name that a heading has in a view.

    >>> section_id("Early life")
    's-Early_life'
    """
    return f"s-{_BLANKS.sub('_', text)}"


def open_releases(paths: Sequence[str]) -> tuple[Opened, ...]:
    """Opens releases of any kind, those in their folders too; each knows which opened pages it was made from.

    Raises:
        SetupError: a folder holds no finished release.
    """
    taken: set[str] = {"main"}
    database = Database(paths)
    with ExitStack() as stack:
        found = tuple(_open(path, base_name(path), taken, stack, database) for path in paths)
        stack.pop_all()
    by_sha256 = {opened.sha256: opened for opened in found if opened.source is not None}
    items = next((opened for opened in found if opened.kind is WIKIDATA_RELEASE), None)
    return tuple(_related(opened, by_sha256, items) for opened in found)


def close_releases(releases: Sequence[Opened]) -> None:
    """Closes the files of releases."""
    for opened in every_release(releases):
        opened.database.close()
        if opened.source is not None:
            if "finder" in vars(opened):
                opened.finder.close()
            opened.source.close()


def every_release(releases: Sequence[Opened]) -> Iterator[Opened]:
    """Releases, each before those in its folders."""
    for opened in releases:
        yield opened
        yield from every_release(opened.parts)


def _open(
    path: str, name: str, taken: set[str], stack: ExitStack, database: Database, kind: Kind[Any] | None = None
) -> Opened:
    if kind is None:
        kind = kind_of(read_content(path), path, KINDS)
    manifest = kind.read(path)
    for table, entries in manifest.tables.items() if is_local(path) else ():  # else with the first query
        files = (join(path, entry.file) for entry in entries)
        checked_schemas([file for file in files if Folder.of(file).exists()], kind.schemas(table))
    slug = _slug(name, taken)
    source = None
    if kind is PAGES_RELEASE:
        # Not memory-mapped: what was read of the tables must not stay in this process.
        unmapped = replace(Folder.of(path), is_mapped=False)
        source = stack.enter_context(KnowledgeSource.open(unmapped))
    parts = tuple(
        _open(join(path, part.folder), f"{slug} {part.folder}", taken, stack, database, kind.parts)
        for part in manifest.parts
    )
    return Opened(slug, path, kind, manifest, database, source, parts)


def _related(opened: Opened, by_sha256: dict[str, Opened], items: Opened | None) -> Opened:
    if opened.source is not None:
        return replace(opened, items=items)
    made_from = {fact: opened.manifest.made_from(fact) or "" for fact in _SOURCES}
    made_from |= {one["manifest_sha256"]: one["manifest_sha256"] for one in opened.values.get("releases") or ()}
    sources = {fact: by_sha256[sha256] for fact, sha256 in made_from.items() if sha256 in by_sha256}
    parts = tuple(_related(part, by_sha256, items) for part in opened.parts)
    return replace(opened, parts=parts, sources=sources, items=items)


def _slug(name: str, taken: set[str]) -> str:
    """A name of letters, digits and hyphens that is not taken; takes it."""
    plain = _OTHERS.sub("-", name.lower()).strip("-") or "release"
    number, slug = 1, plain
    while slug in taken:
        number += 1
        slug = f"{plain}-{number}"
    taken.add(slug)
    return slug


AROUND = 300
"""Characters of an element that are shown on either side of a text."""


class InPage(NamedTuple):
    """What is in front of a text in the element where it begins, behind it in that where it ends, and the address of
    the page with it marked; nothing where the page is not open, or has another text there."""

    before: str = ""
    after: str = ""
    url: str | None = None


def in_page(opened: Opened, page_id: int, span: Span, text: str) -> InPage:
    """What is around a text that a release says to stand in a span of a page."""
    if opened.pages is None or opened.pages.source is None:
        return InPage()
    url = opened.page_url(page_id, [span])
    page = opened.pages.source.by_id(page_id)
    if page is None or not span.element <= span.end_element < len(page.elements):
        return InPage(url=url)
    texts = [element.text for element in page.elements[span.element : span.end_element + 1]]
    before, after = texts[0][: span.start], texts[-1][span.end :]
    if "\n".join(texts) != before + text + after:  # whoever verifies the release is told of it
        return InPage(url=url)
    return InPage(
        before if len(before) <= AROUND else f"…{before[-AROUND:]}",
        after if len(after) <= AROUND else f"{after[:AROUND]}…",
        url,
    )
