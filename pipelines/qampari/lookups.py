"""Rows and numbers in files, looked up: the row of a number, and the rank of a query among those that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.files import atomic_write
from kbsource.runtime.chunks import Key, Stored, read_stored
from mapping.qampari.facts.classes import Numbers
from mapping.qampari.records import ProofText
from pipelines.primitives.gather import Gather
from pipelines.qampari.plan import ORDER_BUCKETS
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for


def proof_texts(rows: pa.RecordBatch | pa.Table) -> list[ProofText]:
    """Gives rows of PROOFS as records."""
    return list(map(ProofText, *(rows[name].to_pylist() for name in ProofText._fields)))


_RANK_BITS = 40


class Ranks(NamedTuple):
    """Numbers of the simple queries that are kept, ascending. Memory: 8 bytes each."""

    queries: Numbers

    def order(self, query: int) -> int:
        """Gives what queries that are made of this one are ordered by in the table of queries."""
        rank = int(np.searchsorted(self.queries, query))
        return rank % ORDER_BUCKETS << _RANK_BITS | rank


class RankQueries(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, ``Stored``) of rows with a column ``query`` -> the path of the numbers of all of them, ascending.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def expand(self, kept: Any) -> Any:
        return kept | Gather() | "write" >> beam.ParDo(_WriteRanks(self._path))


class _WriteRanks(WorkerDoFn):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def process(self, chunks: list[tuple[Key, Stored]]) -> Iterator[str]:
        with named_faults():
            numbers = [np.empty(0, np.int64)]
            for _, one in chunks:
                batches = read_stored(Stored(*one), storage_for(one[0]), ["query"])
                numbers += [batch["query"].to_numpy() for batch in batches]
            with atomic_write(storage_for(self._path), self._path) as file:
                np.save(file, np.sort(np.concatenate(numbers)), allow_pickle=False)
            yield self._path


def read_ranks(path: str) -> Ranks:
    """Gives what ``RankQueries`` wrote."""
    with storage_for(path).open_read(path) as file:
        return Ranks(np.load(file, allow_pickle=False))
