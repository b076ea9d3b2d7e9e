"""Decides which records of a chunk are kept: by the outcomes of their evidence, the answers of a model, and the rules
of the dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from kbsource.columns import rows_of
from kbsource.errors import DataError
from kbsource.runtime.chunks import BatchRef, read_batches, read_rows
from kbsource.runtime.regroup import merge_group
from mapping.acceptance import read_rule
from mapping.decide import Cuts, Decision, decide, with_outcome, write_places_once
from mapping.entail.signal import Pair, UnjudgedPair, Verdict
from mapping.entail.verification import signals, with_verdict
from mapping.records import (
    PARTIAL,
    Alignment,
    EntailmentQuestion,
    EvidenceKey,
    Example,
    example_from_json,
    iter_evidence,
)
from mapping.write.kilt import kilt_example
from pipelines.alignment.reading import ReadRecord
from pipelines.alignment.search import ORDER
from pipelines.options.map_dataset import DatasetOptions

JUDGED_TOGETHER = 512
"""Questions per list for a model: enough to sort them by length, few enough to hold a dozen lists in memory."""
_DEFECT = "This is a bug; please report it."


class AlignedChunk(NamedTuple):
    """The inputs for deciding a chunk: the file with its records, the files with the rows of their evidence in any
    order, and a model's answers to the questions of ``read_pairs``, in the order of the questions. Without a model,
    there are no answers.
    """

    examples: BatchRef
    outcomes: tuple[BatchRef, ...]
    answers: tuple[Verdict | UnjudgedPair, ...] = ()


class AlignedRecord(NamedTuple):
    """One record with its decision."""

    ordinal: int  # number of the record in the dataset
    example: Example  # the record as it was read
    found: dict[EvidenceKey, Alignment]  # outcomes of its evidence, in order
    decision: Decision  # the decision; ``reason`` is None if the record is accepted
    written: Decision  # the decision as written to the file, see ``write_places_once``
    record: dict[str, Any] | None  # the record in KILT's format, with its answers; None if it was rejected


def read_pairs(outcomes: Sequence[BatchRef], threshold: float) -> Iterator[tuple[Pair, ...]]:
    """Makes the questions about a chunk that a model answers, as lists, page by page in the order of the release.

    Each part of the outcomes is sorted by ``ORDER``. If a span scores less than the threshold, there are also questions
    about sentences of the page.
    """
    pairs = (
        Pair(question.premise, aligned.hypothesis or "", (question.core_start, question.core_end))
        for aligned, asked in _with_questions(outcomes, threshold)
        for question in asked
    )
    while together := tuple(islice(pairs, JUDGED_TOGETHER)):
        yield together


def _with_questions(
    outcomes: Sequence[BatchRef], threshold: float
) -> Iterator[tuple[Alignment, tuple[EntailmentQuestion, ...]]]:
    """Iterates over the pieces of evidence with their questions."""
    for batch in merge_group(outcomes, ORDER):
        for found in rows_of(batch, Alignment):
            aligned = with_outcome(found, threshold)
            is_weak = aligned.outcome == "weak"
            if asked := tuple(question for question in found.questions if is_weak or question.span is None):
                yield replace(aligned, questions=()), asked


def filter_records(chunk: AlignedChunk, options: DatasetOptions, cuts: Cuts | None = None) -> Iterator[AlignedRecord]:
    """Decides every record of a chunk, in order. ``cuts`` limit the sample if the dataset has no predefined splits.

    Raises:
        DataError: a piece of evidence has no outcome, or two, so the job is broken.
    """
    policy = options.policies[options.split]
    for ordinal, example, found in _settled_records(chunk, options):
        decision = decide(example, found, policy, threshold=options.threshold)
        if cuts is not None and not cuts.takes(ordinal, options.split, passes=_passes_filter(example, found, options)):
            decision = decision._replace(reason="other_split")
        record = None
        written = write_places_once(decision, found)
        if decision.reason is None:
            record = kilt_example(example, found, written, policy, strips_section=options.strips_section)
            kept = [(index, place) for index, fate in enumerate(decision.outputs) for place in fate.kept]
            for key in (*kept, *((PARTIAL, place) for place in decision.partial)):
                found[key] = replace(found[key], is_written=True)
        yield AlignedRecord(ordinal, example, found, decision, written, record)


def passing_records(chunks: Iterable[AlignedChunk], options: DatasetOptions) -> Iterator[int]:
    """Finds the numbers of the records that pass the filter of dev and test, in order."""
    for chunk in chunks:
        for ordinal, example, found in _settled_records(chunk, options):
            if _passes_filter(example, found, options):
                yield ordinal


def _passes_filter(example: Example, found: dict[EvidenceKey, Alignment], options: DatasetOptions) -> bool:
    policy = options.policies["dev"]
    return decide(example, found, policy, threshold=options.threshold).reason is None


def _settled_records(
    chunk: AlignedChunk, options: DatasetOptions
) -> Iterator[tuple[int, Example, dict[EvidenceKey, Alignment]]]:
    settled = _outcomes(chunk, options)
    for read in read_rows(chunk.examples, ReadRecord):
        if read.ordinal is None or read.example is None:
            continue
        of_record = settled.pop(read.ordinal, {})
        example = example_from_json(read.example, of_record)
        found = {key: of_record.pop(key) for key, _ in iter_evidence(example)}
        if of_record:
            settled[read.ordinal] = of_record
        yield read.ordinal, example, found
    if n_left := sum(map(len, settled.values())):
        raise DataError(f"{chunk.examples.path}: {n_left} outcomes belong to no evidence. {_DEFECT}")


def _outcomes(chunk: AlignedChunk, options: DatasetOptions) -> dict[int, dict[EvidenceKey, Alignment]]:
    """Returns the outcomes of a chunk's evidence, by record."""
    settled: dict[int, dict[EvidenceKey, Alignment]] = {}
    for piece in chunk.outcomes:
        for batch in read_batches(piece):
            for aligned in rows_of(_without_questions(batch), Alignment):
                of_record = settled.setdefault(aligned.ordinal, {})
                if aligned.key in of_record:
                    where = (aligned.ordinal, *aligned.key)
                    raise DataError(f"{piece[0]}: evidence {where} has two outcomes. {_DEFECT}")
                of_record[aligned.key] = with_outcome(aligned, options.threshold)
    rule = None if options.accept is None else read_rule(options.accept)
    if options.verify is not None:
        for of_record in settled.values():
            for key, aligned in of_record.items():
                if aligned.hypothesis is not None:  # no model has judged it, unless the questions are made right now
                    of_record[key] = replace(aligned, hypothesis=None, hypothesis_kind=None, expected_verdict=None)
        answers = iter(chunk.answers)
        for aligned, asked in _with_questions(chunk.outcomes, options.threshold):
            answered = [(question, next(answers)) for question in asked]
            settled[aligned.ordinal][aligned.key] = with_verdict(aligned, answered, rule)
    if rule is not None:
        for of_record in settled.values():
            for key, aligned in of_record.items():
                if aligned.span is not None:
                    of_record[key] = replace(aligned, is_accepted=rule.holds(signals(aligned)))
    return settled


def _without_questions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows without the texts for a model, which take much more memory than the rest."""
    at = batch.schema.get_field_index("questions")
    field = batch.schema.field(at)
    return batch.set_column(at, field, pa.array([()] * batch.num_rows, field.type))
