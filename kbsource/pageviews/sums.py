"""Views summed by title and page: of a range of a file, of a group of titles, and of all groups in order."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import merge

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.dump.lines import LineRange
from kbsource.dump.rejects import DAMAGED_BYTES
from kbsource.files import ReadableStorage, base_name
from kbsource.pageviews.reading import UNKNOWN_TITLE, projects_of, read_range
from kbsource.records import BadRecord
from kbsource.runtime.chunks import Report, rows_batch
from kbsource.schema import field
from kbsource.site import Site
from kbsource.titles import is_valid_title, normalise_title, split_namespace

PAGEVIEWS = pa.schema(
    [
        field("title", pa.string(), "title as it was visited, in normal form, with spaces; a redirect's too"),
        field("page_id", pa.int64(), "page that was visited; null where the files do not tell", nullable=True),
        field("views", pa.int64(), "views of all files, over every kind of access"),
    ]
)
USED, OTHER_NAMESPACES, NO_PAGE = "used", "other_namespaces", "no_page"
MERGED_ROWS = 1 << 14
_SUMS_AT_ONCE = 1 << 17

Row = tuple[str, int | None, int]


def sum_range(line_range: LineRange, storage: ReadableStorage, site: Site, report: Report) -> Iterator[pa.RecordBatch]:
    """Yields the views of the articles of a wiki in a range, of schema ``PAGEVIEWS``; a row is one of several summands.

    Args:
        line_range: of a file.
        storage: of the file.
        site: the wiki.
        report: takes the counts of ``kind.LineCounts``, the sum ``views``, the name of the file, what is rejected, and
            ``damaged_bytes`` as ``kbsource.dump.rejects`` counts them.
    """
    report.facts["file"] = base_name(line_range.path)
    title_of = _Titles(site).find
    sums: Counter[tuple[str, int | None]] = Counter()
    damages: list[int] = []
    for row in read_range(line_range, storage, projects_of(site.edition), on_damage=damages.append):
        if isinstance(row, BadRecord):
            report.rejected.append(row)
            continue
        reason, title = title_of(row.title)
        if row.title == UNKNOWN_TITLE and row.page_id is None:
            reason = NO_PAGE
        report.counts[reason] += 1
        if reason == USED:
            sums[title, row.page_id] += row.views
            report.counts["views"] += row.views
        if len(sums) == _SUMS_AT_ONCE:
            yield _batch(sums)
            sums.clear()
    report.counts[DAMAGED_BYTES] = sum(damages)
    if sums:
        yield _batch(sums)


def _batch(sums: Mapping[tuple[str, int | None], int]) -> pa.RecordBatch:
    return rows_batch(((*key, views) for key, views in sums.items()), PAGEVIEWS)


class _Titles:
    """Finds the normal form of titles, and remembers the most frequent ones."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.find = lru_cache(1 << 16)(self._find)

    def _find(self, written: str) -> tuple[str, str]:
        """Gives what becomes of a line with the title, and the title."""
        title = normalise_title(written, self._site)
        if split_namespace(title, self._site)[0]:
            return OTHER_NAMESPACES, title
        return USED if is_valid_title(title) else NO_PAGE, title


@dataclass(frozen=True, slots=True)
class TitleGroups:
    """Puts all rows of a title in one of some groups."""

    n_groups: int

    def __call__(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        titles = rows["title"].to_pylist()
        return np.fromiter((zlib.crc32(title.encode()) % self.n_groups for title in titles), np.int64, len(titles))


def sum_group(rows: pa.Table) -> pa.Table:
    """Gives one row for each title and page, in the order of the table: by title, then page id, none first."""
    sums = pa.TableGroupBy(rows, ["title", "page_id"], use_threads=False).aggregate([("views", "sum")])
    sums = sums.rename_columns(["title", "page_id", "views"]).cast(PAGEVIEWS)
    keys = pa.table({"title": sums["title"], "page_id": pc.fill_null(sums["page_id"], -1)})
    return sums.take(pc.sort_indices(keys, sort_keys=[("title", "ascending"), ("page_id", "ascending")]))


def merge_groups(groups: Iterable[Iterable[pa.RecordBatch]]) -> Iterator[Row]:
    """Yields the rows of all groups in the order of the table. Memory: a batch of each."""
    yield from merge(*map(_rows, groups), key=row_key)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def row_key(row: Row) -> tuple[str, int]:
    """Gives what rows are sorted by."""
    return row[0], -1 if row[1] is None else row[1]
