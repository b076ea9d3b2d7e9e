"""Where each page of a release lies, and which page has a Wikidata item: two memory-mapped Arrow files.

``pages.arrow``: ``page_id`` (ascending), ``shard`` (position in the manifest's list of pages files),
``row`` in it. ``qids.arrow``: ``qid`` (number of the item, ascending), ``page_id``. Both in batches of
``BATCH_ROWS`` rows.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.files import CHUNK_BYTES, Storage, base_name, join
from kbsource.index.title_index import BATCH_ROWS, numbers, open_mapped, write_index_file
from kbsource.release.layout import INDEX, index_path
from kbsource.release.manifest import FileEntry, Manifest
from kbsource.release.reader import parquet_file
from kbsource.release.writer import write_lines
from kbsource.runtime.sorted_runs import SortedRuns

PAGES_FILE = "pages.arrow"
QIDS_FILE = "qids.arrow"


def _schema(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema(
        [pa.field(name, type_, nullable=False) for name, type_ in fields],
        metadata={"format": "kbsource-page-locations-1"},
    )


PAGES_SCHEMA = _schema(("page_id", pa.int64()), ("shard", pa.int32()), ("row", pa.int32()))
QIDS_SCHEMA = _schema(("qid", pa.int64()), ("page_id", pa.int64()))


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


def index_folder(path: str, manifest: Manifest, storage: Storage, *, files: Iterable[str] | None = None) -> str:
    """Gives a local folder with the index files of a release, see ``Storage.local_copy``.

    Args:
        path: folder of the release.
        manifest: of the release.
        storage: of the folder.
        files: paths in the release of those that are needed; None for all.

    Raises:
        DataError: a file of a remote release is missing.
    """
    names = [base_name(file) for file in (files or (entry.file for entry in manifest.files))]
    return storage.local_copy(join(path, INDEX), names, version=" ".join(entry.sha256 for entry in manifest.files))


class _SortedFile:
    """Lookups by the first column of a mapped file that is sorted by it."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        reader = open_mapped(path, schema)
        self.batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._columns = [[numbers(column) for column in batch.columns] for batch in self.batches]
        self._first = [columns[0][0] for columns in self._columns]

    def get(self, key: int) -> tuple[int, ...] | None:
        number = bisect_right(self._first, key) - 1
        if number < 0:
            return None
        columns = self._columns[number]
        i = bisect_right(columns[0], key) - 1
        return tuple(column[i] for column in columns[1:]) if columns[0][i] == key else None


class Locations:
    """Lookups in both files."""

    def __init__(self, folder: str) -> None:
        """Opens the files of a local index folder.

        Raises:
            SetupError: a file is missing, damaged, or of another version.
        """
        self._pages = _SortedFile(os.path.join(folder, PAGES_FILE), PAGES_SCHEMA)
        self._qids = _SortedFile(os.path.join(folder, QIDS_FILE), QIDS_SCHEMA)

    def page(self, page_id: int) -> tuple[int, int] | None:
        """Gives shard and row of a page, None when the release has no such page."""
        found = self._pages.get(page_id)
        return None if found is None else (found[0], found[1])

    def page_of_qid(self, qid: str) -> int | None:
        """Gives the id of the page that has an item (``Q42``), None when none has."""
        number = qid[1:]
        found = self._qids.get(int(number)) if qid[:1] in ("Q", "q") and number.isdecimal() else None
        return None if found is None else found[0]

    def pages(self) -> Iterator[pa.RecordBatch]:
        """Gives the batches of pages.arrow."""
        return iter(self._pages.batches)

    def qids(self) -> Iterator[pa.RecordBatch]:
        """Gives the batches of qids.arrow."""
        return iter(self._qids.batches)
