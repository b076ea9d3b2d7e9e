"""Finds pages of a release: by typed text, by links to a page, and at random."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import unicodedata
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
from rapidfuzz import fuzz, process

from kbsource.errors import SetupError
from kbsource.files import Folder
from kbsource.index.title_index import TitleIndex
from kbsource.lookup import KnowledgeSource
from kbsource.release.manifest import Manifest
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.release.sql import add_tables, connected, identifier, quoted

OnProgress = Callable[[int, int], None]


class _StoppedError(Exception):
    """Nobody waits for the index any more."""


def cache_folder(sha256: str) -> Path:
    """Returns the cache folder of a release, named by its hash."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "kbsource" / "inspector" / sha256


_FILE, _SHA256 = "rows.parquet", "rows.sha256"
_SHORTER, _MOST_COMPARED, _LIKE = 3, 200, 60
"""Limits for similar titles: by how many letters the common prefix may be shorter than possible, how many titles of
each prefix are compared, and the minimum similarity in per cent."""
_ORDER_MB = 200
"""Memory for sorting an index. Larger indexes are sorted on disk."""


class OrderedRows:
    """The sorted rows of an index. Several threads may use it."""

    def __init__(self, folder: str) -> None:
        self._open = ExitStack()
        self._db = self._open.enter_context(connected(reads=[folder], memory_mb=_ORDER_MB, threads=1))
        self._db.execute(f"create view rows as from read_parquet({quoted(os.path.join(folder, _FILE))})")

    def column(self, query: str, *values: Any) -> list[Any]:
        """Returns the first column of the result of a query on ``rows``."""
        return [row[0] for row in self._db.cursor().execute(query, values).fetchall()]

    def close(self) -> None:
        """Closes the file."""
        self._open.close()


