"""Facts of one kind on their way through search and model, as the driver sees them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import TracebackType
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.chunks import Key, Report, Stored, chunk_path, write_chunk
from kbsource.files import LocalStorage
from kbsource.staging import StagedRows, read_batches, read_json, staged_rows
from kbsource.wikidata.reader import WikidataTables
from mapping.qampari.classes import Numbers
from mapping.qampari.evidence import Sought
from mapping.qampari.names import ItemPages
from mapping.qampari.ordered import N_BUCKETS
from mapping.qampari.records import ProofText
from pipelines.progress import Done, Progress, beats_of
from pipelines.qampari.prove import ProveFacts
from pipelines.qampari.search import SearchPages
from pipelines.qampari.staging import (
    ANSWER_PAGE,
    ENTITY_PAGE,
    FACT_ROWS,
    FACTS_A_CHUNK,
    WANTED,
    WORDS,
    QampariJob,
    buckets_of,
    fact_flags,
    found_facts,
    numbered,
    wanted_spill,
)
from pipelines.running import new_pipeline, run_pipeline
from pipelines.transforms.guarded_map import GuardedMap

Flags = npt.NDArray[np.bool_]
_ROWS_AT_ONCE = 8192
_LOOKS_AT_ONCE = 4096


class Reading:
    """How far the reading of a table of Wikidata has come."""

    def __init__(self) -> None:
        self._n_rows = 0

    def see(self, n_rows: int) -> None:
        """Takes a number of rows that were read."""
        self._n_rows += n_rows

    @contextmanager
    def stage(self, progress: Progress, name: str, tables: WikidataTables, table: str) -> Iterator[None]:
        """Shows how far a table has been read while the body runs, which reads it once."""
        self._n_rows = 0
        total = tables.n_rows(table)
        with progress.stage(name, lambda: Done(self._n_rows, total, unit=f"rows of {table}")):
            yield


class Runs(NamedTuple):
    """How pipelines are run.

    Attributes:
        staging: staging folder of the job; local, or on a disk that all workers share.
        job: what all workers share.
        flags: of Beam.
        progress: shows how far they have come.
        reading: knows how far the reading of a table has come.
        memory_bytes: memory that a working process may allocate.
    """

    staging: str
    job: QampariJob
    flags: Sequence[str]
    progress: Progress
    reading: Reading
    memory_bytes: int

    def map(self, name: str, chunks: Sequence[tuple[Key, Stored | None]], make: Any, total: int, unit: str) -> str:
        """Maps chunks by guarded processes, and gives the folder of what comes of them.

        Args:
            name: of the work; a folder in the staging folder.
            chunks: what is worked on.
            make: see ``GuardedMap``.
            total: units of work.
            unit: what these are.

        Raises:
            SetupError: the work cannot be done; a DataError where the data are at fault.
        """
        folder = os.path.join(self.staging, name)
        pipeline = new_pipeline(self.flags)
        guarded = GuardedMap(make, folder=folder, memory_bytes=self.memory_bytes, beats=os.path.join(folder, "beats"))
        _ = pipeline | "chunks" >> beam.Create(chunks, reshuffle=False) | beam.Reshuffle() | name >> guarded
        with self.progress.stage(name.replace("/", ", "), beats_of(folder, "kbsource", total_bytes=total, unit=unit)):
            run_pipeline(pipeline, name)
        return folder


class FactStage:
    """Facts of one kind, numbered from 0 as they are added. A context: the facts are written when it ends well.

    Flags of all facts, which of them are found, needed and proved, are mapped files.

    Args:
        name: of the kind; a folder in the staging folder.
        runs: how tasks are run.
        pages: of the release.
    """

    def __init__(self, name: str, runs: Runs, pages: ItemPages) -> None:
        self.folder = os.path.join(runs.staging, name)
        self._name = name
        self._runs = runs
        self._pages = pages
        self._wanted = wanted_spill(self.folder)
        self._pending: list[tuple[Any, ...]] = []
        self._counts = np.zeros(N_BUCKETS, np.int64)
        self._sink: StagedRows | None = None
        self._opened: Any = None
        self.n_facts = 0
        self.n_searches = 0
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> FactStage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_chunk(kind, error, trace)
        if kind is None:
            self._spill()
            self._wanted.flush()

    def add(self, first: Sought, second: Sought, hypothesis: str | None) -> int:
        """Takes a fact and gives its number: the first thing's page is to be searched for the second's names and for
        links to it, then the other way round."""
        number = self._add_fact(hypothesis)
        self._want(number, ANSWER_PAGE, first.page_id, second)
        self._want(number, ENTITY_PAGE, second.page_id, first)
        return number

    def add_named(self, first_page: int | None, first: Sought, second_page: int | None, second: Sought) -> int:
        """Takes a fact without a hypothesis and gives its number; for pages that are searched for names alone."""
        number = self._add_fact(None)
        self._want(number, ANSWER_PAGE, first_page, second)
        self._want(number, ENTITY_PAGE, second_page, first)
        return number

    def add_words(self, page_id: int, words: Iterable[str]) -> int:
        """Takes the fact that a page has all of some words, and gives its number."""
        number = self._add_fact(None)
        self._want(number, WORDS, page_id, Sought(tuple(words)))
        return number

    def _add_fact(self, hypothesis: str | None) -> int:
        number = self.n_facts
        if number % FACTS_A_CHUNK == 0:
            self._close_chunk(None, None, None)
            path = numbered(self.folder, "facts", number // FACTS_A_CHUNK)
            self._opened = staged_rows(LocalStorage(), path, FACT_ROWS)
            self._sink = self._opened.__enter__()
        assert self._sink is not None
        self._sink.add((number, hypothesis))
        self.n_facts += 1
        return number

    def _close_chunk(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            self._opened.__exit__(kind, error, trace)
        self._opened = self._sink = None

    def _want(self, fact: int, direction: int, page_id: int | None, sought: Sought) -> None:
        if page_id is None or not (sought.names or sought.page_id is not None):
            return
        self._pending.append((page_id, fact, direction, sought.names, sought.page_id))
        if len(self._pending) >= _ROWS_AT_ONCE:
            self._spill()

    def _spill(self) -> None:
        if self._pending:
            page_ids, *rest = zip(*self._pending, strict=True)
            positions, is_there = self._pages.positions(np.array(page_ids, np.int64))
            # An article of the dump that the release had to reject is not there.
            others = [pa.array(*one).filter(pa.array(is_there)) for one in zip(rest, WANTED.types[1:], strict=True)]
            buckets = buckets_of(positions, self._runs.job.n_pages)
            self._wanted.add(pa.RecordBatch.from_arrays([pa.array(positions), *others], schema=WANTED), buckets)
            self._counts += np.bincount(buckets, minlength=N_BUCKETS)
            self.n_searches += len(positions)
            self._pending = []

    def search(self) -> Flags:
        """Searches the pages; says of each fact whether any sentence may say it."""
        order = [(name, "ascending") for name in ("position", "fact", "direction")]
        chunks: list[tuple[Key, Stored | None]] = []
        for bucket in np.flatnonzero(self._counts).tolist():
            batches = self._wanted.read(bucket).sort_by(order).to_batches(max_chunksize=_LOOKS_AT_ONCE)
            path = chunk_path(os.path.join(self.folder, "wanted"), Key(0, bucket))
            chunks.append((Key(0, bucket), write_chunk(batches, WANTED, Report(), path=path, storage=LocalStorage())))
        if chunks:
            self._runs.map(f"{self._name}/found", chunks, SearchPages(self._runs.job), self.n_searches, "looks")
        is_found, n_candidates = found_facts(self.folder, self.n_facts)
        self.counts.update(found=int(is_found.sum()), candidates=n_candidates)
        return is_found

    def needed(self) -> Flags:
        """Gives a flag for each fact, to be set for those that are worth a model's time."""
        return fact_flags(self.folder, "needed", self.n_facts)

    def prove(self, needed: Flags) -> Flags:
        """Has the facts judged that are needed; says which are proved."""
        os.makedirs(os.path.join(self.folder, "needed"), exist_ok=True)
        chunks = range(-(-self.n_facts // FACTS_A_CHUNK))
        for chunk in chunks:
            own = needed[chunk * FACTS_A_CHUNK : (chunk + 1) * FACTS_A_CHUNK]
            np.save(numbered(self.folder, "needed", chunk, "npy"), own, allow_pickle=False)
        total, pattern = int(needed.sum()), os.path.join(self.folder, "proofs", "*.json")

        def poll() -> Done:
            done = len(LocalStorage().glob(pattern)) * FACTS_A_CHUNK
            return Done(min(done, total), total, unit="facts")

        if chunks:
            pipeline = new_pipeline(self._runs.flags)
            numbers = pipeline | "chunks" >> beam.Create(chunks, reshuffle=False) | beam.Reshuffle()
            _ = numbers | ProveFacts(self.folder, self._runs.job)
            with self._runs.progress.stage(f"{self._name}, prove", poll):
                run_pipeline(pipeline, f"{self._name}, prove")
        proved = fact_flags(self.folder, "proved", self.n_facts)
        for chunk in chunks:
            path = numbered(self.folder, "proofs", chunk)
            self.counts.update(read_json(LocalStorage(), path.removesuffix("arrow") + "json"))
            for batch in read_batches(LocalStorage(), path):
                proved[batch["fact"].to_numpy()] = True
        return proved

    def proofs(self) -> Proofs:
        """Opens the proofs, to be looked up by number of the fact."""
        return Proofs(self.folder, self.n_facts)


class Proofs:
    """Proofs of the facts of one kind, memory-mapped."""

    def __init__(self, folder: str, n_facts: int) -> None:
        self._batches: list[tuple[Numbers, pa.RecordBatch]] = []
        for chunk in range(-(-n_facts // FACTS_A_CHUNK)):
            with pa.memory_map(numbered(folder, "proofs", chunk)) as source:
                batch = pa.ipc.open_file(source).get_batch(0)
            self._batches.append((batch["fact"].to_numpy(), batch))

    def take(self, facts: Iterable[int]) -> list[ProofText]:
        """Gives the proof of each fact; all of them are proved."""
        wanted = np.fromiter(facts, np.int64)
        order = np.argsort(wanted, kind="stable")
        in_order = wanted[order]
        parts = []
        edges = np.flatnonzero(np.diff(in_order // FACTS_A_CHUNK, prepend=-1, append=-1))
        for start, end in pairwise(edges.tolist()):
            numbers, batch = self._batches[in_order[start] // FACTS_A_CHUNK]
            at = np.searchsorted(numbers, in_order[start:end])
            assert (numbers[at] == in_order[start:end]).all()
            parts.append(batch.take(pa.array(at)))
        if not parts:
            return []
        rows = pa.concat_batches(parts)
        proofs = list(map(ProofText, *(rows[name].to_pylist() for name in ProofText._fields)))
        return [proofs[place] for place in np.argsort(order).tolist()]
