"""Joins tables with SQL, in steps that one worker runs on its local disk; and the steps before and after them.

QAMPARI has many joins of the same form: ``join_tables`` adds one of them as a ``Join`` of tables to tables. Facts and
AmbER sets have few joins, whose outputs have different forms: their functions open a ``warehouse`` of ``stored_table``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
import pyarrow as pa

from kbsource.files import join
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkKey,
    Report,
    chunk_path,
    keep_chunk,
    once_json,
    read_chunk_report,
    read_stored,
    rows_batch,
    write_chunk,
)
from kbsource.runtime.regroup import one_run_each
from kbsource.runtime.warehouse import StoredTable, warehouse
from pipelines.primitives.lookup import read_item_set
from pipelines.primitives.page_texts import ReleasePages
from pipelines.primitives.shuffle import CollectSorted, write_batch
from pipelines.runners.counters import count
from pipelines.runners.workers import do, wired

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

JOINED = "joined.json"
"""The file of a finished step, in its folder."""
THREADS = 1
"""Threads of the database; workers are processes, one per core."""
_DONE = "done"
Chunks = Sequence[tuple[ChunkKey, BatchRef]]
"""All chunks of a step, in key order."""
ONLY = ChunkKey(0, 0)
"""Key of the only chunk of a step with one worker."""
_ROWS = 1024


class StepTable(NamedTuple):
    """A table between steps."""

    chunks: Any  # the chunks of the table: (key, ``BatchRef``)
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
        key = ChunkKey(0, number)
        path = chunk_path(join(self._folder, name), key)
        chunk = write_chunk(batches, self._outputs[name], Report(), path=path)
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
            name: stored_table(schema, sorted(side, key=itemgetter(0)))
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


@wired
def collect_rows(batches: Any, function: Callable[..., pa.RecordBatch], folder: str, *needed: Any) -> Any:
    """Calls a function that selects rows of each batch, and collects the files with these rows.

    (key, record batch) -> one list of all (key, ``BatchRef``).

    Args:
        folder: a file per chunk is written to it. Use another folder for each job and input.
        needed: paths of sets of items, which the function gets as further arguments.
    """
    return batches | "select" >> do(_select, *needed, function=function, folder=folder) | "all" >> CollectSorted()


def _select(
    element: tuple[ChunkKey, pa.RecordBatch], *needed: str, function: Callable[..., pa.RecordBatch], folder: str
) -> Iterator[tuple[ChunkKey, BatchRef]]:
    key, batch = ChunkKey(*element[0]), element[1]

    def make(path: str) -> None:
        write_batch(function(batch, *map(read_item_set, needed)), path=path)

    yield key, keep_chunk(folder, key, make)


def stored_table(schema: pa.Schema, *chunks: Chunks) -> StoredTable:
    """Returns the rows of chunks as a table for ``warehouse``."""
    return StoredTable(schema, [BatchRef(*stored) for own in chunks for _, stored in own])


def row_batches(rows: Iterable[Sequence[Any]], schema: pa.Schema, *, n_rows: int = _ROWS) -> Iterator[pa.RecordBatch]:
    """Returns rows, as values in the order of the columns, as record batches. Memory: one batch."""
    source = iter(rows)
    while part := list(islice(source, n_rows)):
        yield rows_batch(part, schema)


def write_by_pages(ordered: Iterable[pa.RecordBatch], schema: pa.Schema, pages: ReleasePages, *, path: str) -> None:
    """Writes rows, in the order of their ``position``, as a chunk with one batch for each group of pages."""
    grouped = (batch.append_column("group", pa.array(pages.together(batch))) for batch in ordered)
    write_chunk((batch.select(schema.names) for batch in one_run_each(grouped, "group")), schema, Report(), path=path)


def stored_page_groups(stored: BatchRef, pages: ReleasePages) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Iterates over the batches that ``write_by_pages`` wrote, as ((0, group), ``BatchRef``)."""
    for number, batch in enumerate(read_stored(stored, ["position"])):
        only = stored._replace(first_batch=number, n_batches=1, n_rows=batch.num_rows)
        yield ChunkKey(0, int(pages.together(batch)[0])), only