class SideIndex:
    """An index that is loaded from its cache, or built in a thread. Any thread may request it.

    Args:
        folder: folder of the complete index.
        make: writes the file of the index to a folder and reports the amount done and the total.
    """

    def __init__(self, folder: Path, make: Callable[[str, OnProgress], None]) -> None:
        self._folder, self._make = folder, make
        self._turn = RLock()
        self._stopped = Event()
        self._thread: Thread | None = None
        self._opened: OrderedRows | None = None
        self._done, self._total = 0, 0
        self.fault: str | None = None

    @property
    def percent(self) -> int:
        """Returns how much is built, in per cent."""
        if self._opened is not None:  # if it was loaded from its cache, nothing is counted as done
            return 100
        return 100 * self._done // self._total if self._total else 0

    def get(self) -> OrderedRows | None:
        """Returns the index; None while it is being built or if it has a ``fault``. The first call starts to build
        it."""
        with self._turn:
            if self._opened is None and self._thread is None and self.fault is None:
                if _is_whole(self._folder):
                    self._opened = OrderedRows(str(self._folder))
                else:
                    self._thread = Thread(target=self._run, name=self._folder.name, daemon=True)
                    self._thread.start()
            return self._opened

    def wait(self) -> OrderedRows | None:
        """Waits for the index and returns it; None if it has a ``fault``."""
        self.get()
        if (thread := self._thread) is not None:
            thread.join()
        return self.get()

    def close(self) -> None:
        """Closes the index, or stops building it and removes what was written."""
        self._stopped.set()
        if (thread := self._thread) is not None:
            thread.join(timeout=10)
        if self._opened is not None:
            self._opened.close()

    def _run(self) -> None:
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder.parent, prefix=f"{self._folder.name}.") as scratch:
                made = os.path.join(scratch, "made")
                os.mkdir(made)
                self._make(made, self._see)
                Path(made, _SHA256).write_text(Folder.of(made).sha256(_FILE))
                if not _is_whole(self._folder):  # another process may have built it first
                    shutil.rmtree(self._folder, ignore_errors=True)
                    os.rename(made, self._folder)
            opened = OrderedRows(str(self._folder))
        except (OSError, SetupError, duckdb.Error) as error:
            with self._turn:
                self.fault, self._thread = str(error), None
        except _StoppedError:
            pass
        else:
            with self._turn:
                self._opened, self._thread = opened, None

    def _see(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        if self._stopped.is_set():
            raise _StoppedError


def _is_whole(folder: Path) -> bool:
    """Returns whether an index is unchanged since it was written. Otherwise it is rebuilt."""
    try:
        return (folder / _SHA256).read_text() == Folder.of(folder).sha256(_FILE)
    except (OSError, ValueError):
        return False


def folded(text: str) -> str:
    """Returns a title in the form that is compared: case and accents are removed.

    >>> folded("Zürich") == folded("ZURICH") == "zurich"
    True
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    return kept.encode("utf-8", "replace").decode()


def write_title_order(index: TitleIndex, folder: str, on_progress: OnProgress) -> None:
    """Writes the titles that lead to an article in alphabetical order. ``on_progress`` is called with the titles
    done."""
    n_titles, n_done = len(index), 0
    with connected(writes=[folder], memory_mb=_ORDER_MB, threads=1, scratch=folder) as db:
        db.execute("create table titles (key varchar, number integer)")
        for batch in index.title_batches():
            keys = pa.array([folded(title) for title in batch["title"].to_pylist()], pa.string())
            numbers = pa.array(range(n_done, n_done + len(keys)), pa.int32())
            db.register("read", pa.table([keys, numbers, batch["final_row"]], ["key", "number", "final_row"]))
            db.execute("insert into titles select key, number from read where final_row >= 0")
            n_done += len(keys)
            on_progress(n_done, n_titles)
        _write_ordered(db, "titles", folder)


def titles_beginning_with(order: OrderedRows, text: str, n_titles: int) -> list[int]:
    """Returns the numbers of at most ``n_titles`` titles that start with a text, in alphabetical order."""
    asked = "select number from rows where key between $1 and $1 || chr(1114111) order by key, number limit $2"
    return order.column(asked, folded(text), n_titles) if text else []


def write_backlinks(path: str, manifest: Manifest, folder: str, on_progress: OnProgress) -> None:
    """Writes pairs of pages of which one links to the other. ``on_progress`` is called with the pages done."""
    n_done, entries = 0, manifest.tables["pages"]
    with connected(reads=[path], writes=[folder], memory_mb=_ORDER_MB, threads=1, scratch=folder) as db:
        add_tables(db, PAGES_RELEASE.declared, {"pages": [entry.file for entry in entries]}, path)
        db.execute("create table released as select page_id from pages")
        db.execute("create table links (target bigint, source bigint)")
        for entry in entries:
            add_tables(db, PAGES_RELEASE.declared, {"pages": [entry.file]}, path)
            db.execute(
                "insert into links select * from (select unnest(list_distinct([a.target_page_id for a in anchors])) "
                "as target, page_id from pages) where target in (from released)"
            )
            n_done += entry.rows or 0
            on_progress(n_done, manifest.n_rows("pages"))
        _write_ordered(db, "links", folder)


def _write_ordered(db: duckdb.DuckDBPyConnection, table: str, folder: str) -> None:
    db.execute(
        f"copy (from {identifier(table)} order by all) to {quoted(os.path.join(folder, _FILE))} (format parquet)"
    )


class FoundTitle(NamedTuple):
    """A page that was found, and how."""

    title: str  #: title that was found; for a redirect the redirect's own title
    page_id: int
    note: str = ""  #: title of the page if it differs, otherwise how the page was found, or empty


class PageFinder:
    """Looks up pages in a release of pages. Side indexes are built at first use. Several threads may use it."""

    def __init__(self, path: str, manifest: PagesManifest, source: KnowledgeSource) -> None:
        self._source = source
        folder = index_folder(path, manifest)
        self._index = TitleIndex.open(folder, cache_size=0)
        self._locations = Locations(folder)
        cache = cache_folder(manifest.sha256)
        self.titles = SideIndex(cache / "titles-2", partial(write_title_order, self._index))
        self.backlinks = SideIndex(cache / "backlinks-2", partial(write_backlinks, path, manifest))

    def close(self) -> None:
        """Stops building side indexes and closes them."""
        self.titles.close()
        self.backlinks.close()

    def title(self, page_id: int) -> str | None:
        """Returns the title of a page, or None if the release does not have the page."""
        return None if self._locations.page(page_id) is None else self._index.article_title(page_id)

    def exact(self, asked: str) -> tuple[FoundTitle, ...]:
        """Returns the pages that a text identifies: by URL, Wikidata item, title or page id."""
        asked = asked.strip()
        found: list[FoundTitle] = []
        named = self._source.resolve(asked) if asked else None
        if named is not None and named.page_id is not None and named.title is not None:
            is_redirect = named.by == "title" and named.asked != named.title
            note = f"→ {named.title}" if is_redirect else f"page {asked}" if named.by == "id" else ""
            found.append(FoundTitle(named.asked if is_redirect else named.title, named.page_id, note))
        number = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 19 else None
        item = self._locations.page_of_qid(asked)
        for page_id, note in ((item, f"item {asked.upper()}"), (number, f"page {asked}")):
            known = {page.page_id for page in found}
            if page_id is not None and page_id not in known and (title := self.title(page_id)) is not None:
                found.append(FoundTitle(title, page_id, note))
        return tuple(found)

    def beginning_with(self, asked: str, n_titles: int) -> tuple[FoundTitle, ...]:
        """Returns pages whose titles, or titles of redirects to them, start with the typed text; none before the index
        is built."""
        order = self.titles.get()
        numbers = [] if order is None else titles_beginning_with(order, asked.strip().replace("_", " "), n_titles)
        return tuple(
            FoundTitle(entry.title, entry.final_page_id, f"→ {entry.final_title}" if entry.is_redirect else "")
            for entry in map(self._index.entry, numbers)
            if entry.final_page_id is not None and self._locations.page(entry.final_page_id) is not None
        )

    def similar_to(self, title: str, n_titles: int) -> list[str]:
        """Returns titles similar to an unknown title, the most similar first; none before the index is built.

        They share its prefix: the longest prefix that any title has, at least two letters.
        """
        order, asked = self.titles.get(), folded(title.strip().replace("_", " "))
        if order is None:
            return []
        longest, shortest = len(asked), 2  # prefixes that some title has; found by binary search
        while shortest < longest:
            middle = (shortest + longest + 1) // 2
            if titles_beginning_with(order, asked[:middle], 1):
                shortest = middle
            else:
                longest = middle - 1
        numbers: dict[int, None] = {}
        for length in range(shortest, max(shortest - _SHORTER, 1), -1):
            numbers |= dict.fromkeys(titles_beginning_with(order, asked[:length], _MOST_COMPARED))
        titles = [self._index.entry(number).title for number in numbers]
        found = process.extract(asked, titles, scorer=fuzz.ratio, processor=folded, limit=n_titles, score_cutoff=_LIKE)
        return [title for title, _, _ in found]

    def chance(self) -> int | None:
        """Returns the id of a random page, uniformly drawn; None if there are no pages."""
        n_pages = self._locations.n_pages
        return self._locations.page_id(secrets.randbelow(n_pages)) if n_pages else None

    def n_linking(self, page_id: int) -> int | None:
        """Returns how many pages link to a page; None before the index is built."""
        made = self.backlinks.get()
        return None if made is None else made.column("select count(*) from rows where target = ?", page_id)[0]

    def linking(self, page_id: int, start: int, end: int) -> list[FoundTitle]:
        """Returns pages that link to a page, by page id, from ``start`` up to but not including ``end``."""
        made = self.backlinks.get()
        asked = "select source from rows where target = ? order by source limit ? offset ?"
        ids = [] if made is None else made.column(asked, page_id, end - start, start)
        return [FoundTitle(self._index.article_title(own) or "", own) for own in ids]
