"""The title index: every main-namespace title of a dump, memory-mapped, with redirects resolved.

It has two uncompressed Arrow IPC files, with version ``FORMAT`` in their schema metadata and rows addressed by number.

``titles.arrow``: one row per title, sorted by (title hash, title, articles first, highest page id first), in batches of
exactly ``BATCH_ROWS`` rows (the last batch may be shorter). Columns: ``key`` (``identity.title_hash``), ``page_id``
(negative for a redirect whose page id is unknown),
``title``, ``target_title`` and ``fragment`` (as written in the redirect; null for articles), and the computed columns
``target_row`` (row that the redirect names, or -1), ``final_row`` (row of the article at the end of the
chain, or -1; an article's own row), ``hops`` and ``status`` (index into ``STATUSES``).

``articles.arrow``: one row per article, sorted by page id, in batches of ``BATCH_ROWS``. Columns: ``page_id``, ``row``
(in titles.arrow) and ``redirects`` (rows in titles.arrow of the redirects that end there).

If a page was moved while the dump was being written, two pages may have the same title. Both are in the index. The
title resolves to the article rather than the redirect, and of two articles to the one that was created last, which has
the highest page id.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kbsource.identity import title_hash
from kbsource.index.mapped_files import MappedFile, MappedNumbers, MappedStrings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from kbsource.index.title_columns import TitleColumns

FORMAT = "kbsource-title-index-1"
BATCH_SHIFT = 16
BATCH_ROWS = 1 << BATCH_SHIFT
TITLES_FILE = "titles.arrow"
ARTICLES_FILE = "articles.arrow"

STATUSES = ("article", "ok", "double", "loop", "missing_target", "cross_namespace")
ARTICLE, OK, DOUBLE, LOOP, MISSING, CROSS = range(6)
_FEW_TITLES = 32
"""Minimum number of titles that are looked up in arrays. Fewer titles are looked up faster one by one."""

TITLES_SCHEMA = pa.schema(
    [
        pa.field("key", pa.uint64(), nullable=False),
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("target_title", pa.string()),
        pa.field("fragment", pa.string()),
        pa.field("target_row", pa.int32(), nullable=False),
        pa.field("final_row", pa.int32(), nullable=False),
        pa.field("hops", pa.int32(), nullable=False),
        pa.field("status", pa.int8(), nullable=False),
    ],
    metadata={"format": FORMAT},
)
ARTICLES_SCHEMA = pa.schema(
    [
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
        pa.field("redirects", pa.list_(pa.field("item", pa.int32(), nullable=False)), nullable=False),
    ],
    metadata={"format": FORMAT},
)


class TitleEntry(NamedTuple):
    """One title of the index.

    Attributes:
        page_id: None for a redirect whose page id is unknown.
        target_title, fragment: target of the redirect, as written; None for articles.
        final_title, final_page_id: the article at the end of the chain (an article's own), or None.
        hops: number of redirects up to the article, or up to the point where the chain ends without one or repeats; 0
            for articles.
        status: one of ``STATUSES``.
    """

    title: str
    page_id: int | None
    is_redirect: bool
    target_title: str | None
    fragment: str | None
    final_title: str | None
    final_page_id: int | None
    hops: int
    status: str


class Resolution(NamedTuple):
    """The page that a title resolves to.

    Attributes:
        title: the article's title; the requested title if there is no article.
        page_id: id of the article, or None.
        fragment: section that the redirects name; if there are several, the one nearest to the article.
        hops: number of redirects followed.
        status: one of ``STATUSES``, or ``unknown`` for a title that the dump does not have.
    """

    title: str
    page_id: int | None
    fragment: str | None
    hops: int
    status: str


class _TitleBatch:
    __slots__ = (
        "final_row",
        "fragment",
        "hops",
        "key",
        "page_id",
        "status",
        "target_row",
        "target_title",
        "title",
    )

    def __init__(self, batch: pa.RecordBatch, file: MappedFile) -> None:
        self.key = MappedNumbers(batch["key"], file)
        self.page_id = MappedNumbers(batch["page_id"], file)
        self.title = MappedStrings(batch["title"], file)
        self.target_title = MappedStrings(batch["target_title"], file)
        self.fragment = MappedStrings(batch["fragment"], file)
        self.target_row = MappedNumbers(batch["target_row"], file)
        self.final_row = MappedNumbers(batch["final_row"], file)
        self.hops = MappedNumbers(batch["hops"], file)
        self.status = MappedNumbers(batch["status"], file)


class _ArticleBatch:
    __slots__ = ("offsets", "page_id", "redirects", "row")

    def __init__(self, batch: pa.RecordBatch, file: MappedFile) -> None:
        self.page_id = MappedNumbers(batch["page_id"], file)
        self.row = MappedNumbers(batch["row"], file)
        self.offsets = MappedNumbers(batch["redirects"].offsets, file)
        self.redirects = MappedNumbers(batch["redirects"].values, file)


class Unresolved:
    """Takes the place of an index if there is none. Every title resolves to itself, without an article."""

    def resolve(self, title: str) -> Resolution:
        """Returns the title itself, unresolved."""
        return Resolution(title, None, None, 0, "unknown")

    def resolve_all(self, titles: Iterable[str]) -> dict[str, Resolution]:
        """Returns the titles themselves, unresolved."""
        return {title: self.resolve(title) for title in titles}

    def redirects_to(self, page_id: int) -> tuple[str, ...]:
        """Returns no titles."""
        return ()


class TitleIndex:
    """Looks up titles in a title index. Memory: the mapped files and one bounded cache.

    Processes that open the same index share the mapped memory.
    """

    def __init__(self, titles: MappedFile, articles: MappedFile, cache_size: int):
        #: yields the batches of titles.arrow in order, mapped
        self.title_batches = titles.whole
        self._file = titles
        self._titles = [_TitleBatch(batch, titles) for batch in titles.batches]
        self._articles = [_ArticleBatch(batch, articles) for batch in articles.batches]
        self._first_keys = [batch.key[0] for batch in self._titles]
        self._first_ids = [batch.page_id[0] for batch in self._articles]
        self.n_titles = sum(len(batch.key) for batch in self._titles)
        self.n_articles = sum(len(batch.page_id) for batch in self._articles)
        self._columns: TitleColumns | None = None
        # A cache of two generations: a used title moves from the older one to the recent one. When the recent one is
        # full, the titles left in the older one are dropped. As the frequencies of links follow Zipf's law, this is as
        # good as dropping the least recently used title, and a batch of titles can be looked up without resolving
        # missing ones.
        self._generation_size = cache_size // 2
        self._recent: dict[str, Resolution] = {}
        self._older: dict[str, Resolution] = {}

    @classmethod
    def open(cls, folder: str, *, cache_size: int = 1 << 16) -> TitleIndex:
        """Opens the index of a local folder.

        Args:
            folder: local folder that contains ``titles.arrow`` and ``articles.arrow``.
            cache_size: number of resolved titles cached, about 400 bytes each.

        Raises:
            SetupError: a file is missing, damaged, or of another version.
        """
        return cls(
            MappedFile(os.path.join(folder, TITLES_FILE), TITLES_SCHEMA),
            MappedFile(os.path.join(folder, ARTICLES_FILE), ARTICLES_SCHEMA),
            cache_size,
        )

    def __len__(self) -> int:
        return self.n_titles

    def __contains__(self, title: str) -> bool:
        return self._row(title) >= 0

    def _row(self, title: str) -> int:
        key = title_hash(title)
        position = bisect_left(self._first_keys, key)
        number = max(position - 1, 0)
        if number == len(self._titles):
            return -1
        i = self._titles[number].key.find(key)
        raw = title.encode("utf-8", "surrogatepass")
        while number < len(self._titles):
            batch = self._titles[number]
            while i < len(batch.key):
                if batch.key[i] != key:
                    return -1
                if batch.title.raw(i) == raw:
                    return (number << BATCH_SHIFT) + i
                i += 1
            number, i = number + 1, 0
        return -1

    def find(self, title: str) -> TitleEntry | None:
        """Returns the entry of a title in normal form; None if the dump has no such title."""
        row = self._row(title)
        return None if row < 0 else self.entry(row)

    def entry(self, row: int) -> TitleEntry:
        """Returns the entry at a row, 0 <= row < len(self)."""
        batch, i = self._titles[row >> BATCH_SHIFT], row & (BATCH_ROWS - 1)
        final_row = batch.final_row[i]
        final_title, final_page_id = None, None
        if final_row >= 0:
            final_title, final_page_id = self.title_at(final_row), self._page_id_at(final_row)
        status = batch.status[i]
        return TitleEntry(
            batch.title.text(i),
            page_id if (page_id := batch.page_id[i]) >= 0 else None,
            status != ARTICLE,
            batch.target_title.get(i),
            batch.fragment.get(i),
            final_title,
            final_page_id,
            batch.hops[i],
            STATUSES[status],
        )

    def title_at(self, row: int) -> str:
        """Returns the title at a row, 0 <= row < len(self)."""
        return self._titles[row >> BATCH_SHIFT].title.text(row & (BATCH_ROWS - 1))

    def _page_id_at(self, row: int) -> int:
        return self._titles[row >> BATCH_SHIFT].page_id[row & (BATCH_ROWS - 1)]

    def resolve(self, title: str) -> Resolution:
        """Returns the page that a title in normal form resolves to."""
        found = self._recent.get(title)
        if found is None:
            found = self._older.get(title) or self._resolve(title)
            self._cache({title: found})
        return found

    def resolve_all(self, titles: Iterable[str]) -> dict[str, Resolution]:
        """Returns what ``resolve`` returns for each title, in much less time for hundreds of titles."""
        found, missing, kept = dict[str, Resolution](), [], dict[str, Resolution]()
        recent, older = self._recent.get, self._older.get
        for title in titles:
            known = recent(title)
            if known is not None:
                found[title] = known
            elif (known := older(title)) is not None:
                kept[title] = known
            else:
                missing.append(title)
        if self._titles and self._file.blocks is None and len(missing) >= _FEW_TITLES:
            kept.update(self._resolve_missing(missing))
        else:
            kept.update((title, self._resolve(title)) for title in missing)
        self._cache(kept)
        found.update(kept)
        return found

    def _resolve_missing(self, titles: Sequence[str]) -> dict[str, Resolution]:
        from kbsource.index import title_columns  # needs NumPy, which is not installed where releases are only read

        if self._columns is None:
            self._columns = title_columns.TitleColumns(self._file, batch_shift=BATCH_SHIFT, article=ARTICLE, one_hop=OK)
        page_ids, others = self._columns.find(titles)
        values = zip(titles, page_ids, repeat(None), repeat(0), repeat(STATUSES[ARTICLE]))
        found = dict(zip(titles, map(tuple.__new__, repeat(Resolution), values), strict=False))
        redirects = [row for row in others.values() if row >= 0]
        articles = dict(zip(redirects, self._columns.follow(redirects), strict=True))
        for place, row in others.items():
            title = titles[place]
            if row == title_columns.ABSENT:
                found[title] = Resolution(title, None, None, 0, "unknown")
            elif row == title_columns.UNCERTAIN:
                found[title] = self._resolve(title)
            elif (article := articles[row]) is None:
                found[title] = self._resolution(title, row)
            else:
                found[title] = Resolution(*article, None, 1, STATUSES[OK])
        return found

    def _cache(self, found: dict[str, Resolution]) -> None:
        if len(self._recent) + len(found) > self._generation_size:
            self._older, self._recent = self._recent, {}
        self._recent.update(found)

    def _resolve(self, title: str) -> Resolution:
        row = self._row(title)
        return Resolution(title, None, None, 0, "unknown") if row < 0 else self._resolution(title, row)

    def _resolution(self, title: str, row: int) -> Resolution:
        batch, i = self._titles[row >> BATCH_SHIFT], row & (BATCH_ROWS - 1)
        status = batch.status[i]
        if status == ARTICLE:
            return Resolution(title, batch.page_id[i], None, 0, "article")
        final_row = batch.final_row[i]
        if final_row < 0:
            return Resolution(title, None, None, batch.hops[i], STATUSES[status])
        fragment = None
        step = row
        for _ in range(batch.hops[i]):
            link, at = self._titles[step >> BATCH_SHIFT], step & (BATCH_ROWS - 1)
            fragment = link.fragment.get(at) or fragment
            step = link.target_row[at]
        return Resolution(
            self.title_at(final_row), self._page_id_at(final_row), fragment, batch.hops[i], STATUSES[status]
        )

    def _article(self, page_id: int) -> tuple[_ArticleBatch, int] | None:
        number = bisect_left(self._first_ids, page_id + 1) - 1
        if number < 0:
            return None
        batch = self._articles[number]
        i = batch.page_id.find(page_id)
        if i == len(batch.page_id) or batch.page_id[i] != page_id:
            return None
        return batch, i

    def article_title(self, page_id: int) -> str | None:
        """Returns the title of an article; None if there is no such article."""
        found = self._article(page_id)
        return None if found is None else self.title_at(found[0].row[found[1]])

    def redirects_to(self, page_id: int) -> tuple[str, ...]:
        """Returns the titles that redirect to an article, sorted by code point, without duplicates."""
        found = self._article(page_id)
        if found is None:
            return ()
        batch, i = found
        rows = batch.redirects.part(batch.offsets[i], batch.offsets[i + 1])
        return tuple(sorted(self.title_at(row) for row in rows))

    def has_articles(self, page_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Returns for each page id whether it is the id of an article."""
        return self.article_rows(page_ids) >= 0

    def article_rows(self, page_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns the row of each article in titles.arrow; -1 if the id is not an article's."""
        import numpy as np

        rows = np.full(len(page_ids), -1, np.int64)
        batch_of = np.searchsorted(np.array(self._first_ids, np.int64), page_ids, side="right") - 1
        for number in np.unique(batch_of[batch_of >= 0]).tolist():
            chosen = np.flatnonzero(batch_of == number)
            batch = self._articles[number]
            ids, own_rows = (np.asarray(column.part(0, len(column))) for column in (batch.page_id, batch.row))
            at = np.minimum(np.searchsorted(ids, page_ids[chosen]), len(ids) - 1)
            found = ids[at] == page_ids[chosen]
            rows[chosen[found]] = own_rows[at[found]]
        return rows

    def __iter__(self) -> Iterator[TitleEntry]:
        """Yields all entries in the order of the index, which is that of hashes."""
        for row in range(self.n_titles):
            yield self.entry(row)
