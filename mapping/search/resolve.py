"""A page as a dataset names it (title, address, page id, Wikidata item) -> the page of a release."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import NamedTuple

from kbsource.errors import SetupError
from kbsource.files import Storage, storage_or_local
from kbsource.index.title_index import TitleIndex
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.site import Site
from kbsource.titles import normalise_title
from kbsource.urls import UrlParser
from mapping.records import PageKey

_CACHED_TITLES = 1 << 12


class Resolved(NamedTuple):
    """Where a key leads.

    Attributes:
        page_id, title: the page; None when the release has none.
        found_by: ``title``, ``redirect``, ``url``, ``page_id``, ``qid``, ``title_map`` or ``fuzzy``; None when it was
            not found.
        hops: redirects followed.
        asked: title that similar ones can be looked up for when the page is missing, in normal form; None where the
            key holds none.
    """

    page_id: int | None
    title: str | None
    found_by: str | None
    hops: int
    asked: str | None


class Resolver:
    """Looks pages up in the memory-mapped index of a release; no page is read.

    A title is tried in this order: the table of known moves; its normal form, redirects followed to their end; the
    same with character references decoded (``AT&amp;T``); the same without a trailing ``#section``. Titles that lead
    to an article which the release had to reject are missing.
    """

    def __init__(
        self, site: Site, *, index: TitleIndex, locations: Locations, moves: Mapping[str, str] | None = None
    ) -> None:
        """Makes a resolver.

        Args:
            site: facts of the wiki.
            index, locations: of the release.
            moves: table of known moves, old title -> new title or page id, from ``read_moves``.
        """
        self._site = site
        self._parse_url = UrlParser(site).parse
        self._index = index
        self._locations = locations
        self._moves = {normalise_title(old, site): new for old, new in (moves or {}).items()}

    @classmethod
    def open(cls, release: str, *, moves: Mapping[str, str] | None = None, storage: Storage | None = None) -> Resolver:
        """Opens the index of a release.

        Args:
            release: its folder.
            moves: as for ``Resolver``.
            storage: of the folder; None for the local file system.

        Raises:
            SetupError: the folder holds no finished release, or is remote and without a storage.
        """
        storage = storage_or_local(release, storage)
        manifest = PAGES_RELEASE.read(release, storage)
        folder = index_folder(release, manifest, storage)
        index = TitleIndex.open(folder, cache_size=_CACHED_TITLES)
        return cls(manifest.site, index=index, locations=Locations(folder), moves=moves)

    @property
    def index(self) -> TitleIndex:
        """The titles of the release."""
        return self._index

    def location(self, page_id: int) -> tuple[int, int]:
        """Gives shard and row of a page that was found."""
        found = self._locations.page(page_id)
        if found is None:
            raise KeyError(page_id)
        return found

    def resolve(self, key: PageKey, *, fallback: PageKey | None = None) -> Resolved:
        """Gives where a key leads.

        Args:
            key: as the dataset has it.
            fallback: another name of the same page, tried when the first leads nowhere.
        """
        found = self._by_key(key)
        if found.page_id is None and fallback is not None:
            other = self._by_key(fallback)
            return other if other.page_id is not None or found.asked is None else found
        return found

    def resolve_similar(self, title: str) -> Resolved:
        """Gives where a title leads that was chosen for its likeness."""
        found = self._by_title(title)
        return found if found.page_id is None else found._replace(found_by="fuzzy")

    def _by_key(self, key: PageKey) -> Resolved:
        if key.kind == "title":
            return self._by_written_title(key.value)
        if key.kind == "url":
            return self._by_url(key.value)
        if key.kind == "page_id":
            return self._by_id(key.value, "page_id")
        if key.kind == "qid":
            page_id = self._locations.page_of_qid(key.value.strip())
            return self._article(page_id, "qid")
        raise ValueError(f"no kind of key: {key.kind!r}")

    def _by_written_title(self, written: str) -> Resolved:
        asked = normalise_title(written, self._site)
        if (new := self._moves.get(asked)) is not None and (found := self._by_move(new)).page_id is not None:
            return found._replace(found_by="title_map", asked=asked)
        forms = [asked]
        if "&" in written:
            forms.append(normalise_title(html.unescape(written), self._site))
        forms += [normalise_title(form.partition("#")[0], self._site) for form in forms if "#" in form]
        for form in forms:
            if form and (found := self._by_title(form)).page_id is not None:
                return found
        return Resolved(None, None, None, 0, forms[-1] or asked)

    def _by_move(self, new: str) -> Resolved:
        found = self._by_title(normalise_title(new, self._site))
        return self._by_id(new, "title_map") if found.page_id is None else found

    def _by_title(self, asked: str) -> Resolved:
        found = self._index.resolve(asked)
        if found.page_id is None or self._locations.page(found.page_id) is None:
            return Resolved(None, None, None, 0, asked)
        return Resolved(found.page_id, found.title, "redirect" if found.hops else "title", found.hops, asked)

    def _by_url(self, url: str) -> Resolved:
        address = self._parse_url(url)
        if address is None:
            return Resolved(None, None, None, 0, None)
        if address.page_id is not None:
            found = self._article(address.page_id, "url")
            if found.page_id is not None or address.title is None:
                return found
        if address.title is None:
            return Resolved(None, None, None, 0, None)
        found = self._by_written_title(address.title)
        return found if found.found_by in (None, "title_map") else found._replace(found_by="url")

    def _by_id(self, written: str, found_by: str) -> Resolved:
        written = written.strip()
        if not (written.isascii() and written.isdecimal() and len(written) <= 18):
            return Resolved(None, None, None, 0, None)
        return self._article(int(written), found_by)

    def _article(self, page_id: int | None, found_by: str) -> Resolved:
        if page_id is None or self._locations.page(page_id) is None:
            return Resolved(None, None, None, 0, None)
        return Resolved(page_id, self._index.article_title(page_id), found_by, 0, None)


def read_moves(path: str, storage: Storage) -> dict[str, str]:
    """Reads a table of known moves: a line each, old title, tab, new title or page id.

    Blank lines are skipped. A number is a title where there is one of that name (``1984``), else a page id.

    Raises:
        SetupError: there is no such file, or a line is not of that form, or an old title comes twice.
    """
    if not storage.exists(path):
        raise SetupError(f"{path} does not exist; check the path given with --title-map.")
    with storage.open_read(path) as file:
        try:
            lines = file.read().decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise SetupError(f"{path} is not in UTF-8 ({error}); convert it.") from error
    moves: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        old, new = (part.strip() for part in line.partition("\t")[::2])
        if not (old and new):
            raise SetupError(f"{path}, line {number}: {line[:80]!r} is not: old title, tab, new title or page id.")
        if moves.get(old, new) != new:
            raise SetupError(f"{path}, line {number}: {old!r} was moved to {moves[old]!r} in a line before; keep one.")
        moves[old] = new
    return moves
