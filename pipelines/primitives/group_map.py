"""Applies a function to groups of rows, one at a time, with several inputs and outputs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.columns import batch_of
from kbsource.columns import value_rows as value_rows  # read from here, too
from kbsource.files import Folder, join
from kbsource.rows import Row
from kbsource.runtime.chunks import BatchRef, ChunkKey, chunk_path, once_json, read_chunk_report, rows_batch
from kbsource.runtime.regroup import MOST_GROUPS, merge_group, read_group
from pipelines.primitives.shuffle import GroupsOf, OutputNames, split_rows
from pipelines.runners.counters import count
from pipelines.runners.workers import do, wired

ROWS_AT_ONCE = 1024
COLUMN_ROWS_AT_ONCE = 1 << 16
COUNTS, TOLD = "counts", "told"
GROUP_ROWS = 1 << 19
Pieces = Sequence[BatchRef]
Piece = tuple[str, ChunkKey, BatchRef]


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Settings for writing outputs: schemas by name, and the arguments of ``map_groups``."""

    folder: str
    schemas: Mapping[str, pa.Schema]
    plain: Collection[str]
    rows_at_once: Mapping[str, int]
    sorted_by: Mapping[str, int]


class GroupWork:
    """A group in progress: its number, its rows by input, and its outputs. Add counts to ``counts``, by name."""

    def __init__(
        self,
        group: int,
        pieces: Mapping[str, Pieces],
        orders: Mapping[str, Sequence[str]],
        outputs: _Outputs,
        stack: ExitStack,
    ) -> None:
        self.group = group
        self.counts: Counter[str] = Counter()
        self._pieces, self._orders, self._outputs, self._stack = pieces, orders, outputs, stack
        self._writers: dict[str, Any] = {}
        self._pending: defaultdict[str, list[Any]] = defaultdict(list)
        self._parts: defaultdict[str, list[Sequence[npt.NDArray[Any]]]] = defaultdict(list)
        self._n_parts: Counter[str] = Counter()
        self._stored: dict[str, BatchRef] = {}

    def rows(self, name: str) -> Iterator[pa.RecordBatch]:
        """Reads the rows of an input, sorted by its columns if it has an order, else in key order."""
        pieces = self._pieces.get(name, ())
        if order := self._orders.get(name, ()):
            yield from merge_group(pieces, order)
        else:
            yield from read_group(pieces)

    def reports(self, name: str) -> Iterator[Counter[str]]:
        """Reads the counts recorded when each chunk of an input was written."""
        for piece in self._pieces.get(name, ()):
            yield read_chunk_report(piece.path)[1].counts

    def table(self, name: str, schema: pa.Schema) -> pa.Table:
        """Returns all rows of an input at once."""
        return pa.Table.from_batches(self.rows(name), schema).combine_chunks()

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        """Adds rows to an output."""
        self._flush(name)
        self._write(name, batch)

    def add(self, name: str, row: Sequence[Any] | Row) -> None:
        """Adds a row to an output, given the values of its columns."""
        pending = self._pending[name]
        pending.append(row)
        if len(pending) == self._rows_at_once(name) and name not in self._outputs.sorted_by:
            self._flush(name)

    def extend(self, name: str, columns: Sequence[npt.NDArray[Any]]) -> None:
        """Adds rows to an output, given as columns."""
        self._parts[name].append(columns)
        self._n_parts[name] += len(columns[0])
        if self._n_parts[name] >= COLUMN_ROWS_AT_ONCE:
            self._flush(name)

    def close(self) -> dict[str, BatchRef]:
        """Finishes the outputs, and returns the files with their rows."""
        for name in [*self._pending, *self._parts]:
            self._flush(name)
        for writer in self._writers.values():
            writer.close()
        return self._stored

    def _write(self, name: str, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        path = chunk_path(join(self._outputs.folder, name), ChunkKey(0, self.group))
        if name not in self._writers:
            file = self._stack.enter_context(Folder.of(path).create())
            packing = None if name in self._outputs.plain else "lz4"
            options = pa.ipc.IpcWriteOptions(compression=packing, use_threads=False)
            self._writers[name] = pa.ipc.new_file(file, self._outputs.schemas[name], options=options)
        self._writers[name].write_batch(batch)
        before = self._stored.get(name, BatchRef(path, 0, 0, 0, 0))
        self._stored[name] = before._replace(n_batches=before.n_batches + 1, n_rows=before.n_rows + batch.num_rows)

    def _rows_at_once(self, name: str) -> int:
        return self._outputs.rows_at_once.get(name, ROWS_AT_ONCE)

    def _flush(self, name: str) -> None:
        if parts := self._parts.pop(name, None):
            self._n_parts[name] = 0
            arrays = [pa.array(np.concatenate(column)) for column in zip(*parts, strict=True)]
            self._write(name, pa.RecordBatch.from_arrays(arrays, schema=self._outputs.schemas[name]))
        if rows := self._pending.pop(name, None):
            if n_keys := self._outputs.sorted_by.get(name, 0):
                rows.sort(key=itemgetter(slice(n_keys)))
            for start in range(0, len(rows), self._rows_at_once(name)):
                part = rows[start : start + self._rows_at_once(name)]
                row = type(part[0])
                is_record = issubclass(row, Row)
                self._write(name, batch_of(part, row) if is_record else rows_batch(part, self._outputs.schemas[name]))


class By(NamedTuple):
    """The function that assigns rows of an input to groups, and the numeric columns that sort the rows of a group."""

    groups: GroupsOf
    order: Sequence[str] = ()


class Sent(NamedTuple):
    """Marks an input whose rows were already sent by ``send_rows``, in this order."""

    order: Sequence[str] = ()


def send_rows(
    inputs: Mapping[str, Any], folder: str, by: Mapping[str, By | Sent]
) -> tuple[dict[str, Any], dict[str, Sent]]:
    """Sends rows of named inputs to the groups: returns (group, (name, key, ``BatchRef``)), and how each input was
    sent.

    Outputs of ``map_groups`` stay in their groups, unless ``by`` assigns others. Collections are not flattened here,
    because Spark and Flink do not accept collections that are flattened twice.

    Args:
        inputs: (key, rows), or rows that were sent before under the same name.
        folder: for the regrouped rows; for one job with one input only.
        by: grouping of inputs, by name.
    """
    rows, sent = dict(inputs), {}
    for name, table in inputs.items():
        how = by.get(name)
        if isinstance(how, Sent):
            sent[name] = how
        elif how is None:
            rows[name], sent[name] = table | f"send {name}" >> beam.Map(_send, name), Sent()
        else:
            sent[name] = Sent(tuple(how.order))
            split = {"folder": join(folder, name), "by": how.groups, "order": sent[name].order}
            rows[name] = table | f"send {name}" >> do(_send_split, name=name, **split)
    return rows, sent


def _send_split(element: tuple[ChunkKey, Any], *, name: str, **how: Any) -> Iterator[tuple[int, Piece]]:
    for group, (key, stored) in split_rows(element, **how):
        yield group, (name, key, stored)


def _send(chunk: tuple[ChunkKey, BatchRef], name: str) -> tuple[int, Piece]:
    return chunk[0][1], (name, *chunk)


@wired
def map_groups(
    inputs: Mapping[str, Any],
    function: Callable[..., None],
    folder: str,
    *,
    outputs: Mapping[str, pa.Schema],
    by: Mapping[str, By | Sent] | None = None,
    given: tuple[Any, ...] = (),
    plain: Collection[str] = (),
    rows_at_once: Mapping[str, int] | None = None,
    sorted_by: Mapping[str, int] | None = None,
    step: OutputNames | None = None,
) -> Any:
    """{name: (key, rows)} -> {name: ((0, group), ``BatchRef``)} and ``counts``: (key, dict of counts by name).

    The function is called once for each group of any input, with a ``GroupWork`` and the values of ``given``. Its
    output files depend only on the group; there are no outputs without rows. A finished group is not processed again,
    so use a folder for only one job with one input.

    Args:
        function: the function; it is pickled and must be importable by workers.
        folder: for the output files.
        outputs: schemas by name.
        by: assigns rows of inputs to groups; by default, outputs of ``map_groups`` stay in their groups.
        given: side inputs.
        plain: outputs that are not compressed, for look-ups.
        rows_at_once: for outputs that receive single rows, the rows per batch, by output.
        sorted_by: number of columns to sort by, for outputs whose single rows are held and sorted.
        step: outputs, including ``counts``, that are also returned under ``TOLD``, for ``shuffle.StepCollector``.
    """
    rows, sent = send_rows(inputs, join(folder, "given"), by or {})
    pieces = tuple(rows.values())
    pieces = pieces[0] if len(pieces) == 1 else pieces | "all" >> beam.Flatten()
    work = do(
        _do_group,
        *given,
        function=function,
        orders={name: how.order for name, how in sent.items()},
        outputs=_Outputs(folder, dict(outputs), tuple(plain), dict(rows_at_once or {}), dict(sorted_by or {})),
        step=step or OutputNames(0, {}),
    )
    return pieces | "group" >> beam.GroupByKey() | "work" >> work.with_outputs(*outputs, TOLD, main=COUNTS)


def _do_group(
    element: tuple[int, Iterable[Piece]],
    *given: Any,
    function: Callable[..., None],
    orders: Mapping[str, Sequence[str]],
    outputs: _Outputs,
    step: OutputNames,
) -> Iterator[Any]:
    group, pieces = element[0], defaultdict[str, list[BatchRef]](list)
    for name, _, ref in sorted(element[1]):
        pieces[name].append(BatchRef(*ref))

    def make() -> dict[str, Any]:
        with ExitStack() as stack:
            work = GroupWork(group, pieces, orders, outputs, stack)
            function(work, *given)
            stored = {name: list(ref) for name, ref in work.close().items()}
        return {"stored": stored, "counts": work.counts}

    done = once_json(join(outputs.folder, f"{group:05d}.json"), make)
    count(done["counts"])
    key = ChunkKey(0, group)
    made = {name: BatchRef(*stored) for name, stored in done["stored"].items()}
    for name, stored in made.items():
        yield beam.pvalue.TaggedOutput(name, (key, stored))
    yield key, done["counts"]
    for output, value in {**made, COUNTS: done["counts"]}.items():
        if (told_as := step.names.get(output)) is not None:
            yield beam.pvalue.TaggedOutput(TOLD, (ChunkKey(step.number, group), (told_as, value)))


def groups_for(n_statements: int) -> int:
    """Returns a suitable number of groups for a release of Wikidata: a power of two, with about 500,000 statements per
    group if the maximum allows it."""
    n_groups = 1
    while n_groups < MOST_GROUPS and n_groups * GROUP_ROWS < n_statements:
        n_groups *= 2
    return n_groups
