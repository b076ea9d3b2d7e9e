"""The ways to a page of a release: what somebody typed, what links to it, and chance."""

from __future__ import annotations

import os
import secrets
import shutil
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

from kbsource.errors import SetupError, named_faults
from kbsource.files import Folder
from kbsource.index.title_index import TitleIndex
from kbsource.lookup import KnowledgeSource
from kbsource.release.manifest import Manifest
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.release.sql import add_tables, connected, identifier, quoted
from kbsource.temporary import TemporaryFolder

OnProgress = Callable[[int, int], None]


class _StoppedError(Exception):
    """Nobody waits for the index any more."""


def cache_folder(sha256: str) -> Path:
    """The folder for what is made out of a release, named by its hash."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "kbsource" / "inspector" / sha256


_FILE, _SHA256 = "rows.parquet", "rows.sha256"
_SHORTER, _MOST_COMPARED, _LIKE = 3, 200, 60
"""Of titles that are like another: by how many letters their common beginning may be shorter than it could be, how many
titles of each beginning are compared, and the similarity in per cent from which on one is proposed."""
_ORDER_MB = 200
"""What an index is put in order in; what needs more goes to the disk."""


class OrderedRows:
    """The rows of an index, which stand in order; threads may share one."""

    def __init__(self, folder: str) -> None:
        self._open = ExitStack()
        self._db = self._open.enter_context(connected(reads=[folder], memory_mb=_ORDER_MB, threads=1))
        self._db.execute(f"create view rows as from read_parquet({quoted(os.path.join(folder, _FILE))})")

    def column(self, query: str, *values: Any) -> list[Any]:
        """The first column of what a query on ``rows`` gives."""
        return [row[0] for row in self._db.cursor().execute(query, values).fetchall()]

    def close(self) -> None:
        """Closes the file."""
        self._open.close()


class SideIndex:
    """An index that is opened where it was made before, else made in a thread; any thread may ask for it.

    Args:
        folder: where it lies once it is whole.
        make: writes its file to a folder, and says how much is done and of how much.
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
        """How much is made, in percent."""
        if self._opened is not None:  # where it was made before, nothing is done
            return 100
        return 100 * self._done // self._total if self._total else 0

    def get(self) -> OrderedRows | None:
        """The index; None while it is made, which begins with the first call, or where it has a ``fault``."""
        with self._turn:
            if self._opened is None and self._thread is None and self.fault is None:
                if _is_whole(self._folder):
                    self._opened = OrderedRows(str(self._folder))
                else:
                    self._thread = Thread(target=self._run, name=self._folder.name, daemon=True)
                    self._thread.start()
            return self._opened

    def wait(self) -> OrderedRows | None:
        """The index once it is made; None where it has a ``fault``."""
        self.get()
        if (thread := self._thread) is not None:
            thread.join()
        return self.get()

    def close(self) -> None:
        """Closes it, or stops the work on it; what was begun is removed."""
        self._stopped.set()
        if (thread := self._thread) is not None:
            thread.join(timeout=10)
        if self._opened is not None:
            self._opened.close()

    def _run(self) -> None:
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            with named_faults(), TemporaryFolder(str(self._folder.parent)) as scratch:
                made = os.path.join(scratch, "made")
                os.mkdir(made)
                self._make(made, self._see)
                Path(made, _SHA256).write_text(Folder.of(made).sha256(_FILE))
                if not _is_whole(self._folder):  # another process may have been sooner
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
    """Whether an index is there as it was written: what became of it later is made again."""
    try:
        return (folder / _SHA256).read_text() == Folder.of(folder).sha256(_FILE)
    except (OSError, ValueError):
        return False


def folded(text: str) -> str:
    """A title as it is compared: letters alike but for case and accents are one.

    >>> folded("Zürich") == folded("ZURICH") == "zurich"
    True
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    return kept.encode("utf-8", "replace").decode()


def write_title_order(index: TitleIndex, folder: str, on_progress: OnProgress) -> None:
    """Writes the titles that lead to an article in the order of the alphabet; ``on_progress`` is told titles done."""
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
    """Numbers of the titles that begin with a text, in the order of the alphabet, so many at most."""
    asked = "select number from rows where key between $1 and $1 || chr(1114111) order by key, number limit $2"
    return order.column(asked, folded(text), n_titles) if text else []


def write_backlinks(path: str, manifest: Manifest, folder: str, on_progress: OnProgress) -> None:
    """Writes the pairs of pages of which one links to the other; ``on_progress`` is told pages done."""
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

    title: str  #: as it was found: of a redirect its own
    page_id: int
    note: str = ""  #: what the page is called where that is another title, else how it was found, or empty


class PageFinder:
    """Lookups in a release of pages; side indexes are made when they are asked for first. Threads may share one."""

    def __init__(self, path: str, manifest: PagesManifest, source: KnowledgeSource) -> None:
        self._source = source
        folder = index_folder(path, manifest)
        self._index = TitleIndex.open(folder, cache_size=0)
        self._locations = Locations(folder)
        cache = cache_folder(manifest.sha256)
        self.titles = SideIndex(cache / "titles-2", partial(write_title_order, self._index))
        self.backlinks = SideIndex(cache / "backlinks-2", partial(write_backlinks, path, manifest))

    def close(self) -> None:
        """Stops the work on side indexes, and closes them."""
        self.titles.close()
        self.backlinks.close()

    def title(self, page_id: int) -> str | None:
        """The title of a page, None when the release has no such page."""
        return None if self._locations.page(page_id) is None else self._index.article_title(page_id)

    def exact(self, asked: str) -> tuple[FoundTitle, ...]:
        """The pages that something names by itself: an address, an item, a title, a number."""
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
        """Pages by the titles that begin with what was typed, redirects' among them; none before the index is
        made."""
        order = self.titles.get()
        numbers = [] if order is None else titles_beginning_with(order, asked.strip().replace("_", " "), n_titles)
        return tuple(
            FoundTitle(entry.title, entry.final_page_id, f"→ {entry.final_title}" if entry.is_redirect else "")
            for entry in map(self._index.entry, numbers)
            if entry.final_page_id is not None and self._locations.page(entry.final_page_id) is not None
        )

    def similar_to(self, title: str, n_titles: int) -> list[str]:
        """Titles that are like one that no page has, the likest first; none before the index is made.

        They share its beginning: as much of it as any title has, at least two letters.
        """
        order, asked = self.titles.get(), folded(title.strip().replace("_", " "))
        if order is None:
            return []
        longest, shortest = len(asked), 2  # of beginnings that some title has; binary search
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
        """The id of any page, each as likely as the others; None where there is none."""
        n_pages = self._locations.n_pages
        return self._locations.page_id(secrets.randbelow(n_pages)) if n_pages else None

    def n_linking(self, page_id: int) -> int | None:
        """How many pages link to a page; None before that is counted."""
        made = self.backlinks.get()
        return None if made is None else made.column("select count(*) from rows where target = ?", page_id)[0]

    def linking(self, page_id: int, start: int, end: int) -> list[FoundTitle]:
        """Pages that link to a page, by page id, from the ``start``th up to but not including the ``end``th."""
        made = self.backlinks.get()
        asked = "select source from rows where target = ? order by source limit ? offset ?"
        ids = [] if made is None else made.column(asked, page_id, end - start, start)
        return [FoundTitle(self._index.article_title(own) or "", own) for own in ids]
