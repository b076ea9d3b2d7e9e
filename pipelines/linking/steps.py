"""The steps of entity-linking data one by one: what is done to a range, to a group, and to what is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.files import atomic_write, join
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.reader import row_groups
from kbsource.release.writer import LinesFile, write_batches
from kbsource.runtime.chunks import Key, Stored, read_stored
from kbsource.runtime.sorted_runs import rebatched
from mapping.entity_linking.aliases import alias_rows
from mapping.entity_linking.links import Targets, chosen_lines, scan_links
from mapping.entity_linking.records import SPLITS, lines_path
from mapping.entity_linking.sampling import N_BUCKETS, Sampling, distinct_keys, draw, rows_of
from mapping.entity_linking.schema import CHOSEN, LINKS, PLACE
from pipelines.linking.ranges import Plan, Range
from pipelines.primitives.group_map import COUNTS, GroupWork, Pieces
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

MENTIONS, KEYS = "mentions", "keys"
_DUPLICATES = "duplicates"
ALIAS_GROUP_ROWS = 4096
"""Rows of a row group of aliases, the least that a look-up reads."""
_LINK_GROUP_ROWS = 1 << 16
_TARGETS = "targets.npy"


class WriteTargets(WorkerDoFn):
    """Writes ids of the pages that links may lead to, for ``Targets``; gives the folder."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def process(self, _: int) -> Iterator[str]:
        plan, folder = self._plan, self._plan.folder("targets")
        with named_faults():
            codes = [
                Targets.code(table["page_id"].to_numpy(), table["is_disambiguation"].to_numpy())
                for path in map(plan.path, range(len(plan.files)))
                for table in row_groups(path, storage_for(path), ("page_id", "is_disambiguation"))
            ]
            with atomic_write(storage_for(folder), join(folder, _TARGETS)) as file:
                np.save(file, np.sort(np.concatenate([np.empty(0, np.int64), *codes])), allow_pickle=False)
        yield folder


class Scan(WorkerDoFn):
    """The place of a range -> (Key, KEYS) and, by name, (Key, MENTIONS) and (Key, counts) of its links."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan, self._excluded = plan, np.array(plan.excluded, np.int64)
        self._targets: Targets | None = None

    def process(self, place: int, targets: str) -> Iterator[Any]:
        plan, range_ = self._plan, Range.at(place)
        key = Key(range_.file, range_.first)
        with named_faults():
            if self._targets is None:
                folder = storage_for(targets).local_copy(targets, [_TARGETS], version=plan.version)
                self._targets = Targets(np.load(os.path.join(folder, _TARGETS), mmap_mode="r"))
            scanned = scan_links(
                plan.read(range_), place, sampling=plan.sampling, targets=self._targets, excluded=self._excluded
            )
        yield key, scanned.keys
        yield beam.pvalue.TaggedOutput(MENTIONS, (key, scanned.mentions))
        yield beam.pvalue.TaggedOutput(COUNTS, (key, dict(scanned.counts)))


def find_distinct(work: GroupWork) -> None:
    """Keeps the first of keys that say the same; counts the others, and those of each bucket that are kept."""
    of_buckets = np.zeros(N_BUCKETS, np.int64)
    for batch in distinct_keys(_counted(work)):
        work.counts[_DUPLICATES] -= batch.num_rows
        of_buckets += np.bincount(batch["bucket"].to_numpy(), minlength=N_BUCKETS)
        work.write("distinct", batch)
    work.counts.update({str(bucket): int(of_buckets[bucket]) for bucket in np.flatnonzero(of_buckets).tolist()})


def _counted(work: GroupWork) -> Iterator[pa.RecordBatch]:
    for batch in work.rows(KEYS):
        work.counts[_DUPLICATES] += batch.num_rows
        yield batch


def draw_keys(counted: Sequence[tuple[Key, Mapping[str, int]]], sampling: Sampling) -> dict[str, Any]:
    """Gives what is drawn by what ``find_distinct`` counted, shares by group, and the number of duplicates."""
    of_groups = np.zeros((len(counted), N_BUCKETS), np.int64)
    for row, (_, counts) in enumerate(counted):
        for name, n_keys in counts.items():
            if name != _DUPLICATES:
                of_groups[row, int(name)] = n_keys
    drawn = draw(list(of_groups), sampling)
    groups = {key[1]: own for (key, _), own in zip(counted, drawn.groups, strict=True)}
    n_duplicates = sum(counts[_DUPLICATES] for _, counts in counted)
    return {**drawn._asdict(), "groups": groups, _DUPLICATES: n_duplicates}


def choose(work: GroupWork, drawn: Mapping[str, Any]) -> None:
    """Gives the links whose keys are drawn, by split."""
    left = dict(drawn["groups"][work.group])
    for batch in work.rows("distinct"):
        for split in SPLITS:
            rows = rows_of(batch, split, drawn["n_dev_buckets"]).slice(0, left[split])
            left[split] -= rows.num_rows
            work.write(split, rows.select(PLACE).cast(CHOSEN))


def places(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Gives the place of each row, which is its group."""
    of_rows: npt.NDArray[np.int64] = batch["place"].to_numpy()
    return of_rows


