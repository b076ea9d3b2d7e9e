"""Counts, their laws, and how they are shown."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.release.layout import shard_path
from kbsource.release.output import commit
from kbsource.release.writer import write_rows
from kbsource.runtime.chunks import once_value
from mapping.decide import Decision, OutputFate
from mapping.schema import ALIGNMENTS
from mapping.sources.source import Tally
from mapping.write.kind import ALIGNMENT
from mapping.write.report import (
    Aligned,
    AlignmentCounts,
    Averages,
    averages,
    faults,
    overview_text,
    overview_values,
    page_values,
    report_text,
    report_values,
    score_bin,
    threshold_share,
)
from tests.support.aligned import aligned

KEPT = Decision(None, (OutputFate("whole", None, (0,)),))
DROPPED = Decision("below_threshold", (OutputFate("dropped", "below_threshold", ()),))


def counted() -> tuple[Tally, AlignmentCounts]:
    tally = Tally(records=5, examples=3, evidences=3)
    tally.excluded["not_enough_info"] += 1
    tally.rejected["malformed_json"] += 1
    counts = AlignmentCounts()
    for alignment, decision in (
        (aligned("near", 1, "T", score=0.7, found_by="title", hops=2), KEPT),
        (aligned("weak", 1, "T", score=0.2, found_by="title"), DROPPED),
        (aligned("page_missing"), Decision("page_missing", (OutputFate("dropped", "page_missing", ()),))),
    ):
        counts.add_evidence(alignment)
        counts.add_record(decision, [[alignment]], threshold=0.5)
    return tally, counts


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


def test_counts_of_chunks_add_up_and_survive_json(tmp_path: Path) -> None:
    _, once = counted()
    twice = once_value(str(tmp_path / "counts.json"), lambda: once, AlignmentCounts)
    assert twice == once
    twice.add(once)
    assert twice.written == 2 * once.written
    assert twice.evidences.total() == 2 * once.evidences.total()


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


def test_what_a_dataset_counts_besides_stands_beside_the_paper() -> None:
    tally = Tally(statistics=Counter(relations=9, relations_kept=7, facts_kept=40))
    text = report_text(report_values(tally, AlignmentCounts(), dataset="trex", split="train"))
    assert re.search(r"relations kept +7; in the KILT paper 113\n", text)
    assert re.search(r"relations +9\n", text)


def _span(page: str) -> dict[str, Any]:
    return {"wikipedia_id": page, "title": page}


RECORDS = [
    {"id": "two sets, two pages", "output": [
        {"answer": "a", "provenance": [_span("1"), _span("2")]}, {"answer": "a", "provenance": [_span("1")]}]},
    {"id": "answers alone", "output": [{"answer": "a"}, {"answer": "b"}]},
    {"id": "evidence alone beside two equal answers", "output": [
        {"answer": "a"}, {"answer": "a"}, {"provenance": [_span("3")]}]},
    {"id": "a test record"},
]  # fmt: skip


def _counts(records: list[dict[str, Any]]) -> AlignmentCounts:
    counts = AlignmentCounts(written=len(records))
    for record in records:
        counts.add_written(record)
    return counts


def test_sets_pages_and_answers_are_counted_as_they_are_written() -> None:
    counts = _counts(RECORDS)
    assert (counts.with_sets, counts.sets_written, counts.set_spans) == (2, 3, 4)
    assert (counts.set_pages, counts.answers) == (3, 4)
    # Of the first record one set has a single span, so that no second one is needed.
    assert (counts.several_sets, counts.several_spans, counts.several_pages) == (1, 0, 0)
    span = _span("1")
    needed = [{"output": [{"answer": "a", "provenance": own}]} for own in ([span, span], [span, _span("2")], [span])]
    more = _counts(needed)
    assert (more.several_sets, more.several_spans, more.several_pages) == (0, 2, 1)
    report = report_values(Tally(), more, dataset="fever", split="dev")
    assert "with several spans in each set" in report_text(report)
    assert f"{2 / 3:.2%}; in the KILT paper 16%" in report_text(report)
    assert "KILT paper" not in report_text(report_values(Tally(), more, dataset="trex", split="dev"))
    assert averages(counts.to_json()) == Averages(1.3333, 1.5, 1.5, 1.0)


@given(st.lists(st.sampled_from(RECORDS)), st.lists(st.sampled_from(RECORDS)))
def test_counts_of_parts_add_up(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    together = _counts(first)
    together.add(_counts(second))
    assert together == _counts(first + second)


def _write_pages(folder: Path, *pages: tuple[int, bool]) -> None:
    """An alignment whose evidence stands in these pages, and is written or not, in two files."""
    kinds = {"string": "", "double": 0.0, "bool": False}
    empty = {field.name: kinds.get(str(field.type), 0) for field in ALIGNMENTS}
    rows = [tuple({**empty, "page_id": page, "is_written": is_written}.values()) for page, is_written in pages]
    entries = [
        write_rows(
            rows[number::2], "alignments", ALIGNMENTS, output=str(folder), file=shard_path("alignments", number, 2)
        )
        for number in range(2)
    ]
    commit(ALIGNMENT, ALIGNMENT.listing(entries, {}), str(folder))


def test_pages_of_written_spans_are_counted_once_by_datasets_and_not_by_splits(tmp_path: Path) -> None:
    for folder, pages in {"a/train": (1, 2**40, 1), "a/dev": (2**40, 3), "b/dev": (3,), "c/dev": ()}.items():
        _write_pages(tmp_path / folder, *((page, True) for page in pages), (9, False))
    aligned = [Aligned(name.partition("/")[0], name, {}) for name in ("a/train", "a/dev", "b/dev", "c/dev")]
    values = page_values(aligned, output=str(tmp_path), n_pages=6)
    assert values["by_dataset"] == {"a": 3, "b": 1, "c": 0}
    assert values["by_number_of_datasets"] == {"1": 2, "2": 1}
    assert (values["with_evidence"], values["share"]) == (3, 0.5)


def _report(dataset: str, split: Any, written: int, **dropped: int) -> dict[str, Any]:
    counts = AlignmentCounts(
        written=written, with_sets=written, sets_written=written, set_spans=written, set_pages=written
    )
    counts.answers = written
    counts.dropped.update(dropped)
    n_read = written + counts.dropped.total()
    return report_values(Tally(records=n_read, examples=n_read), counts, dataset=dataset, split=split)


PAGES = {"in_the_release": 66, "with_evidence": 3, "share": 0.0455, "by_number_of_datasets": {"1": 2, "2": 1}}


def test_the_table_stands_beside_the_papers_figures() -> None:
    aligned = [
        Aligned("fever", "fever/dev", _report("fever", "dev", 1234, below_threshold=411)),
        Aligned("mine", "mine/train", _report("jsonl", "train", 2)),
        Aligned("nq", "nq/test", _report("nq", "test", 0)),
    ]

    text = overview_text(overview_values(aligned, PAGES))

    assert [line.split() for line in text.splitlines()[1:5]] == [
        ["dataset", "split", *["here", "KILT"] * 6],
        ["fever", "dev", "1,234", "10,444", *"1.00 1.12 1.00 1.35 1.00 1.13 1.00 1.00 25.0% 26.0%".split()],
        ["mine", "train", "2", "-", *"1.00 - 1.00 - 1.00 - 1.00 - - -".split()],
        ["nq", "test", "0", "1,444", *"- 1.00 - 3.22 - 1.57 - 2.08 - 15.6%".split()],
    ]
    assert len({len(line) for line in text.splitlines()[:5]}) == 1
    assert text.splitlines()[5:] == [
        "",
        "3 of 66 pages hold evidence (4.5%); in KILT 1,642,311 (28%)",
        "  of 1 dataset: 2",
        "  of 2 datasets: 1",
    ]


def test_entity_linking_and_train_are_not_filtered_so_that_no_share_is_shown() -> None:
    for dataset, split in (("cweb", "dev"), ("fever", "train")):
        values = overview_values([Aligned("x", "x", _report(dataset, split, 5))], PAGES)
        assert values["datasets"][0]["dropped_by_threshold"] is None
