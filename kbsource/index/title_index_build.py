"""Builds the title index of a dump of any size in a small, fixed amount of memory.

Rows are sorted by title hash, and redirect targets by their own hash; both are joined range by range. Articles and the
redirects that end at them are joined by row in the same way. Chains are followed in one mapped scratch file, 4 bytes
per title.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
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
from kbsource.runtime.sorted_runs import KeyRange, SortedRuns

MAX_ROWS = (1 << 31) - 1
"""Row numbers are stored as 32-bit integers; the largest wiki has 18 million titles (2026)."""

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
"""Columns that the scan of a dump yields per main-namespace page.

``title`` and ``target_title`` are in normal form. ``target_*`` are null for articles; a redirect whose target could not
be read has a null target. ``source`` identifies the origin of the row and is unique: range number << 32 | row.
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
"""Columns of ``TITLE_ROWS``, and the Wikidata item that the file names for the page; null if it names no item."""
_KEYED = TITLE_ROWS.insert(0, pa.field("key", pa.uint64(), nullable=False))
_IDS = pa.schema([TITLE_ROWS.field(name) for name in ("page_id", "revision_id", "source")])
_SORTED = pa.schema(
    [
        *(TITLES_SCHEMA.field(name) for name in ("key", "page_id", "title", "target_title", "fragment")),
        pa.field("is_shadowed", pa.bool_()),
    ]
)
_TARGETS = pa.schema([("key", pa.uint64()), ("row", pa.int32()), ("title", pa.string())])
_ARRIVING = pa.schema([("final_row", pa.int64()), ("row", pa.int32())])

# Codes in the array of target rows for rows without a target row.
_IS_ARTICLE, _IS_MISSING, _IS_CROSS = -1, -2, -3

_ROW_BYTES = np.dtype(np.int32).itemsize

# Hops followed for all redirects at once; what is then still under way (loops, long chains) is walked one
# by one.
_VECTOR_HOPS = 4


