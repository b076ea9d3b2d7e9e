"""The pages of a release, wherever it lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.chunks import Key
from kbsource.errors import named_faults
from kbsource.files import join
from kbsource.release.manifest import read_manifest
from kbsource.release.sizes import check_sizes
from pipelines.storage import absolute, storage_for
from pipelines.workers import WorkerDoFn


class ReadTable(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """A table of a release -> (Key, record batch), a chunk for each row group. Applied to a pipeline.

    The key is number of the file, number of the row group in it. Files are read by as many workers as there are, one
    row group of each in memory.

    Args:
        release: folder of the release; local, or of a file system of Beam.
        table: name of the table, see docs/tables.md.
        columns: which ones, in that order; None for all.

    Raises:
        DataError: the manifest is damaged.
        SetupError: there is no release, or a file is missing or cut off.
    """

    def __init__(self, release: str, table: str, *, columns: Sequence[str] | None = None) -> None:
        super().__init__()
        release = absolute(release)
        storage = storage_for(release)
        entries = read_manifest(release, storage).tables[table]
        check_sizes(release, entries, storage)
        self._files = [(number, join(release, entry.file)) for number, entry in enumerate(entries)]
        self._columns = None if columns is None else list(columns)

    def expand(self, pipeline: Any) -> Any:
        return (
            pipeline
            | "files" >> beam.Create(self._files, reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "read" >> beam.ParDo(_ReadFile(self._columns))
        )


class ReadPages(ReadTable):
    """The pages of a release -> (Key, record batch of schema ``kbsource.schema.PAGES``). Applied to a pipeline.

    ``kbsource.release.columns.batch_to_pages`` gives the pages of a batch as records, where all columns are read. Else
    as ``ReadTable``.
    """

    def __init__(self, release: str, *, columns: Sequence[str] | None = None) -> None:
        super().__init__(release, "pages", columns=columns)


class _ReadFile(WorkerDoFn):
    def __init__(self, columns: list[str] | None) -> None:
        super().__init__()
        self._columns = columns

    def process(self, element: tuple[int, str]) -> Iterator[tuple[Key, pa.RecordBatch]]:
        number, path = element
        with named_faults(), storage_for(path).open_read(path) as source:
            file = pq.ParquetFile(source)
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=self._columns, use_threads=False).combine_chunks()
                for batch in table.to_batches():
                    yield Key(number, group), batch
