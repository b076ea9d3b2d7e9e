"""What lies in the staging folder while QAMPARI is constructed.

::

    simple/ compositions/ tables/     facts of three kinds, one folder each:
        facts/00003.arrow             what is to be proved, ``FACTS_A_CHUNK`` a file
        wanted/00000-00012.arrow      what pages are searched for, by where in the release the page lies
        found/00000-00012.arrow       sentences that may say a fact, a batch of one chunk; the batches' chunks
        found.npy, needed.npy, proved.npy   a byte a fact, the driver's own
        needed/00003.npy              which facts of a chunk are worth a model's time
        proofs/00003.arrow, .json     facts of a chunk that are proved; counts
    simple/ compositions/ intersections/
        kept.arrow                    queries that passed, see ``pipelines.qampari.kept``
    names/                            what items are called, see ``mapping.qampari.names``
    lists/00012-00000.arrow           tables of list pages, by part of the release; counts

Files depend on the data alone, never on the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.chunks import Report, read_chunk_report, read_stored
from kbsource.files import LocalStorage
from kbsource.spill import BucketSpill
from mapping.entailment import ModelOptions
from mapping.qampari.evidence import Candidate
from mapping.qampari.ordered import N_BUCKETS, open_spill

FACTS_A_CHUNK = 1 << 14
ANSWER_PAGE, ENTITY_PAGE = 0, 1
WORDS = 2
"""Which page is searched: the first thing's for the second, the second thing's for the first; or a page for words."""
PENDING_CHARS = 16 << 20

FACT_ROWS = pa.schema([pa.field("fact", pa.int64(), nullable=False), pa.field("hypothesis", pa.string())])
WANTED = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("fact", pa.int64(), nullable=False),
        pa.field("direction", pa.int8(), nullable=False),
        pa.field("names", pa.list_(pa.string()), nullable=False),
        pa.field("page_id", pa.int64()),
    ]
)
"""``page_id``: where links lead that stand for a name."""
_CANDIDATE_TYPES: dict[str, pa.DataType] = {"text": pa.string(), "found": pa.string(), "is_link": pa.bool_()}
CANDIDATES = [pa.field(name, _CANDIDATE_TYPES.get(name, pa.int64()), nullable=False) for name in Candidate._fields] + [
    pa.field("title", pa.string(), nullable=False)
]
FOUND = pa.schema(
    [
        pa.field("fact", pa.int64(), nullable=False),
        pa.field("direction", pa.int8(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        *CANDIDATES,
    ]
)
PROOFS = pa.schema(
    [
        pa.field("fact", pa.int64(), nullable=False),
        pa.field("hypothesis", pa.string()),
        pa.field("entailment", pa.float64()),
        *CANDIDATES,
    ]
)


@dataclass(frozen=True, slots=True)
class QampariJob:
    """What all workers share.

    Attributes:
        kb: folder of the release.
        pages: paths of its pages files in it, in order.
        page_rows: pages in each of them.
        n_before: sentences before the one that names something.
        least_entailment: what an accepted candidate is above.
        model: None where candidates are taken as they come.
        least_rows: rows that a table needs.
        key_columns: title of a list page, number of a table, and its key column, where these are given.
    """

    kb: str
    pages: tuple[str, ...]
    page_rows: tuple[int, ...]
    n_before: int
    least_entailment: float
    model: ModelOptions | None
    least_rows: int
    key_columns: tuple[tuple[str, int, int], ...] = ()

    @property
    def n_pages(self) -> int:
        """Pages of the release."""
        return sum(self.page_rows)


def numbered(folder: str, kind: str, number: int, suffix: str = "arrow") -> str:
    """Gives the path of a numbered file."""
    return os.path.join(folder, kind, f"{number:05d}.{suffix}")


def buckets_of(positions: npt.NDArray[np.int64], n_pages: int) -> npt.NDArray[np.int64]:
    """Gives the buckets of the pages at positions among all pages of a release: all that is looked for in a page is in
    one."""
    buckets: npt.NDArray[np.int64] = positions * N_BUCKETS // n_pages
    return buckets


def wanted_spill(folder: str) -> BucketSpill:
    """Opens what pages are searched for, to be added to and read."""
    return open_spill(os.path.join(folder, "spilt"), WANTED, N_BUCKETS)


def found_batches(rows: Iterator[tuple[Any, ...]], report: Report) -> Iterator[pa.RecordBatch]:
    """Gives rows of FOUND, in any order, in batches all of whose rows are of one chunk, and reports the chunks."""
    chunks: list[int] = []
    text = FOUND.get_field_index("text")
    pending: list[tuple[Any, ...]] = []
    n_chars = 0

    def of_pending() -> Iterator[pa.RecordBatch]:
        pending.sort(key=lambda row: row[:3])
        for chunk, group in groupby(pending, key=lambda row: int(row[0]) // FACTS_A_CHUNK):
            columns = zip(zip(*group, strict=True), FOUND.types, strict=True)
            yield pa.RecordBatch.from_arrays([pa.array(*one) for one in columns], schema=FOUND)
            chunks.append(chunk)
        pending.clear()

    for row in rows:
        pending.append(row)
        n_chars += len(row[text])
        if n_chars >= PENDING_CHARS:
            yield from of_pending()
            n_chars = 0
    yield from of_pending()
    report.facts["chunks"] = chunks


def read_found(folder: str, chunk: int) -> dict[int, list[tuple[Any, ...]]]:
    """Gives what was found for the facts of a chunk: by fact, in the order in which candidates are tried."""
    storage = LocalStorage()
    rows: list[tuple[Any, ...]] = []
    for path in storage.glob(os.path.join(folder, "found", "*.arrow")):
        stored, report = read_chunk_report(path, storage)
        for number, one in enumerate(report.facts["chunks"]):
            if one == chunk:
                for batch in read_stored(stored._replace(first_batch=number, n_batches=1), storage):
                    rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    rows.sort(key=lambda row: row[:3])
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row[3:])
    return found


def fact_flags(folder: str, name: str, n_facts: int) -> npt.NDArray[np.bool_]:
    """Gives a flag for each fact, none of them set: a file that is mapped, since there may be any number of facts."""
    path = os.path.join(folder, f"{name}.npy")
    os.makedirs(folder, exist_ok=True)
    flags: npt.NDArray[np.bool_] = np.lib.format.open_memmap(path, "w+", np.bool_, (n_facts,))
    return flags


def found_facts(folder: str, n_facts: int) -> tuple[npt.NDArray[np.bool_], int]:
    """Says of all facts whether anything was found, and gives the number of all that was."""
    has_any = fact_flags(folder, "found", n_facts)
    n_found = 0
    storage = LocalStorage()
    for path in storage.glob(os.path.join(folder, "found", "*.arrow")):
        for batch in read_stored(read_chunk_report(path, storage)[0], storage, ["fact"]):
            has_any[batch["fact"].to_numpy()] = True
            n_found += batch.num_rows
    return has_any, n_found
