"""Finds proofs of facts: searches pages for them, and has a model judge the sentences found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkFunction,
    ChunkKey,
    Report,
    keep_chunk,
    read_stored,
    rows_batch,
    write_chunk,
)
from kbsource.runtime.regroup import merge_group
from mapping.entail.signal import EntailmentModel
from mapping.qampari.classes import Numbers
from mapping.qampari.evidence import FACTS_AT_ONCE, CandidateSentence, ClaimedFact, Sought, prove_facts
from pipelines.options.facts import FactsOptions
from pipelines.options.qampari import QampariOptions
from pipelines.primitives.group_map import By, GroupWork, Sent, send_rows, value_rows
from pipelines.primitives.guarded_map import GuardedMap
from pipelines.primitives.shuffle import split_rows
from pipelines.qampari.pages import FactSearch
from pipelines.qampari.plan import (
    ANSWER_PAGE,
    BY_FACT,
    ENTITY_PAGE,
    FACT_BITS,
    FACT_ROWS,
    FOUND_ORDER,
    PROOFS,
    TRIED,
    WANTED,
    WANTED_ORDER,
    QampariPlan,
)
from pipelines.runners.workers import do, wired
from pipelines.transforms.verify_entailment import EntailmentHandler, RunModel

Flags = npt.NDArray[np.bool_]
OF_FACTS = {"facts": FACT_ROWS, "wanted": WANTED}
"""Outputs of functions that make facts."""
OF_FOUND = {"found": Sent(FOUND_ORDER)}
"""How the output of ``search_facts`` was sent."""
Chunk = tuple[ChunkKey, BatchRef]
_LOOKS_AT_ONCE = 4096


Look = tuple[int, int | None, Sought]
"""Direction, page to search or None, and search terms."""


def both_ways(first: Sought, second: Sought) -> tuple[Look, Look]:
    """Searches the first entity's page for names of the second and links to it, then vice versa."""
    return (ANSWER_PAGE, first.page_id, second), (ENTITY_PAGE, second.page_id, first)


class FactWriter:
    """Numbers the facts of a group as they are added, and writes what to search for in pages. Call ``close`` at the
    end.

    Args:
        work: the group, with the outputs ``OF_FACTS`` and the counts ``all`` and ``searches``.
    """

    def __init__(self, work: GroupWork, plan: QampariPlan) -> None:
        self._work, self._pages = work, plan.pages.of_items()
        self._pending: list[tuple[Any, ...]] = []
        self.first = work.group << FACT_BITS
        self.next = self.first  #: number of the next fact

    def add(self, hypothesis: str | None, *looks: Look) -> None:
        """Adds a fact, and the pages to search for it."""
        self._work.add("facts", (self.next, hypothesis))
        for direction, page_id, sought in looks:
            if page_id is not None and (sought.names or sought.page_id is not None):
                self._pending.append((page_id, self.next, direction, sought.names, sought.page_id))
        self.next += 1
        if len(self._pending) >= _LOOKS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            page_ids = np.array([entry[0] for entry in self._pending], np.int64)
            positions, is_there = self._pages.positions(page_ids)
            # Articles that the release rejected are missing.
            rows = [row[1:] for row, there in zip(self._pending, is_there.tolist(), strict=True) if there]
            looks = [(position, *row) for position, row in zip(positions.tolist(), rows, strict=True)]
            self._work.write("wanted", rows_batch(looks, WANTED))
            self._work.counts["searches"] += len(looks)
            self._pending = []

    def close(self) -> None:
        """Writes the pending rows."""
        self._flush()
        self._work.counts["all"] += self.next - self.first


@wired
def search_facts(wanted: Any, plan: QampariPlan, name: str) -> Any:
    """(key, ``BatchRef``) of rows of WANTED -> rows of FOUND, sent to the groups of the facts, ``OF_FOUND``."""
    found = (
        wanted
        | "by page" >> do(split_rows, folder=plan.folder(name, "wanted"), by=plan.pages.together, order=WANTED_ORDER)
        | "group" >> beam.GroupByKey()
        | "in turn" >> do(_merge, folder=plan.folder(name, "looks"))
        | "search" >> guarded(partial(FactSearch, plan), plan, name, "found")
    )
    return send_rows({"found": found.chunks}, plan.folder(name, "by_fact"), {"found": By(BY_FACT, FOUND_ORDER)})[0][
        "found"
    ]


def guarded(make: Callable[[], ChunkFunction], plan: QampariPlan, *folder: str) -> GuardedMap:
    """Returns a transform that processes chunks in guarded processes, within a job's limits, and writes files to a
    folder."""
    memory_bytes = plan.options.worker_memory_bytes
    return GuardedMap(make, folder=plan.folder(*folder), memory_bytes=memory_bytes, beats=plan.folder("beats"))


