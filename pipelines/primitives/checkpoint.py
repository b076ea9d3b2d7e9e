"""Chunks kept in files: what comes after need not be done in the same breath, nor done again."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.runtime.chunks import Key, Report, Stored, chunk_path, read_chunk_report, write_chunk
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for


def keep_chunk(key: Key, batch: pa.RecordBatch, folder: str) -> Stored:
    """Gives where the rows of a chunk are kept: in a file of the folder, which is made unless it is there."""
    path = chunk_path(folder, key)
    storage = storage_for(folder)
    if storage.exists(path):
        return read_chunk_report(path, storage)[0]
    return write_chunk([batch], batch.schema, Report(n_bytes=batch.nbytes), path=path, storage=storage)


class Checkpoint(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, record batch) -> (Key, ``Stored``): references go on, and are spread anew over all workers.

    Text never travels through a shuffle so, whose memory it would fill. A file that is there is kept.

    Args:
        folder: takes a file for each chunk; for one job with one input only.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, chunks: Any) -> Any:
        return chunks | "keep" >> beam.ParDo(_KeepChunk(self._folder)) | "spread" >> beam.Reshuffle()


class _KeepChunk(WorkerDoFn):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def process(self, element: tuple[Key, pa.RecordBatch]) -> Any:
        key, batch = element
        with named_faults():
            yield key, keep_chunk(Key(*key), batch, self._folder)
