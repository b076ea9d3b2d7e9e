"""Building the title index of a dump of any size in little memory.

Rows are spread over scratch files by title hash and sorted file by file; redirect targets are spread by
their own hash and joined file by file; chains are followed over arrays of row numbers. What stays in memory
are a few plain
arrays: at most about 20 bytes per title, 350 MB for 18 million titles.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.spill import BucketSpill
from kbsource.title_index import (
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
    title_keys,
)

N_BUCKETS = 64
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
"""What the scan of a dump gives per main-namespace page.

``title`` and ``target_title`` are in normal form. ``target_*`` are null for articles; a redirect whose
target could not be read has a null target. ``source`` says where the row came from and is unique: range
number << 32 | row.
"""

DROPPED_FILE = "dropped.arrow"
DROPPED_SCHEMA = pa.schema(
    [
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("source", pa.int64(), nullable=False),
    ]
)

_KEYED = TITLE_ROWS.insert(0, pa.field("key", pa.uint64(), nullable=False))
_SORTED = pa.schema([TITLES_SCHEMA.field(name) for name in ("key", "page_id", "title", "target_title", "fragment")])
_TARGETS = pa.schema([("key", pa.uint64()), ("row", pa.int32()), ("title", pa.string())])
_LINK_TYPE = np.dtype([("target_row", "<i4"), ("final_row", "<i4"), ("hops", "<i4"), ("status", "i1")])

# What stands in the array of target rows where there is no target row.
_IS_ARTICLE, _IS_MISSING, _IS_CROSS = -1, -2, -3

# Hops followed for all redirects at once; what is then still under way (loops, long chains) is walked one
# by one.
_VECTOR_HOPS = 4


class Dropped(NamedTuple):
    """A row of the scan that is not in the index because a newer row has its page id."""

    page_id: int
    title: str
    source: int


@dataclass(frozen=True, slots=True)
class TitleIndexReport:
    """What was built.

    Attributes:
        n_titles: rows of the index, articles and redirects.
        n_articles: articles among them.
        by_status: rows per status, in the order of ``STATUSES``.
        n_shadowed: rows whose title stands for another page (see title_index).
        n_dropped: rows left out because of their page id.
        dropped_path: file of those rows, for ``read_dropped`` and ``dropped_sources``.
    """

    n_titles: int
    n_articles: int
    by_status: dict[str, int]
    n_shadowed: int
    n_dropped: int
    dropped_path: str


def build_title_index(batches: Iterable[pa.RecordBatch], folder: str, *, scratch: str) -> TitleIndexReport:
    """Writes the title index of a dump: ``titles.arrow`` and ``articles.arrow``.

    The bytes depend on the set of rows alone, not on their order or on ``source``. Of rows with one page id
    the one with the highest revision id is kept, then the one with the lowest ``source``; the others are
    dropped and listed for the caller to reject.

    Args:
        batches: rows in any order, of schema ``TITLE_ROWS``.
        folder: local folder for the index, made where missing.
        scratch: local folder for scratch files (about the size of the rows); what is made in it is removed,
            but for ``dropped.arrow``.

    Raises:
        SetupError: a batch has other columns, or there are more rows than the format holds.
    """
    os.makedirs(folder, exist_ok=True)
    os.makedirs(scratch, exist_ok=True)
    dropped_path = os.path.join(scratch, DROPPED_FILE)
    titles_path = os.path.join(folder, TITLES_FILE)
    sorted_path = os.path.join(scratch, "titles-sorted.arrow")
    with (
        BucketSpill(os.path.join(scratch, "titles"), _KEYED, n_buckets=N_BUCKETS) as titles,
        BucketSpill(os.path.join(scratch, "targets"), _TARGETS, n_buckets=N_BUCKETS) as targets,
    ):
        page_ids = _spread(batches, titles, os.path.join(scratch, "page_ids.bin"))
        if len(page_ids) > MAX_ROWS:
            raise SetupError(f"{len(page_ids)} titles, the index holds {MAX_ROWS}; build the dump in parts")
        dropped = _superseded(page_ids, titles)
        n_rows = len(page_ids) - len(dropped)
        del page_ids
        target_row = np.full(n_rows, _IS_ARTICLE, np.int32)
        edges, n_shadowed = _sort(titles, targets, dropped, target_row, sorted_path, dropped_path)
        _join(targets, edges, target_row, sorted_path)
    links_path = os.path.join(scratch, "links.bin")
    by_status = _follow(target_row, links_path)
    del target_row
    _write_titles(sorted_path, links_path, titles_path)
    os.remove(sorted_path)
    os.remove(links_path)
    _write_articles(titles_path, os.path.join(folder, ARTICLES_FILE))
    counts = {name: int(by_status[code]) for code, name in enumerate(STATUSES)}
    return TitleIndexReport(n_rows, counts["article"], counts, n_shadowed, len(dropped), dropped_path)


def read_dropped(path: str) -> Iterator[Dropped]:
    """Gives the dropped rows in the order of their titles' hashes."""
    for batch in _batches(path):
        yield from map(Dropped._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def dropped_sources(path: str) -> npt.NDArray[np.int64]:
    """Gives the ``source`` of every dropped row, sorted."""
    found = [batch["source"].to_numpy() for batch in _batches(path)]
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def _batches(path: str) -> Iterator[Any]:
    """Gives the batches of an Arrow file one by one, read rather than mapped so that memory stays flat."""
    with pa.OSFile(path, "rb") as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _bucket_of(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return (keys >> np.uint64(64 - N_BUCKETS.bit_length() + 1)).astype(np.int64)


def _spread(batches: Iterable[pa.RecordBatch], titles: BucketSpill, ids_path: str) -> npt.NDArray[np.int64]:
    """Spreads the rows over buckets and gives all page ids, sorted, each as often as it came."""
    with open(ids_path, "wb") as ids:
        for batch in batches:
            if not batch.schema.equals(TITLE_ROWS, check_metadata=False):
                raise SetupError(f"titles table with columns {batch.schema.names}; scan the dump again")
            batch["page_id"].to_numpy().tofile(ids)
            keys = title_keys(batch["title"])
            keyed = pa.RecordBatch.from_arrays([pa.array(keys), *batch.columns], schema=_KEYED)
            titles.add(keyed, _bucket_of(keys))
        titles.flush()
    page_ids = np.fromfile(ids_path, np.int64)
    os.remove(ids_path)
    page_ids.sort()
    return page_ids


def _superseded(page_ids: npt.NDArray[np.int64], titles: BucketSpill) -> npt.NDArray[np.int64]:
    """Gives the ``source`` of every row that another row of the same page id supersedes, sorted."""
    repeated = np.unique(page_ids[1:][page_ids[1:] == page_ids[:-1]])
    if not len(repeated):
        return np.empty(0, np.int64)
    found = []
    for bucket in range(N_BUCKETS):
        table = titles.read(bucket, ("page_id", "revision_id", "source"))
        rows = np.stack([table[name].to_numpy() for name in ("page_id", "revision_id", "source")])
        found.append(rows[:, np.isin(rows[0], repeated)])
    page_id, revision_id, source = np.concatenate(found, axis=1)
    order = np.lexsort((source, -revision_id, page_id))
    page_id, source = page_id[order], source[order]
    return np.sort(source[1:][page_id[1:] == page_id[:-1]])


def _sort(
    titles: BucketSpill,
    targets: BucketSpill,
    dropped: npt.NDArray[np.int64],
    target_row: npt.NDArray[np.int32],
    sorted_path: str,
    dropped_path: str,
) -> tuple[list[int], int]:
    """Writes the sorted titles, spreads the redirects' targets; gives the first row of each bucket and the
    shadowed.

    ``target_row`` gets its codes for redirects without a target row.
    """
    edges, n_shadowed = [0], 0
    with (
        pa.OSFile(sorted_path, "wb") as file,
        pa.ipc.new_file(file, _SORTED) as writer,
        pa.OSFile(dropped_path, "wb") as dropped_file,
        pa.ipc.new_file(dropped_file, DROPPED_SCHEMA) as dropped_writer,
    ):
        for bucket in range(N_BUCKETS):
            table = titles.read(bucket)
            if len(dropped):
                is_dropped = np.isin(table["source"].to_numpy(), dropped)
                dropped_writer.write_table(_by_source(table.filter(pa.array(is_dropped))))
                table = table.filter(pa.array(~is_dropped))
            order, shadowed = _title_order(table)
            table = table.take(order)
            n_shadowed += shadowed
            start = edges[-1]
            edges.append(start + table.num_rows)
            renamed = table.select(["key", "page_id", "title", "target_title", "target_fragment"])
            writer.write_table(renamed.rename_columns(_SORTED.names).cast(_SORTED))
            rows = np.flatnonzero(table["is_redirect"].to_numpy())
            redirects = table.take(rows)
            is_cross = pc.fill_null(pc.not_equal(redirects["target_namespace"], 0), False).to_numpy()
            target_row[start + rows] = np.where(is_cross, _IS_CROSS, _IS_MISSING)
            is_sought = ~is_cross & pc.is_valid(redirects["target_title"]).to_numpy()
            sought = redirects["target_title"].filter(pa.array(is_sought)).combine_chunks()
            keys = title_keys(sought)
            source_rows = pa.array((start + rows[is_sought]).astype(np.int32))
            targets.add(
                pa.RecordBatch.from_arrays([pa.array(keys), source_rows, sought], schema=_TARGETS),
                _bucket_of(keys),
            )
        targets.flush()
    return edges, n_shadowed


def _by_source(rows: pa.Table) -> pa.Table:
    return rows.select(DROPPED_SCHEMA.names).sort_by("source")


def _title_order(table: pa.Table) -> tuple[npt.NDArray[np.int64], int]:
    """Gives the order of the rows by (key, title, articles first, highest page id first), and the number of
    shadowed rows.
    """
    keys = table["key"].to_numpy()
    is_redirect = table["is_redirect"].to_numpy()
    page_ids = table["page_id"].to_numpy()
    order = np.lexsort((-page_ids, is_redirect, keys))
    same = np.concatenate([[False], keys[order][1:] == keys[order][:-1], [False]])
    n_shadowed = 0
    starts, ends = np.flatnonzero(same[1:] & ~same[:-1]), np.flatnonzero(same[:-1] & ~same[1:]) + 1
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        rows = order[start:end]
        found = table["title"].take(rows).to_pylist()
        # A stable sort by title keeps articles and the highest page id first among equal titles.
        by_title = sorted(range(len(found)), key=found.__getitem__)
        order[start:end] = rows[by_title]
        n_shadowed += len(found) - len(set(found))
    return order, n_shadowed


def _join(targets: BucketSpill, edges: list[int], target_row: npt.NDArray[np.int32], sorted_path: str) -> None:
    """Fills in the row of every redirect's target that the dump has."""
    with pa.OSFile(sorted_path, "rb") as file:
        reader = pa.ipc.open_file(file)
        number = 0
        for bucket in range(N_BUCKETS):
            parts = []
            n_rows, wanted = 0, edges[bucket + 1] - edges[bucket]
            while n_rows < wanted:
                parts.append(reader.get_batch(number).select(["key", "title"]))
                n_rows += parts[-1].num_rows
                number += 1
            sought = targets.read(bucket)
            if not n_rows or not sought.num_rows:
                continue
            have = pa.Table.from_batches(parts)
            keys, titles = have["key"].to_numpy(), have["title"].combine_chunks()
            sought_keys = sought["key"].to_numpy()
            at = np.searchsorted(keys, sought_keys)
            hit = np.flatnonzero(keys[np.minimum(at, n_rows - 1)] == sought_keys)
            at, rows = at[hit], sought["row"].to_numpy()[hit]
            names = sought["title"].combine_chunks().take(pa.array(hit))
            is_same = pc.equal(titles.take(pa.array(at)), names).to_numpy(zero_copy_only=False)
            target_row[rows[is_same]] = at[is_same] + edges[bucket]
            for i in np.flatnonzero(~is_same).tolist():  # two titles with one hash
                position, name = int(at[i]), names[i].as_py()
                while position < n_rows and keys[position] == keys[at[i]]:
                    if titles[position].as_py() == name:
                        target_row[rows[i]] = position + edges[bucket]
                        break
                    position += 1


def _follow(target_row: npt.NDArray[np.int32], path: str) -> npt.NDArray[np.int64]:
    """Follows every chain to its end, writes the outcome of each row, and gives the rows per status."""
    by_status = np.zeros(len(STATUSES), np.int64)
    walked: dict[int, tuple[int, int, int]] = {}
    with open(path, "wb") as file:
        for start in range(0, len(target_row), BATCH_ROWS):
            first = target_row[start : start + BATCH_ROWS]
            links = np.zeros(len(first), _LINK_TYPE)
            links["target_row"] = np.maximum(first, -1)
            rows = np.arange(start, start + len(first), dtype=np.int32)
            links["final_row"] = np.where(first == _IS_ARTICLE, rows, -1)
            active = np.flatnonzero(first != _IS_ARTICLE)
            at = rows[active]
            for hops in range(1, _VECTOR_HOPS + 1):
                at = target_row[at]
                links["hops"][active] = hops
                links["status"][active[at == _IS_MISSING]] = MISSING
                links["status"][active[at == _IS_CROSS]] = CROSS
                active, at = active[at >= 0], at[at >= 0]
                arrived = target_row[at] == _IS_ARTICLE
                links["final_row"][active[arrived]] = at[arrived]
                links["status"][active[arrived]] = OK if hops == 1 else DOUBLE
                active, at = active[~arrived], at[~arrived]
            for i in active.tolist():
                final_row, n_hops, status = _walk(start + i, target_row, walked)
                links[i] = (links["target_row"][i], final_row, n_hops, status)
            by_status += np.bincount(links["status"], minlength=len(STATUSES))
            links.tofile(file)
    return by_status


def _walk(row: int, target_row: npt.NDArray[np.int32], walked: dict[int, tuple[int, int, int]]) -> tuple[int, int, int]:
    """Gives (final row, hops, status) of one chain, and remembers them for every row on the way."""
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
        for one in cycle:
            walked[one] = (-1, len(cycle), LOOP)
        path = path[: place[at]]
        final_row, hops, status = -1, len(cycle), LOOP
    elif at < 0:
        final_row, hops, status = -1, 0, CROSS if at == _IS_CROSS else MISSING
    else:
        final_row, hops, status = at, 0, ARTICLE
    for one in reversed(path):
        hops += 1
        if final_row >= 0:
            status = OK if hops == 1 else DOUBLE
        walked[one] = (final_row, hops, status)
    return walked[row]


def _write_titles(sorted_path: str, links_path: str, path: str) -> None:
    """Puts the sorted titles and their links together, in batches of equal size."""
    with (
        open(links_path, "rb") as links_file,
        pa.OSFile(f"{path}.tmp", "wb") as file,
        pa.ipc.new_file(file, TITLES_SCHEMA) as writer,
    ):
        for rows in _rebatched(sorted_path):
            links = np.fromfile(links_file, _LINK_TYPE, rows.num_rows)
            added = [pa.array(np.ascontiguousarray(links[name])) for name in _LINK_TYPE.names or ()]
            writer.write_batch(pa.RecordBatch.from_arrays([*rows.columns, *added], schema=TITLES_SCHEMA))
    os.replace(f"{path}.tmp", path)


def _rebatched(path: str) -> Iterator[Any]:
    pending: list[Any] = []
    n_pending = 0
    for batch in _batches(path):
        pending.append(batch)
        n_pending += batch.num_rows
        while n_pending >= BATCH_ROWS:
            table = pa.Table.from_batches(pending)
            yield table.slice(0, BATCH_ROWS).combine_chunks().to_batches()[0]
            pending = table.slice(BATCH_ROWS).to_batches()
            n_pending -= BATCH_ROWS
    if n_pending:
        yield pa.Table.from_batches(pending).combine_chunks().to_batches()[0]


def _write_articles(titles_path: str, path: str) -> None:
    """Writes the articles by page id, each with the rows of the redirects that end there."""
    page_ids, rows, n_rows = _articles_by_id(titles_path)
    n_articles = len(page_ids)
    rank_of_row = np.full(n_rows, -1, np.int32)
    rank_of_row[rows] = np.arange(n_articles, dtype=np.int32)
    offsets = np.zeros(n_articles + 1, np.int64)
    for _, final_rows in _arriving(titles_path):
        np.add.at(offsets, rank_of_row[final_rows] + 1, 1)
    np.cumsum(offsets, out=offsets)
    following = offsets[:-1].astype(np.int32)
    redirects = np.empty(int(offsets[-1]), np.int32)
    for redirect_rows, final_rows in _arriving(titles_path):
        rank = rank_of_row[final_rows]
        order = np.argsort(rank, kind="stable")
        rank = rank[order]
        ordinal = np.arange(len(rank)) - np.searchsorted(rank, rank)
        redirects[following[rank] + ordinal] = redirect_rows[order]
        np.add.at(following, rank, 1)
    with pa.OSFile(f"{path}.tmp", "wb") as file, pa.ipc.new_file(file, ARTICLES_SCHEMA) as writer:
        for start in range(0, n_articles, BATCH_ROWS):
            stop = min(start + BATCH_ROWS, n_articles)
            own = offsets[start : stop + 1]
            lists = pa.ListArray.from_arrays(
                pa.array((own - own[0]).astype(np.int32)),
                pa.array(redirects[own[0] : own[-1]]),
                type=ARTICLES_SCHEMA.field("redirects").type,
            )
            columns = [pa.array(page_ids[start:stop]), pa.array(rows[start:stop]), lists]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=ARTICLES_SCHEMA))
    os.replace(f"{path}.tmp", path)


