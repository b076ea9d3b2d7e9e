"""Reads tables of releases with many workers, and writes them: one Parquet file per part, the manifest last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeAlias

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.files import Folder, absolute
from kbsource.release.kind import Kind, ListingKind
from kbsource.release.layout import check_output, shard_path
from kbsource.release.manifest import FileEntry, code_facts
from kbsource.release.output import commit
from kbsource.release.reader import parquet_file
from kbsource.release.writer import TableFile
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_batches
from pipelines.primitives.shuffle import CollectSorted
from pipelines.runners.workers import do, wired
from pipelines.transforms.rows import AsRows

CHUNK_ROWS = 1 << 19
"""Minimum rows per chunk; the last row group may add more."""
Rows: TypeAlias = "BatchRef | pa.RecordBatch"


class _Place(NamedTuple):
    """Some row groups of a file, and the number of the file."""

    file: int
    first_group: int
    n_groups: int


@wired
def find_places(pipeline: Any, paths: Sequence[str], *, chunk_rows: int | None = None) -> Any:
    """Finds the positions of the chunks of a table, spread over all workers. Any number of ``read_places`` can use
    them. Applied to a pipeline.

    Args:
        paths: paths of the table's files in order, in any location.
        chunk_rows: row groups are combined until a chunk has this many rows; with 1, each is a chunk.
    """
    find = do(_places, paths=tuple(paths), chunk_rows=chunk_rows or CHUNK_ROWS)
    return pipeline | "begin" >> beam.Impulse() | "find" >> find | "spread" >> beam.GroupByKey()


def read_places(paths: Sequence[str], columns: Sequence[str] | None, *, together: str | None = None) -> Any:
    """Returns a transform that reads the chunks found by ``find_places`` in the same files; see ``ReadTable``."""
    return do(_read, paths=tuple(paths), columns=None if columns is None else list(columns), together=together)


class ReadTable(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Reads columns of a table, as (key, record batch). Applied to a pipeline.

    The part of a key is the number of the file, and its chunk is the number of the row group.

    Rows are in table order within a batch; keys order the batches. Memory: ``CHUNK_ROWS`` rows.

    Args:
        paths: paths of the table's files in order, in any location.
        columns: which ones, in that order; None for all.
        together: a column; consecutive rows with the same value in it are in one batch.
        chunk_rows: as for ``find_places``.
    """

    def __init__(
        self,
        paths: Sequence[str],
        columns: Sequence[str] | None,
        *,
        together: str | None = None,
        chunk_rows: int | None = None,
    ) -> None:
        super().__init__()
        self._paths, self._columns = tuple(paths), columns
        self._read = read_places(paths, columns, together=together)
        self._places = find_places(paths, chunk_rows=chunk_rows)

    def rows(self) -> Any:
        """Returns this transform followed by ``AsRows``: rows are ``beam.Row`` whose fields are the columns.

        Raises:
            SetupError: the first file, which determines the schema, cannot be read.
        """
        with Folder.of(self._paths[0]).open() as raw, parquet_file(raw) as opened:
            schema = opened.schema_arrow
        columns = schema.names if self._columns is None else self._columns
        return self | "as rows" >> AsRows(pa.schema([schema.field(name) for name in columns]))

    def expand(self, pipeline: Any) -> Any:
        return self._places.expand(pipeline) | "read" >> self._read


class ReadStatements(ReadTable):
    """Reads the statements in a release of Wikidata, as (key, record batch). All statements of an entity are in one
    batch. Applied to a pipeline.

    See ``ReadTable``.

    Args:
        paths: paths of the files of statements in order, in any location.
        columns: the columns to read, including ``entity_id``.
    """

    def __init__(self, paths: Sequence[str], columns: Sequence[str]) -> None:
        super().__init__(paths, columns, together="entity_id")


def _places(_: bytes, *, paths: tuple[str, ...], chunk_rows: int) -> Iterator[tuple[_Place, None]]:
    for file, path in enumerate(paths):
        with Folder.of(path).open() as raw:
            metadata = pq.read_metadata(raw)
        first = n_rows = 0
        for group in range(metadata.num_row_groups):
            n_rows += metadata.row_group(group).num_rows
            if n_rows >= chunk_rows or group == metadata.num_row_groups - 1:
                yield _Place(file, first, group + 1 - first), None
                first, n_rows = group + 1, 0


def _read(
    element: tuple[tuple[int, int, int], Iterable[None]],
    *,
    paths: tuple[str, ...],
    columns: list[str] | None,
    together: str | None,
) -> Iterator[tuple[ChunkKey, pa.RecordBatch]]:
    place, files = _Place(*element[0]), _TableFiles(paths, columns)
    table = pa.concat_tables(files.groups(place.file, place.first_group, place.n_groups)).combine_chunks()
    if together is not None:
        table = files.whole(place, table, together)
    if table.num_rows:
        yield ChunkKey(place.file, place.first_group), table.combine_chunks().to_batches()[0]


