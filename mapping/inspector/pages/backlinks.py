"""Which pages link to a page, from the anchors of their texts.

Two arrays over the pages by page id: ``offsets.npy``, where the links to each begin (and one more at the end), and
``sources.npy``, the pages that link to it, ascending, each once. Pages are numbers in the order of page ids: 8 bytes a
page and 4 a link.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import Storage, join
from kbsource.release.manifest import Manifest
from kbsource.release.reader import opened_table
from kbsource.runtime.sorted_runs import SortedRuns
from mapping.inspector.side_index import OnProgress

OFFSETS_FILE, SOURCES_FILE = "offsets.npy", "sources.npy"
_TARGET = "anchors.list.element.target_page_id"
_SCHEMA = pa.schema([("target", pa.int32()), ("source", pa.int32())])


def write_backlinks(
    path: str,
    manifest: Manifest,
    storage: Storage,
    *,
    page_ids: npt.NDArray[np.int64],
    folder: str,
    on_progress: OnProgress,
) -> None:
    """Writes both arrays. Memory: 8 bytes a page, and the links of one row group or one range of pages.

    Args:
        path: folder of the release.
        manifest: of the release.
        storage: of the folder.
        page_ids: of all pages, ascending.
        folder: local, also takes scratch files.
        on_progress: is told pages done and of how many.
    """
    n_pages, n_done = len(page_ids), 0
    offsets = np.lib.format.open_memmap(os.path.join(folder, OFFSETS_FILE), "w+", np.int64, (n_pages + 1,))
    with SortedRuns(os.path.join(folder, "runs"), _SCHEMA, by="target") as runs:
        for entry in manifest.tables["pages"]:
            with opened_table(join(path, entry.file), storage) as file:
                for group in range(file.metadata.num_row_groups):
                    rows = file.read_row_group(group, columns=["page_id", _TARGET], use_threads=False)
                    runs.add(*_links(rows, page_ids))
                    n_done += rows.num_rows
                    on_progress(n_done, n_pages)
        sources = np.lib.format.open_memmap(os.path.join(folder, SOURCES_FILE), "w+", np.int32, (max(runs.n_rows, 1),))
        at = 0
        for keys in runs.ranges():
            batch = runs.read(keys)
            target, source = batch["target"].to_numpy(), batch["source"].to_numpy()
            sources[at : at + len(source)] = source[np.lexsort((source, target))]
            if len(target):
                first, last = int(target.min()), int(target.max())
                offsets[first + 1 : last + 2] = np.bincount(target - first, minlength=last - first + 1)
            at += len(source)
            on_progress(n_pages, n_pages)
    np.cumsum(offsets, out=offsets)
    offsets.flush()
    sources.flush()


def _links(rows: pa.Table, page_ids: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Gives target and source of every link between two pages, each pair once, as numbers in the order of page ids."""
    anchors = rows["anchors"].combine_chunks()
    targets = pc.struct_field(pc.list_flatten(anchors), "target_page_id")
    known = targets.is_valid()
    own = np.searchsorted(page_ids, rows["page_id"].to_numpy())
    source = own[pc.list_parent_indices(anchors).filter(known).to_numpy()]
    sought = targets.filter(known).to_numpy()
    target = np.minimum(np.searchsorted(page_ids, sought), len(page_ids) - 1)
    is_released = page_ids[target] == sought
    pairs = np.unique(target[is_released].astype(np.int64) << 32 | source[is_released])
    return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32)


class Backlinks:
    """Lookups in both arrays, which are memory-mapped; pages are numbers in the order of page ids."""

    def __init__(self, folder: str) -> None:
        self._offsets: npt.NDArray[np.int64] = np.load(os.path.join(folder, OFFSETS_FILE), mmap_mode="r")
        self._sources: npt.NDArray[np.int32] = np.load(os.path.join(folder, SOURCES_FILE), mmap_mode="r")

    def count(self, number: int) -> int:
        """Gives how many pages link to a page."""
        return int(self._offsets[number + 1] - self._offsets[number])

    def sources(self, number: int, start: int, end: int) -> list[int]:
        """Gives the pages that link to a page, ascending: the ``start``th up to but not including the ``end``th."""
        first, last = int(self._offsets[number]), int(self._offsets[number + 1])
        found: list[int] = self._sources[first + start : min(first + end, last)].tolist()
        return found
