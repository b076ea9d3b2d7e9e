"""What lies in the staging folder while a dataset is aligned.

::

    job.json                        what all tasks share, see ``MapJob``
    plan.json                       first record of every chunk
    examples/00012.arrow            records of a chunk, as JSON
    wanted/00034.arrow              evidences whose page was found, by where in the release the page lies
    missing.arrow                   evidences whose page was not found, a batch a chunk
    suggestions.json                missing title -> similar ones
    aligned/00005.arrow, .json      what became of the evidences of a task, a batch a chunk; which batch is whose
    settled.arrow, .json            the same of evidences whose page was never found
    merged/00012.kilt, .json        the KILT lines of a chunk, and its report

Files depend on the data alone, never on the number of workers, and doing a task again writes the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

import pyarrow as pa

from kbsource.files import Storage, join
from kbsource.staging import StagedRows, read_json, staged_rows, write_json
from mapping.places import Numbering, Placed
from mapping.records import Alignment
from mapping.sources.base import Split

N_BUCKETS = 64
"""Parts of a release that evidences are sorted by: all evidences of a page are in one, and one is held in memory."""
ROWS_AT_ONCE = 1_000
TASK_EVIDENCES = 500
"""Evidences that make a task of their own worth while."""

EXAMPLES = pa.schema(
    [pa.field("ordinal", pa.int64(), nullable=False), pa.field("example", pa.string(), nullable=False)]
)

_EVIDENCE = [
    pa.field("ordinal", pa.int64(), nullable=False),
    pa.field("output", pa.int32(), nullable=False),
    pa.field("evidence", pa.int32(), nullable=False),
]
_FOUND = [
    pa.field("page_id", pa.int64()),
    pa.field("title", pa.string()),
    pa.field("found_by", pa.string()),
    pa.field("hops", pa.int32(), nullable=False),
]
WANTED = pa.schema(
    [
        *_EVIDENCE,
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
        *_FOUND,
        pa.field("text", pa.string()),
    ]
)
MISSING = pa.schema([*_EVIDENCE, pa.field("asked", pa.string()), pa.field("text", pa.string())])
SETTLED = pa.schema(
    [
        *_EVIDENCE,
        pa.field("outcome", pa.string(), nullable=False),
        *_FOUND,
        pa.field("section", pa.string()),
        *(pa.field(name, pa.int32()) for name in ("start_element", "start_char", "end_element", "end_char")),
        pa.field("score", pa.float64()),
        pa.field("match", pa.string()),
        pa.field("text", pa.string()),
        *(pa.field(name, pa.int32()) for name in ("start_paragraph", "start_in", "end_paragraph", "end_in")),
        pa.field("asked", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class MapJob:
    """What all tasks share.

    Attributes:
        output: folder of the alignment.
        kb: folder of the release.
        pages: paths of its pages files in it, in order.
        lang: language of the wiki.
        dataset: name in ``mapping.policy.POLICIES``.
        split: of the dataset.
        threshold, max_elements, numbering, strips_section: as in MapOptions.
        has_crosswalk: old spans are written beside new ones.
    """

    output: str
    kb: str
    pages: tuple[str, ...]
    lang: str
    dataset: str
    split: Split
    threshold: float
    max_elements: int
    numbering: Numbering
    strips_section: bool
    has_crosswalk: bool

    def write(self, staging: str, storage: Storage) -> None:
        """Writes the description into the staging folder."""
        write_json(storage, join(staging, "job.json"), asdict(self))

    @classmethod
    def read(cls, staging: str, storage: Storage) -> MapJob:
        """Gives back what ``write`` wrote."""
        value = read_json(storage, join(staging, "job.json"))
        return cls(**{**value, "pages": tuple(value["pages"])})


def staged(staging: str, kind: str, number: int, suffix: str = "arrow") -> str:
    """Gives the path of a numbered file."""
    return join(staging, kind, f"{number:05d}.{suffix}")


class Buckets:
    """Evidences on their way to the buckets of their pages, in the order they come.

    A context: the files appear when it ends well.

    Attributes:
        counts: rows of each bucket.
        n_bytes: bytes of text of each.
    """

    def __init__(self, staging: str, storage: Storage) -> None:
        self._staging = staging
        self._storage = storage
        self._stack = ExitStack()
        self._rows: dict[int, StagedRows] = {}
        self.counts = [0] * N_BUCKETS
        self.n_bytes = [0] * N_BUCKETS

    def __enter__(self) -> Buckets:
        self._stack.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def add(self, bucket: int, row: tuple[Any, ...]) -> None:
        """Takes a row of schema ``WANTED``."""
        rows = self._rows.get(bucket)
        if rows is None:
            opened = staged_rows(self._storage, staged(self._staging, "wanted", bucket), WANTED)
            rows = self._rows[bucket] = self._stack.enter_context(opened)
        rows.add(row)
        self.counts[bucket] += 1
        self.n_bytes[bucket] += len(row[-1] or "")
        if rows.n_pending == ROWS_AT_ONCE:
            rows.flush()


def bucket_groups(counts: list[int]) -> list[list[int]]:
    """Gives the buckets of each task: neighbours, until they are worth a task.

    >>> bucket_groups([0, 300, 300, 600, 100, 0])
    [[1, 2], [3], [4]]
    """
    groups: list[list[int]] = []
    n_rows = TASK_EVIDENCES
    for bucket, count in enumerate(counts):
        if not count:
            continue
        if n_rows >= TASK_EVIDENCES:
            groups.append([])
            n_rows = 0
        groups[-1].append(bucket)
        n_rows += count
    return groups


def settled_row(
    key: tuple[int, int, int], alignment: Alignment, placed: Placed | None, asked: str | None
) -> tuple[Any, ...]:
    """Gives a row of schema ``SETTLED``."""
    span = alignment.span
    place = placed.place if placed is not None else None
    return (
        *key,
        alignment.outcome,
        alignment.page_id,
        alignment.title,
        alignment.found_by,
        alignment.hops,
        alignment.section,
        *((span.start_element, span.start_char, span.end_element, span.end_char) if span else (None,) * 4),
        span.score if span else None,
        span.match if span else None,
        alignment.text,
        *(place if place is not None else (None,) * 4),
        asked,
    )


class ChunkedRows:
    """Settled evidences in the order of their records, a batch a chunk; the index of batches is written at the end.

    Args:
        rows: of schema ``SETTLED``.
    """

    def __init__(self, rows: StagedRows) -> None:
        self._rows = rows
        self._chunk = -1
        self._batches: dict[str, int] = {}

    def add(self, chunk: int, row: tuple[Any, ...]) -> None:
        """Takes a row of a chunk that is not before the last one."""
        if chunk != self._chunk:
            self.end_chunk()
            self._chunk = chunk
        self._rows.add(row)

    def end_chunk(self) -> None:
        """Writes the batch of the chunk, if it has any row."""
        if self._rows.n_pending:
            self._batches[str(self._chunk)] = len(self._batches)
            self._rows.flush()

    @property
    def batches(self) -> dict[str, int]:
        """Number of the batch of each chunk, by its number."""
        return self._batches


def write_settled(rows: Iterable[tuple[int, tuple[Any, ...]]], storage: Storage, path: str) -> None:
    """Writes (chunk, row) in ascending order under a path, and which batch is whose beside it."""
    with staged_rows(storage, path, SETTLED) as sink:
        chunked = ChunkedRows(sink)
        for chunk, row in rows:
            chunked.add(chunk, row)
        chunked.end_chunk()
    write_json(storage, path.removesuffix("arrow") + "json", chunked.batches)


def read_settled(storage: Storage, path: str, batches: dict[str, int], chunk: int) -> Iterator[tuple[Any, ...]]:
    """Gives the rows of a chunk."""
    number = batches.get(str(chunk))
    if number is None:
        return
    with storage.open_read(path) as file:
        batch = pa.ipc.open_file(file).get_batch(number)
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