class _TableFiles:
    def __init__(self, paths: tuple[str, ...], columns: list[str] | None) -> None:
        self._paths, self._columns = paths, columns

    def whole(self, place: _Place, table: pa.Table, name: str) -> pa.Table:
        """Returns the rows of a chunk so that no value of a column is split: rows that continue the last value of the
        chunk before are removed, and following rows that continue the chunk's own last value are added."""
        before = self._last_before(place, name)
        n_rest = 0 if before is None else _n_equal(table[name], before)
        if n_rest == table.num_rows:
            return table.slice(n_rest)
        last = table[name][table.num_rows - 1].as_py()
        further = []
        after = (self.groups(file, 0) for file in range(place.file + 1, len(self._paths)))
        for group in chain(self.groups(place.file, place.first_group + place.n_groups), *after):
            n_more = _n_equal(group[name], last)
            further.append(group.slice(0, n_more))
            if n_more < group.num_rows:
                break
        return pa.concat_tables([table.slice(n_rest), *further])

    def _last_before(self, place: _Place, name: str) -> Any:
        for file in range(place.file, -1, -1):
            end = place.first_group if file == place.file else None
            with Folder.of(self._paths[file]).open() as raw, parquet_file(raw) as opened:
                for group in range(opened.metadata.num_row_groups if end is None else end)[::-1]:
                    if opened.metadata.row_group(group).num_rows:
                        values = opened.read_row_group(group, columns=[name], use_threads=False)[name]
                        return values[len(values) - 1].as_py()
        return None

    def groups(self, file: int, first: int, n_groups: int | None = None) -> Iterator[pa.Table]:
        """Reads ``n_groups`` row groups of a file, starting at ``first``; by default all remaining ones."""
        with Folder.of(self._paths[file]).open() as raw, parquet_file(raw) as opened:
            n_all = opened.metadata.num_row_groups
            for group in range(first, n_all if n_groups is None else first + n_groups):
                table = opened.read_row_group(group, columns=self._columns, use_threads=False)
                yield table if self._columns is None else table.select(self._columns)


def _n_equal(column: pa.ChunkedArray, value: Any) -> int:
    """Returns how many values at the start are equal to a given value."""
    is_other = column.combine_chunks().to_numpy(zero_copy_only=False) != value
    return int(np.argmax(is_other)) if is_other.any() else len(column)


def _own_tables() -> ListingKind:
    from mapping.kinds import OWN_TABLES  # imports every kind of release, which no job of one kind needs

    return OWN_TABLES


class WriteTable(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Writes a table: one Parquet file for each part of the keys, with rows in key order.

    (key, rows) -> ``FileEntry``.

    Files are hashed while they are written, and have temporary names until they are complete. Their bytes do not depend
    on how the pipeline ran. Parts without chunks have no file; without any chunks, there is one empty file.

    Rows that are not a ``BatchRef`` pass through the runner's memory: apply ``Checkpoint`` first if there are many.

    Args:
        table: name of the table.
        output: folder of the release.
        kind: kind of the release, which defines the table's schema; None for ``mapping.kinds.OWN_TABLES``.
    """

    def __init__(self, table: str, output: str, *, kind: Kind[Any] | None = None) -> None:
        super().__init__()
        self._table, self._output, self._schema = table, absolute(output), (kind or _own_tables()).tables[table]

    def expand(self, chunks: Any) -> Any:
        return (
            chunks
            | "collect" >> CollectSorted()
            | "files" >> do(_files, table=self._table)
            | "spread" >> beam.Reshuffle()
            | "write" >> do(_write_part, table=self._table, output=self._output, schema=self._schema)
        )


def _files(ordered: list[tuple[ChunkKey, Rows]], *, table: str) -> Iterator[tuple[str, list[Rows]]]:
    """Reads every file: its path and its rows."""
    parts = [[rows for _, rows in part] for _, part in groupby(ordered, key=lambda chunk: chunk[0][0])] or [[]]
    for number, part in enumerate(parts):
        yield shard_path(table, number, len(parts)), part


def _write_part(element: tuple[str, list[Rows]], *, table: str, output: str, schema: pa.Schema) -> Iterator[FileEntry]:
    """Writes one file, with a temporary name until it is complete; each batch becomes a row group."""
    file, chunks = element
    with TableFile(output, file, table, schema=schema) as target:
        for rows in chunks:
            for batch in read_batches(rows):
                if batch.num_rows:
                    target.write(batch)
    yield target.entry


class CommitRelease(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Finishes a release, once all its files are written.

    ``FileEntry`` -> the folder of the release, one element.

    Checks that the folder contains exactly the complete written files. Finally writes ``manifest.json``, with the
    files, their sizes, rows and hashes, and the versions of the code. ``kbsource verify`` checks it.

    Args:
        output: folder that ``WriteTable`` wrote to; it must be new or empty when the pipeline is constructed.
        facts: inputs and options of the tables as JSON values, for the manifest.
        kind: kind of the release; None for ``mapping.kinds.OWN_TABLES``.

    Raises:
        SetupError: the folder is not empty; or a file is missing, has another size, or was not written by this
            pipeline.
    """

    def __init__(self, output: str, *, facts: Mapping[str, Any], kind: ListingKind | None = None) -> None:
        super().__init__()
        self._output, self._facts, self._kind = absolute(output), dict(facts), kind or _own_tables()
        check_output(self._output)

    def expand(self, entries: Any) -> Any:
        return (
            entries
            | "by name" >> beam.Map(by_name)
            | "all files" >> CollectSorted()
            | "commit" >> do(_commit, output=self._output, facts=self._facts, kind=self._kind)
        )


def by_name(entry: FileEntry) -> tuple[str, FileEntry]:
    """Returns a file with its path, which is its sort key."""
    return entry.file, entry


def _commit(
    element: list[tuple[str, FileEntry]], *, output: str, facts: dict[str, Any], kind: ListingKind
) -> Iterator[str]:
    manifest = kind.listing([entry for _, entry in element], {"facts": facts, "code": code_facts()})
    commit(kind, manifest, output)
    yield output