def _merge(
    element: tuple[int, Iterable[tuple[ChunkKey, BatchRef]]], *, folder: str
) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Merges the searches of a group in order, in one file."""
    group, pieces = element
    key = ChunkKey(0, group)
    batches = (
        batch.slice(start, _LOOKS_AT_ONCE)
        for batch in merge_group([BatchRef(*piece) for _, piece in sorted(pieces)], WANTED_ORDER)
        for start in range(0, batch.num_rows, _LOOKS_AT_ONCE)
    )
    yield key, keep_chunk(folder, key, lambda path: write_chunk(batches, WANTED, Report(), path=path))


def tried_facts(work: GroupWork, is_needed: Flags, found: pa.Table) -> pa.Table:
    """Returns the sentences of facts that a model should judge, rows of TRIED; counts these facts as ``facts``.

    Args:
        work: the group; its input ``facts`` contains rows of FACT_ROWS.
        is_needed: flags by position of the fact in the group.
    """
    places = found["fact"].to_numpy() - (work.group << FACT_BITS)
    is_tried = is_needed[places]
    hypotheses = work.table("facts", FACT_ROWS).sort_by("fact")["hypothesis"].take(pa.array(places[is_tried]))
    if n_needed := int(is_needed.sum()):
        work.counts.update(facts=n_needed, judged=0, refused=0, proved=0)
    return found.filter(pa.array(is_tried)).append_column(TRIED.field("hypothesis"), hypotheses).cast(TRIED)


def write_tried(work: GroupWork, is_needed: Flags, found: pa.Table) -> None:
    """Writes ``tried_facts`` to the output ``tried``."""
    for batch in tried_facts(work, is_needed, found).to_batches(max_chunksize=1 << 12):
        work.write("tried", batch)


def count_found(work: GroupWork, found: pa.Table) -> Numbers:
    """Returns the positions of facts with results. Counts these facts as ``found``, and all results as
    ``candidates``."""
    places = np.unique(found["fact"].to_numpy()) - (work.group << FACT_BITS)
    work.counts.update(found=len(places), candidates=found.num_rows)
    return places


def find_proofs(options: QampariOptions | FactsOptions, folder: str) -> Any:
    """((0, group), ``BatchRef``) of rows of TRIED -> the same of rows of PROOFS; counts are in their reports.

    The first sentence proves a fact if there is no model or if the fact has no hypothesis.
    """
    model = options.model
    if model is None:
        return do(_take_first, folder=folder)
    # A whole chunk, because whether a sentence is judged depends on the sentences before it.
    judge = partial(_judge, folder=folder, least=options.least_entailment)
    return _judge_apart(RunModel(EntailmentHandler(model, judge), model))


@wired
def _judge_apart(tried: Any, run_model: RunModel) -> Any:
    return tried | "spread" >> beam.Reshuffle() | "judge" >> run_model


def _take_first(element: Chunk, *, folder: str) -> Iterator[Chunk]:
    yield prove_chunk(element, folder, None, 0)


def _judge(model: EntailmentModel, chunk: Chunk, *, folder: str, least: float) -> Chunk:
    with named_faults():
        return prove_chunk(chunk, folder, model, least)


def prove_chunk(chunk: Chunk, folder: str, model: EntailmentModel | None, least: float) -> Chunk:
    """Returns the file with the proofs of a chunk's facts, and writes it if it does not exist."""
    key, tried = ChunkKey(*chunk[0]), BatchRef(*chunk[1])

    def make(path: str) -> None:
        report = Report()
        write_chunk(
            proofs_of(read_stored(tried), model, least, report.counts), PROOFS, report, path=path, is_packed=False
        )

    return key, keep_chunk(folder, key, make)


def count_proofs(work: GroupWork) -> None:
    """Counts the judged, refused and proved sentences of the input ``proofs``."""
    for counts in work.reports("proofs"):
        work.counts.update(counts)


def proofs_of(
    tried: Iterable[pa.RecordBatch], model: EntailmentModel | None, least: float, counts: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """Rows of TRIED -> rows of PROOFS; counts ``judged``, ``refused`` and ``proved``."""
    rows: list[tuple[Any, ...]] = []
    for proof in prove_facts(_facts(tried), model, least=least):
        counts.update(judged=proof.n_judged, refused=proof.n_refused, proved=proof.candidate is not None)
        if proof.candidate is not None:
            rows.append((proof.fact.number, proof.fact.hypothesis or None, proof.entailment, *proof.candidate))
        if len(rows) == FACTS_AT_ONCE:
            yield rows_batch(rows, PROOFS)
            rows = []
    if rows:
        yield rows_batch(rows, PROOFS)


def _facts(tried: Iterable[pa.RecordBatch]) -> Iterator[ClaimedFact]:
    for number, own in groupby(value_rows(tried), key=itemgetter(0)):
        rows = list(own)
        yield ClaimedFact(number, rows[0][-1] or "", tuple(CandidateSentence(*row[3:-1]) for row in rows))