def sized(chosen: tuple[int, Pieces], split: str) -> tuple[int, tuple[str, int]]:
    """Gives how many links of a split were chosen in a place."""
    place, pieces = chosen
    return place, (split, sum(piece.n_rows for piece in pieces))


def starts(sizes: Sequence[tuple[int, tuple[str, int]]]) -> dict[int, dict[str, int]]:
    """Gives the number of the first record of each split in each place, whose sizes come in order.

    >>> starts([(3, ("train", 2)), (7, ("dev", 1)), (7, ("train", 4)), (9, ("train", 1))])[9]
    {'train': 6, 'dev': 1}
    """
    total = dict.fromkeys(SPLITS, 0)
    found: dict[int, dict[str, int]] = {}
    for place, (split, n_records) in sizes:
        found.setdefault(place, dict(total))
        total[split] += n_records
    return found


def cut_lines(work: GroupWork, starts: Mapping[int, Mapping[str, int]], *, plan: Plan) -> None:
    """Gives the records of the chosen links of a place."""
    chosen = {split: np.sort(work.table(split, CHOSEN)["link"].to_numpy()) for split in SPLITS}
    pages = plan.read(Range.at(work.group))
    work.write("lines", chosen_lines(pages, chosen, starts[work.group], plan.sampling.context))


def count_aliases(work: GroupWork) -> None:
    """Gives the part of the alias table that a range of mentions makes."""
    last = None
    for batch in rebatched(alias_rows(work.rows(MENTIONS)), ALIAS_GROUP_ROWS):
        mentions = batch["mention"].to_pylist()
        work.counts[MENTIONS] += len(set(mentions)) - (mentions[0] == last)
        work.counts["aliases"] += batch.num_rows
        last = mentions[-1]
        work.write("aliases", batch)


class WriteRecords(WorkerDoFn):
    """A split, or the name of the table -> the entry of its file, out of all of LINES in order."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def process(self, name: str, lines: Sequence[tuple[Key, Stored]]) -> Iterator[FileEntry]:
        output, chunks = self._plan.output, [Stored(*stored) for _, stored in lines]
        storage = storage_for(output)
        with named_faults():
            if name in SPLITS:
                with LinesFile(output, lines_path(name), storage) as file:
                    for batch in _batches(chunks, ("is_dev", "line")):
                        for line in batch.filter(pa.compute.equal(batch["is_dev"], name == "dev"))["line"].to_pylist():
                            file.write(line)
                yield file.entry
            else:
                rows = rebatched(_batches(chunks, LINKS.names), _LINK_GROUP_ROWS)
                yield write_batches(rows, name, LINKS, output=output, storage=storage, file=shard_path(name, 0, 1))


def _batches(chunks: Iterable[Stored], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for chunk in chunks:
        yield from read_stored(chunk, storage_for(chunk.path), columns)
