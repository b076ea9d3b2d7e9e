"""Counts, their invariants, and how they are shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kbsource.release.layout import shard_path
from kbsource.release.output import commit
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_rows
from mapping.schema import ALIGNMENTS, TABLES
from mapping.sources.source import Tally
from mapping.write.kind import ALIGNMENT
from mapping.write.report import (
    Averages,
    FinishedAlignment,
    averages,
    evidence_faults,
    overview_text,
    overview_values,
    page_values,
    report_text,
    report_values,
    threshold_share,
)

SEARCHED = {"page_kind": "title", "page_value": "T", "evidence_text": "t", "file": "f", "line": 1, "example_id": "r"}


def record(ordinal: int | None, outcome: str = "written", reason: str | None = None, **values: Any) -> dict[str, Any]:
    return {"ordinal": ordinal, "file": "f", "line": 1, "outcome": outcome, "reason": reason, **values}


def outputs(*spans: int) -> list[dict[str, Any]]:
    """Outputs with these numbers of spans."""
    return [{"form": "whole" if n else "answer_only", "reason": None, "n_spans": n} for n in spans]


def span(ordinal: int, page_id: int = 1, *, output: int = 0, **values: Any) -> dict[str, Any]:
    """A row of alignments."""
    own = {"ordinal": ordinal, "output": output, "outcome": "near", "page_id": page_id, "is_written": True}
    return {**SEARCHED, **own, "evidence": 0, "hops": 0, **values}


def counted(
    folder: Path,
    records: Sequence[dict[str, Any]],
    alignments: Sequence[dict[str, Any]] = (),
    misses: Sequence[dict[str, Any]] = (),
    *,
    threshold: float = 0.5,
) -> dict[str, Any]:
    """The facts of an alignment with these rows, and all its counts."""
    entries = [
        write_rows([[row.get(name) for name in TABLES[table].names] for row in rows], table, TABLES[table],
                   output=str(folder))
        for table, rows in (("records", records), ("alignments", alignments), ("misses", misses))
    ]  # fmt: skip
    facts = {"options": {"threshold": threshold}, "records": {"read": len(records)}}
    return with_counts(ALIGNMENT, entries, facts, str(folder))


def faults(facts: dict[str, Any]) -> list[str]:
    return ALIGNMENT.count_faults(ALIGNMENT.listing([], facts))


def of_several_outcomes(folder: Path) -> dict[str, Any]:
    return counted(
        folder,
        [
            record(0, n_answers=1, n_spans=1, outputs=outputs(1)),
            record(1, "dropped", "below_threshold"),
            record(2, "dropped", "page_missing"),
            record(None, "excluded", "not_enough_info"),
            record(None, "rejected", "malformed_json"),
        ],
        [
            span(0, score=0.7, match="bleu", found_by="title", hops=2),
            span(1, score=0.2, match="bleu", found_by="title", outcome="weak", is_written=False),
        ],
        [{**SEARCHED, "ordinal": 2, "output": 0, "evidence": 0, "outcome": "page_missing", "hops": 0}],
    )


def test_outcomes_of_records_and_evidence_are_counted(tmp_path: Path) -> None:
    facts = of_several_outcomes(tmp_path)
    assert faults(facts) == []
    assert facts["records"] == {
        "read": 5, "examples": 3, "merged": 0, "excluded": {"not_enough_info": 1}, "rejected": {"malformed_json": 1}
    }  # fmt: skip
    assert facts["counts"] == {
        "written": 1, "dropped": {"below_threshold": 1, "page_missing": 1}, "pages_there": 2, "mapped": 1,
        "outputs": {"whole": 1}, "output_reasons": {}, "evidences": {"near": 1, "weak": 1, "page_missing": 1},
        "spans_written": 1, "with_sets": 1, "sets_written": 1, "set_spans": 1, "set_pages": 1, "several_sets": 0,
        "several_spans": 0, "several_pages": 0, "answers": 1, "found_by": {"title": 2}, "hops": {"2": 1},
        "matches": {"bleu": 2}, "scores": {"0.70": 1, "0.20": 1},
    }  # fmt: skip


def test_a_lost_record_and_a_lost_evidence_are_noticed(tmp_path: Path) -> None:
    facts = of_several_outcomes(tmp_path)
    facts["records"]["read"] += 1
    assert faults(facts) == [
        "records.read is 6, not records.examples 3 + records.merged 0 + records.excluded 1 + records.rejected 1 = 5"
    ]
    assert evidence_faults(3, facts["counts"]) == []
    assert evidence_faults(4, facts["counts"]) == ["4 pieces of evidence read, 3 have an outcome"]
    facts["counts"]["evidences"]["lost"] = 1
    assert evidence_faults(4, facts["counts"]) == ["unknown outcomes ['lost']"]


def test_records_that_joined_another_are_accounted_for_and_shown(tmp_path: Path) -> None:
    facts = counted(tmp_path, [record(0), record(None, "merged"), record(None, "merged")])
    assert faults(facts) == []
    assert "merged with another record" in report_text(report_values(Tally(), facts, dataset="trex", split="train"))


@pytest.mark.parametrize(
    ("score", "name"), [(0.0, "0.00"), (0.0499, "0.00"), (0.05, "0.05"), (0.15, "0.15"), (0.5, "0.50"), (1.0, "1.00")]
)
def test_a_score_is_in_the_bin_that_its_lower_bound_names(tmp_path: Path, score: float, name: str) -> None:
    assert counted(tmp_path, [record(0)], [span(0, score=score)])["counts"]["scores"] == {name: 1}


def test_pages_and_spans_of_an_evidence_set_are_those_that_a_record_needs(tmp_path: Path) -> None:
    rows = [
        span(0, score=0.9),  # one set whose two spans reach the threshold
        span(0, score=0.5),
        span(1, score=0.9),  # one of two does
        span(1, score=0.4),
        span(2, score=0.4),  # a set that does not, and one that does
        span(2, output=1, score=0.6),
        span(3, output=-1, score=0.9),  # partial evidence only
        span(4, outcome="page_ambiguous"),
        span(5, outcome="page_only"),
    ]
    counts = counted(tmp_path, [record(number) for number in range(6)], rows)["counts"]
    assert (counts["pages_there"], counts["mapped"]) == (4, 3)


def test_the_share_dropped_by_the_threshold_stands_beside_the_papers(tmp_path: Path) -> None:
    facts = of_several_outcomes(tmp_path)
    report = report_values(Tally(), facts, dataset="fever", split="dev")
    assert threshold_share(facts["counts"]) == 0.5
    assert report["dropped_in_the_paper"] == {"records": 3675, "share": 0.2603}
    text = report_text(report)
    assert "50.00%; in the KILT paper 26.03% (3,675 records)" in text
    assert "  excluded: not_enough_info" in text
    assert "  0.70           1  ####" in text


def test_what_a_dataset_counts_besides_stands_beside_the_paper(tmp_path: Path) -> None:
    tally = Tally(statistics=Counter(relations=9, relations_kept=7, facts_kept=40))
    text = report_text(report_values(tally, counted(tmp_path, []), dataset="trex", split="train"))
    assert re.search(r"relations kept +7; in the KILT paper 113\n", text)
    assert re.search(r"relations +9\n", text)


def test_sets_pages_and_answers_are_counted_as_they_are_written(tmp_path: Path) -> None:
    # A set of two pages and one of one; answers only; evidence beside two equal answers; no output.
    spans = ((2, 1), (0, 0), (0, 0, 1), ())
    records = [
        record(number, n_answers=n, n_spans=sum(own), outputs=outputs(*own))
        for number, (n, own) in enumerate(zip((1, 2, 1, 0), spans, strict=True))
    ]
    sets = [span(0), span(0, 2), span(0, output=1), span(2, 3), span(2, 4, output=1, is_written=False)]
    facts = counted(tmp_path, records, sets)
    counts = facts["counts"]
    assert (counts["with_sets"], counts["sets_written"], counts["set_spans"]) == (2, 3, 4)
    assert (counts["set_pages"], counts["answers"]) == (3, 4)
    # Of the first record one set has a single span, so that no second one is needed.
    assert (counts["several_sets"], counts["several_spans"], counts["several_pages"]) == (1, 0, 0)
    assert averages(counts) == Averages(1.3333, 1.5, 1.5, 1.0)


def test_records_that_need_several_spans_are_shown_beside_the_paper(tmp_path: Path) -> None:
    sets = [span(0), span(0), span(1), span(1, 2), span(2)]
    records = [record(number, n_spans=n, outputs=outputs(n)) for number, n in enumerate((2, 2, 1))]
    facts = counted(tmp_path, records, sets)
    counts = facts["counts"]
    assert (counts["several_sets"], counts["several_spans"], counts["several_pages"]) == (0, 2, 1)
    report = report_values(Tally(), facts, dataset="fever", split="dev")
    assert "with several spans in each set" in report_text(report)
    assert f"{2 / 3:.2%}; in the KILT paper 16%" in report_text(report)
    assert "KILT paper" not in report_text(report_values(Tally(), facts, dataset="trex", split="dev"))


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
    facts = {"options": {"threshold": 0.5}, "records": {"read": 0}}
    commit(ALIGNMENT, ALIGNMENT.listing(entries, with_counts(ALIGNMENT, entries, facts, str(folder))), str(folder))


def test_pages_of_written_spans_are_counted_once_by_datasets_and_not_by_splits(tmp_path: Path) -> None:
    for folder, pages in {"a/train": (1, 2**40, 1), "a/dev": (2**40, 3), "b/dev": (3,), "c/dev": ()}.items():
        _write_pages(tmp_path / folder, *((page, True) for page in pages), (9, False))
    aligned = [FinishedAlignment(name.partition("/")[0], name, {}) for name in ("a/train", "a/dev", "b/dev", "c/dev")]
    values = page_values(aligned, output=str(tmp_path), n_pages=6)
    assert values["by_dataset"] == {"a": 3, "b": 1, "c": 0}
    assert values["by_number_of_datasets"] == {"1": 2, "2": 1}
    assert (values["with_evidence"], values["share"]) == (3, 0.5)


def _report(dataset: str, split: Any, written: int, **dropped: int) -> dict[str, Any]:
    counts = {
        **dict.fromkeys(("written", "with_sets", "sets_written", "set_spans", "set_pages", "answers"), written),
        "dropped": dropped,
        "evidences": {},
    }
    n_read = written + sum(dropped.values())
    records = {"read": n_read, "examples": n_read, "merged": 0, "excluded": {}, "rejected": {}}
    return report_values(Tally(), {"records": records, "counts": counts}, dataset=dataset, split=split)


PAGES = {"in_the_release": 66, "with_evidence": 3, "share": 0.0455, "by_number_of_datasets": {"1": 2, "2": 1}}


def test_the_table_stands_beside_the_papers_figures() -> None:
    aligned = [
        FinishedAlignment("fever", "fever/dev", _report("fever", "dev", 1234, below_threshold=411)),
        FinishedAlignment("mine", "mine/train", _report("jsonl", "train", 2)),
        FinishedAlignment("nq", "nq/test", _report("nq", "test", 0)),
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
        values = overview_values([FinishedAlignment("x", "x", _report(dataset, split, 5))], PAGES)
        assert values["datasets"][0]["dropped_by_threshold"] is None
