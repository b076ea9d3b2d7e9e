"""The facts of a chunk put before a model: the first candidate that it accepts is the proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from kbsource.beat import Beat
from kbsource.files import LocalStorage, atomic_write
from kbsource.staging import read_batches, write_json
from mapping.entailment import EntailmentModel, ModelOptions
from mapping.qampari.evidence import Candidate
from mapping.qampari.validation import Fact, Proof, prove_facts
from pipelines.qampari.staging import FACTS_A_CHUNK, PROOFS, QampariJob, numbered, read_found

_N_CANDIDATE = len(Candidate._fields)


def prove_chunk(folder: str, chunk: int, job: QampariJob, beat: Beat) -> None:
    """Stages the proofs of a chunk's facts, those that are needed."""
    storage = LocalStorage()
    needed = np.load(numbered(folder, "needed", chunk, "npy"), allow_pickle=False)
    found = read_found(folder, chunk)
    facts = list(_facts(folder, chunk, needed, found))
    counts: Counter[str] = Counter()
    rows = []
    for fact, proof in zip(facts, _proofs(facts, job), strict=True):
        counts.update(facts=1, judged=proof.n_judged, refused=proof.n_refused, proved=proof.candidate is not None)
        if proof.candidate is not None:
            place = fact.candidates.index(proof.candidate)
            title = found[int(fact.answer_id)][place][_N_CANDIDATE]
            rows.append((int(fact.answer_id), fact.hypothesis or None, proof.entailment, *proof.candidate, title))
        beat.done(pages=0, n_bytes=1)
    _write(rows, numbered(folder, "proofs", chunk))
    write_json(storage, numbered(folder, "proofs", chunk, "json"), dict(sorted(counts.items())))


def _write(rows: list[tuple[Any, ...]], path: str) -> None:
    """Writes rows of PROOFS as they are looked up: not packed, so that they need not be read to be mapped."""
    columns = zip(zip(*rows, strict=True) if rows else [()] * len(PROOFS), PROOFS.types, strict=True)
    batch = pa.RecordBatch.from_arrays([pa.array(*one) for one in columns], schema=PROOFS)
    with atomic_write(LocalStorage(), path) as sink, pa.ipc.new_file(sink, PROOFS) as writer:
        writer.write_batch(batch)


def _facts(folder: str, chunk: int, needed: Any, found: dict[int, list[tuple[Any, ...]]]) -> Iterator[Fact]:
    for batch in read_batches(LocalStorage(), numbered(folder, "facts", chunk)):
        for number, hypothesis in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if needed[number - chunk * FACTS_A_CHUNK]:
                candidates = tuple(Candidate(*row[:_N_CANDIDATE]) for row in found.get(number, ()))
                yield Fact("", str(number), hypothesis or "", candidates)


def _proofs(facts: list[Fact], job: QampariJob) -> Iterator[Proof]:
    """Gives the outcome of each fact. A fact without a hypothesis is proved by its first candidate, as all are where
    no model is asked."""
    if job.model is None or not any(one.hypothesis for one in facts):
        for one in facts:
            yield Proof(one, one.candidates[0] if one.candidates else None, None, 0, 0)
        return
    yield from prove_facts(facts, _model(job.model), least=job.least_entailment)


@lru_cache(maxsize=1)
def _model(options: ModelOptions) -> EntailmentModel:
    """Gives the model, opened once a process."""
    from mapping.entailment_model import open_model

    return open_model(options)
