"""Records with what became of their evidences, decided by the rules of their dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from mapping.decide.policy import POLICIES, THRESHOLD, Decision, decide
from mapping.decide.rescue import write_places_once
from mapping.decide.sample import Cuts
from mapping.sources.reading.base import Split
from mapping.write.kilt import WriteOptions, kilt_example
from pipelines.alignment.settled import AlignedChunk, SettledRecord, settled_records


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """Which records are kept, and how.

    Attributes:
        policy: name in ``mapping.decide.policy.POLICIES``.
        split: whose rules these are.
        threshold: lowest score of a span that is kept.
        accept: rule of ``mapping.decide.acceptance`` in its place; None without.
        is_verified: a model was asked about the spans.
        strips_section: sections without the newline.
    """

    policy: str
    split: Split = "dev"
    threshold: float = THRESHOLD
    accept: str | None = None
    is_verified: bool = False
    strips_section: bool = False


class Filtered(NamedTuple):
    """One record.

    Attributes:
        settled: the record with what became of its evidences.
        decision: what becomes of it; ``reason`` is None where it is kept.
        written: the same by what is in the file, see ``write_places_once``.
        record: in KILT's form, with its answers; None where it is not kept.
    """

    settled: SettledRecord
    decision: Decision
    written: Decision
    record: dict[str, Any] | None


def filter_records(chunk: AlignedChunk, options: FilterOptions, cuts: Cuts | None = None) -> Iterator[Filtered]:
    """Gives every record of a chunk, in order.

    Args:
        chunk: the records.
        options: the rules.
        cuts: where the draw of a dataset without splits ends; None where it has them.

    Raises:
        DataError: an evidence has no outcome, or two: the job is broken.
    """
    policy = POLICIES[options.policy][options.split]
    write = WriteOptions(strips_section=options.strips_section)
    for settled_record in settled_records(chunk, is_verified=options.is_verified, accept=options.accept):
        placed = settled_record.placed()
        decision = decide(settled_record.example, placed, policy, threshold=options.threshold)
        if cuts is not None and not cuts.takes(
            settled_record.ordinal, options.split, stands=_stands(settled_record, options)
        ):
            decision = decision._replace(reason="other_split")
        written = write_places_once(decision, placed, settled_record.rescued())
        record = None
        if decision.reason is None:
            record = kilt_example(settled_record.example, placed, written, policy, options=write)
        yield Filtered(settled_record, decision, written, record)


def standing(chunks: Iterable[AlignedChunk], options: FilterOptions) -> Iterator[int]:
    """Gives the number of every record that stands the filter of dev and test, in order."""
    for chunk in chunks:
        for settled_record in settled_records(chunk, is_verified=options.is_verified, accept=options.accept):
            if _stands(settled_record, options):
                yield settled_record.ordinal


def _stands(settled_record: SettledRecord, options: FilterOptions) -> bool:
    policy = POLICIES[options.policy]["dev"]
    return decide(settled_record.example, settled_record.placed(), policy, threshold=options.threshold).reason is None
