"""A dataset read: its records in chunks, and a row for each piece of evidence that they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from typing import Any, NamedTuple

import pyarrow as pa

from kbsource.dump.rejects import rounded_up
from kbsource.errors import DataError
from kbsource.files import Storage, join, read_json, write_json
from kbsource.records import BadRecord
from kbsource.runtime.chunks import Key, Report, Stored, chunk_path, write_chunk
from kbsource.schema import REJECTED
from mapping.entail.hypotheses import HypothesisKind, make_hypothesis
from mapping.records import Evidence, Example, PageKey, ReleasedExample, iter_evidence, released_span
from mapping.sources import SOURCES, usual_choices
from mapping.sources.kilt import fallback_page
from mapping.sources.reading.base import Inputs, LeftOut, SourceOptions, Split, Tally
from mapping.staged import example_to_json
from pipelines.alignment.rows import EVIDENCE, EXAMPLES, ROWS_AT_ONCE, evidence_row, one_batch
from pipelines.stores.storage import storage_for

CHUNK_CHARS = 16 << 20
"""Characters of records after which a chunk ends, however few they are."""
_LEFT_OUT_CHARS = 100
"""What a record counts as that is no example."""
_BATCH_CHARS = 1 << 20
_REJECTED_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class EvidenceFiles:
    """A dataset in its original form, or one split of it.

    Attributes:
        dataset: name in ``mapping.sources.SOURCES``.
        inputs, references, labels: paths, see ``mapping.sources.reading.base.Inputs``.
        split: ``train``, ``dev`` or ``test``.
        source: choices of the dataset's reader; None for the usual ones.
        hypothesis: what a model is to judge evidence by; None where none is asked.
        chunk_records: records of a chunk at most.
        max_rejects: highest share of the records that may be rejected.
        scratch: folder for temporary indexes; None for the system's.
    """

    dataset: str
    inputs: tuple[str, ...]
    split: Split = "dev"
    references: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    source: SourceOptions | None = None
    hypothesis: HypothesisKind | None = None
    chunk_records: int = 5_000
    max_rejects: float = 0.01
    scratch: str | None = None

    @property
    def paths(self) -> Inputs:
        """What the reader takes."""
        return Inputs(self.inputs, self.references, self.labels, self.scratch)

    @property
    def choices(self) -> SourceOptions:
        """Choices of the reader."""
        return self.source or usual_choices(self.dataset)

    def storage(self) -> Storage:
        """Gives the storage of all files."""
        return storage_for(*self.inputs, *self.references, *self.labels)

    def check(self) -> None:
        """Looks at the beginning of every file; raises SetupError for what is missing or not what it should be."""
        SOURCES[self.dataset].check(self.paths, self.split, storage=self.storage(), options=self.choices)


class ReadDataset(NamedTuple):
    """What came of reading a dataset; all of it lies in files.

    Attributes:
        examples, evidence: where the rows of each chunk are.
        rejected: where the records that cannot be used are.
        tally: counts of records.
    """

    examples: tuple[Stored, ...]
    evidence: tuple[Stored, ...]
    rejected: tuple[Stored, ...]
    tally: Tally

    def to_json(self) -> dict[str, Any]:
        """Gives it as JSON values."""
        rows = {name: [list(stored) for stored in getattr(self, name)] for name in self._fields[:3]}
        return {**rows, "tally": {field.name: getattr(self.tally, field.name) for field in fields(Tally)}}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ReadDataset:
        """Gives back what ``to_json`` gave."""
        examples, evidence, rejected = (tuple(Stored(*stored) for stored in value[name]) for name in cls._fields[:3])
        return cls(examples, evidence, rejected, read_tally(value["tally"]))


def read_tally(value: dict[str, Any]) -> Tally:
    """Gives back a tally that went through JSON."""
    counted: dict[str, Any] = {name: Counter(one) if isinstance(one, dict) else one for name, one in value.items()}
    return Tally(**counted)


def read_part(files: EvidenceFiles, part: int, folder: str) -> ReadDataset:
    """Reads a dataset once, front to back, into files of a folder; one that was read before is taken as it is.

    Raises:
        DataError: too many records cannot be used.
        SetupError: an input cannot be read to its end.
    """
    storage, done = storage_for(folder), join(folder, "read", f"{part:05d}.json")
    if not storage.exists(done):
        value = _read(files, part, folder, storage).to_json()
        write_json(storage, done, value)
        return ReadDataset.from_json(value)
    return ReadDataset.from_json(read_json(storage, done))


def _read(files: EvidenceFiles, part: int, folder: str, storage: Storage) -> ReadDataset:
    first_bad: BadRecord | None = None
    rejected = _StoredRows(join(folder, "rejected"), part, REJECTED, storage)
    chunks = Chunks(files, part, folder, storage)
    tally = _TellingTally(chunks.leave)
    for one in SOURCES[files.dataset].read(
        files.paths, files.split, storage=files.storage(), options=files.choices, tally=tally
    ):
        if isinstance(one, BadRecord):
            first_bad = first_bad or one
            rejected.add(astuple(one), _REJECTED_ROWS)
        else:
            chunks.add(one)
    chunks.end()
    rejected.end()
    _check_rejects(tally, first_bad, files.max_rejects)
    return ReadDataset(tuple(chunks.examples.stored), tuple(chunks.evidence.stored), tuple(rejected.stored), tally)


class _TellingTally(Tally):
    """Counts, and hands every record that is no example on."""

    def __init__(self, take: Callable[[LeftOut], None]) -> None:
        super().__init__()
        self._take = take

    def leave(self, left: LeftOut) -> None:
        """See ``Tally.leave``."""
        super().leave(left)
        self._take(left)


def _check_rejects(tally: Tally, first: BadRecord | None, ceiling: float) -> None:
    n_rejected = tally.rejected.total()
    if first is not None and n_rejected / tally.records > ceiling:
        reasons = ", ".join(f"{count} {reason}" for reason, count in tally.rejected.most_common())
        place = "" if first.detail.startswith(f"{first.key}: ") else f"{first.key}: "
        raise DataError(
            f"{n_rejected} of {tally.records} records rejected, {n_rejected / tally.records:.3%}; the ceiling is "
            f"{ceiling:.3%} (by reason: {reasons}). The first: {first.file}, {place}{first.detail}. If the files "
            f"are as they should be, raise --max-rejects to at least {rounded_up(n_rejected / tally.records)}."
        )


class _StoredRows:
    """Rows on their way into chunk files of a part. What is held of a chunk is held as batches.

    Attributes:
        stored: where the rows are, a file each.
    """

    def __init__(self, folder: str, part: int, schema: pa.Schema, storage: Storage) -> None:
        self._folder, self._part, self._schema, self._storage = folder, part, schema, storage
        self._batches: list[pa.RecordBatch] = []
        self._rows: list[tuple[Any, ...]] = []
        self._n_rows = 0
        self.stored: list[Stored] = []

    def add(self, row: tuple[Any, ...], most: int | None = None) -> None:
        """Takes a row; with ``most`` rows a file is full."""
        self._rows.append(row)
        self._n_rows += 1
        if len(self._rows) == ROWS_AT_ONCE:
            self.flush()
        if self._n_rows == most:
            self.end_file()

    def flush(self) -> None:
        """Makes a batch of the rows that are pending."""
        if self._rows:
            self._batches.append(one_batch(self._rows, self._schema))
            self._rows = []

    def end_file(self) -> None:
        """Writes the file."""
        self.flush()
        path = chunk_path(self._folder, Key(self._part, len(self.stored)))
        self.stored.append(write_chunk(self._batches, self._schema, Report(), path=path, storage=self._storage))
        self._batches = []
        self._n_rows = 0

    def end(self) -> None:
        """Writes the last file, unless it would be empty and not the only one."""
        if self._n_rows or not self.stored:
            self.end_file()


class Chunks:
    """Records on their way into chunks, as they are read, with their evidences.

    Attributes:
        examples, evidence: files of each; one chunk without records when there are none.
    """

    def __init__(self, files: EvidenceFiles, part: int, folder: str, storage: Storage) -> None:
        self._part, self._chunk_records, self._hypothesis = part, files.chunk_records, files.hypothesis
        self.examples = _StoredRows(join(folder, "examples"), part, EXAMPLES, storage)
        self.evidence = _StoredRows(join(folder, "evidence"), part, EVIDENCE, storage)
        self._ordinal = self._n_records = self._n_chars = self._n_pending = 0

    def add(self, example: Example) -> None:
        """Takes a record."""
        if self._n_records == self._chunk_records:
            self._end_chunk()
        text = example_to_json(example)
        self._take((self._ordinal, text, None), len(text))
        key = Key(self._part, len(self.examples.stored))
        for place, evidence in iter_evidence(example):
            said = make_hypothesis(example, place, evidence, self._hypothesis) if self._hypothesis else None
            fallback = _fallback(example, place, evidence)
            self.evidence.add(evidence_row(key, self._ordinal, place, evidence, fallback, said))
        self._ordinal += 1
        self._n_records += 1

    def leave(self, left: LeftOut) -> None:
        """Takes a record that is no example."""
        self._take((None, None, left._asdict()), _LEFT_OUT_CHARS)

    def _take(self, row: tuple[Any, ...], n_chars: int) -> None:
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
        """Ends the last chunk."""
        if self._n_chars or not self.examples.stored:
            self._end_chunk()

    def _end_chunk(self) -> None:
        self.examples.end_file()
        self.evidence.end_file()
        self._n_records = self._n_chars = self._n_pending = 0


def _fallback(example: Example, key: tuple[int, int], evidence: Evidence) -> PageKey | None:
    return fallback_page(released_span(example, key)) if isinstance(example, ReleasedExample) else evidence.fallback