class Dropped(NamedTuple):
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
        n_shadowed: rows whose title resolves to another page (see title_index).
        n_dropped: pages left out because of their page id.
        dropped_path: file of those pages, for ``read_dropped`` and ``dropped_sources``.
        relisted: numbers of ranges, each with the number of its redirects that are only listed and have another row.
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

    The output depends only on the set of rows, not on their order or on ``source``. Among rows with the same page id,
    the one with the highest revision id is used, then the one with the lowest ``source``; the others are dropped and
    listed for the caller to reject.

    A redirect that a snapshot only lists has a negative page id, and one row: if it is also listed elsewhere, that of
    the newest revision; if a page has its title, that of the page.

    Args:
        batches: rows in any order, of schema ``TITLE_ROWS``.
        folder: local folder for the index, created if missing.
        scratch: local folder for scratch files (about the size of the rows). They are removed at the end, except
            ``dropped.arrow``.

    Raises:
        SetupError: a batch has other columns, or there are more rows than the format supports.
    """
    os.makedirs(folder, exist_ok=True)
    os.makedirs(scratch, exist_ok=True)
    dropped_path = os.path.join(scratch, DROPPED_FILE)
    sorted_path = os.path.join(scratch, "titles-sorted.arrow")
    targets_path = os.path.join(scratch, "target-rows.bin")
    titles_path = os.path.join(folder, TITLES_FILE)
    with (
        SortedRuns(os.path.join(scratch, "titles"), _KEYED, by="key") as titles,
        SortedRuns(os.path.join(scratch, "page_ids"), _IDS, by="page_id") as page_ids,
        SortedRuns(os.path.join(scratch, "targets"), _TARGETS, by="key") as targets,
        SortedRuns(os.path.join(scratch, "arriving"), _ARRIVING, by="final_row") as arriving,
        SortedRuns(os.path.join(scratch, "articles"), ARTICLES_SCHEMA, by="page_id") as articles,
    ):
        for batch in batches:
            if not batch.schema.equals(TITLE_ROWS, check_metadata=False):
                raise SetupError(f"titles table with columns {batch.schema.names}; scan the dump again")
            titles.add(title_keys(batch["title"]), *batch.columns)
            page_ids.add(*(batch[name] for name in _IDS.names))
        if titles.n_rows > MAX_ROWS:
            raise SetupError(f"{titles.n_rows} titles; the index holds at most {MAX_ROWS}; build the dump in parts")
        dropped = _superseded(page_ids)
        n_different = titles.n_rows - len(dropped)
        _write_zeros(targets_path, _ROW_BYTES * (n_different or 1))
        target_row = np.memmap(targets_path, np.int32, "r+")[:n_different]
        ranges = titles.ranges()
        relisted = _sort(titles, ranges, targets, dropped, target_row, sorted_path, dropped_path)
        n_dropped = sum(batch.num_rows for batch in read_index_file(dropped_path))
        n_rows = titles.n_rows - n_dropped - relisted.total()
        target_row = target_row[:n_rows]
        _join(targets, ranges, target_row, sorted_path)
        by_status, n_shadowed = _write_titles(sorted_path, target_row, titles_path, arriving)
        _gather_articles(titles_path, arriving, articles)
        write_index_file(os.path.join(folder, ARTICLES_FILE), ARTICLES_SCHEMA, articles.read_sorted(BATCH_ROWS))
    os.remove(sorted_path)
    os.remove(targets_path)
    counts = {name: int(by_status[code]) for code, name in enumerate(STATUSES)}
    relisted_by_range = tuple(sorted(relisted.items()))
    return TitleIndexReport(
        n_rows, counts["article"], counts, n_shadowed, n_dropped, dropped_path, relisted=relisted_by_range
    )


def _write_zeros(path: str, n_bytes: int) -> None:
    """Writes a file of zeros, to be mapped and written to. Its blocks are allocated on the disk now: if a mapped file
    had holes, a full disk would end the process by a signal.
    """
    with open(path, "wb") as file:
        for start in range(0, n_bytes, CHUNK_BYTES):
            file.write(bytes(min(CHUNK_BYTES, n_bytes - start)))


def read_dropped(path: str) -> Iterator[Dropped]:
    """Reads the dropped rows in the order of their titles' hashes."""
    for batch in read_index_file(path):
        yield from map(Dropped._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def dropped_sources(path: str) -> npt.NDArray[np.int64]:
    """Returns the ``source`` of every dropped row, sorted."""
    found = [batch["source"].to_numpy() for batch in read_index_file(path)]
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def _superseded(page_ids: SortedRuns) -> npt.NDArray[np.int64]:
    """Returns the ``source`` of every row that another row with the same page id supersedes, sorted."""
    found = [np.empty(0, np.int64)]
    for keys in page_ids.ranges():
        page_id, revision_id, source = (column.to_numpy() for column in page_ids.read(keys).columns)
        order = np.lexsort((source, -revision_id, page_id))
        page_id, source = page_id[order], source[order]
        found.append(source[1:][page_id[1:] == page_id[:-1]])
    return np.sort(np.concatenate(found))


def _sort(
    titles: SortedRuns,
    ranges: list[KeyRange],
    targets: SortedRuns,
    dropped: npt.NDArray[np.int64],
    target_row: npt.NDArray[np.int32],
    sorted_path: str,
    dropped_path: str,
) -> Counter[int]:
    """Writes the sorted titles, one batch per range of keys, and adds the targets of redirects to ``targets``. Returns
    the number of relisted redirects by range of the dump.

    Rows without a target row get their codes in ``target_row``.
    """
    start = 0
    relisted: Counter[int] = Counter()
    with (
        pa.OSFile(sorted_path, "wb") as file,
        pa.ipc.new_file(file, _SORTED) as writer,
        pa.OSFile(dropped_path, "wb") as dropped_file,
        pa.ipc.new_file(dropped_file, DROPPED_SCHEMA) as dropped_writer,
    ):
        for keys in ranges:
            table = titles.read(keys)
            if len(dropped):
                is_dropped = np.isin(table["source"].to_numpy(), dropped)
                is_listed = table["page_id"].to_numpy() < 0
                dropped_writer.write_batch(table.filter(pa.array(is_dropped & ~is_listed)).select(DROPPED_SCHEMA.names))
                _count_ranges(relisted, table["source"].to_numpy()[is_dropped & is_listed])
                table = table.filter(pa.array(~is_dropped))
            order, is_shadowed = _title_order(table)
            is_relisted = is_shadowed & (table["page_id"].to_numpy()[order] < 0)
            _count_ranges(relisted, table["source"].to_numpy()[order[is_relisted]])
            order, is_shadowed = order[~is_relisted], is_shadowed[~is_relisted]
            table = table.take(pa.array(order))
            columns = [table[name] for name in ("key", "page_id", "title", "target_title", "target_fragment")]
            writer.write_batch(pa.RecordBatch.from_arrays([*columns, pa.array(is_shadowed)], schema=_SORTED))
            target_row[start : start + len(order)] = _IS_ARTICLE
            rows = np.flatnonzero(table["is_redirect"].to_numpy(zero_copy_only=False))
            redirects = table.take(pa.array(rows))
            is_cross = pc.fill_null(pc.not_equal(redirects["target_namespace"], 0), False).to_numpy(
                zero_copy_only=False
            )
            target_row[start + rows] = np.where(is_cross, _IS_CROSS, _IS_MISSING)
            is_sought = ~is_cross & pc.is_valid(redirects["target_title"]).to_numpy(zero_copy_only=False)
            sought = redirects["target_title"].filter(pa.array(is_sought))
            targets.add(title_keys(sought), (start + rows[is_sought]).astype(np.int32), sought)
            start += len(order)
    return relisted


def _count_ranges(counts: Counter[int], sources: npt.NDArray[np.int64]) -> None:
    parts, n = np.unique(sources >> 32, return_counts=True)
    counts.update(dict(zip(parts.tolist(), n.tolist(), strict=True)))


def _title_order(table: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Returns the order of the rows by (key, title, articles first, highest page id first), and which of the ordered
    rows are shadowed.
    """
    keys = table["key"].to_numpy()
    is_redirect = table["is_redirect"].to_numpy(zero_copy_only=False)
    page_ids = table["page_id"].to_numpy()
    order = np.lexsort((-page_ids, is_redirect, keys))
    same = np.concatenate([[False], keys[order][1:] == keys[order][:-1], [False]])
    is_shadowed = np.zeros(len(order), np.bool_)
    starts, ends = np.flatnonzero(same[1:] & ~same[:-1]), np.flatnonzero(same[:-1] & ~same[1:]) + 1
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        rows = order[start:end]
        found = table["title"].take(pa.array(rows)).to_pylist()
        # A stable sort by title keeps articles and the highest page id first among equal titles.
        by_title = sorted(range(len(found)), key=lambda place: found[place])
        order[start:end] = rows[by_title]
        is_shadowed[start + 1 : end] = [found[first] == found[other] for first, other in pairwise(by_title)]
    return order, is_shadowed


def _join(targets: SortedRuns, ranges: list[KeyRange], target_row: npt.NDArray[np.int32], sorted_path: str) -> None:
    """Fills in the row of every redirect target that the dump contains."""
    first_row = 0
    for keys_sought, have in zip(ranges, read_index_file(sorted_path), strict=True):
        sought = targets.read(keys_sought)
        n_rows, keys, titles = have.num_rows, have["key"].to_numpy(), have["title"]
        if n_rows and sought.num_rows:
            sought_keys = sought["key"].to_numpy()
            at = np.searchsorted(keys, sought_keys)
            hit = np.flatnonzero(keys[np.minimum(at, n_rows - 1)] == sought_keys)
            at, rows = at[hit], sought["row"].to_numpy()[hit]
            names = sought["title"].take(pa.array(hit))
            is_same = pc.equal(titles.take(pa.array(at)), names).to_numpy(zero_copy_only=False)
            target_row[rows[is_same]] = at[is_same] + first_row
            for i in np.flatnonzero(~is_same).tolist():  # two titles with the same hash
                position, name = int(at[i]), names[i].as_py()
                while position < n_rows and keys[position] == keys[at[i]]:
                    if titles[position].as_py() == name:
                        target_row[rows[i]] = position + first_row
                        break
                    position += 1
        first_row += n_rows


def _write_titles(
    sorted_path: str, target_row: npt.NDArray[np.int32], path: str, arriving: SortedRuns
) -> tuple[npt.NDArray[np.int64], int]:
    """Writes the titles with their resolved redirects, in batches of equal size; returns the rows by status and the
    number of shadowed rows.

    Redirects that end at articles are added to ``arriving``, except shadowed ones, whose titles resolve to other pages.
    """
    by_status, n_shadowed, start = np.zeros(len(STATUSES), np.int64), 0, 0
    walked: dict[int, tuple[int, int, int]] = {}
    with (
        completed_file(path) as temporary,
        pa.OSFile(temporary, "wb") as file,
        pa.ipc.new_file(file, TITLES_SCHEMA) as writer,
    ):
        for batch in rebatched(read_index_file(sorted_path), BATCH_ROWS):
            *columns, is_shadowed = batch.columns
            shadowed = is_shadowed.to_numpy(zero_copy_only=False)
            links = _follow(start, batch.num_rows, target_row, walked)
            writer.write_batch(pa.RecordBatch.from_arrays([*columns, *links], schema=TITLES_SCHEMA))
            _, final_row, _, status = links
            arrives = np.flatnonzero((final_row >= 0) & (status != ARTICLE) & ~shadowed)
            arriving.add(final_row[arrives].astype(np.int64), (start + arrives).astype(np.int32))
            by_status += np.bincount(status, minlength=len(STATUSES))
            n_shadowed += int(np.count_nonzero(shadowed))
            start += batch.num_rows
    return by_status, n_shadowed


class _Links(NamedTuple):
    """The resolved redirects of rows, as columns of titles.arrow."""

    target_row: npt.NDArray[np.int32]
    final_row: npt.NDArray[np.int32]
    hops: npt.NDArray[np.int32]
    status: npt.NDArray[np.int8]


def _follow(
    start: int, n_rows: int, target_row: npt.NDArray[np.int32], walked: dict[int, tuple[int, int, int]]
) -> _Links:
    """Follows the chains of some rows to their ends; ``walked`` caches the long ones."""
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


def _gather_articles(titles_path: str, arriving: SortedRuns, articles: SortedRuns) -> None:
    """Adds every article, with the rows of the redirects that end there, to ``articles``."""
    start = 0
    for batch in read_index_file(titles_path):
        found = arriving.read(KeyRange(start, start + batch.num_rows))
        final_rows, rows = found["final_row"].to_numpy(), found["row"].to_numpy()
        order = np.lexsort((rows, final_rows))
        own = np.flatnonzero(batch["status"].to_numpy() == ARTICLE)
        offsets = np.append(np.searchsorted(final_rows[order], start + own), len(order)).astype(np.int32)
        lists = pa.ListArray.from_arrays(
            pa.array(offsets), pa.array(rows[order]), type=ARTICLES_SCHEMA.field("redirects").type
        )
        articles.add(batch["page_id"].to_numpy()[own], (start + own).astype(np.int32), lists)
        start += batch.num_rows
