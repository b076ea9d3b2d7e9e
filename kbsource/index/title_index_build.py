"""Builds the title index of a dump of any size in a small, fixed amount of memory.

DuckDB sorts the rows by title hash, joins redirects to their targets by title, and joins articles to the redirects that
end at them by row. Chains are followed in a mapped temporary file with 4 bytes per title.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import rebatched
from kbsource.errors import SetupError
from kbsource.files import CHUNK_BYTES, completed_file
from kbsource.index.mapped_files import read_index_file, title_keys, write_index_file
from kbsource.index.title_index import (
    ARTICLE,
    ARTICLES_FILE,
    ARTICLES_SCHEMA,
    BATCH_ROWS,
    CROSS,
    DOUBLE,
    LOOP,
    MISSING,
    OK,
    STATUSES,
    TITLES_FILE,
    TITLES_SCHEMA,
)
from kbsource.runtime.database import ORDER_MB, connected, ordered_batches, streamed

MAX_ROWS = (1 << 31) - 1
"""Maximum number of titles, because row numbers are 32-bit integers. The largest wiki has 18 million titles (2026)."""

TITLE_ROWS = pa.schema(
    [
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("revision_id", pa.int64(), nullable=False),
        pa.field("is_redirect", pa.bool_(), nullable=False),
        pa.field("target_title", pa.string()),
        pa.field("target_namespace", pa.int32()),
        pa.field("target_fragment", pa.string()),
        pa.field("source", pa.int64(), nullable=False),
    ]
)
"""Columns of the rows that the scan of a dump yields for pages of the main namespace.

``title`` and ``target_title`` are in normal form. The columns ``target_*`` are null for articles, and for redirects
whose target could not be read. ``source`` identifies the origin of the row and is unique: range number << 32 | row.
"""

DROPPED_FILE = "dropped.arrow"
DROPPED_SCHEMA = pa.schema(
    [
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("source", pa.int64(), nullable=False),
    ]
)

STATED_TITLES = TITLE_ROWS.append(pa.field("qid", pa.string()))
"""Columns of ``TITLE_ROWS``, and the Wikidata item that the file states for the page; null if it states none."""
_KEYED = TITLE_ROWS.insert(0, pa.field("key", pa.uint64(), nullable=False))
_PLACED = pa.schema(
    [
        *(TITLES_SCHEMA.field(name) for name in ("key", "page_id", "title", "target_title", "fragment", "target_row")),
        pa.field("is_shadowed", pa.bool_()),
    ]
)
_IN_ORDER = _PLACED.set(_PLACED.get_field_index("is_shadowed"), TITLE_ROWS.field("source"))
_ROW_OF_TITLE = pa.schema([("row", pa.int32()), ("title", pa.string())])
_ARRIVING = pa.schema([("final_row", pa.int32()), ("redirect", pa.int32())])
_ARTICLES = pa.schema([("page_id", pa.int64()), ("row", pa.int32())])
_REDIRECTED = _ARTICLES.append(_ARRIVING.field("redirect"))

# Codes in the array of target rows, for rows that have no target row.
_IS_ARTICLE, _IS_MISSING, _IS_CROSS = -1, -2, -3

_SUPERSEDED = """
create table superseded as select page_id, title, source, key
from rows semi join (select page_id from rows group by page_id having count(*) > 1) as repeated using (page_id)
qualify row_number() over (partition by page_id order by revision_id desc, source) > 1
"""
_DROPPED = "select page_id, title, source from superseded where page_id >= 0 order by key, title, source"
_LISTED = "select source from superseded where page_id < 0 order by source"
_TITLES = f"""
select key, page_id, title, target_title, target_fragment as fragment, case
        when not is_redirect then {_IS_ARTICLE} when target_namespace <> 0 then {_IS_CROSS} else {_IS_MISSING}
    end as target_row, source
