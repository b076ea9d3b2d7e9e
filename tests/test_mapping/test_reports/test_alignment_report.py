"""The report on alignments, their rows written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError
from kbsource.files import LocalStorage
from kbsource.release.manifest import InnerRelease
from mapping.reports.alignment_rows import MOVES, WORST, read_alignments, read_moves
from mapping.reports.any_report import report_of
from mapping.reports.as_markdown import write_markdown
from mapping.reports.as_web_page import write_web_page
from mapping.reports.of_releases import report_on
from mapping.schema import ALIGNMENTS as ALIGNMENT_ROWS
from mapping.schema import CROSSWALK
from mapping.write.kind import ALIGNMENT, ALIGNMENTS
from mapping.write.overview import Aligned, overview_values
from tests.support.reports import JUDGED, RELEASE, span_row, write_alignment, write_listing

STORAGE = LocalStorage()
ROWS = [
    span_row(0, 0.5, evidence_text="It has 5 <isles>."),
    span_row(1, 1.0),
    span_row(2, 0.1, outcome="weak", is_written=False),
    span_row(3, None, outcome="page_missing", page_id=None, title=None, text=None),
]
OLD = {"old_wikipedia_id": "1", "old_section": "S", "old_start_paragraph_id": 3}
SAME = {"new_wikipedia_id": "1", "new_section": "S", "new_start_paragraph_id": 3}


def judged(ordinal: int, score: float | None, entailment: float | None, **values: Any) -> dict[str, Any]:
    known = {"entailment": entailment, "contradiction": 0.05, "expects": "entailment", "is_rescued": False}
    return span_row(ordinal, score, **{**known, **values})


def report_text(*paths: Path) -> str:
    return write_markdown(report_on([str(path) for path in paths], STORAGE))


def files_of(folder: Path, table: str) -> list[str]:
    return sorted(str(path) for path in (folder / table).glob("*.parquet"))


def test_outcomes_scores_and_the_paper_stand_beside_each_other(tmp_path: Path) -> None:
    text = report_text(write_alignment(tmp_path / "a", ROWS))
    assert "# Alignment, fever, dev, enwiki, 20260101" in text
    assert "- in the KILT paper (figure 5): 26.0 %" in text
    assert [f"| {row} |" in text for row in ("0.10 | 1", "0.50 | 1", "0.95 | 0", "1.00 | 1")] == [True] * 4
    assert "| near | 2 |" in text
    assert "| \u2003weak | 1 | 25.0 % |" in text


def test_the_worst_spans_come_first_with_what_changed_marked(tmp_path: Path) -> None:
    folder = write_alignment(tmp_path / "a", ROWS)
    worst = [line for line in report_text(folder).splitlines() if "isles" in line]
    assert worst == [
        "| r2 | Brack | 0.1 | no | It has **5** isles. | It has **6** isles. |",
        "| r0 | Brack | 0.5 | yes | It has **5 \\<**isles**\\>**. | It has **6** isles. |",
    ]
    page = write_web_page(report_on([str(folder)], STORAGE))
    assert "<mark>5 &lt;</mark>isles<mark>&gt;</mark>" in page


def test_of_equal_scores_the_first_are_kept_and_exact_ones_never(tmp_path: Path) -> None:
    rows = [span_row(number, 1.0 if number % 3 == 0 else 0.25) for number in reversed(range(90))]
    found = read_alignments(files_of(write_alignment(tmp_path / "a", rows), "alignments"), STORAGE)
    assert [row["ordinal"] for row in found.worst] == [number for number in range(90) if number % 3][:WORST]


def test_exact_spans_alone_and_pages_alone_have_no_worst(tmp_path: Path) -> None:
    for name, score in (("exact", 1.0), ("pages", None)):
        assert "No span differs" in report_text(write_alignment(tmp_path / name, [span_row(0, score)]))


def test_both_signals_are_crossed_where_a_model_judged(tmp_path: Path) -> None:
    rows = [
        judged(0, 0.6, 0.95),
        judged(1, 0.6, 0.1, expects="contradiction", contradiction=0.85),
        judged(2, 1.0, 0.2),
        judged(3, None, None, contradiction=None),
    ]
    text = report_text(write_alignment(tmp_path / "a", rows, schema=JUDGED))
    assert "| 0.50–0.75 | 0 | 0 | 0 | 0 | 2 | 0 |" in text
    assert "| 1.00 | 0 | 1 | 0 | 0 | 0 | 0 |" in text
    assert "| no span | 0 | 0 | 0 | 0 | 0 | 1 |" in text
    assert "| r1 | Brack | 0.6 | 0.85 | yes |" in text
    assert "Both signals" not in report_text(write_alignment(tmp_path / "b", ROWS))


def test_drift_is_told_by_how_far_evidence_moved(tmp_path: Path) -> None:
    moved = [
        {**SAME, "score": 1.0},
        {**SAME, "new_start_paragraph_id": 4, "score": 0.5},
        {**SAME, "new_section": "T", "new_start_paragraph_id": 9},
        {**SAME, "new_section": None, "new_start_paragraph_id": None},
        {**SAME, "new_wikipedia_id": "2", "score": 0.25},
        {},
    ]
    rows = [{"example_id": "r", "output": 0, "evidence": 0, "outcome": "near", **OLD, **own} for own in moved]
    folder = write_alignment(tmp_path / "a", ROWS, crosswalk=(CROSSWALK, [*rows, rows[0]]))
    moves = read_moves(files_of(folder, "crosswalk"), STORAGE)
    assert [(move.name, move.n_spans) for move in moves] == list(zip(MOVES, (2, 1, 1, 1, 1, 1), strict=True))
    assert [move.mean_score for move in moves] == [1.0, 0.5, None, None, 0.25, None]
    assert "- years to the snapshot: 6.4" in report_text(folder)
    assert read_moves([], STORAGE) == []


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """Two alignments in a folder."""
    aligned, parts = [], []
    for dataset, n_rows in (("fever", 4), ("nq", 2)):
        own = write_alignment(tmp_path / "all" / dataset, ROWS[:n_rows], dataset=dataset)
        parts.append(InnerRelease(dataset, ALIGNMENT.read(str(own)).sha256))
        aligned.append(Aligned(dataset, dataset, {**report_of(str(own), STORAGE), "dropped_by_threshold": 0.25}))
    pages = {"in_the_release": 10, "with_evidence": 5, "share": 0.5, "by_number_of_datasets": {"1": 4, "2": 1}}
    facts = {"release": RELEASE, "alignments": [{"folder": part.folder, "manifest_sha256": part.manifest_sha256}
                                                for part in parts]}  # fmt: skip
    report = overview_values(aligned, pages)
    return write_listing(tmp_path / "all", ALIGNMENTS, {}, report=report, facts=facts, parts=parts)


def test_datasets_stand_side_by_side_and_then_each(both: Path) -> None:
    text = report_text(both)
    assert "| fever, dev | 25.0 % | 26.0 % |" in text
    assert "| nq, dev | 25.0 % | 16.1 % |" in text
    assert "| fever, dev | 4 | 10,444 | – | 1.12 |" in text
    assert "| fever, dev | 2017-06 | 8.6 | 0.0 % | 50.0 % | 25.0 % | 25.0 % |" in text
    assert "| 2 | 1 | 20.0 % |" in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## What it is", "## Side by side", "## fever", "## nq",
    ]  # fmt: skip


def test_an_alignment_that_was_exchanged_is_not_reported_on(both: Path) -> None:
    write_alignment(both / "other", ROWS[:1], dataset="nq")
    (both / "other" / "manifest.json").replace(both / "nq" / "manifest.json")
    with pytest.raises(DataError, match="another alignment"):
        report_text(both)


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_damaged_report_is_named(tmp_path: Path, content: str) -> None:
    folder = write_alignment(tmp_path / "a", ROWS)
    (folder / "report.json").write_text(content)
    with pytest.raises(DataError, match=r"report\.json.*kbsource verify"):
        report_text(folder)


def test_the_schema_of_hand_written_rows_is_that_of_alignments() -> None:
    assert set(span_row(0, 0.5)) <= set(ALIGNMENT_ROWS.names)
