"""What moves rows between workers: text goes through files, keys and references through Beam."""

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
    """(key, value) -> one list of all of them, in the order of the keys, each once; an empty one where there are none.

    One worker holds the list: values are references, counts, or else small.

    Args:
        function: takes the list, and the values of ``given`` as ``do`` has them; what it yields comes instead.
    """

    def __init__(self, function: Callable[..., Iterable[Any]] | None = None, *given: Any) -> None:
        super().__init__()
        self._function, self._given = function, given

    def expand(self, keyed: Any) -> Any:
        # Not by a key that all have: that takes three times the transforms, and something to begin with where there
        # are none.
        begin = keyed.pipeline | "begin" >> beam.Impulse()
        return begin | "in order" >> do(_in_order, beam.pvalue.AsList(keyed), *self._given, function=self._function)


def _in_order(
    _: bytes, keyed: Iterable[tuple[Any, Any]], *given: Any, function: Callable[..., Iterable[Any]] | None
) -> Iterable[Any]:
    ordered = sorted(keyed, key=itemgetter(0))
    return [ordered] if function is None else function(ordered, *given)


Collected = Sequence[tuple[ChunkKey, tuple[str, Any]]]
"""(key, (name, chunk or counts)) in order; the first number of a key is that of the step."""


class Found:
    """What ``Made`` collected, by name."""

    def __init__(self, collected: Collected) -> None:
        self._collected = collected

    def steps(self, name: str) -> Iterator[list[BatchRef]]:
        """The chunks of each step, in order."""
        own = ((key[0], BatchRef(*chunk)) for key, (kind, chunk) in self._collected if kind == name)
        for _, of_step in groupby(own, key=itemgetter(0)):
            yield [chunk for _, chunk in of_step]

    def counts(self, name: str) -> dict[str, int]:
        """The sums of counts."""
        counts: Counter[str] = Counter()
        for _, (kind, value) in self._collected:
            if kind == name:
                counts.update(value)
        return dict(sorted(counts.items()))


class Step(NamedTuple):
    """What the end is told of a step: its number in their order, and what its outputs are called, by their names."""

    number: int
    names: Mapping[str, str]


class Made:
    """What comes of the steps, for the end: chunks and counts, by name, in the order of the release."""

    def __init__(self) -> None:
        self._found: list[Any] = []
        self._n_steps = 0

    def step(self, **names: str) -> Step:
        """The next step in order, and what its outputs are called; ``take`` what ``map_groups`` gives with it."""
        self._n_steps += 1
        return Step(self._n_steps, names)

    def take(self, reported: Any) -> None:
        """Takes (key, (name, chunk or counts)), whose first number is that of a step."""
        self._found.append(reported)

    def add(self, name: str, values: Any) -> None:
        """Takes (key, chunk or counts), whose keys differ, under a name, as the next step."""
        step = self.step().number
        self._found.append(values | f"{name} {step}" >> beam.Map(_named, step, name))

    def finish(self, function: Callable[..., Iterable[Any]], *given: Any) -> Any:
        """What a function yields that gets one list of (key, (name, value)), in order, for ``Found``."""
        return tuple(self._found) | "made" >> beam.Flatten() | "finish" >> CollectSorted(function, *given)


def _named(element: tuple[ChunkKey, Any], step: int, name: str) -> tuple[ChunkKey, tuple[str, Any]]:
    key, value = element
    return ChunkKey(step, max(key)), (name, value)


class Checkpoint(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(key, record batch) -> (key, ``BatchRef``): references go on, and are spread anew over all workers.

    Text never travels through a shuffle so, whose memory it would fill. A file that is there is kept.

    Args:
        folder: takes a file for each chunk; for one job with one input only.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, chunks: Any) -> Any:
        return chunks | "keep" >> do(_keep, folder=self._folder) | "spread" >> beam.Reshuffle()


def _keep(element: tuple[ChunkKey, pa.RecordBatch], *, folder: str) -> Iterator[tuple[ChunkKey, BatchRef]]:
    yield element[0], keep_batch(ChunkKey(*element[0]), element[1], folder)


def keep_batch(key: ChunkKey, batch: pa.RecordBatch, folder: str) -> BatchRef:
    """Where the rows of a chunk are kept: in a file of the folder, which is made unless it is there."""
    return keep_chunk(
        folder, key, lambda path: write_chunk([batch], batch.schema, Report(n_bytes=batch.nbytes), path=path)
    )


class Regroup(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(key, rows) -> (group, tuple of ``BatchRef``): where the rows of each group are, pieces in the order of the keys.

    Read a group with ``read_group`` of ``kbsource.runtime.regroup``, in the order of the input, or with ``merge_group``
    in that of ``order``. Memory is that of one chunk, however many rows a group has. A group without rows does not
    come.

    Args:
        folder: takes a file for each chunk; for one job with one input only.
        by: gives the group of each row of a batch, a number from 0; importable where workers run, and pickled.
        order: columns of numbers that the rows of a group are ordered by, within each piece.
    """

    def __init__(self, folder: str, by: GroupsOf, *, order: Sequence[str] = ()) -> None:
        super().__init__()
        self._split = do(split_rows, folder=folder, by=by, order=tuple(order))

    def expand(self, chunks: Any) -> Any:
        return chunks | "split" >> self._split | "group" >> beam.GroupByKey() | "in order" >> beam.MapTuple(_in_turn)


def split_rows(
    element: tuple[ChunkKey, BatchRef | pa.RecordBatch], *, folder: str, by: GroupsOf, order: Sequence[str]
) -> Iterator[tuple[int, tuple[ChunkKey, BatchRef]]]:
    """(key, rows) -> (group, (key, rows of it)), see ``Regroup``."""
    key, rows = ChunkKey(*element[0]), element[1]
    batches = list(read_batches(rows))
    schema = read_chunk_schema(rows.path) if isinstance(rows, BatchRef) else rows.schema
    groups = [by(batch) for batch in batches]
    for group, stored in write_groups(batches, groups, schema, path=chunk_path(folder, key), order=order):
        yield group, (key, stored)


def _in_turn(group: int, pieces: Iterable[tuple[ChunkKey, BatchRef]]) -> tuple[int, tuple[BatchRef, ...]]:
    return group, tuple(BatchRef(*stored) for _, stored in sorted(pieces))
