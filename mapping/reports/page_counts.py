"""What the pages of a release hold, counted, and a sample of them. Memory: one row group, and the sample's places."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import Storage
from kbsource.release.reader import opened_table, row_groups

Numbers = npt.NDArray[np.int64]
MEASURES = ("elements", "characters", "anchors", "tables", "infoboxes")
_LEAVES = (
    "page_id",
    "elements.list.element.text",
    "anchors.list.element.target_page_id",
    "tables.list.element.element",
    "infoboxes.list.element.element",
)
_READ = ("title", "elements.list.element.kind", "elements.list.element.text", "tables", "infoboxes")


class Place(NamedTuple):
    """Where a page of the sample stands: number of the file, row group, row in it."""

    file: int
    group: int
    row: int


@dataclass(slots=True)
class Distribution:
    """How a measure is distributed over pages.

    Attributes:
        bins: pages by bin, see ``bin_name``.
        total, most: sum over pages, and the greatest value of a page.
    """

    bins: Numbers = field(default_factory=lambda: np.zeros(64, np.int64))
    total: int = 0
    most: int = 0

    def add(self, values: Numbers) -> None:
        """Counts pages."""
        if len(values):
            self.bins += np.bincount(np.frexp(values)[1], minlength=64)
            self.total += int(values.sum())
            self.most = max(self.most, int(values.max()))

    def shown(self) -> Iterator[tuple[str, int]]:
        """Gives name and pages of every bin up to the last that has any."""
        last = int(np.flatnonzero(self.bins)[-1]) if self.bins.any() else 0
        return ((bin_name(number), int(self.bins[number])) for number in range(last + 1))


def bin_name(number: int) -> str:
    """Gives the values of a bin: 0, then from each power of two to below the next.

    >>> [bin_name(number) for number in (0, 1, 2, 3, 12)]
    ['0', '1', '2–3', '4–7', '2K–4K']
    """
    if number <= 1:
        return str(number)
    if number > 10:
        least = 1 << (number - 11)
        unit, size = ("K", 1) if least < 1024 else ("M", 1024)
        return f"{least // size}{unit}–{2 * least // size}{unit}"
    return f"{1 << (number - 1)}–{(1 << number) - 1}"


@dataclass(slots=True)
class PageCounts:
    """What ``count_pages`` found.

    Attributes:
        distributions: by measure.
        resolved: anchors that lead to an article of the release.
        sample: places of the pages whose ids have the least sha256, in order of the release.
    """

    distributions: dict[str, Distribution]
    resolved: int
    sample: list[Place]


def count_pages(files: Sequence[str], storage: Storage, *, n_sampled: int) -> PageCounts:
    """Counts what the pages in files of the table hold."""
    counts = {name: Distribution() for name in MEASURES}
    n_resolved = 0
    sample: list[tuple[int, int, Place]] = []
    for number, path in enumerate(files):
        for group, rows in enumerate(row_groups(path, storage, _LEAVES)):
            characters = np.cumsum(np.r_[0, pc.utf8_length(_leaf(rows["elements"])).to_numpy()])
            starts, ends = _ranges(rows["elements"])
            counts["characters"].add(characters[ends] - characters[starts])
            for name in MEASURES:
                if name != "characters":
                    starts, ends = _ranges(rows[name])
                    counts[name].add(ends - starts)
            targets = _leaf(rows["anchors"])
            n_resolved += len(targets) - targets.null_count
            for row, page_id in enumerate(rows["page_id"].to_pylist()):
                # The greatest hash first, for it is the one that goes.
                known = -sampling_key(page_id), page_id, Place(number, group, row)
                if len(sample) < n_sampled:
                    heapq.heappush(sample, known)
                elif known > sample[0]:
                    heapq.heapreplace(sample, known)
    return PageCounts(counts, n_resolved, sorted(place for _, _, place in sample))


def sampling_key(page_id: int) -> int:
    """Gives the number by which pages are sampled, the least first."""
    return int.from_bytes(hashlib.sha256(str(page_id).encode()).digest()[:8])


def sampled_rows(files: Sequence[str], places: Sequence[Place], storage: Storage) -> Iterator[dict[str, Any]]:
    """Gives title and texts of the pages at some places, which are in order."""
    for number, of_file in groupby(places, itemgetter(0)):
        with opened_table(files[number], storage) as file:
            for group, of_group in groupby(of_file, itemgetter(1)):
                rows = file.read_row_group(group, columns=list(_READ), use_threads=False)
                yield from rows.take([place.row for place in of_group]).to_pylist()


def _ranges(column: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """Gives for each list the number of its first value among all, and one past that of its last."""
    ends = np.cumsum(pc.list_value_length(column).to_numpy()).astype(np.int64)
    return np.r_[0, ends[:-1]].astype(np.int64)[: len(ends)], ends


def _leaf(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Gives the only field of the structs in all lists of a column."""
    return pc.struct_field(pc.list_flatten(column), [0])
