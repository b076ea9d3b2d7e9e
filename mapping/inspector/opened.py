"""Opens releases for reading. Each has a name in URLs, and its tables are in a database."""

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
from mapping.inspector.marking import MarkedRange, spans_query
from mapping.kinds import KINDS

MEMORY_MB = 120
"""Maximum memory of the database."""
_SOURCES = ("release", "old", "new")
"""Names in manifests of the releases of pages that a release was made from."""
_BLANKS = re.compile(r"\s")
_OTHERS = re.compile(r"[^a-z0-9]+")
_ENTITY = re.compile(r"[QP][1-9]\d{0,17}")


class Database:
    """The tables of all open releases, one schema each. The database is created at first use. Several threads may share
    it.

    Args:
        paths: folders of the releases.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._stack, self._turn = ExitStack(), RLock()
        self._db: DuckDBPyConnection | None = None
        self._known: set[str] = set()

    def of(self, opened: OpenRelease) -> DuckDBPyConnection:
        """Returns a connection that has the tables of a release by name."""
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
        """Closes the database."""
        self._stack.close()


class TableFiles(NamedTuple):
    """The files of a table, including files of releases inside the release, sorted by path, and their rows."""

    files: list[str]
    starts: list[int]  #: number of the first row of each file, then one past the last row

    @property
    def n_rows(self) -> int:
        """Returns the number of rows of all files."""
        return self.starts[-1]

    def place(self, number: int) -> tuple[int, int]:
        """Returns the number of the file, and the row in the file, of a row of the table."""
        at = bisect_right(self.starts, number) - 1
        return at, number - self.starts[at]

    def number(self, file: int, row: int) -> int:
        """Returns the number of a row in the table, by file and row in the file."""
        return self.starts[file] + row


@dataclass(frozen=True, eq=False)
class OpenRelease:
    """An open release."""

    slug: str  #: name of the release in URLs
    path: str
    kind: Kind[Any]
    manifest: Manifest
    database: Database
    source: KnowledgeSource | None = None  #: reader of the pages; None unless this is a release of pages
    parts: tuple[OpenRelease, ...] = ()  #: releases in folders of this release
    sources: Mapping[str, OpenRelease] = field(default_factory=dict)
    """Opened releases of pages that this release was made from, by their names in its manifest. If the manifest names
    many, the keys are their sha256 instead."""
    items: OpenRelease | None = None  #: opened release of Wikidata that describes the items; None if none is open
    _kept: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> str:
        """Returns the hash that identifies the release, as ``Manifest.sha256``."""
        return self.manifest.sha256

    @cached_property
    def values(self) -> dict[str, Any]:
        """Returns the content of its manifest as JSON values."""
        return self.manifest.to_json()

    @cached_property
    def finder(self) -> PageFinder:
        """Returns the finder of its pages, for a release of pages."""
        assert self.source is not None
        return PageFinder(self.path, self.source.manifest, self.source)

    @cached_property
    def tables(self) -> dict[str, TableFiles]:
        """Returns its tables by name, with the tables of releases in its folders merged."""
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
        """Returns a connection to its tables. Each table has ``_part``, ``_file`` and ``_row``."""
        return self.database.of(self)

    def cached(self, key: Any, make: Any) -> Any:
        """Returns the cached value of a key. ``make`` computes it at first use; a release does not change."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def part(self, folder: str) -> OpenRelease:
        """Returns the release in a folder of this release, or this release if there is no such folder."""
        folders = [part.folder for part in self.manifest.parts]
        return self.parts[folders.index(folder)] if folder in folders else self

    def url(self, path: str = "", **query: object) -> str:
        """Returns the URL of a view of the release.

        Args:
            path: path of the view within the release. Parts that come from data must be quoted.
            query: parameters of the URL. A parameter with the value None is left out.
        """
        given = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        return f"/r/{self.slug}/{path}" + (f"?{given}" if given else "")

    def page_url(self, page_id: int, spans: Sequence[MarkedRange] = (), *, section: str | None = None) -> str:
        """Returns the URL of a page of ``pages``. The view marks the spans and starts at the first of them, or at a
        section."""
        pages = self.pages
        assert pages is not None  # there are no links to pages that are not open
        if spans:
            return pages.url(f"page/{page_id}", hl=spans_query(spans)) + f"#e{spans[0].element}"
        if section:
            return pages.url(f"page/{page_id}", section=section) + f"#{quote(section_id(section))}"
        return pages.url(f"page/{page_id}")

    def title_url(self, title: str) -> str | None:
        """Returns the URL that opens the page with a title, or None if no release of pages is open."""
        return None if self.pages is None else self.pages.url("search", q=title)

    def entity_url(self, entity: str) -> str | None:
        """Returns the URL of an item or property in the opened release of Wikidata, otherwise in Wikidata itself."""
        if _ENTITY.fullmatch(entity) is None:
            return None
        if (items := self if self.kind is WIKIDATA_RELEASE else self.items) is None:
            return f"https://www.wikidata.org/wiki/{'Property:' if entity[0] == 'P' else ''}{entity}"
        if entity[0] == "P":
            return items.url("tables/properties", property_id=entity)
        return items.url("tables/items", item_id=entity)

    @property
    def made_from(self) -> OpenRelease | None:
        """Returns the opened release of pages that the release was made from; for a diff, the newer release. None if it
        is not open.
        """
        return self.sources.get("release") or self.sources.get("new")

    @property
    def pages(self) -> OpenRelease | None:
        """Returns the opened release of pages: the release itself, or the release that it was made from. None if it is
        not open.
        """
        return self if self.source is not None else self.made_from


