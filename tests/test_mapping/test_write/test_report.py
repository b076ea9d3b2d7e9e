"""Counts, their laws, and how they are shown."""

from __future__ import annotations

import pytest

from mapping.decide.policy import Decision, OutputFate
from mapping.records import Alignment, Span
from mapping.sources.reading.base import Tally
from mapping.write.report import AlignmentCounts, faults, report_text, report_values, score_bin, threshold_share

KEPT = Decision(None, (OutputFate("whole", None, (0,)),))
DROPPED = Decision("below_threshold", (OutputFate("dropped", "below_threshold", ()),))


def aligned(outcome: str, score: float | None = None, page_id: int | None = 1, hops: int = 0) -> Alignment:
    span = None if score is None else Span(1, 0, 1, 5, score, "bleu")
    return Alignment(outcome, page_id, "T" if page_id else None, "title" if page_id else None, hops, None, span, None)


def counted() -> tuple[Tally, AlignmentCounts]:
    tally = Tally(records=5, examples=3, evidences=3)
    tally.excluded["not_enough_info"] += 1
    tally.rejected["malformed_json"] += 1
    counts = AlignmentCounts()
    for alignment, decision in (
        (aligned("near", 0.7, hops=2), KEPT),
        (aligned("weak", 0.2), DROPPED),
        (aligned("page_missing", page_id=None), Decision("page_missing", (OutputFate("dropped", "page_missing", ()),))),
    ):
        counts.add_evidence(alignment)
        counts.add_record(decision, [[alignment]], threshold=0.5)
    return tally, counts


def test_counts_that_add_up_have_no_fault() -> None:
    tally, counts = counted()

    assert faults(tally, counts) == []
    assert (counts.written, dict(counts.dropped)) == (1, {"below_threshold": 1, "page_missing": 1})
    assert (counts.pages_there, counts.mapped, counts.spans_written) == (2, 1, 1)
    assert dict(counts.hops) == {"2": 1}


def test_a_lost_record_and_a_lost_evidence_are_noticed() -> None:
    tally, counts = counted()
    tally.records += 1
    tally.evidences += 1

    assert [fault.split(",")[0] for fault in faults(tally, counts)] == ["6 records read", "4 pieces of evidence read"]


def test_records_that_joined_another_are_accounted_for_and_shown() -> None:
    tally, counts = counted()
    tally.records += 2
    tally.merged += 2

    assert faults(tally, counts) == []
    shown = report_text(report_values(tally, counts, dataset="trex", split="train"))
    assert "merged with another record" in shown


def test_an_outcome_that_does_not_exist_is_noticed() -> None:
    tally, counts = counted()
    tally.evidences += 1
    counts.evidences["lost"] += 1

    assert faults(tally, counts) == ["unknown outcomes ['lost']"]


def test_counts_of_chunks_add_up_and_survive_json() -> None:
    _, once = counted()
    twice = AlignmentCounts.from_json(once.to_json())
    twice.add(once)

    assert twice.written == 2 * once.written
    assert twice.evidences.total() == 2 * once.evidences.total()
    assert AlignmentCounts.from_json(once.to_json()) == once


@pytest.mark.parametrize(
    ("score", "name"), [(0.0, "0.00"), (0.0499, "0.00"), (0.05, "0.05"), (0.15, "0.15"), (0.5, "0.50"), (1.0, "1.00")]
)
def test_a_score_is_in_the_bin_that_its_lower_bound_names(score: float, name: str) -> None:
    assert score_bin(score) == name


def test_the_share_dropped_by_the_threshold_stands_beside_the_papers() -> None:
    tally, counts = counted()
    report = report_values(tally, counts, dataset="fever", split="dev")

    assert threshold_share(counts) == 0.5
    assert report["dropped_in_the_paper"] == {"records": 3675, "share": 0.2603}
    text = report_text(report)
    assert "50.00%; in the KILT paper 26.03% (3,675 records)" in text
    assert "  excluded: not_enough_info" in text
    assert "  0.70           1  ####" in text


def test_a_report_without_anything_can_be_shown() -> None:
    text = report_text(report_values(Tally(), AlignmentCounts(), dataset="jsonl", split="train"))

    assert "BLEU" not in text
    assert threshold_share(AlignmentCounts()) is None
