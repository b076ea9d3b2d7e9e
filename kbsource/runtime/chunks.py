"""A chunk is a set of rows that are processed together, with its position in the order of the input. Its rows are in
memory or in a file.

A chunk file is an Arrow IPC file. Its last batch has no rows; the metadata of this batch is the report of the step that
made the chunk. If the file exists, the chunk is complete, and the step need not be repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import pyarrow as pa

from kbsource.columns import rows_of
from kbsource.files import Folder, is_local, join
from kbsource.records import BadRecord
from kbsource.rows import Row
from kbsource.runtime.beat import Beat

T = TypeVar("T")
R = TypeVar("R", bound=Row)

_ROWS_AT_ONCE = 512
_REPORT = b"kbsource.report"
# Workers are processes, one per core; threads inside them would compete for the cores.
WRITING = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_PLAIN = pa.ipc.IpcWriteOptions(use_threads=False)
READING = pa.ipc.IpcReadOptions(use_threads=False)


class ChunkKey(NamedTuple):
    """The position in the order of the input. Order is determined only by keys, never by arrival."""

    part: int  #: number of the part of the input, such as a range of a dump or a file of a release
    chunk: int  #: number of the chunk in its part


class BatchRef(NamedTuple):
    """Consecutive rows of an Arrow IPC file, on disk or in a bucket."""

    path: str  #: path of the file
    first_batch: int  #: number of the first batch that contains rows
    n_batches: int  #: number of batches that contain rows
    n_rows: int  #: number of rows
    #: weight of the rows: their size in memory, or another measure that the writer chose, such as bytes of text
    n_bytes: int
    first_row: int = 0  #: number of rows before them in the first batch


@dataclass(slots=True)
class Report:
    """The results of a chunk besides its rows."""

    counts: Counter[str] = field(default_factory=Counter)  #: counts by name, which can be added up over chunks
    rejected: list[BadRecord] = field(default_factory=list)  #: records that cannot be used, in order
    facts: dict[str, Any] = field(default_factory=dict)  #: further JSON values
    n_bytes: int = 0  #: weight of the rows, see ``BatchRef``; 0 if it is their size in memory


@dataclass(slots=True)
class Work:
    """The state of a chunk that is being processed."""

    key: ChunkKey  #: key of the chunk
    beat: Beat  #: records the row being processed and the work done
    #: rows that ended the process even when they were processed alone, by row number from 1: how often (1 or 2), and in
    #: which way (``timeout``, ``crash`` or ``error``)
    verdicts: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    #: 0, or the number of the only row to process, which is done to find out whether this row ends the process; its
    #: result is discarded. Only this row is passed then; a function that finds the rows of a chunk by its key must
    #: select it
    alone: int = 0
    report: Report = field(default_factory=Report)  #: filled by the function


class ChunkFunction(Protocol):
    """Processes the rows of a chunk; created once in each worker process.

    Before each row, the function calls ``beat.enter`` with the row's number (from 1), and after it ``beat.leave``. If
    the process dies, this shows which row was the cause. Each row is passed together with its number, because sometimes
    only one row of a chunk is passed.
    """

    schema: pa.Schema

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        """Returns the output rows of a chunk.

        Args:
            rows: batches, each with the number of its first row, from 1.
        """
        ...


def chunk_path(folder: str, key: ChunkKey) -> str:
    """Returns the path of a chunk's file in a folder.

    >>> chunk_path("s3://b/parsed", ChunkKey(3, 12))
    's3://b/parsed/00003-00012.arrow'
    """
    return join(folder, f"{key.part:05d}-{key.chunk:05d}.arrow")


def write_chunk(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, report: Report, *, path: str, is_packed: bool = True
) -> BatchRef:
    """Writes a chunk file, under a temporary name until it is complete, and returns a reference to its rows.

    Args:
        batches: any number of batches of rows, written as they arrive.
        report: written last, so it may be filled while the batches are consumed.
        is_packed: compress the rows. Of an uncompressed file, parts can be read.
    """
    n_batches = n_rows = n_bytes = 0
    with Folder.of(path).create() as sink:
        writer = pa.ipc.new_file(sink, schema, options=WRITING if is_packed else _PLAIN)
        for batch in batches:
            writer.write_batch(batch)
            n_batches += 1
            n_rows += batch.num_rows
            n_bytes += batch.nbytes
        n_bytes = report.n_bytes or n_bytes
        empty = pa.RecordBatch.from_pylist([], schema)
        facts = Report(report.counts, report.rejected, {**report.facts, "n_rows": n_rows}, n_bytes)
        writer.write_batch(empty, custom_metadata={_REPORT: msgspec.json.encode(facts, order="sorted")})
        writer.close()
    return BatchRef(path, 0, n_batches, n_rows, n_bytes)


def read_chunk_report(path: str) -> tuple[BatchRef, Report]:
    """Returns a reference to the rows of a chunk file, and its report; the rows are not read."""
    with Folder.of(path).open() as file:
        reader = pa.ipc.open_file(file, options=READING)
        n_batches = reader.num_record_batches - 1
        metadata = reader.get_batch_with_custom_metadata(n_batches).custom_metadata
        report = msgspec.json.decode(metadata[_REPORT], type=Report, dec_hook=_counter)
    n_rows = report.facts.pop("n_rows")
    return BatchRef(path, 0, n_batches, n_rows, report.n_bytes), report


def drop_rows(stored: BatchRef) -> None:
    """Replaces the file of a chunk with a file that contains only its report, to free the local disk space of rows that
    are no longer needed.

    Files in buckets are not changed.
    """
    if is_local(stored.path):
        write_chunk((), read_chunk_schema(stored.path), read_chunk_report(stored.path)[1], path=stored.path)


def _counter(kind: type[T], counts: Any) -> T:
    """Converts decoded values to a Counter, which msgspec does not treat as a dict."""
    return kind(counts)  # type: ignore[call-arg]


def once(path: str, make: Callable[[], object], read: Callable[[str], T]) -> T:
    """Returns the result of a step from its file. If the file does not exist, the step is run first and writes it. This
    is how a killed job is resumed.

    A file gets its name only when it is complete. As the file is reused, the folder of a step must be used for only one
    job with one input.
    """
    if not Folder.of(path).exists():
        make()
    return read(path)


def once_json(path: str, make: Callable[[], Any]) -> Any:
    """Returns the JSON values of a step, as ``once`` does."""
    return once(path, lambda: Folder.of(path).write_json(make()), lambda path: Folder.of(path).read_json())


def once_value(path: str, make: Callable[[], T], type_: type[T]) -> T:
    """Returns the result of a step, as ``once`` does. The result is a dataclass, whose fields may be ``Counter``."""
    values = once_json(path, lambda: msgspec.to_builtins(make()))
    return msgspec.convert(values, type_, dec_hook=_counter)


def keep_chunk(folder: str, key: ChunkKey, make: Callable[[str], object]) -> BatchRef:
    """Returns a reference to the rows of a chunk in a folder. If the file does not exist, ``make`` writes it."""
    path = chunk_path(folder, key)
    return once(path, lambda: make(path), read_chunk_report)[0]


def read_stored(stored: BatchRef, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Reads the batches of stored rows in order, with one in memory."""
    skipped, n_left = stored.first_row, stored.n_rows
    with Folder.of(stored.path).open() as file:
        reader = pa.ipc.open_file(file, options=READING)
        for number in range(stored.first_batch, stored.first_batch + stored.n_batches):
            batch = reader.get_batch(number).slice(skipped, n_left)
            skipped, n_left = 0, n_left - batch.num_rows
            yield batch if columns is None else batch.select(list(columns))


