"""Looks up where a page is in a release, and which page has a Wikidata item, in two memory-mapped Arrow files.

``pages.arrow`` has the columns ``page_id`` (ascending), ``shard`` (index in the manifest's list of files of ``pages``)
and ``row`` (in this file). ``qids.arrow`` has the columns ``qid`` (number of the item, ascending) and ``page_id``. Both
have batches of ``title_index.BATCH_ROWS`` rows. ``release.pages.writing`` writes them.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from kbsource.files import Folder, base_name, join
from kbsource.index.mapped_files import CHECKSUMS_FILE, MappedFile, MappedNumbers
from kbsource.index.title_index import BATCH_ROWS
from kbsource.local_copies import local_copy
from kbsource.release.layout import INDEX, index_path
from kbsource.release.manifest import Manifest
from kbsource.release.reader import check_hashes

PAGES_FILE = "pages.arrow"
QIDS_FILE = "qids.arrow"


def _schema(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema(
        [pa.field(name, type_, nullable=False) for name, type_ in fields],
        metadata={"format": "kbsource-page-locations-1"},
    )


PAGES_SCHEMA = _schema(("page_id", pa.int64()), ("shard", pa.int32()), ("row", pa.int32()))
QIDS_SCHEMA = _schema(("qid", pa.int64()), ("page_id", pa.int64()))


def index_folder(path: str, manifest: Manifest, *, files: Iterable[str] | None = None) -> str:
    """Returns a local folder with the index files of a release (see ``local_copy``), and their checksums if the release
    has a file of checksums.

    Args:
        files: paths of the required files in the release; None for all.

    Raises:
        DataError: a file of a remote release is missing, or the checksums file is damaged or changed.
    """
    names = [base_name(file) for file in (files or (entry.file for entry in manifest.files))]
    checksums = [entry for entry in manifest.files if entry.file == index_path(CHECKSUMS_FILE)]
    names += [CHECKSUMS_FILE for _ in checksums if CHECKSUMS_FILE not in names]
    version = " ".join(entry.sha256 for entry in manifest.files)
    local = local_copy(Folder.of(join(path, INDEX)), names, version=version)
    check_hashes(local, [replace(entry, file=CHECKSUMS_FILE) for entry in checksums])
    return local


class _SortedFile:
    """A mapped file that is sorted by its first column, in which rows are looked up by this column."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        file = MappedFile(path, schema)
        self.batches = file.whole
        self._columns = [[MappedNumbers(column, file) for column in batch.columns] for batch in file.batches]
        self._first = [columns[0][0] for columns in self._columns]

    def __len__(self) -> int:
        return sum(len(columns[0]) for columns in self._columns)

    def key(self, number: int) -> int:
        return self._columns[number // BATCH_ROWS][0][number % BATCH_ROWS]

    def get(self, key: int) -> tuple[int, ...] | None:
        number = bisect_right(self._first, key) - 1
        if number < 0:
            return None
        keys, *columns = self._columns[number]
        i = keys.find(key)
        return tuple(column[i] for column in columns) if i < len(keys) and keys[i] == key else None


class Locations:
    """Looks up pages in ``pages.arrow`` and Wikidata items in ``qids.arrow``."""

    def __init__(self, folder: str) -> None:
        """Opens the files of a local index folder.

        Raises:
            SetupError: a file is missing, damaged, or of another version.
        """
        self._pages = _SortedFile(os.path.join(folder, PAGES_FILE), PAGES_SCHEMA)
        self._qids = _SortedFile(os.path.join(folder, QIDS_FILE), QIDS_SCHEMA)

    def page(self, page_id: int) -> tuple[int, int] | None:
        """Returns the shard and row of a page; None if the release does not contain the page."""
        found = self._pages.get(page_id)
        return None if found is None else (found[0], found[1])

    def page_of_qid(self, qid: str) -> int | None:
        """Returns the id of the page that has an item (``Q42``); None if no page has it."""
        number = qid[1:]
        found = self._qids.get(int(number)) if qid[:1] in ("Q", "q") and number.isdecimal() else None
        return None if found is None else found[0]

    @property
    def n_pages(self) -> int:
        """The number of pages."""
        return len(self._pages)

    def page_id(self, number: int) -> int:
        """Returns the page id at an index of the sorted list of all page ids, from 0."""
        return self._pages.key(number)

    def pages(self) -> Iterator[pa.RecordBatch]:
        """Reads the batches of pages.arrow."""
        return self._pages.batches()

    def qids(self) -> Iterator[pa.RecordBatch]:
        """Reads the batches of qids.arrow."""
        return self._qids.batches()
