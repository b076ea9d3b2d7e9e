"""Maps chunks with a function that may hang, crash or exhaust memory on a row: only this row is lost."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import apache_beam as beam
import pyarrow as pa

from kbsource.errors import SetupError, named_faults
from kbsource.files import Folder, is_local
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkFunction,
    ChunkKey,
    Report,
    chunk_path,
    once,
    read_chunk_report,
    read_chunk_schema,
    read_stored,
    write_chunk,
)
from kbsource.runtime.guard import Guard, WorkerDiedError
from kbsource.temporary import TemporaryFolder
from pipelines.primitives.guarded_chunk import DO_CHUNK, pickled_text
from pipelines.runners.counters import count, count_rejected, timed
from pipelines.runners.workers import WorkerDoFn

MAX_BAD_ROWS = 25
"""Maximum rows of a chunk that may crash the process before the job fails. If more rows crash it, the cause is probably
not in the rows."""
MAX_DEATHS = 10
"""Maximum crashes per chunk that no row caused, before the job fails."""
MAX_KILLS = 3
"""A row that is processed by itself counts as the cause of a crash if its process was killed from outside this many
times.
"""

CHUNKS, REJECTED, COUNTS = "chunks", "rejected", "counts"
Chunk: TypeAlias = "BatchRef | tuple[BatchRef, ...] | pa.RecordBatch | None"


class GuardedMap(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Calls a function with each chunk of rows, in a process next to the worker that may hang or crash.

    (key, rows) -> (key, rows).

    Rows are a ``BatchRef``, several of them that are read one after the other, or a record batch, or None if the key
    of the chunk is enough. A row that exceeds the time limit or crashes the process is tried again by itself in a new
    process. If it fails again, the chunk is processed again and the function gets a verdict about this row. External
    events that affect a process therefore never change the output.

    Outputs:
        ``chunks``: (key, ``BatchRef``) with a folder, else (key, record batch).
        ``rejected``: ``BadRecord``, in no particular order.
        ``counts``: (key, dict of counts by name).

    With a folder, each chunk is a file in it. Existing files are reused, so a job that was killed resumes where it
    stopped; reuse a folder only for the same job with the same input. Without a folder, rows pass through memory, which
    suits small inputs.

    Args:
        make: returns the ``chunks.ChunkFunction``; called once per process, with the values of ``given``. It is pickled
            and must be importable by workers, such as a module's function or class. If it has a method ``prepare``,
            this is called first, with the same values, in the process that starts the others.
        given: side inputs (``AsSingleton`` of JSON values), passed to ``make``.
        folder: a file per chunk is written to it; None for no files.
        timeout_s: maximum seconds per row; None for no limit.
        memory_bytes: maximum memory of the process; None for no limit.
        beats: local folder where the processes report their progress; None for no reports.
        removes_input: remove the file of each chunk of rows from the local disk when the chunk is done, for rows that
            nothing else reads; needs a folder.

    Raises:
        SetupError: the function raised one, which ends the job, or too many rows failed.
    """

    def __init__(
        self,
        make: Callable[..., ChunkFunction],
        *,
        given: tuple[Any, ...] = (),
        folder: str | None = None,
        timeout_s: float | None = None,
        memory_bytes: int | None = None,
        beats: str | None = None,
        removes_input: bool = False,
    ) -> None:
        super().__init__()
        if removes_input and folder is None:
            raise SetupError(
                "Chunks that are not stored are read again from their input, which must not be "
                "temporary; give a folder."
            )
        self._given = given
        limits = {"page_timeout_s": timeout_s, "memory_bytes": memory_bytes}
        self._do_chunk = _DoChunk(make, folder, beats, removes_input, **limits)

    def expand(self, chunks: Any) -> Any:
        return chunks | beam.ParDo(self._do_chunk, *self._given).with_outputs(REJECTED, COUNTS, main=CHUNKS)


