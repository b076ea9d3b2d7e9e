"""Joins tables with SQL as one step of a job, which one worker runs on its local disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
import pyarrow as pa

from kbsource.files import join
from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, chunk_path, once_json, read_chunk_report, write_chunk
from kbsource.runtime.warehouse import StoredTable, warehouse
from pipelines.runners.counters import count
from pipelines.runners.workers import do

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

JOINED = "joined.json"
"""The file of a finished step, in its folder."""
THREADS = 1
"""Threads of the database; workers are processes, one per core."""
_DONE = "done"


class StepTable(NamedTuple):
    """A table between steps."""

    chunks: Any  # (key, ``BatchRef``)
    schema: pa.Schema  # columns to read

    def only(self, *columns: str) -> StepTable:
        """Returns the table with only some columns."""
        return self._replace(schema=pa.schema([self.schema.field(name) for name in columns]))


class Join(NamedTuple):
    """A function that joins tables, and the schemas of its outputs.

    The function is called with a ``TableJoin`` and side inputs. Its outputs must depend only on the rows, so each of
    its queries needs a total order.
    """

    function: Callable[..., object]  # pickled; importable by workers
    outputs: Mapping[str, pa.Schema]


class TableJoin:
    """A join in progress: its input tables, and its output tables.

    Add counts to ``counts``, by name, and further JSON values to ``facts``.
    """

    def __init__(
        self, tables: Mapping[str, StoredTable], outputs: Mapping[str, pa.Schema], *, folder: str, memory_mb: int
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.facts: dict[str, Any] = {}
        self.stored: dict[str, list[tuple[ChunkKey, BatchRef]]] = {}
        self._tables, self._outputs, self._folder, self._memory_mb = tables, outputs, folder, memory_mb

    def open(self) -> AbstractContextManager[DuckDBPyConnection]:
        """Opens a database with the input tables."""
        return warehouse(self._tables, memory_mb=self._memory_mb, threads=THREADS)

    def schema(self, name: str) -> pa.Schema:
        """Returns the columns of an output table."""
        return self._outputs[name]

    def reports(self, name: str) -> Iterator[Report]:
        """Reads the report recorded when each chunk of an input table was written."""
        for chunk in self._tables[name].chunks:
            yield read_chunk_report(chunk.path)[1]

    def write(self, name: str, batches: Iterable[pa.RecordBatch], *, number: int = 0) -> None:
        """Writes rows as a chunk of an output table; the number is the second one of its key."""
        key, report = ChunkKey(0, number), Report()

        def weighed() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                report.n_bytes += batch.nbytes
                yield batch

        path = chunk_path(join(self._folder, name), key)
        chunk = write_chunk(weighed(), self._outputs[name], report, path=path)
        self.stored.setdefault(name, []).append((key, chunk))


def join_tables(
    label: str, step: Join, inputs: Mapping[str, StepTable], *given: Any, folder: str, memory_mb: int, **bound: Any
) -> tuple[dict[str, StepTable], Any]:
    """Adds a step that joins tables, and returns its output tables, and (counts, facts), one element.

    A finished step is not repeated, so use a folder for only one job with one input.

    Args:
        label: name of the step.
        step: the function and its outputs.
        inputs: the tables, by name.
        given: side inputs for the function.
        folder: for the output files.
        memory_mb: memory limit of the database.
        bound: arguments that are bound to the function.
    """
    run = do(
        _join,
        *(beam.pvalue.AsList(table.chunks) for table in inputs.values()),
        *given,
        schemas={name: table.schema for name, table in inputs.items()},
        step=step._replace(function=partial(step.function, **bound)),
        folder=folder,
        memory_mb=memory_mb,
    )
    begin = next(iter(inputs.values())).chunks.pipeline | f"{label}: begin" >> beam.Impulse()
    joined = begin | label >> run.with_outputs(*step.outputs, main=_DONE)
    return {name: StepTable(joined[name], schema) for name, schema in step.outputs.items()}, joined[_DONE]


def _join(
    _: bytes, *sides: Any, schemas: Mapping[str, pa.Schema], step: Join, folder: str, memory_mb: int
) -> Iterator[Any]:
    def make() -> dict[str, Any]:
        tables = {
            name: StoredTable(schema, [BatchRef(*ref) for _, ref in sorted(side, key=itemgetter(0))])
            for (name, schema), side in zip(schemas.items(), sides, strict=False)
        }
        work = TableJoin(tables, step.outputs, folder=folder, memory_mb=memory_mb)
        step.function(work, *sides[len(schemas) :])
        stored = {name: [(list(key), list(ref)) for key, ref in chunks] for name, chunks in work.stored.items()}
        return {"stored": stored, "counts": work.counts, "facts": work.facts}

    done = once_json(join(folder, JOINED), make)
    count(done["counts"])
    for name, chunks in done["stored"].items():
        for key, ref in chunks:
            yield beam.pvalue.TaggedOutput(name, (ChunkKey(*key), BatchRef(*ref)))
    yield done["counts"], done["facts"]
