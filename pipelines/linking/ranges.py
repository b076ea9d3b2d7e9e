"""The pages of a release in ranges, as the steps of entity-linking data share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.errors import named_faults
from kbsource.files import join
from kbsource.release.manifest import FileEntry
from kbsource.release.reader import parquet_file
from mapping.entity_linking.aliases import prefixes
from mapping.entity_linking.links import COLUMNS
from mapping.entity_linking.sampling import Sampling
from mapping.passages.corpus import checked_pages
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

RANGE_BYTES = 4 << 20
"""Bytes of ``COLUMNS`` that are read together, at least."""
GROUP_BYTES, MOST_GROUPS = 16 << 20, 256
"""Bytes of the files of pages to a group of what is shuffled, about."""
_SAMPLED = 64


class Range(NamedTuple):
    """Row groups of a file of pages that are read together. Places are numbers in the order of the release."""

    file: int
    first: int
    n_groups: int

    @property
    def place(self) -> int:
        """The range as a number."""
        return self.file << 40 | self.first << 16 | self.n_groups

    @classmethod
    def at(cls, place: int) -> Range:
        """Gives the range of a number."""
        return cls(place >> 40, place >> 16 & 0xFFFFFF, place & 0xFFFF)


@dataclass(frozen=True, slots=True)
class Plan:
    """What all steps share.

    Attributes:
        kb: folder of the release, from the root.
        version: hash of its manifest.
        files: its files of pages in order.
        sampling: decides which links become records.
        excluded: ids of pages whose links are not taken.
        output: folder of the data.
        staging: folder for what lies between the steps.
    """

    kb: str
    version: str
    files: tuple[FileEntry, ...]
    sampling: Sampling
    excluded: tuple[int, ...]
    output: str
    staging: str

    @property
    def n_groups(self) -> int:
        """Groups of what is shuffled; they hang on the release alone."""
        return min(MOST_GROUPS, 1 + sum(entry.bytes for entry in self.files) // GROUP_BYTES)

    def folder(self, name: str) -> str:
        """Gives a folder in the staging folder."""
        return join(self.staging, name)

    def path(self, file: int) -> str:
        """Gives the path of a file of pages."""
        return join(self.kb, self.files[file].file)

    def read(self, range_: Range) -> pa.RecordBatch:
        """Gives ``COLUMNS`` of the pages of a range."""
        path = self.path(range_.file)
        with storage_for(path).open_ranges(path) as raw, parquet_file(raw, pre_buffer=True) as file:
            groups = range(range_.first, range_.first + range_.n_groups)
            table = file.read_row_groups(groups, columns=list(COLUMNS), use_threads=False)
        return table.combine_chunks().to_batches()[0]


class Ranges(WorkerDoFn):
    """Number of a file of pages -> the places of its ranges, once it is known to be as it was written."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def process(self, file: int) -> Iterator[int]:
        path = self._plan.path(file)
        with named_faults():
            storage = checked_pages(self._plan.kb, self._plan.files[file], storage_for(path))
            with storage.open_read(path) as raw:
                metadata = pq.read_metadata(raw)
            for range_ in _cut(metadata, file):
                yield range_.place


def _cut(metadata: pq.FileMetaData, file: int) -> Iterator[Range]:
    first = n_bytes = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = map(group.column, range(group.num_columns))
        n_bytes += sum(column.total_uncompressed_size for column in columns if column.path_in_schema in COLUMNS)
        if n_bytes >= RANGE_BYTES or number == metadata.num_row_groups - 1:
            yield Range(file, first, number + 1 - first)
            first, n_bytes = number + 1, 0


def mention_bounds(plan: Plan) -> tuple[int, ...]:
    """Gives the prefixes at which groups of mentions begin, about equal ones by some row groups of the release.

    They decide how evenly the work is spread, and which file a row of the table comes to lie in.
    """
    if plan.n_groups == 1:
        return ()
    column, found = "anchors.list.element.text", []
    for number in np.unique(np.linspace(0, len(plan.files) - 1, _SAMPLED, dtype=np.int64)).tolist():
        path = plan.path(number)
        with storage_for(path).open_ranges(path) as raw, parquet_file(raw) as file:
            n_groups = file.metadata.num_row_groups
            for group in np.unique(np.linspace(0, n_groups - 1, max(1, _SAMPLED // len(plan.files)), dtype=np.int64)):
                if n_groups:
                    anchors = file.read_row_group(int(group), columns=[column], use_threads=False)["anchors"]
                    texts = anchors.combine_chunks().flatten().field("text").to_pylist()
                    found.append(prefixes(" ".join(text.split()) for text in texts)[:, 0])
    ordered = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    cuts = np.arange(1, plan.n_groups) * len(ordered) // plan.n_groups
    return tuple(np.unique(ordered[cuts]).tolist()) if len(ordered) else ()
