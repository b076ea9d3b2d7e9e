"""The records of a chunk with what became of their evidences: judged by a model, decided by the rules of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from kbsource.columns import rows_of
from kbsource.errors import DataError
from kbsource.runtime.chunks import BatchRef, read_batches, read_rows
from kbsource.runtime.regroup import merge_group
from mapping.acceptance import read_rule
from mapping.decide import THRESHOLD, Cuts, Decision, decide, with_outcome, write_places_once
from mapping.entail.signal import Pair, Refused, Verdict
from mapping.entail.verification import signals, with_verdict
from mapping.records import (
    PARTIAL,
    Alignment,
    EvidenceKey,
    Example,
    Question,
    example_from_json,
    iter_evidence,
)
from mapping.sources import all_sources
from mapping.sources.source import Split
from mapping.write.kilt import kilt_example
from pipelines.alignment.reading import ReadRecord

JUDGED_TOGETHER = 512
"""Questions in a list that a model gets as a whole: enough to sort by length, few enough to be held by the dozen."""
ORDER = ("position", "ordinal", "output", "evidence")
"""Columns that outcomes of a chunk are in the order of."""
_DEFECT = "Report this, it is a defect."

_Key = tuple[int, int, int]
"""Record, output and evidence."""


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """Which records are kept, and how."""

    policy: str  # dataset whose policies are meant
    split: Split = "dev"  # whose rules these are
    threshold: float = THRESHOLD  # lowest score of a span that is kept
    accept: str | None = None  # rule of ``mapping.acceptance`` in its place; None without
    is_verified: bool = False  # a model was asked about the spans
    strips_section: bool = False  # sections without the newline


class AlignedChunk(NamedTuple):
    """Where the records of a chunk are and, in any order, the rows of their evidences, with the answers of a model to
    the questions of ``read_pairs``, in their order; none where none were asked."""

    examples: BatchRef
    outcomes: tuple[BatchRef, ...]
    answers: tuple[Verdict | Refused, ...] = ()


class AlignedRecord(NamedTuple):
    """One record with what becomes of it."""

    ordinal: int  # its number in the dataset
    example: Example  # as it was read
    found: dict[EvidenceKey, Alignment]  # what became of its evidences, in their order
    decision: Decision  # what becomes of it; ``reason`` is None where it is kept
    written: Decision  # the same by what is in the file, see ``write_places_once``
    record: dict[str, Any] | None  # in KILT's form, with its answers; None where it is not kept


def read_pairs(outcomes: Sequence[BatchRef], threshold: float) -> Iterator[tuple[Pair, ...]]:
    """The questions about a chunk, page by page in the order of the release, in lists for a model.

    Each of the outcomes' pieces is in the order of ``ORDER``; where a span scores less than the threshold, sentences of
    the page are asked about.
    """
    pairs = (
        Pair(question.premise, aligned.hypothesis or "", (question.core_start, question.core_end))
        for aligned, asked in _asked(outcomes, threshold)
        for question in asked
    )
    while together := tuple(islice(pairs, JUDGED_TOGETHER)):
        yield together


def _asked(outcomes: Sequence[BatchRef], threshold: float) -> Iterator[tuple[Alignment, tuple[Question, ...]]]:
    """The evidences that there are questions about, and these."""
    for batch in merge_group(outcomes, ORDER):
        for found in rows_of(batch, Alignment):
            aligned = with_outcome(found, threshold)
            is_weak = aligned.outcome == "weak"
            if asked := tuple(question for question in found.questions if is_weak or question.span is None):
                yield replace(aligned, questions=()), asked


def filter_records(chunk: AlignedChunk, options: FilterOptions, cuts: Cuts | None = None) -> Iterator[AlignedRecord]:
    """Every record of a chunk, in order; ``cuts`` say where the draw of a dataset without splits ends.

    Raises:
        DataError: an evidence has no outcome, or two: the job is broken.
    """
    policy = all_sources()[options.policy].policies[options.split]
    for ordinal, example, found in _settled_records(chunk, options):
        decision = decide(example, found, policy, threshold=options.threshold)
        if cuts is not None and not cuts.takes(ordinal, options.split, stands=_stands(example, found, options)):
            decision = decision._replace(reason="other_split")
        record = None
        written = write_places_once(decision, found)
        if decision.reason is None:
            record = kilt_example(example, found, written, policy, strips_section=options.strips_section)
            kept = [(index, place) for index, fate in enumerate(decision.outputs) for place in fate.kept]
            for key in (*kept, *((PARTIAL, place) for place in decision.partial)):
                found[key] = replace(found[key], is_written=True)
        yield AlignedRecord(ordinal, example, found, decision, written, record)


def standing(chunks: Iterable[AlignedChunk], options: FilterOptions) -> Iterator[int]:
    """The number of every record that stands the filter of dev and test, in order."""
    for chunk in chunks:
        for ordinal, example, found in _settled_records(chunk, options):
            if _stands(example, found, options):
                yield ordinal


def _stands(example: Example, found: dict[EvidenceKey, Alignment], options: FilterOptions) -> bool:
    policy = all_sources()[options.policy].policies["dev"]
    return decide(example, found, policy, threshold=options.threshold).reason is None


def _settled_records(
    chunk: AlignedChunk, options: FilterOptions
) -> Iterator[tuple[int, Example, dict[EvidenceKey, Alignment]]]:
    settled = _settled(chunk, options)
    for read in read_rows(chunk.examples, ReadRecord):
        if read.ordinal is None or read.example is None:
            continue
        example = example_from_json(read.example)
        found = {}
        for key, _ in iter_evidence(example):
            if (aligned := settled.pop((read.ordinal, *key), None)) is None:
                raise DataError(
                    f"{example.file}, line {example.line}: evidence {key[0]}, {key[1]} has no outcome. {_DEFECT}"
                )
            found[key] = aligned
        yield read.ordinal, example, found
    if settled:
        raise DataError(f"{chunk.examples.path}: {len(settled)} outcomes belong to no evidence. {_DEFECT}")


def _settled(chunk: AlignedChunk, options: FilterOptions) -> dict[_Key, Alignment]:
    """What became of the evidences of a chunk."""
    settled: dict[_Key, Alignment] = {}
    for piece in chunk.outcomes:
        for batch in read_batches(piece):
            for aligned in rows_of(_without_questions(batch), Alignment):
                if (key := (aligned.ordinal, *aligned.key)) in settled:
                    raise DataError(f"{piece[0]}: evidence {key} has two outcomes. {_DEFECT}")
                settled[key] = with_outcome(aligned, options.threshold)
    rule = None if options.accept is None else read_rule(options.accept)
    if options.is_verified:
        for key, aligned in settled.items():
            if aligned.hypothesis is not None:  # nobody asked, unless the questions come now
                settled[key] = replace(aligned, hypothesis=None, hypothesis_kind=None, expects=None)
        answers = iter(chunk.answers)
        for aligned, asked in _asked(chunk.outcomes, options.threshold):
            answered = [(question, next(answers)) for question in asked]
            settled[aligned.ordinal, *aligned.key] = with_verdict(aligned, answered, rule)
    if rule is not None:
        for key, aligned in settled.items():
            if aligned.span is not None:
                settled[key] = replace(aligned, is_accepted=rule.holds(signals(aligned)))
    return settled


def _without_questions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows without the texts that a model was asked about, which take much more memory than all else."""
    at = batch.schema.get_field_index("questions")
    field = batch.schema.field(at)
    return batch.set_column(at, field, pa.array([()] * batch.num_rows, field.type))