def read_batches(rows: BatchRef | pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Reads the batches of rows, stored or in memory, in order, with one stored batch in memory."""
    if isinstance(rows, pa.RecordBatch):
        yield rows
    else:
        yield from read_stored(BatchRef(*rows))


def read_rows(rows: BatchRef | pa.RecordBatch, row: type[R]) -> Iterator[R]:
    """Reads rows in order, with one batch in memory."""
    for batch in read_batches(rows):
        yield from rows_of(batch, row)


def read_chunk_schema(path: str) -> pa.Schema:
    """Returns the schema of the rows of a chunk file."""
    with Folder.of(path).open() as file:
        return pa.ipc.open_file(file).schema


def rows_batch(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Returns a record batch of rows, which are passed as values in the order of the columns."""
    source = iter(rows)
    pieces = []
    while piece := list(islice(source, _ROWS_AT_ONCE)):
        columns = zip(zip(*piece, strict=True), schema.types, strict=True)
        pieces.append(pa.RecordBatch.from_arrays([pa.array(*column) for column in columns], schema=schema))
    return pa.concat_batches(pieces) if pieces else pa.RecordBatch.from_pylist([], schema)


def numbered_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields the number of the first row, from 1, and the batch."""
    number = 1
    for batch in batches:
        yield number, batch
        number += batch.num_rows


def row_alone(batches: Iterable[pa.RecordBatch], number: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Returns one row, by its number from 1, in the form of ``numbered_batches``: pairs of number and batch."""
    for first, batch in numbered_batches(batches):
        if first <= number < first + batch.num_rows:
            yield number, batch.slice(number - first, 1)
            return