from rows anti join superseded using (source) order by key, title, is_redirect, page_id desc
"""
_TARGETS = "select sought.row as row, titles.row as target_row from titles join sought using (title)"
# Two statements, the first to join and the second to sort: one statement would need the memory of both at once, even
# if it spilled to disk.
_REDIRECTED_ROWS = """
create table redirected as select page_id, row, redirect from articles left join arriving on row = final_row
"""
_BY_PAGE = "select page_id, row, redirect from redirected order by page_id, redirect"

_ROW_BYTES = np.dtype(np.int32).itemsize

# Number of hops that are followed for all redirects at once. Redirects that need more (loops, long chains) are then
# followed one by one.
_VECTOR_HOPS = 4


class DroppedRow(NamedTuple):
    """A row of the scan that is not in the index because a newer row has the same page id."""

    page_id: int
    title: str
    source: int


@dataclass(frozen=True, slots=True)
class TitleIndexReport:
    """Report of the build.

    Attributes:
        n_titles: rows of the index, articles and redirects.
        n_articles: articles among them.
        by_status: rows per status, in the order of ``STATUSES``.
        n_shadowed: rows whose title resolves to another page with the same title (see title_index).
        n_dropped: pages left out because of their page id.
        dropped_path: file of these pages, for ``read_dropped`` and ``dropped_sources``.
        relisted: by range number: how many redirects from the lists of articles were left out because they also have
            another row.
    """

    n_titles: int
    n_articles: int
    by_status: dict[str, int]
    n_shadowed: int
    n_dropped: int
    dropped_path: str
    relisted: tuple[tuple[int, int], ...] = ()


def build_title_index(batches: Iterable[pa.RecordBatch], folder: str, *, scratch: str) -> TitleIndexReport:
    """Writes the title index of a dump: ``titles.arrow`` and ``articles.arrow``.

    The output depends only on the set of rows, not on their order or on ``source``. Of the rows with the same page id,
    the one with the highest revision id is used, or of several such rows the one with the lowest ``source``. The others
    are dropped, and listed so that the caller can reject them.

    A redirect from the list of an article in a snapshot of HTML has a negative page id. If several articles list it,
    the row from the newest revision is used. If a page has its title, the row of the page is used.

    Args:
        batches: rows in any order, of schema ``TITLE_ROWS``.
        folder: local folder for the index, created if missing.
        scratch: local folder for scratch files (up to three times the size of the rows). They are removed at the end,
            except ``dropped.arrow``.

    Raises:
        SetupError: a batch has other columns, or there are more rows than the format supports.
    """
    os.makedirs(folder, exist_ok=True)
    os.makedirs(scratch, exist_ok=True)
    dropped_path = os.path.join(scratch, DROPPED_FILE)
    placed_path = os.path.join(scratch, "titles-placed.arrow")
    targets_path = os.path.join(scratch, "target-rows.bin")
    titles_path = os.path.join(folder, TITLES_FILE)
    with connected(scratch=scratch, memory_mb=ORDER_MB, threads=1) as db:
        with streamed(db, batches=(_keyed(batches), _KEYED)):
            db.execute("create table rows as from batches")
        n_found = int(db.execute("select count(*) from rows").fetchall()[0][0])
        if n_found > MAX_ROWS:
            raise SetupError(f"{n_found} titles; the index holds at most {MAX_ROWS}; build the dump in parts")
        db.execute(_SUPERSEDED)
        n_superseded = int(db.execute("select count(*) from superseded").fetchall()[0][0])
        write_index_file(dropped_path, DROPPED_SCHEMA, ordered_batches(db, _DROPPED, DROPPED_SCHEMA))
        n_dropped = sum(batch.num_rows for batch in read_index_file(dropped_path))
        relisted: Counter[int] = Counter()
        _count_ranges(relisted, db.sql(_LISTED).fetchnumpy()["source"])
        _write_zeros(targets_path, _ROW_BYTES * (n_found - n_superseded or 1))
        target_row = np.memmap(targets_path, np.int32, "r+")
        write_index_file(placed_path, _PLACED, _place(ordered_batches(db, _TITLES, _IN_ORDER), target_row, relisted))
        n_rows = n_found - n_dropped - relisted.total()
        with streamed(
            db, titles=(_unshadowed(placed_path), _ROW_OF_TITLE), sought=(_sought(placed_path), _ROW_OF_TITLE)
        ):
            for batch in db.sql(_TARGETS).to_arrow_reader(BATCH_ROWS):
                target_row[batch["row"].to_numpy()] = batch["target_row"].to_numpy()
        written = _Titles(placed_path, target_row[:n_rows], titles_path)
        with streamed(db, ends=(written.write(), _ARRIVING)):
            db.execute("create table arriving as from ends")
        with streamed(db, articles=(_articles(titles_path), _ARTICLES)):
            db.execute(_REDIRECTED_ROWS)
        articles = rebatched(_with_redirects(ordered_batches(db, _BY_PAGE, _REDIRECTED)), BATCH_ROWS)
        write_index_file(os.path.join(folder, ARTICLES_FILE), ARTICLES_SCHEMA, articles)
    os.remove(placed_path)
    os.remove(targets_path)
    counts = {name: int(written.by_status[code]) for code, name in enumerate(STATUSES)}
    relisted_by_range = tuple(sorted(relisted.items()))
    return TitleIndexReport(
        n_rows, counts["article"], counts, written.n_shadowed, n_dropped, dropped_path, relisted=relisted_by_range
    )


def _write_zeros(path: str, n_bytes: int) -> None:
    """Writes a file of zeros, which will be mapped and written to. This allocates all blocks on the disk: with holes in
    a mapped file, a full disk would end the process by a signal.
    """
    with open(path, "wb") as file:
        for start in range(0, n_bytes, CHUNK_BYTES):
            file.write(bytes(min(CHUNK_BYTES, n_bytes - start)))


def read_dropped(path: str) -> Iterator[DroppedRow]:
    """Reads the dropped rows in the order of their titles' hashes."""
    for batch in read_index_file(path):
        yield from map(DroppedRow._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def dropped_sources(path: str) -> npt.NDArray[np.int64]:
    """Returns the ``source`` of every dropped row, sorted."""
    found = [batch["source"].to_numpy() for batch in read_index_file(path)]
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def _keyed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not batch.schema.equals(TITLE_ROWS, check_metadata=False):
            raise SetupError(f"titles table with columns {batch.schema.names}; scan the dump again")
        yield pa.RecordBatch.from_arrays([title_keys(batch["title"]), *batch.columns], schema=_KEYED)


def _place(
    batches: Iterable[pa.RecordBatch], target_row: npt.NDArray[np.int32], relisted: Counter[int]
) -> Iterator[pa.RecordBatch]:
    """Leaves out redirects from lists that have another row, and counts them by range of the dump. Marks the other
    shadowed rows. The codes of all rows are written to ``target_row``.
    """
    start, last = 0, pa.array([None], pa.string())
    for batch in batches:
        titles = pa.concat_arrays([last, batch["title"]])
        last = titles[-1:]
        same = pc.fill_null(pc.equal(titles[1:], titles[:-1]), False).to_numpy(zero_copy_only=False)
        is_relisted = same & (batch["page_id"].to_numpy() < 0)
        _count_ranges(relisted, batch["source"].to_numpy()[is_relisted])
        columns = [*batch.columns[:-1], pa.array(same)]
        placed = pa.RecordBatch.from_arrays(columns, schema=_PLACED).filter(pa.array(~is_relisted))
        target_row[start : start + placed.num_rows] = placed["target_row"].to_numpy()
        start += placed.num_rows
        yield placed


def _count_ranges(counts: Counter[int], sources: npt.NDArray[np.int64]) -> None:
    parts, n = np.unique(sources >> 32, return_counts=True)
    counts.update(dict(zip(parts.tolist(), n.tolist(), strict=True)))


def _unshadowed(placed_path: str) -> Iterator[pa.RecordBatch]:
    """Reads the titles of the rows that are not shadowed."""
    for rows, batch in _numbered(read_index_file(placed_path)):
        titles = pa.RecordBatch.from_arrays([rows, batch["title"]], schema=_ROW_OF_TITLE)
        yield titles.filter(pc.invert(batch["is_shadowed"]))


def _sought(placed_path: str) -> Iterator[pa.RecordBatch]:
    """Reads the titles that redirects point to."""
    for rows, batch in _numbered(read_index_file(placed_path)):
        targets = pa.RecordBatch.from_arrays([rows, batch["target_title"]], schema=_ROW_OF_TITLE)
        is_sought = pc.and_(pc.equal(batch["target_row"], _IS_MISSING), pc.is_valid(batch["target_title"]))
        yield targets.filter(is_sought)


def _articles(titles_path: str) -> Iterator[pa.RecordBatch]:
    for rows, batch in _numbered(read_index_file(titles_path)):
        articles = pa.RecordBatch.from_arrays([batch["page_id"], rows], schema=_ARTICLES)
        yield articles.filter(pc.equal(batch["status"], ARTICLE))


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """Yields the numbers of the rows, from 0, and the batch."""
    start = 0
    for batch in batches:
        yield pa.array(np.arange(start, start + batch.num_rows, dtype=np.int32)), batch
        start += batch.num_rows


class _Titles:
    """Writes the titles with their resolved redirects, in batches of equal size."""

    def __init__(self, placed_path: str, target_row: npt.NDArray[np.int32], path: str) -> None:
        self._placed_path, self._target_row, self._path = placed_path, target_row, path
        self.by_status, self.n_shadowed = np.zeros(len(STATUSES), np.int64), 0

    def write(self) -> Iterator[pa.RecordBatch]:
        """Writes the file. Yields the redirects that end at articles, except shadowed ones, whose titles resolve to
        other pages.
        """
        start = 0
        walked: dict[int, tuple[int, int, int]] = {}
        with (
            completed_file(self._path) as temporary,
            pa.OSFile(temporary, "wb") as file,
            pa.ipc.new_file(file, TITLES_SCHEMA) as writer,
        ):
            for batch in rebatched(read_index_file(self._placed_path), BATCH_ROWS):
                *columns, _, is_shadowed = batch.columns
                shadowed = is_shadowed.to_numpy(zero_copy_only=False)
                links = _follow(start, batch.num_rows, self._target_row, walked)
                writer.write_batch(pa.RecordBatch.from_arrays([*columns, *links], schema=TITLES_SCHEMA))
                _, final_row, _, status = links
                arrives = np.flatnonzero((final_row >= 0) & (status != ARTICLE) & ~shadowed)
                self.by_status += np.bincount(status, minlength=len(STATUSES))
                self.n_shadowed += int(np.count_nonzero(shadowed))
                rows = (start + arrives).astype(np.int32)
                yield pa.RecordBatch.from_arrays([final_row[arrives], rows], schema=_ARRIVING)
                start += batch.num_rows


class _Links(NamedTuple):
    """The resolved redirects of rows, as columns of titles.arrow."""

    target_row: npt.NDArray[np.int32]
    final_row: npt.NDArray[np.int32]
    hops: npt.NDArray[np.int32]
    status: npt.NDArray[np.int8]


def _follow(
    start: int, n_rows: int, target_row: npt.NDArray[np.int32], walked: dict[int, tuple[int, int, int]]
) -> _Links:
    """Follows the chains of redirects from some rows to their ends. ``walked`` caches long chains."""
    first = np.array(target_row[start : start + n_rows])
    rows = np.arange(start, start + n_rows, dtype=np.int32)
    final_row = np.where(first == _IS_ARTICLE, rows, np.int32(-1))
    hops, status = np.zeros(n_rows, np.int32), np.zeros(n_rows, np.int8)
    active = np.flatnonzero(first != _IS_ARTICLE)
    at = rows[active]
    for n_hops in range(1, _VECTOR_HOPS + 1):
        at = target_row[at]
        hops[active] = n_hops
        status[active[at == _IS_MISSING]] = MISSING
        status[active[at == _IS_CROSS]] = CROSS
        active, at = active[at >= 0], at[at >= 0]
        arrived = target_row[at] == _IS_ARTICLE
        final_row[active[arrived]] = at[arrived]
        status[active[arrived]] = OK if n_hops == 1 else DOUBLE
        active, at = active[~arrived], at[~arrived]
    for i in active.tolist():
        final_row[i], hops[i], status[i] = _walk(start + i, target_row, walked)
    return _Links(np.maximum(first, -1), final_row, hops, status)


def _walk(row: int, target_row: npt.NDArray[np.int32], walked: dict[int, tuple[int, int, int]]) -> tuple[int, int, int]:
    """Returns (final row, hops, status) of a chain, and caches them for every row along the chain."""
    path: list[int] = []
    place: dict[int, int] = {}
    at = row
    while at >= 0 and at not in walked and at not in place and target_row[at] != _IS_ARTICLE:
        place[at] = len(path)
        path.append(at)
        at = int(target_row[at])
    if at in walked:
        final_row, hops, status = walked[at]
    elif at in place:
        cycle = path[place[at] :]
        for title in cycle:
            walked[title] = (-1, len(cycle), LOOP)
        path = path[: place[at]]
        final_row, hops, status = -1, len(cycle), LOOP
    elif at < 0:
        final_row, hops, status = -1, 0, CROSS if at == _IS_CROSS else MISSING
    else:
        final_row, hops, status = at, 0, ARTICLE
    for title in reversed(path):
        hops += 1
        if final_row >= 0:
            status = OK if hops == 1 else DOUBLE
        walked[title] = (final_row, hops, status)
    return walked[row]


def _with_redirects(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combines the consecutive rows of each article into one. There is a row per redirect to it, or one row without a
    redirect.
    """
    rest = pa.RecordBatch.from_pylist([], _REDIRECTED)
    for batch in chain(batches, [None]):
        rows = rest if batch is None else pa.concat_batches([rest, batch])
        page_ids = rows["page_id"].to_numpy()
        starts = np.flatnonzero(np.append(True, page_ids[1:] != page_ids[:-1])[: len(page_ids)])
        end = len(page_ids) if batch is None else int(starts[-1])  # the last article may continue in the next batch
        rest, rows = rows[end:], rows[:end]
        firsts = pa.array(starts[starts < end])
        is_redirect = pc.is_valid(rows["redirect"])
        offsets = np.append(0, np.cumsum(is_redirect.to_numpy(zero_copy_only=False)))[
            np.append(starts[starts < end], end)
        ]
        lists = pa.ListArray.from_arrays(
            pa.array(offsets.astype(np.int32)),
            rows["redirect"].filter(is_redirect),
            type=ARTICLES_SCHEMA.field("redirects").type,
        )
        found = rows.take(firsts)
        yield pa.RecordBatch.from_arrays([found["page_id"], found["row"], lists], schema=ARTICLES_SCHEMA)
