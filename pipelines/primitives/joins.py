"""Steps before and after a join with SQL: keeping rows as chunks, and handing rows on by groups of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, keep_chunk, read_stored, rows_batch, write_chunk
from kbsource.runtime.regroup import one_run_each
from kbsource.runtime.warehouse import StoredTable
from pipelines.primitives.lookup import read_item_set
from pipelines.primitives.page_texts import ReleasePages
from pipelines.primitives.shuffle import CollectSorted, write_batch
from pipelines.runners.workers import do, wired

Chunks = Sequence[tuple[ChunkKey, BatchRef]]
"""All chunks of a step, in key order."""
ONLY = ChunkKey(0, 0)
"""Key of the only chunk of a step with one worker."""
_ROWS = 1024


@wired
def collect_rows(batches: Any, function: Callable[..., pa.RecordBatch], folder: str, *needed: Any) -> Any:
    """(key, record batch) -> all (key, ``BatchRef``) of the rows that a function selects from each batch.

    Args:
        folder: a file per chunk is written to it; for one job with one input only.
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
    """Returns rows, as values in the order of the columns, as record batches. Memory holds one."""
    source = iter(rows)
    while part := list(islice(source, n_rows)):
        yield rows_batch(part, schema)


def write_by_pages(ordered: Iterable[pa.RecordBatch], schema: pa.Schema, pages: ReleasePages, *, path: str) -> None:
    """Writes rows, in the order of their ``position``, as a chunk with one batch for each group of pages."""
    grouped = (batch.append_column("group", pa.array(pages.together(batch))) for batch in ordered)
    write_chunk((batch.select(schema.names) for batch in one_run_each(grouped, "group")), schema, Report(), path=path)


def stored_page_groups(stored: BatchRef, pages: ReleasePages) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Yields ((0, group), ``BatchRef``) for each batch that ``write_by_pages`` wrote."""
    for number, batch in enumerate(read_stored(stored, ["position"])):
        only = stored._replace(first_batch=number, n_batches=1, n_rows=batch.num_rows)
        yield ChunkKey(0, int(pages.together(batch)[0])), only
