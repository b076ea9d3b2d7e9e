"""Releases opened for reading, each under a name for addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from kbsource.files import LocalStorage, Storage, base_name, join
from kbsource.lookup import KnowledgeSource
from kbsource.release.kind import Kind, kind_of, read_content
from kbsource.release.manifest import ListingManifest, Manifest
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.inspector.marking import Span, spans_query
from mapping.inspector.pages.finder import PageFinder
from mapping.kinds import KINDS

_BLANKS = re.compile(r"\s")
_OTHERS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, eq=False)
class Opened:
    """A release that is open.

    Attributes:
        slug: its name in addresses.
        path: of its folder.
        storage: of the folder.
        kind: what it is.
        manifest: what it holds.
        source: of a release of pages, its pages.
        parts: releases in its folders.
        made_from: the opened release of pages that it was made from; None where that is not open.
    """

    slug: str
    path: str
    storage: Storage
    kind: Kind[Any]
    manifest: Manifest
    source: KnowledgeSource | None = None
    parts: tuple[Opened, ...] = ()
    made_from: Opened | None = None

    @cached_property
    def sha256(self) -> str:
        """Names the release, as ``Manifest.sha256`` does."""
        return self.manifest.sha256

    @cached_property
    def finder(self) -> PageFinder:
        """The ways to its pages, where it is a release of pages."""
        assert self.source is not None
        return PageFinder(self.path, self.source.manifest, self.storage, self.source)

    def url(self, path: str = "", **query: object) -> str:
        """Gives the address of one of its views; what is None is left out of the query.

        Args:
            path: below the release: ``page/12``; parts of it that are data must be quoted.
            query: what stands behind the question mark.
        """
        given = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        return f"/r/{self.slug}/{path}" + (f"?{given}" if given else "")

    def page_url(self, page_id: int, spans: Sequence[Span] = (), *, section: str | None = None) -> str:
        """Gives the address of a page of ``pages``, which shows the spans marked and begins with the first of them.

        Args:
            page_id: of the page.
            spans: to be marked.
            section: to begin with, where there are no spans.
        """
        pages = self.pages
        assert pages is not None  # nothing links to pages that are not open
        if spans:
            return pages.url(f"page/{page_id}", hl=spans_query(spans)) + f"#e{spans[0].element}"
        if section:
            return pages.url(f"page/{page_id}", section=section) + f"#{quote(section_id(section))}"
        return pages.url(f"page/{page_id}")

    @property
    def pages(self) -> Opened | None:
        """The opened release of pages that it is, or else was made from; None where that is not open."""
        return self if self.source is not None else self.made_from


def section_id(text: str) -> str:
    """Gives the name that a heading has in a view.

    >>> section_id("Early life")
    's-Early_life'
    """
    return f"s-{_BLANKS.sub('_', text)}"


def open_releases(paths: Sequence[tuple[str, Storage]]) -> tuple[Opened, ...]:
    """Opens releases of any kind, those in their folders too, and says of each which pages it was made from.

    Args:
        paths: folders of the releases with their storages.

    Raises:
        SetupError: a folder holds no finished release.
    """
    taken: set[str] = set()
    with ExitStack() as stack:
        found = tuple(_open(path, storage, base_name(path), taken, stack) for path, storage in paths)
        stack.pop_all()
    by_sha256 = {opened.sha256: opened for opened in found if opened.source is not None}
    return tuple(_with_pages(opened, by_sha256) for opened in found)


def close_releases(releases: Sequence[Opened]) -> None:
    """Closes the files of releases."""
    for opened in every_release(releases):
        if opened.source is not None:
            if "finder" in vars(opened):
                opened.finder.close()
            opened.source.close()


def every_release(releases: Sequence[Opened]) -> Iterator[Opened]:
    """Gives releases, each before those in its folders."""
    for opened in releases:
        yield opened
        yield from every_release(opened.parts)


def _open(path: str, storage: Storage, name: str, taken: set[str], stack: ExitStack) -> Opened:
    if isinstance(storage, LocalStorage):
        storage = LocalStorage(maps_tables=False)
    kind = kind_of(read_content(path, storage), path, KINDS)
    manifest = kind.read(path, storage)
    slug = _slug(name, taken)
    source = None
    if kind is PAGES_RELEASE:
        source = stack.enter_context(KnowledgeSource.open(path, storage))
    parts = tuple(
        _open(join(path, part.folder), storage, f"{slug} {part.folder}", taken, stack) for part in manifest.parts
    )
    return Opened(slug, path, storage, kind, manifest, source, parts)


def _with_pages(opened: Opened, by_sha256: dict[str, Opened]) -> Opened:
    if opened.source is not None:
        return opened
    made_from = opened.manifest.made_from if isinstance(opened.manifest, ListingManifest) else None
    parts = tuple(_with_pages(part, by_sha256) for part in opened.parts)
    return replace(opened, parts=parts, made_from=by_sha256.get(made_from or ""))


def _slug(name: str, taken: set[str]) -> str:
    """Gives a name of letters, digits and hyphens that is not taken, and takes it."""
    plain = _OTHERS.sub("-", name.lower()).strip("-") or "release"
    number, slug = 1, plain
    while slug in taken:
        number += 1
        slug = f"{plain}-{number}"
    taken.add(slug)
    return slug
