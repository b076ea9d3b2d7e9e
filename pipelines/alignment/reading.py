"""Reads a dataset into files: its records in chunks, and a row for each piece of evidence in these records, with the
page of the evidence if requested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from kbsource.columns import batch_of, rebatched, schema_of
from kbsource.dump.rejects import SHOWN, first_text, rounded_up
from kbsource.errors import DataError
from kbsource.files import Folder, join
from kbsource.records import BadRecord
from kbsource.rows import Row
from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, chunk_path, once_value, write_chunk
from mapping.entail.verification import make_hypothesis
from mapping.records import (
    Alignment,
    Evidence,
    EvidenceKey,
    Example,
    RecordFate,
    example_to_json,
    iter_evidence,
)
from mapping.sources import all_sources
from mapping.sources.source import Inputs, Source, Tally
from pipelines.alignment.search import ROW_BYTES, FindPage
from pipelines.options.map_dataset import DatasetOptions

CHUNK_CHARS = 16 << 20
"""Maximum characters of a chunk; a chunk ends here even if it has few records."""
_LEFT_OUT_CHARS = 100
"""Assumed size of a record that is not an example, such as a rejected one."""
SORTED_BYTES = 64 << 20
"""Bytes of evidence text that are sorted by page and written to a file together, with ``ROW_BYTES`` per row for the
other columns."""
_SORTED_ROWS = 512
"""Rows per batch of sorted evidence. A search reads whole batches of every file, but needs only some of their rows."""
_ROWS_AT_ONCE = 1_000
_BATCH_CHARS = 1 << 20
_REJECTED_ROWS = 50_000

R = TypeVar("R", bound=Row)


class ReadRecord(Row):
    """A record as it was read, with its number: an example as JSON without its evidence, or the outcome of a record
    that is not an example.
    """

    ordinal: int | None = None
    example: str | None = None
    left: RecordFate | None = None


def reader_of(options: DatasetOptions, tally: Tally) -> Source[Any]:
    """Returns the reader of a dataset, which adds its counts to ``tally``."""
    inputs = Inputs(options.inputs, options.references, options.labels, options.scratch)
    return all_sources()[options.dataset](inputs, options.split, options.choices, tally=tally)


def check_files(options: DatasetOptions) -> None:
    """Checks the beginning of every file of a dataset. Raises SetupError if a file is missing or invalid."""
    for path in (*options.inputs, *options.references, *options.labels):
        Folder.of(path).reached()
    reader_of(options, Tally()).check()


@dataclass(frozen=True, slots=True)
class ReadDataset:
    """The result of reading a dataset: the files with its records, one for each chunk; the files with their evidence;
    the files with the unusable records; and the counts.
    """

    examples: tuple[BatchRef, ...]
    evidence: tuple[BatchRef, ...]
    rejected: tuple[BatchRef, ...]
    tally: Tally


def read_part(options: DatasetOptions, part: int, folder: str, *, find_page: FindPage | None = None) -> ReadDataset:
    """Reads a dataset once, sequentially, into files of a folder. If it was read before, the existing files are used.

    The evidence has one file per chunk of records. With ``find_page``, each piece of evidence gets its page, and the
    files are larger and sorted by page.

    Raises:
        DataError: too many records cannot be used.
        SetupError: an input cannot be read completely.
    """
    done = join(folder, "read", f"{part:05d}.json")
    return once_value(done, lambda: _read(options, part, folder, find_page), ReadDataset)


def _read(options: DatasetOptions, part: int, folder: str, find_page: FindPage | None) -> ReadDataset:
    first_bad: list[BadRecord] = []
    rejected = _StoredRows(join(folder, "rejected"), part, BadRecord, most=_REJECTED_ROWS)
    chunks = Chunks(options, part, folder, find_page)
    tally = _ForwardingTally(chunks.leave)
    for item in reader_of(options, tally).read():
        if isinstance(item, BadRecord):
            first_bad += [item] if len(first_bad) < SHOWN else []
            rejected.add(item)
        else:
            chunks.add(item)
    chunks.end()
    rejected.end()
    _check_rejects(tally, first_bad, options.max_rejects)
    return ReadDataset(tuple(chunks.examples.stored), tuple(chunks.evidence.stored), tuple(rejected.stored), tally)


class _ForwardingTally(Tally):
    """Counts records, and calls a function with every record that is not an example."""

    def __init__(self, take: Callable[[RecordFate], None]) -> None:
        super().__init__()
        self._take = take

    def count_skipped(self, left: RecordFate) -> None:
        """See ``Tally.count_skipped``."""
        super().count_skipped(left)
        self._take(left)


def _check_rejects(tally: Tally, first: Sequence[BadRecord], ceiling: float) -> None:
    n_rejected = tally.rejected.total()
    if first and n_rejected / tally.records > ceiling:
        reasons = ", ".join(f"{count} {reason}" for reason, count in tally.rejected.most_common())
        raise DataError(
            f"{n_rejected} of {tally.records} records rejected, {n_rejected / tally.records:.3%}; the ceiling is "
            f"{ceiling:.3%} (by reason: {reasons}). If this is acceptable, raise --max-rejects to at "
            f"least {rounded_up(n_rejected / tally.records)}.{first_text(first)}"
        )


class _StoredRows(Generic[R]):
    """Writes rows to the chunk files of a part; ``stored`` lists the written files. Memory: the batches of one
    chunk."""

    def __init__(self, folder: str, part: int, row: type[R], *, most: int | None = None) -> None:
        self._folder, self._part, self._row, self._most = folder, part, row, most
        self._batches: list[pa.RecordBatch] = []
        self._rows: list[R] = []
        self._n_rows = 0
        self.stored: list[BatchRef] = []

    def add(self, row: R) -> None:
        """Adds a row."""
        self._rows.append(row)
        self._n_rows += 1
        if len(self._rows) == _ROWS_AT_ONCE:
            self.flush()
        if self._n_rows == self._most:
            self.end_file()

    def flush(self) -> None:
        """Makes a batch of the pending rows."""
        if self._rows:
            self._batches.append(batch_of(self._rows, self._row))
            self._rows = []

    def end_chunk(self) -> None:
        """Writes the file of a chunk of records."""
        self.end_file()

    def end_file(self) -> None:
        """Writes the file."""
        self.flush()
        path = chunk_path(self._folder, ChunkKey(self._part, len(self.stored)))
        self.stored.append(write_chunk(self._batches, schema_of(self._row), Report(), path=path))
        self._batches = []
        self._n_rows = 0

    def end(self) -> None:
        """Writes the last file, unless it is empty and there are others."""
        if self._n_rows or not self.stored:
            self.end_file()


class _SortedEvidence(_StoredRows[Alignment]):
    """Writes evidence with its pages to files of at least ``SORTED_BYTES``, each in page order. Evidence without a page
    comes first, grouped by title. Memory: one file."""

    def __init__(self, folder: str, part: int, find_page: FindPage) -> None:
        super().__init__(folder, part, Alignment)
        self._find_page, self._n_bytes = find_page, 0

    def add(self, row: Alignment) -> None:
        """Adds a piece of evidence."""
        super().add(self._find_page(row))
        self._n_bytes += ROW_BYTES + len(row.evidence_text or "")

    def end_chunk(self) -> None:
        """Writes the file if it is large enough."""
        if self._n_bytes >= SORTED_BYTES:
            self.end_file()

    def end_file(self) -> None:
        """See ``_StoredRows.end_file``."""
        self.flush()
        if self._batches:
            rows = pa.concat_batches(self._batches)
            order = pa.array(np.argsort(rows["position"].to_numpy(), kind="stable"))
            self._batches = list(rebatched([rows.take(order)], _SORTED_ROWS))
        super().end_file()
        self._n_bytes = 0


class Chunks:
    """Divides records into chunks, together with their evidence. Without records, there is one empty chunk."""

    def __init__(self, options: DatasetOptions, part: int, folder: str, find_page: FindPage | None = None) -> None:
        self._part, self._chunk_records, self._hypothesis = part, options.chunk_records, options.hypothesis
        self.examples = _StoredRows(join(folder, "examples"), part, ReadRecord)
        where = join(folder, "evidence")
        self.evidence = (
            _StoredRows(where, part, Alignment) if find_page is None else _SortedEvidence(where, part, find_page)
        )
        self._ordinal = self._n_records = self._n_chars = self._n_pending = 0

    def add(self, example: Example) -> None:
        """Adds a record."""
        if self._n_records == self._chunk_records:
            self._end_chunk()
        text, pieces = example_to_json(example), list(iter_evidence(example))
        n_chars = len(text) + sum(len(evidence.text or "") for _, evidence in pieces)
        self._take(ReadRecord(self._ordinal, text), n_chars)
        for key, evidence in pieces:
            self.evidence.add(self._alignment(example, key, evidence))
        self._ordinal += 1
        self._n_records += 1

    def _alignment(self, example: Example, key: EvidenceKey, evidence: Evidence) -> Alignment:
        made = make_hypothesis(example, key, evidence, self._hypothesis) if self._hypothesis else None
        hypothesis, kind, expected_verdict = made or (None, None, None)
        return Alignment(
            evidence.page,
            evidence.text,
            part=self._part,
            chunk=len(self.examples.stored),
            ordinal=self._ordinal,
            example_id=example.example_id,
            output=key[0],
            evidence=key[1],
            file=example.file,
            line=example.line,
            fallback=evidence.fallback,
            hypothesis=hypothesis,
            hypothesis_kind=kind,
            expected_verdict=expected_verdict,
        )

    def leave(self, left: RecordFate) -> None:
        """Adds a record that is not an example."""
        self._take(ReadRecord(left=left), _LEFT_OUT_CHARS)

    def _take(self, row: ReadRecord, n_chars: int) -> None:
        if self._n_chars >= CHUNK_CHARS:
            self._end_chunk()
        if self._n_pending >= _BATCH_CHARS:
            self.examples.flush()
            self.evidence.flush()
            self._n_pending = 0
        self.examples.add(row)
        self._n_chars += n_chars
        self._n_pending += n_chars

    def end(self) -> None:
        """Finishes the last chunk."""
        if self._n_chars or not self.examples.stored:
            self._end_chunk()
        self.evidence.end()

    def _end_chunk(self) -> None:
        self.examples.end_file()
        self.evidence.end_chunk()
        self._n_records = self._n_chars = self._n_pending = 0