def section_id(text: str) -> str:
    """Returns the id that a heading has in a view.

    >>> section_id("Early life")
    's-Early_life'
    """
    return f"s-{_BLANKS.sub('_', text)}"


def open_releases(paths: Sequence[str]) -> tuple[OpenRelease, ...]:
    """Opens releases of any kind, including those in their folders. Each release knows the opened pages that it was
    made from.

    Raises:
        SetupError: a folder is not a finished release.
    """
    taken: set[str] = {"main"}
    database = Database(paths)
    with ExitStack() as stack:
        found = tuple(_open(path, base_name(path), taken, stack, database) for path in paths)
        stack.pop_all()
    by_sha256 = {opened.sha256: opened for opened in found if opened.source is not None}
    items = next((opened for opened in found if opened.kind is WIKIDATA_RELEASE), None)
    return tuple(_related(opened, by_sha256, items) for opened in found)


def close_releases(releases: Sequence[OpenRelease]) -> None:
    """Closes the files of releases."""
    for opened in every_release(releases):
        opened.database.close()
        if opened.source is not None:
            if "finder" in vars(opened):
                opened.finder.close()
            opened.source.close()


def every_release(releases: Sequence[OpenRelease]) -> Iterator[OpenRelease]:
    """Iterates over releases, each before the releases in its folders."""
    for opened in releases:
        yield opened
        yield from every_release(opened.parts)


def _open(
    path: str, name: str, taken: set[str], stack: ExitStack, database: Database, kind: Kind[Any] | None = None
) -> OpenRelease:
    if kind is None:
        kind = kind_of(read_content(path), path, KINDS)
    manifest = kind.read(path)
    # The tables of a release in a store are checked at the first query.
    for table, entries in manifest.tables.items() if is_local(path) else ():
        files = (join(path, entry.file) for entry in entries)
        checked_schemas([file for file in files if Folder.of(file).exists()], kind.schemas(table))
    slug = _slug(name, taken)
    source = None
    if kind is PAGES_RELEASE:
        # Not memory-mapped, so that pages of the tables do not stay in this process.
        unmapped = replace(Folder.of(path), is_mapped=False)
        source = stack.enter_context(KnowledgeSource.open(unmapped))
    parts = tuple(
        _open(join(path, part.folder), f"{slug} {part.folder}", taken, stack, database, kind.parts)
        for part in manifest.parts
    )
    return OpenRelease(slug, path, kind, manifest, database, source, parts)


def _related(opened: OpenRelease, by_sha256: dict[str, OpenRelease], items: OpenRelease | None) -> OpenRelease:
    if opened.source is not None:
        return replace(opened, items=items)
    made_from = {fact: opened.manifest.made_from(fact) or "" for fact in _SOURCES}
    made_from |= {
        release["manifest_sha256"]: release["manifest_sha256"] for release in opened.values.get("releases") or ()
    }
    sources = {fact: by_sha256[sha256] for fact, sha256 in made_from.items() if sha256 in by_sha256}
    parts = tuple(_related(part, by_sha256, items) for part in opened.parts)
    return replace(opened, parts=parts, sources=sources, items=items)


def _slug(name: str, taken: set[str]) -> str:
    """Returns an unused name of letters, digits and hyphens, and marks it as used."""
    plain = _OTHERS.sub("-", name.lower()).strip("-") or "release"
    number, slug = 1, plain
    while slug in taken:
        number += 1
        slug = f"{plain}-{number}"
    taken.add(slug)
    return slug


AROUND = 300
"""Characters of an element that are shown before and after a text."""


class InPage(NamedTuple):
    """The context of a text in a page.

    It consists of the text before it in the element where it starts, the text after it in the element where it ends,
    and the URL of the page with the text marked. It is empty if the page is not open or has another text there.
    """

    before: str = ""
    after: str = ""
    url: str | None = None


def in_page(opened: OpenRelease, page_id: int, span: MarkedRange, text: str) -> InPage:
    """Returns the context of a text that a release locates at a span of a page."""
    if opened.pages is None or opened.pages.source is None:
        return InPage()
    url = opened.page_url(page_id, [span])
    page = opened.pages.source.by_id(page_id)
    if page is None or not span.element <= span.end_element < len(page.elements):
        return InPage(url=url)
    texts = [element.text for element in page.elements[span.element : span.end_element + 1]]
    before, after = texts[0][: span.start], texts[-1][span.end :]
    if "\n".join(texts) != before + text + after:  # kbsource verify reports such a difference
        return InPage(url=url)
    return InPage(
        before if len(before) <= AROUND else f"…{before[-AROUND:]}",
        after if len(after) <= AROUND else f"{after[:AROUND]}…",
        url,
    )
