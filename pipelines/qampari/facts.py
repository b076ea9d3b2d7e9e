"""Finds proofs of facts: searches pages for them, and has a model judge the sentences found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import apache_beam as beam
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
from mapping.entail.signal import EntailmentModel
from mapping.qampari.evidence import FACTS_AT_ONCE, CandidateSentence, ClaimedFact, prove_facts
from pipelines.options.facts import FactsOptions
from pipelines.options.qampari import QampariOptions
from pipelines.primitives.guarded_map import GuardedMap
from pipelines.qampari.pages import FactSearch
from pipelines.qampari.plan import PROOFS, QampariPlan
from pipelines.runners.workers import do, wired
from pipelines.transforms.verify_entailment import EntailmentHandler, RunModel

Chunk = tuple[ChunkKey, BatchRef]


@wired
def search_facts(wanted: Any, plan: QampariPlan, name: str) -> Any:
    """Searches pages for sentences that may state facts, page by page.

    (key, ``BatchRef`` of WANTED) -> (key, ``BatchRef`` of FOUND).
    """
    search = guarded(partial(FactSearch, plan), plan, name, "found")
    return (wanted | "spread" >> beam.Reshuffle() | "search" >> search).chunks


def guarded(make: Callable[[], ChunkFunction], plan: QampariPlan, *folder: str) -> GuardedMap:
    """Returns a transform that processes chunks in guarded processes, within a job's limits, and writes files to a
    folder."""
    memory_bytes = plan.options.worker_memory_bytes
    return GuardedMap(make, folder=plan.folder(*folder), memory_bytes=memory_bytes, beats=plan.folder("beats"))


def find_proofs(options: QampariOptions | FactsOptions, folder: str) -> Any:
    """Has a model judge the sentences found for each fact, until it accepts one. The reports have the counts.

    ((0, group), ``BatchRef`` of TRIED) -> ((0, group), ``BatchRef`` of PROOFS).

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
        write_chunk(proofs_of(read_stored(tried), model, least, report), PROOFS, report, path=path, is_packed=False)

    return key, keep_chunk(folder, key, make)


def proofs_of(
    tried: Iterable[pa.RecordBatch], model: EntailmentModel | None, least: float, report: Report
) -> Iterator[pa.RecordBatch]:
    """Returns the proofs among sentences: rows of TRIED -> rows of PROOFS. Reports the counts ``judged``, ``unjudged``
    and ``proved``.
    """
    rows: list[tuple[Any, ...]] = []
    for proof in prove_facts(_facts(tried), model, least=least):
        report.counts.update(judged=proof.n_judged, unjudged=proof.n_unjudged, proved=proof.candidate is not None)
        if proof.candidate is not None:
            rows.append((proof.fact.number, proof.fact.hypothesis or None, proof.entailment, *proof.candidate))
        if len(rows) == FACTS_AT_ONCE:
            yield rows_batch(rows, PROOFS)
            rows.clear()
    if rows:
        yield rows_batch(rows, PROOFS)


def _facts(tried: Iterable[pa.RecordBatch]) -> Iterator[ClaimedFact]:
    values = (row for batch in tried for row in zip(*(column.to_pylist() for column in batch), strict=True))
    for number, own in groupby(values, key=itemgetter(0)):
        rows = list(own)
        yield ClaimedFact(number, rows[0][-1] or "", tuple(CandidateSentence(*row[3:-1]) for row in rows))
