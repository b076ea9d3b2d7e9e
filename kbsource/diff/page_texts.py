"""What of two releases is compared: the texts of pages, and narrow tables of hashes that can be joined."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import DataError, SetupError
from kbsource.files import join
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.release.pages.reading import PagesReader
from kbsource.release.reader import opened_table
from kbsource.release.writer import write_batches
from kbsource.runtime.sorted_runs import rebatched

_COLUMNS = tuple(f"elements.list.element.{name}" for name in ("kind", "section", "text"))
_CACHED = 64


class PageText(NamedTuple):
    """What of a page is compared, an item an element."""

    texts: list[str]
    sections: list[list[str]]  #: headings that each stands under, outermost first; a heading's own comes last
    is_heading: list[bool]


class PageTexts:
    """Texts of the pages of one release. A context: the files are closed behind it. Memory: a few row groups.

    Args:
        sha256: of its manifest; None where any release will do.

    Raises:
        SetupError: there is no release, or it is another one.
    """

    def __init__(self, path: str, *, sha256: str | None = None) -> None:
        self.manifest: PagesManifest = PAGES_RELEASE.read(path)
        if sha256 not in (None, self.manifest.sha256):
            raise SetupError(
                f"{path} is another release than the diff was made from: give the one with manifest {sha256}."
            )
        self._path = path
        self._locations = Locations(index_folder(path, self.manifest))
        self._reader = PagesReader(path, self.manifest, columns=_COLUMNS)
        self._cached: OrderedDict[tuple[int, int], PageText] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def by_id(self, page_id: int) -> PageText | None:
        """The page with an id; None where there is none."""
        location = self._locations.page(page_id)
        return None if location is None else self.at(*location)

    def at(self, shard: int, row: int) -> PageText:
        """The page in a row of a file.

        Raises:
            DataError: the file has fewer rows.
        """
        found = self._cached.pop((shard, row), None)
        if found is None:
            batch = self._reader.row(shard, row)
            if batch is None:
                raise DataError(
                    f"{self._path}/{MANIFEST}: file {shard} of pages has no row {row}; get the release again."
                )
            found = _page_text(batch)
            if len(self._cached) == _CACHED:
                self._cached.popitem(last=False)
        self._cached[shard, row] = found
        return found


def _page_text(batch: pa.RecordBatch) -> PageText:
    elements = batch["elements"].flatten()
    kinds, sections, texts = (elements.field(name).to_pylist() for name in ("kind", "section", "text"))
    return PageText(texts, sections, [kind == "heading" for kind in kinds])


HASH_BYTES = 16
_BATCH_ROWS = 1 << 16
_COPIED = ("page_id", "title", "qid", "revision_id", "is_disambiguation")
_TEXT = "elements.list.element.text"

FINGERPRINTS = pa.schema(
    [
        ("page_id", pa.int64()),
        ("title", pa.string()),
        ("qid", pa.string()),
        ("revision_id", pa.int64()),
        ("is_disambiguation", pa.bool_()),
        ("shard", pa.int32()),
        ("row", pa.int32()),
        ("chars", pa.int64()),
        ("text_hash", pa.binary()),
    ]
)
"""Where a page stands, and of its elements but the title: code points, and the hash of their texts."""
REDIRECTS = pa.schema([("page_id", pa.int64()), ("title", pa.string()), ("final_page_id", pa.int64())])


def text_hash(text: str) -> bytes:
    """The hash of the text of one element."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).digest()


def write_fingerprints(release: str, manifest: PagesManifest, *, output: str, name: str) -> tuple[FileEntry, FileEntry]:
    """Writes the tables ``NAME_pages`` and ``NAME_redirects`` of a release to a local folder. Memory: one row group."""
    pages = (
        fingerprints(batch, shard, first)
        for shard, entry in enumerate(manifest.tables["pages"])
        for first, batch in _batches(release, entry, (*_COPIED, _TEXT))
    )
    redirects = (
        batch.select(REDIRECTS.names).cast(REDIRECTS)
        for entry in manifest.tables["redirects"]
        for _, batch in _batches(release, entry, REDIRECTS.names)
    )
    rows = ((f"{name}_pages", FINGERPRINTS, pages), (f"{name}_redirects", REDIRECTS, redirects))
    first, second = (
        write_batches(rebatched(batches, _BATCH_ROWS), table, schema, output=output, file=f"{table}.parquet")
        for table, schema, batches in rows
    )
    return first, second


def _batches(release: str, entry: FileEntry, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The row groups of a table's file, each with the number of its first row."""
    n_rows = 0
    with opened_table(join(release, entry.file)) as file:
        for group in range(file.metadata.num_row_groups):
            table = file.read_row_group(group, columns=list(columns), use_threads=False).combine_chunks()
            for batch in table.to_batches():
                yield n_rows, batch
                n_rows += batch.num_rows


def fingerprints(batch: pa.RecordBatch, shard: int, first_row: int) -> pa.RecordBatch:
    """The rows of ``FINGERPRINTS`` of pages."""
    texts = batch["elements"].flatten().field("text")
    starts = batch["elements"].offsets.to_numpy() - batch["elements"].offsets[0].as_py()
    counts = np.concatenate([[0], np.cumsum(pc.utf8_length(texts).to_numpy())]).astype(np.int64)
    # Text and where it is cut into elements, straight from the buffers: the same bytes only for the same texts.
    _, raw_offsets, raw = texts.buffers()
    offsets = np.frombuffer(raw_offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = memoryview(b"" if raw is None else raw)
    hashes = []
    for start, end in zip((starts[:-1] + 1).tolist(), starts[1:].tolist(), strict=True):
        digest = hashlib.blake2b(data[offsets[start] : offsets[end]], digest_size=HASH_BYTES)
        digest.update((offsets[start : end + 1] - offsets[start]).astype("<i4").tobytes())
        hashes.append(digest.digest())
    return pa.RecordBatch.from_arrays(
        [
            *(batch[name] for name in _COPIED),
            pa.array(np.full(len(batch), shard, np.int32)),
            pa.array(np.arange(first_row, first_row + len(batch), dtype=np.int32)),
            pa.array(counts[starts[1:]] - counts[starts[:-1] + 1]),
            pa.array(hashes, pa.binary()),
        ],
        schema=FINGERPRINTS,
    )
