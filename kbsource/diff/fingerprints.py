"""Release of pages -> narrow tables that can be joined: a row a page with the hash of its text, and its redirects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import LocalStorage, Storage, join
from kbsource.release.manifest import FileEntry
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.reader import opened_table
from kbsource.release.writer import write_batches
from kbsource.runtime.sorted_runs import rebatched

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
    """Gives the hash of the text of one element."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).digest()


def write_fingerprints(
    release: str, manifest: PagesManifest, storage: Storage, *, output: str, name: str
) -> tuple[FileEntry, FileEntry]:
    """Writes the tables ``NAME_pages`` and ``NAME_redirects`` of a release to a local folder. Memory: one row group.

    Args:
        release: its folder.
        manifest: of it.
        storage: of the folder.
        output: local folder.
        name: of the release in the names of the files.
    """
    local = LocalStorage()
    pages = (
        fingerprints(batch, shard, first)
        for shard, entry in enumerate(manifest.tables["pages"])
        for first, batch in _batches(release, entry, storage, (*_COPIED, _TEXT))
    )
    redirects = (
        batch.select(REDIRECTS.names).cast(REDIRECTS)
        for entry in manifest.tables["redirects"]
        for _, batch in _batches(release, entry, storage, REDIRECTS.names)
    )
    rows = ((f"{name}_pages", FINGERPRINTS, pages), (f"{name}_redirects", REDIRECTS, redirects))
    first, second = (
        write_batches(
            rebatched(batches, _BATCH_ROWS), table, schema, output=output, storage=local, file=f"{table}.parquet"
        )
        for table, schema, batches in rows
    )
    return first, second


def _batches(
    release: str, entry: FileEntry, storage: Storage, columns: Sequence[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Gives the row groups of a table's file, each with the number of its first row."""
    n_rows = 0
    with opened_table(join(release, entry.file), storage) as file:
        for group in range(file.metadata.num_row_groups):
            table = file.read_row_group(group, columns=list(columns), use_threads=False).combine_chunks()
            for batch in table.to_batches():
                yield n_rows, batch
                n_rows += batch.num_rows


def fingerprints(batch: pa.RecordBatch, shard: int, first_row: int) -> pa.RecordBatch:
    """Gives the rows of ``FINGERPRINTS`` of pages.

    Args:
        batch: pages with their texts.
        shard: number of their file.
        first_row: number of the first of them in it.
    """
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