def _articles_by_id(titles_path: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], int]:
    """Gives page id and row of every article, by page id, and the number of all rows."""
    ids, rows, start = [np.empty(0, np.int64)], [np.empty(0, np.int32)], 0
    for batch in _batches(titles_path):
        found = np.flatnonzero(batch["status"].to_numpy() == ARTICLE)
        ids.append(batch["page_id"].to_numpy()[found])
        rows.append((start + found).astype(np.int32))
        start += batch.num_rows
    page_ids, own_rows = np.concatenate(ids), np.concatenate(rows)
    del ids, rows
    order = np.argsort(page_ids)
    return page_ids[order], own_rows[order], start


def _arriving(titles_path: str) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]]:
    """Gives, batch by batch, the rows of the redirects that arrive and the rows of the articles where they
    do.

    A shadowed redirect is left out: its title stands for another page.
    """
    start, last = 0, None
    for batch in _batches(titles_path):
        final_rows, status = batch["final_row"].to_numpy(), batch["status"].to_numpy()
        arrives = (final_rows >= 0) & (status != ARTICLE)
        keys, titles = batch["key"].to_numpy(), batch["title"]
        for i in (np.flatnonzero(keys[1:] == keys[:-1]) + 1).tolist():
            if titles[i].as_py() == titles[i - 1].as_py():
                arrives[i] = False
        if last == titles[0].as_py():
            arrives[0] = False
        rows = np.flatnonzero(arrives)
        yield (start + rows).astype(np.int32), final_rows[rows]
        start, last = start + batch.num_rows, titles[-1].as_py()
