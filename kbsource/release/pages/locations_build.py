"""Writing the files of ``locations`` from the pages of a release."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.files import CHUNK_BYTES, Storage, join
from kbsource.index.mapped_files import write_index_file
from kbsource.index.title_index import BATCH_ROWS
from kbsource.release.layout import index_path
from kbsource.release.manifest import FileEntry
from kbsource.release.pages.locations import PAGES_FILE, PAGES_SCHEMA, QIDS_FILE, QIDS_SCHEMA
from kbsource.release.reader import parquet_file
from kbsource.release.writer import write_lines
from kbsource.runtime.sorted_runs import SortedRuns


@dataclass(frozen=True, slots=True)
class LocationsReport:
    """What was written; ``page_order`` is the manifest's."""

    n_pages: int
    n_qids: int
    page_order: str


def write_locations(
    output: str, files: Sequence[str], folder: str, *, storage: Storage, scratch: str
) -> LocationsReport:
    """Writes both files from the pages' own columns. Memory: a file's footer and a few blocks of rows.

    Args:
        output: folder of the release.
        files: the pages files in order, relative to it.
        folder: local folder for the index, made where missing.
        storage: of the release.
        scratch: local folder for scratch files, 32 bytes a page.

    Raises:
        SetupError: two pages have one page id or one Wikidata item.
    """
    os.makedirs(folder, exist_ok=True)
    is_ordered = True
    with (
        SortedRuns(os.path.join(scratch, "pages"), PAGES_SCHEMA, by="page_id") as pages,
        SortedRuns(os.path.join(scratch, "qids"), QIDS_SCHEMA, by="qid") as qids,
    ):
        for shard, file in enumerate(files):
            with storage.open_read(join(output, file)) as source:
                row, last = 0, -1
                columns = parquet_file(source).iter_batches(BATCH_ROWS, columns=["page_id", "qid"], use_threads=False)
                for batch in columns:
                    own = batch["page_id"].to_numpy()
                    is_ordered = is_ordered and own[0] > last and bool(np.all(own[1:] > own[:-1]))
                    rows = np.arange(row, row + len(own), dtype=np.int32)
                    pages.add(own, np.full(len(own), shard, np.int32), rows)
                    claims = batch.filter(pc.is_valid(batch["qid"]))
                    qids.add(pc.utf8_slice_codeunits(claims["qid"], 1).cast(pa.int64()), claims["page_id"])
                    row, last = row + len(own), own[-1]
        by_page = _distinct(pages.read_sorted(BATCH_ROWS), "page id ")
        write_index_file(os.path.join(folder, PAGES_FILE), PAGES_SCHEMA, by_page)
        by_item = _distinct(qids.read_sorted(BATCH_ROWS), "Wikidata item Q")
        write_index_file(os.path.join(folder, QIDS_FILE), QIDS_SCHEMA, by_item)
        return LocationsReport(pages.n_rows, qids.n_rows, "by_page_id" if is_ordered else "as_dumped")


def _distinct(batches: Iterable[pa.RecordBatch], what: str) -> Iterator[pa.RecordBatch]:
    """Gives the batches, whose first column ascends, and stops at a value that comes again."""
    last = np.empty(0, np.int64)
    for batch in batches:
        keys = np.concatenate([last, batch[0].to_numpy()])
        repeated = keys[1:][keys[1:] == keys[:-1]]
        if len(repeated):
            raise SetupError(f"{what}{repeated[0]} belongs to two pages; report this build")
        last = keys[-1:]
        yield batch


def publish_index(folder: str, files: Sequence[str], output: str, *, storage: Storage) -> tuple[FileEntry, ...]:
    """Copies index files of a local folder into the release, and gives their manifest entries, by name."""
    entries = []
    for name in sorted(files):
        with open(os.path.join(folder, name), "rb") as source:
            blocks = iter(lambda: source.read(CHUNK_BYTES), b"")
            entries.append(write_lines(blocks, index_path(name), output=output, storage=storage))
    return tuple(replace(entry, rows=None) for entry in entries)
