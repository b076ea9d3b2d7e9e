"""The files of an alignment that are written by the driver alone, once all chunks are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbsource.files import CHUNK_BYTES, HashingWriter, Storage, atomic_write, join
from kbsource.release.manifest import FileEntry
from mapping.tables import table_path, write_table
from mapping.writer import ID_FILES, file_name, id_file_name, without_input
from pipelines.alignment.facts import file_stem
from pipelines.alignment.merge import ANSWERED, LINES
from pipelines.alignment.staging import REJECTED_FILE, MapJob, read_rows, staged
from pipelines.options_map import MapOptions


def write_records(
    job: MapJob, options: MapOptions, *, staging: str, n_chunks: int, n_records: int, storage: Storage
) -> list[FileEntry]:
    """Joins the lines of all chunks: the records of the split, of test without their answers; gives the files.

    Where there are labels the records of test are written with them too, and where a dataset is published so, every
    file again without the inputs.

    Args:
        job: what is written.
        options: name the files.
        staging: staging folder.
        n_chunks: that it holds.
        n_records: in all of them.
        storage: of both folders.
    """
    stem = file_stem(options)
    files = []
    for with_answers in (False, True) if job.has_labels else (False,):
        ending = ANSWERED if with_answers else LINES
        parts = [staged(staging, "merged", number, ending) for number in range(n_chunks)]
        name = file_name(stem, job.split, with_answers=with_answers)
        files.append(write_file(job.output, name, _blocks(parts, storage), n_rows=n_records, storage=storage))
        if options.dataset in ID_FILES:
            id_name = id_file_name(stem, job.split, with_answers=with_answers)
            with storage.open_read(join(job.output, name)) as lines:
                bare = map(without_input, lines)
                files.append(write_file(job.output, id_name, bare, n_rows=n_records, storage=storage))
    return files


def write_rejected(job: MapJob, *, staging: str, storage: Storage) -> FileEntry:
    """Writes the table of the records that could not be used."""
    rows = read_rows(storage, join(staging, REJECTED_FILE))
    return write_table(rows, "rejected", output=job.output, file=table_path("rejected", 0, 1), storage=storage)


def write_file(output: str, name: str, blocks: Iterable[bytes], *, n_rows: int, storage: Storage) -> FileEntry:
    """Writes a file out of blocks and gives its entry in the manifest."""
    with atomic_write(storage, join(output, name)) as raw:
        sink = HashingWriter(raw)
        for block in blocks:
            sink.write(block)
    return FileEntry(name, n_rows, sink.n_bytes, sink.hexdigest())


def _blocks(paths: Iterable[str], storage: Storage) -> Iterator[bytes]:
    for path in paths:
        with storage.open_read(path) as part:
            while block := part.read(CHUNK_BYTES):
                yield block