class _DoChunk(WorkerDoFn):
    def __init__(
        self,
        make: Callable[..., ChunkFunction],
        folder: str | None,
        beats: str | None,
        removes_input: bool,
        **limits: Any,
    ) -> None:
        super().__init__()
        self._make, self._folder, self._removes_input = pickled_text(make), folder, removes_input
        self._prepare: Callable[..., None] | None = getattr(make, "prepare", None)
        self._limits, self._beats = limits, beats
        self._guard: Guard | None = None

    def setup(self) -> None:
        super().setup()
        self._scratch = TemporaryFolder()
        self._names = itertools.count()

    def process(self, element: tuple[ChunkKey, Chunk], *given: Any) -> Iterator[Any]:
        key, rows = element
        with named_faults():
            output = chunk_path(self._folder or self._scratch.name, ChunkKey(*key))
            ((stored, report),) = timed(self._done(key, rows, given, output))
            if self._removes_input and isinstance(rows, BatchRef) and is_local(rows.path):
                Folder.of(rows.path).delete()
            count({**report.counts, "bytes": report.n_bytes})
            count_rejected(report.rejected)
            for bad in report.rejected:
                yield beam.pvalue.TaggedOutput(REJECTED, bad)
            yield beam.pvalue.TaggedOutput(COUNTS, (key, dict(report.counts)))
            yield key, stored if self._folder is not None else _loaded(stored)

    def _done(self, key: ChunkKey, rows: Chunk, given: tuple[Any, ...], output: str) -> Iterator[Any]:
        yield once(output, lambda: self._do(key, rows, given, output), read_chunk_report)

    def _do(self, key: ChunkKey, rows: Chunk, given: tuple[Any, ...], output: str) -> None:
        path = os.path.join(self._scratch.name, f"given-{next(self._names)}.arrow")
        if isinstance(rows, pa.RecordBatch):
            rows = write_chunk([rows], rows.schema, Report(), path=path)
        guard = self._guard = self._guard or self._start(given)
        chunk = () if rows is None else (rows,) if isinstance(rows, BatchRef) else rows
        do_guarded(guard, {"make": self._make, "given": given, "key": key, "chunk": chunk, "output": output})
        if os.path.exists(path):
            os.remove(path)

    def _start(self, given: tuple[Any, ...]) -> Guard:
        if self._prepare is not None:
            self._prepare(*given)
        folder = self._beats if self._beats is not None and is_local(self._beats) else self._scratch.name
        beat_path = os.path.join(folder, f"chunks-{os.path.basename(self._scratch.name)}.beat")
        return Guard(DO_CHUNK, beat_path=beat_path, scratch=self._scratch.name, **self._limits)

    def teardown(self) -> None:
        if self._guard is not None:
            self._guard.close()
            self._guard = None
        self._scratch.cleanup()


def do_guarded(guard: Guard, task: dict[str, Any]) -> None:
    """Processes a chunk, and repeats this as often as necessary.

    Raises:
        SetupError: the function raised it, or the process crashed too often, caused by rows or by other events.
    """
    verdicts: dict[int, tuple[int, str]] = {}
    n_deaths = 0
    while True:
        try:
            guard.run({**task, "verdicts": verdicts})
            return
        except WorkerDiedError as death:
            how = _dies_alone(guard, {**task, "verdicts": verdicts}, death.page) if death.page else None
            if how is None:
                n_deaths += 1
            else:
                verdicts[death.page] = (verdicts.get(death.page, (0, ""))[0] + 1, how)
            where = f"chunk {'-'.join(map(str, task['key']))}"
            if len(verdicts) > MAX_BAD_ROWS:
                raise SetupError(
                    f"{where}: {len(verdicts)} rows crashed the worker process, so the cause is probably not in the "
                    f"rows. The last crash, at row {death.page}: {death.kind}, {death.detail}"
                ) from death
            if n_deaths == MAX_DEATHS:
                raise SetupError(
                    f"{where}: the worker process crashed {n_deaths} times, but not while reading a row. The last "
                    f"crash: {death.kind}, {death.detail}"
                ) from death


def _dies_alone(guard: Guard, task: dict[str, Any], row: int) -> str | None:
    """Returns how a row crashes a new process that does nothing else; None if it does not."""
    for _ in range(MAX_KILLS):
        try:
            guard.run({**task, "alone": row})
            return None
        except WorkerDiedError as death:
            if not death.page:
                return None
            if not death.is_killed:
                return death.kind
    return "crash"


def _loaded(stored: BatchRef) -> pa.RecordBatch:
    """Returns the rows as one batch and removes their file."""
    table = pa.Table.from_batches(read_stored(stored), read_chunk_schema(stored.path))
    os.remove(stored.path)
    return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)
