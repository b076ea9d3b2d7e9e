"""Looks up rows of files by number, and reads and writes sets of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.files import Folder
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_batches
from mapping.qampari.classes import ItemSet
from pipelines.primitives.shuffle import CollectSorted
from pipelines.runners.workers import WorkerDoFn


class MapRows(WorkerDoFn):
    """Calls a function with each batch and the side inputs.

    (key, record batch) -> (key, result of the function).

    If ``opens`` is given, the first side input is a path. ``opens`` opens it once, and the function gets the opened
    object.
    """

    def __init__(self, function: Callable[..., pa.RecordBatch], *, opens: Callable[[str], Any] | None = None) -> None:
        super().__init__()
        self._function, self._opens = function, opens
        self._opened: Any = None

    def process(self, element: tuple[ChunkKey, pa.RecordBatch], *given: Any) -> Iterator[Any]:
        key, batch = element
        with named_faults():
            if self._opens is not None:
                if self._opened is None:
                    self._opened = self._opens(given[0])
                given = (self._opened, *given[1:])
            yield key, self._function(batch, *given)


def write_item_set(path: str) -> CollectSorted:
    """Writes the set of all items in some rows.

    (key, ``BatchRef`` of ITEMS) -> the path of the set.
    """
    return CollectSorted(partial(_write_item_set, path=path))


def _write_item_set(chunks: list[tuple[ChunkKey, BatchRef]], *, path: str) -> Iterator[str]:
    items = ItemSet()
    for _, stored in chunks:
        for batch in read_batches(BatchRef(*stored)):
            items.add(batch["item"].to_numpy())
    with Folder.of(path).create() as file:
        np.save(file, items.bits, allow_pickle=False)
    yield path


def read_item_set(path: str) -> ItemSet:
    """Returns a set that ``write_item_set`` wrote."""
    with Folder.of(path).open() as file:
        return ItemSet(np.load(file, allow_pickle=False))
