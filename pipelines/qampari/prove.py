"""The facts of a chunk put before a model: the first candidate that it accepts is the proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.ml.inference.base import ModelHandler, RunInference

from kbsource.errors import named_faults
from kbsource.files import LocalStorage, atomic_write
from kbsource.staging import read_batches, write_json
from mapping.entailment import EntailmentModel, ModelOptions
from mapping.qampari.evidence import Candidate
from mapping.qampari.validation import Fact, Proof, prove_facts
from pipelines.qampari.staging import FACTS_A_CHUNK, PROOFS, QampariJob, numbered, read_found
from pipelines.transforms.entailment import EntailmentHandler
from pipelines.workers import WorkerDoFn

_N_CANDIDATE = len(Candidate._fields)


class ProveFacts(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Numbers of chunks of facts -> the numbers, once the proofs of those that are needed are staged.

    Args:
        folder: of the facts.
        job: names the model.
    """

    def __init__(self, folder: str, job: QampariJob) -> None:
        super().__init__()
        self._folder, self._job = folder, job

    def expand(self, chunks: Any) -> Any:
        if self._job.model is None:
            return chunks | "take" >> beam.ParDo(_TakeFirst(self._folder, self._job))
        return chunks | "prove" >> RunInference(_ProofHandler(self._job.model, self._folder, self._job))


class _TakeFirst(WorkerDoFn):
    def __init__(self, folder: str, job: QampariJob) -> None:
        super().__init__()
        self._folder, self._job = folder, job

    def process(self, chunk: int) -> Iterator[int]:
        with named_faults():
            prove_chunk(self._folder, chunk, self._job, None)
        yield chunk


class _ProofHandler(ModelHandler[int, int, Any]):  # type: ignore[misc]  # Beam is not typed
    """Runs a model over chunks of facts: whether a sentence is asked about hangs on the ones before it."""

    def __init__(self, options: ModelOptions, folder: str, job: QampariJob) -> None:
        super().__init__()
        self._entailment = EntailmentHandler(options)
        self._folder, self._job = folder, job

    def load_model(self) -> Any:
        """Opens the model; once for each process."""
        return self._entailment.load_model()

    def run_inference(
        self, batch: Sequence[int], model: Any, inference_args: Mapping[str, Any] | None = None
    ) -> Iterator[int]:
        """Stages the proofs of each chunk."""
        for chunk in batch:
            with named_faults():
                prove_chunk(self._folder, chunk, self._job, model)
            yield chunk

    def batch_elements_kwargs(self) -> dict[str, int]:
        """Chunks are batches already."""
        return self._entailment.batch_elements_kwargs()


def prove_chunk(folder: str, chunk: int, job: QampariJob, model: EntailmentModel | None) -> None:
    """Stages the proofs of a chunk's facts, those that are needed."""
    storage = LocalStorage()
    counted = numbered(folder, "proofs", chunk, "json")
    if storage.exists(counted):  # written last, by a run that was killed later on
        return
    needed = np.load(numbered(folder, "needed", chunk, "npy"), allow_pickle=False)
    found = read_found(folder, chunk)
    facts = list(_facts(folder, chunk, needed, found))
    counts: Counter[str] = Counter()
    rows = []
    for fact, proof in zip(facts, _proofs(facts, job, model), strict=True):
        counts.update(facts=1, judged=proof.n_judged, refused=proof.n_refused, proved=proof.candidate is not None)
        if proof.candidate is not None:
            place = fact.candidates.index(proof.candidate)
            title = found[int(fact.answer_id)][place][_N_CANDIDATE]
            rows.append((int(fact.answer_id), fact.hypothesis or None, proof.entailment, *proof.candidate, title))
    _write(rows, numbered(folder, "proofs", chunk))
    write_json(storage, counted, dict(sorted(counts.items())))


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


def _proofs(facts: list[Fact], job: QampariJob, model: EntailmentModel | None) -> Iterator[Proof]:
    """Gives the outcome of each fact. A fact without a hypothesis is proved by its first candidate, as all are where
    no model is asked."""
    if model is None or not any(one.hypothesis for one in facts):
        for one in facts:
            yield Proof(one, one.candidates[0] if one.candidates else None, None, 0, 0)
        return
    yield from prove_facts(facts, model, least=job.least_entailment)
