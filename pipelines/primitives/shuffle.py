"""Moves rows between workers: text through files, keys and references through Beam."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.runtime.chunks import (
    BatchRef,
    ChunkKey,
    Report,
    chunk_path,
    keep_chunk,
    read_batches,
    read_chunk_schema,
    write_chunk,
)
from kbsource.runtime.regroup import write_groups
from pipelines.runners.workers import do

GroupsOf = Callable[[pa.RecordBatch], npt.NDArray[np.int64]]


class CollectSorted(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(key, value) -> one list of all pairs, in key order, each once; an empty list without pairs.

    One worker holds the list, so values should be references, counts or other small values.

    Args:
        function: called with the list and the values of ``given``, as in ``do``; the items it yields replace the list.
    """

    def __init__(self, function: Callable[..., Iterable[Any]] | None = None, *given: Any) -> None:
        super().__init__()
        self._function, self._given = function, given

    def expand(self, keyed: Any) -> Any:
        # Grouping by a common key would take three times as many transforms, and a first element for empty inputs.
        begin = keyed.pipeline | "begin" >> beam.Impulse()
        return begin | "in order" >> do(_in_order, beam.pvalue.AsList(keyed), *self._given, function=self._function)


def _in_order(
    _: bytes, keyed: Iterable[tuple[Any, Any]], *given: Any, function: Callable[..., Iterable[Any]] | None
) -> Iterable[Any]:
    ordered = sorted(keyed, key=itemgetter(0))
    return [ordered] if function is None else function(ordered, *given)


Collected = Sequence[tuple[ChunkKey, tuple[str, Any]]]
"""(key, (name, chunk or counts)) in order; the first number of a key is the number of the step."""


class StepOutputs:
    """The results collected by ``StepCollector``, by name."""

    def __init__(self, collected: Collected) -> None:
        self._collected = collected

    def steps(self, name: str) -> Iterator[list[BatchRef]]:
        """Iterates over the chunks of each step, in order."""
        own = ((key[0], BatchRef(*chunk)) for key, (kind, chunk) in self._collected if kind == name)
        for _, of_step in groupby(own, key=itemgetter(0)):
            yield [chunk for _, chunk in of_step]

    def counts(self, name: str) -> dict[str, int]:
        """Returns the sums of counts."""
        counts: Counter[str] = Counter()
        for _, (kind, value) in self._collected:
            if kind == name:
                counts.update(value)
        return dict(sorted(counts.items()))


class OutputNames(NamedTuple):
    """A step's number, and the names of its outputs in the final collection, by output."""

    number: int
    names: Mapping[str, str]


class StepCollector:
    """Collects the steps' outputs for the final commit: chunks and counts, by name, in the order of the release."""

    def __init__(self) -> None:
        self._found: list[Any] = []
        self._n_steps = 0

    def step(self, **names: str) -> OutputNames:
        """Returns the next step, given the names of its outputs. Pass the result of ``map_groups`` for this step to
        ``take``."""
        self._n_steps += 1
        return OutputNames(self._n_steps, names)

    def take(self, reported: Any) -> None:
        """Adds (key, (name, chunk or counts)), where the first number of the key is the number of a step."""
        self._found.append(reported)

    def add(self, name: str, values: Any) -> None:
        """Adds (key, chunk or counts) with distinct keys, under a name, as the next step."""
        step = self.step().number
        self._found.append(values | f"{name} {step}" >> beam.Map(_with_name, step, name))

    def finish(self, function: Callable[..., Iterable[Any]], *given: Any) -> Any:
        """Returns the output of a function that is called with one ordered list of (key, (name, value)), for
        ``StepOutputs``."""
        return tuple(self._found) | "made" >> beam.Flatten() | "finish" >> CollectSorted(function, *given)


def _with_name(element: tuple[ChunkKey, Any], step: int, name: str) -> tuple[ChunkKey, tuple[str, Any]]:
    key, value = element
    return ChunkKey(step, max(key)), (name, value)


class Checkpoint(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(key, record batch) -> (key, ``BatchRef``): writes rows to files and redistributes the references to all workers.

    Text therefore never passes through a shuffle, whose memory it would fill. Existing files are reused.

    Args:
        folder: a file per chunk is written to it; for one job with one input only.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, chunks: Any) -> Any:
        return chunks | "keep" >> do(_keep, folder=self._folder) | "spread" >> beam.Reshuffle()


def _keep(element: tuple[ChunkKey, pa.RecordBatch], *, folder: str) -> Iterator[tuple[ChunkKey, BatchRef]]:
    yield element[0], keep_batch(ChunkKey(*element[0]), element[1], folder)


def keep_batch(key: ChunkKey, batch: pa.RecordBatch, folder: str) -> BatchRef:
    """Returns the file of a chunk's rows in the folder, and writes it if it does not exist."""
    return keep_chunk(
        folder, key, lambda path: write_chunk([batch], batch.schema, Report(n_bytes=batch.nbytes), path=path)
    )


class Regroup(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(key, rows) -> (group, tuple of ``BatchRef``): the files with the rows of each group, in key order.

    Read a group in input order with ``read_group`` of ``kbsource.runtime.regroup``, or in the order of ``order`` with
    ``merge_group``. Memory holds one chunk, independent of the size of a group. Groups without rows are not returned.

    Args:
        folder: a file per chunk is written to it; for one job with one input only.
        by: returns the group of each row of a batch, a number from 0; it is pickled and must be importable by workers.
        order: numeric columns that the rows of a group are sorted by within each file.
    """

    def __init__(self, folder: str, by: GroupsOf, *, order: Sequence[str] = ()) -> None:
        super().__init__()
        self._split = do(split_rows, folder=folder, by=by, order=tuple(order))

    def expand(self, chunks: Any) -> Any:
        return chunks | "split" >> self._split | "group" >> beam.GroupByKey() | "in order" >> beam.MapTuple(_in_turn)


def split_rows(
    element: tuple[ChunkKey, BatchRef | pa.RecordBatch], *, folder: str, by: GroupsOf, order: Sequence[str]
) -> Iterator[tuple[int, tuple[ChunkKey, BatchRef]]]:
    """(key, rows) -> (group, (key, rows of the group)), see ``Regroup``."""
    key, rows = ChunkKey(*element[0]), element[1]
    batches = list(read_batches(rows))
    schema = read_chunk_schema(rows.path) if isinstance(rows, BatchRef) else rows.schema
    groups = [by(batch) for batch in batches]
    for group, stored in write_groups(batches, groups, schema, path=chunk_path(folder, key), order=order):
        yield group, (key, stored)


def _in_turn(group: int, pieces: Iterable[tuple[ChunkKey, BatchRef]]) -> tuple[int, tuple[BatchRef, ...]]:
    return group, tuple(BatchRef(*stored) for _, stored in sorted(pieces))
