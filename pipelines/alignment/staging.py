"""What lies in the staging folder while a dataset is aligned.

::

    job.json                        what all tasks share, see ``MapJob``
    plan.json                       first record of every chunk
    cuts.json                       where the draw of dev and test ends, for a dataset without splits
    examples/00012.arrow            records of a chunk, as JSON
    wanted/00034.arrow              evidences whose page was found, by where in the release the page lies
    rejected.arrow                  records that cannot be used
    missing.arrow                   evidences whose page was not found
    missing_titles/00000.arrow      titles of these, each once
    similar/00000.arrow             titles of the release that are like them
    aligned/00005.arrow, .json      what became of the evidences of a task, a batch of one chunk; the batches' chunks
    settled.arrow, .json            the same of evidences whose page was never found
    merged/00012.kilt, .json        the KILT lines of a chunk, and its report
    merged/00012.answers            the lines of a test file with their answers, where labels are given

Files depend on the data alone, never on the number of workers, and doing a task again writes the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

import pyarrow as pa

from kbsource.files import Storage, join
from kbsource.staging import StagedRows, read_batches, read_json, staged_rows, write_json
from mapping.hypotheses import HypothesisKind
from mapping.places import Numbering, Placed
from mapping.records import Alignment
from mapping.sources.base import Split

_PLAN, CUTS = "plan.json", "cuts.json"
REJECTED_FILE = "rejected.arrow"
N_BUCKETS = 64
"""Parts of a release that evidences are sorted by: all evidences of a page are in one."""
ROWS_AT_ONCE = 1_000
PENDING_ROWS = 8_000
PENDING_CHARS = 4 << 20
"""Rows, and characters of their text, of all buckets together that wait to be written."""
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
        pa.field("position", pa.int64(), nullable=False),
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
        pa.field("suggestions", pa.list_(pa.struct([pa.field("title", pa.string()), pa.field("score", pa.float64())]))),
    ]
)


@dataclass(frozen=True, slots=True)
class MapJob:
    """What all tasks share.

    Attributes:
        output: folder of the alignment.
        kb: folder of the release.
        pages: paths of its pages files in it, in order.
        page_rows: pages in each of them.
        lang: language of the wiki.
        dataset: name in ``mapping.policy.POLICIES``.
        split: of the dataset.
        has_labels: records of test are written with their answers too.
        threshold, max_elements, numbering, strips_section: as in MapOptions.
        places_nothing: as in ``mapping.locate.SearchOptions``.
        has_crosswalk: old spans are written beside new ones.
        is_sampled: the dataset has no splits of its own, see ``mapping.sample``.
        hypothesis: what a model judges spans by; None where no model is asked.
        rescue_sentences: sentences of the page that are tried in place of a weak span.
        accept: rule of ``mapping.acceptance`` in place of the threshold; None without.
    """

    output: str
    kb: str
    pages: tuple[str, ...]
    page_rows: tuple[int, ...]
    lang: str
    dataset: str
    split: Split
    has_labels: bool
    threshold: float
    max_elements: int
    numbering: Numbering
    places_nothing: bool
    strips_section: bool
    has_crosswalk: bool
    is_sampled: bool
    hypothesis: HypothesisKind | None
    rescue_sentences: int
    accept: str | None

    def write(self, staging: str, storage: Storage) -> None:
        """Writes the description into the staging folder."""
        write_json(storage, join(staging, "job.json"), asdict(self))

    @classmethod
    def read(cls, staging: str, storage: Storage) -> MapJob:
        """Gives back what ``write`` wrote."""
        value = read_json(storage, join(staging, "job.json"))
        return cls(**{**value, **{name: tuple(value[name]) for name in ("pages", "page_rows")}})


def staged(staging: str, kind: str, number: int, suffix: str = "arrow") -> str:
    """Gives the path of a numbered file."""
    return join(staging, kind, f"{number:05d}.{suffix}")


def write_starts(staging: str, starts: Sequence[int], storage: Storage) -> None:
    """Writes the number of the first record of every chunk."""
    write_json(storage, join(staging, _PLAN), {"starts": list(starts)})


def read_starts(staging: str, storage: Storage) -> list[int]:
    """Gives back what ``write_starts`` wrote: as many as there are chunks."""
    starts: list[int] = read_json(storage, join(staging, _PLAN))["starts"]
    return starts


def read_rows(storage: Storage, path: str) -> Iterator[tuple[Any, ...]]:
    """Gives the rows of a staged file in order, one batch in memory at a time."""
    for batch in read_batches(storage, path):
        yield from batch_rows(batch)


def batch_rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Gives the rows of a batch in order."""
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


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
        self._n_pending = self._n_chars = 0
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
        n_chars = len(row[-1] or "")
        self.counts[bucket] += 1
        self.n_bytes[bucket] += n_chars
        self._n_pending += 1
        self._n_chars += n_chars
        if self._n_pending >= PENDING_ROWS or self._n_chars >= PENDING_CHARS:
            self._flush()

    def _flush(self) -> None:
        for rows in self._rows.values():
            if rows.n_pending:
                rows.flush()
        self._n_pending = self._n_chars = 0


def bucket_of(position: int, n_pages: int) -> int:
    """Gives the bucket of the page at a position among all pages of a release."""
    return position * N_BUCKETS // n_pages


def bucket_range(bucket: int, n_pages: int) -> tuple[int, int]:
    """Gives the half-open range of the positions that are of a bucket.

    >>> [bucket_range(bucket, 130) for bucket in (0, 1, 63)]
    [(0, 3), (3, 5), (128, 130)]
    """
    return -(-bucket * n_pages // N_BUCKETS), -(-(bucket + 1) * n_pages // N_BUCKETS)


def settled_row(key: tuple[int, int, int], alignment: Alignment, placed: Placed | None) -> tuple[Any, ...]:
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
        [{"title": title, "score": score} for title, score in alignment.suggestions],
    )


def write_settled(rows: Iterable[tuple[int, tuple[Any, ...]]], storage: Storage, path: str) -> None:
    """Writes (chunk, row) under a path, a batch for every run of one chunk, and beside it the chunks of the batches."""
    chunks: list[int] = []
    with staged_rows(storage, path, SETTLED) as sink:
        for chunk, row in rows:
            if not chunks or chunk != chunks[-1]:
                if sink.n_pending:
                    sink.flush()
                chunks.append(chunk)
            sink.add(row)
    write_json(storage, path.removesuffix("arrow") + "json", chunks)


def read_settled(storage: Storage, path: str, numbers: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    """Gives the rows of some batches."""
    with storage.open_read(path) as file:
        reader = pa.ipc.open_file(file)
        for number in numbers:
            yield from batch_rows(reader.get_batch(number))
