"""Groups of rows worked on one by one, out of several inputs and into several outputs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from operator import itemgetter
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.files import atomic_write, join
from kbsource.runtime.chunks import Key, Stored, chunk_path, read_stored, rows_batch
from kbsource.runtime.regroup import MOST_GROUPS, merge_group
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

ROWS_AT_ONCE = 1024
COLUMN_ROWS_AT_ONCE = 1 << 16
COUNTS = "counts"
GROUP_ROWS = 1 << 19
Pieces = tuple[Stored, ...]


class GroupWork:
    """One group in work: its rows by input, and what comes of them.

    Attributes:
        group: its number.
        counts: by name, to be added to; sums over groups mean something.
    """

    def __init__(
        self, group: int, pieces: Mapping[str, Pieces], orders: Mapping[str, Sequence[str]], sinks: _Sinks
    ) -> None:
        self.group = group
        self.counts: Counter[str] = Counter()
        self._pieces, self._orders, self._sinks = pieces, orders, sinks

    def rows(self, name: str) -> Iterator[pa.RecordBatch]:
        """Gives the rows of an input, in the order of its columns where it has one, else in that of the keys."""
        pieces = self._pieces[name]
        if not pieces:
            return
        if name in self._orders:
            yield from merge_group(pieces, storage_for(pieces[0].path), self._orders[name])
            return
        for piece in pieces:
            yield from read_stored(piece, storage_for(piece.path))

    def table(self, name: str, schema: pa.Schema) -> pa.Table:
        """Gives all rows of an input at once."""
        return pa.Table.from_batches(self.rows(name), schema).combine_chunks()

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        """Takes rows of an output."""
        self._sinks.write(name, batch)

    def add(self, name: str, row: Sequence[Any]) -> None:
        """Takes a row of an output, the values of its columns."""
        self._sinks.add(name, row)

    def extend(self, name: str, columns: Sequence[npt.NDArray[Any]]) -> None:
        """Takes some rows of an output, column by column."""
        self._sinks.extend(name, columns)


class _Sinks:
    def __init__(
        self,
        folder: str,
        group: int,
        outputs: Mapping[str, pa.Schema],
        plain: Collection[str],
        rows_at_once: Mapping[str, int],
        sorted_by: Mapping[str, int],
        stack: ExitStack,
    ) -> None:
        self._folder, self._key, self._outputs, self._stack = folder, Key(0, group), outputs, stack
        self._plain, self._rows_at_once, self._sorted = plain, rows_at_once, sorted_by
        self._writers: dict[str, Any] = {}
        self._pending: defaultdict[str, list[Sequence[Any]]] = defaultdict(list)
        self._parts: defaultdict[str, list[Sequence[npt.NDArray[Any]]]] = defaultdict(list)
        self._n_parts: Counter[str] = Counter()
        self._stored: dict[str, Stored] = {}

    def write(self, name: str, batch: pa.RecordBatch) -> None:
        self._flush(name)
        self._write(name, batch)

    def _write(self, name: str, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        path = chunk_path(join(self._folder, name), self._key)
        if name not in self._writers:
            file = self._stack.enter_context(atomic_write(storage_for(path), path))
            packing = None if name in self._plain else "lz4"
            options = pa.ipc.IpcWriteOptions(compression=packing, use_threads=False)
            self._writers[name] = pa.ipc.new_file(file, self._outputs[name], options=options)
        self._writers[name].write_batch(batch)
        before = self._stored.get(name, Stored(path, 0, 0, 0, 0))
        self._stored[name] = before._replace(n_batches=before.n_batches + 1, n_rows=before.n_rows + batch.num_rows)

    def add(self, name: str, row: Sequence[Any]) -> None:
        pending = self._pending[name]
        pending.append(row)
        if len(pending) == self._rows_at_once.get(name, ROWS_AT_ONCE) and name not in self._sorted:
            self._flush(name)

    def extend(self, name: str, columns: Sequence[npt.NDArray[Any]]) -> None:
        self._parts[name].append(columns)
        self._n_parts[name] += len(columns[0])
        if self._n_parts[name] >= COLUMN_ROWS_AT_ONCE:
            self._flush(name)

    def _flush(self, name: str) -> None:
        if parts := self._parts.pop(name, None):
            self._n_parts[name] = 0
            arrays = [pa.array(np.concatenate(column)) for column in zip(*parts, strict=True)]
            self._write(name, pa.RecordBatch.from_arrays(arrays, schema=self._outputs[name]))
        if rows := self._pending.pop(name, None):
            if n_keys := self._sorted.get(name, 0):
                rows.sort(key=itemgetter(slice(n_keys)))
            n_rows = self._rows_at_once.get(name, ROWS_AT_ONCE)
            for start in range(0, len(rows), n_rows):
                self._write(name, rows_batch(rows[start : start + n_rows], self._outputs[name]))

    def close(self) -> dict[str, Stored]:
        for name in [*self._pending, *self._parts]:
            self._flush(name)
        for writer in self._writers.values():
            writer.close()
        return self._stored


class GroupMap(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """{name: (group, pieces)} -> {name: (Key(0, group), ``Stored``)} and ``counts``: (Key, dict of counts by name).

    The function is called once for each group that any input has, with a ``GroupWork`` and the values of ``given``.
    What it writes is in files that hang on the group alone; outputs without rows do not come. A group that was done is
    not done again: a folder is for one job with one input only.

    Args:
        function: what is done; importable where workers run, and pickled.
        folder: takes the files.
        outputs: schemas by name.
        orders: by input the columns that its pieces are ordered by, see ``kbsource.runtime.regroup.merge_group``.
        given: side inputs.
        plain: outputs that are not compressed, to be looked into.
        rows_at_once: by output the rows of a batch that is made of single rows.
        sorted_by: by output whose single rows are held and sorted, the number of columns that they are sorted by.
    """

    def __init__(
        self,
        function: Callable[..., None],
        folder: str,
        *,
        outputs: Mapping[str, pa.Schema],
        orders: Mapping[str, Sequence[str]] | None = None,
        given: tuple[Any, ...] = (),
        plain: Collection[str] = (),
        rows_at_once: Mapping[str, int] | None = None,
        sorted_by: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__()
        self._given, self._names = given, tuple(outputs)
        settings = dict(rows_at_once or {}), dict(sorted_by or {})
        self._work = (function, folder, dict(outputs), dict(orders or {}), tuple(plain), *settings)

    def expand(self, inputs: Mapping[str, Any]) -> Any:
        work = beam.ParDo(_DoGroup(tuple(inputs), *self._work), *self._given)
        return inputs | beam.CoGroupByKey() | "work" >> work.with_outputs(*self._names, main=COUNTS)


class _DoGroup(WorkerDoFn):
    def __init__(
        self,
        inputs: tuple[str, ...],
        function: Callable[..., None],
        folder: str,
        outputs: Mapping[str, pa.Schema],
        orders: Mapping[str, Sequence[str]],
        plain: tuple[str, ...],
        rows_at_once: Mapping[str, int],
        sorted_by: Mapping[str, int],
    ) -> None:
        super().__init__()
        self._inputs, self._function, self._folder, self._outputs = inputs, function, folder, outputs
        self._orders, self._plain, self._rows_at_once, self._sorted = orders, plain, rows_at_once, sorted_by

    def process(self, element: tuple[int, Mapping[str, Iterable[Pieces]]], *given: Any) -> Iterator[Any]:
        group, found = element
        pieces = {name: tuple(Stored(*entry) for many in found[name] for entry in many) for name in self._inputs}
        with named_faults():
            stored, counts = self._done(group, pieces, given)
        for name, one in stored.items():
            yield beam.pvalue.TaggedOutput(name, (Key(0, group), Stored(*one)))
        yield Key(0, group), counts

    def _done(self, group: int, pieces: Mapping[str, Pieces], given: tuple[Any, ...]) -> tuple[Any, Any]:
        path = join(self._folder, f"{group:05d}.json")
        storage = storage_for(path)
        if storage.exists(path):
            with storage.open_read(path) as file:
                done = orjson.loads(file.read())
            return done["stored"], done["counts"]
        with ExitStack() as stack:
            sinks = _Sinks(self._folder, group, self._outputs, self._plain, self._rows_at_once, self._sorted, stack)
            work = GroupWork(group, pieces, self._orders, sinks)
            self._function(work, *given)
            stored, counts = sinks.close(), dict(work.counts)
        with atomic_write(storage, path) as sink:
            sink.write(orjson.dumps({"stored": stored, "counts": counts}, default=tuple))
        return stored, counts


def as_groups(key: Key, stored: Stored) -> tuple[int, Pieces]:
    """Gives a chunk of a group, as ``GroupMap`` gives them, as that group."""
    return key[1], (stored,)


def by_part(key: Key, stored: Stored) -> tuple[int, Pieces]:
    """Gives a chunk, the only one of its part, as a group of the number of the part."""
    return key[0], (stored,)


def groups_for(n_statements: int) -> int:
    """Gives how many groups suit a release of Wikidata: a power of two, with some 500,000 statements each as far as
    there may be so many."""
    n_groups = 1
    while n_groups < MOST_GROUPS and n_groups * GROUP_ROWS < n_statements:
        n_groups *= 2
    return n_groups


def groups_by(batch: pa.RecordBatch, column: str, n_groups: int) -> npt.NDArray[np.int64]:
    """Gives the groups of rows by a column of numbers."""
    groups: npt.NDArray[np.int64] = batch[column].to_numpy() % n_groups
    return groups
