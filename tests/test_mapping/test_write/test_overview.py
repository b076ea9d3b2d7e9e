"""The datasets of a release side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.files import LocalStorage
from kbsource.release.layout import shard_path
from kbsource.release.writer import write_rows
from mapping.decide.policy import POLICIES
from mapping.schema import ALIGNMENTS
from mapping.sources.reading.base import Tally
from mapping.write.overview import (
    PAPER_AVERAGES,
    PUBLISHED_RECORDS,
    Aligned,
    Averages,
    averages,
    overview_text,
    overview_values,
    page_values,
    pages_of,
)
from mapping.write.report import PAPER, AlignmentCounts, report_values


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
    assert averages(counts.to_json()) == Averages(1.3333, 1.5, 1.5, 1.0)


def test_where_there_is_nothing_there_is_no_average() -> None:
    assert averages(_counts([{"id": "x"}]).to_json()) == Averages(None, None, None, None)


@given(st.lists(st.sampled_from(RECORDS)), st.lists(st.sampled_from(RECORDS)))
def test_counts_of_parts_add_up(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    together = _counts(first)
    together.add(_counts(second))

    assert together == _counts(first + second)


def _write_pages(folder: Path, *pages: tuple[int, bool], files: int = 1) -> None:
    rows = [
        [{"page_id": page, "is_written": is_written}.get(name, _empty(kind)) for name, kind in _columns()]
        for page, is_written in pages
    ]
    for number in range(files):
        file = shard_path("alignments", number, files)
        write_rows(rows[number::files], "alignments", ALIGNMENTS, output=str(folder), file=file, storage=LocalStorage())


def _columns() -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in ALIGNMENTS]


def _empty(kind: str) -> object:
    return {"string": "", "double": 0.0, "bool": False}.get(kind, 0)


def test_pages_are_those_of_spans_that_are_written_each_once(tmp_path: Path) -> None:
    _write_pages(tmp_path, (7, True), (3, True), (7, True), (9, False), (2**40, True), files=2)

    assert pages_of(str(tmp_path), LocalStorage()).tolist() == [3, 7, 2**40]


def test_pages_are_counted_by_datasets_not_by_splits(tmp_path: Path) -> None:
    for folder, pages in {"a/train": (1, 2), "a/dev": (2, 3), "b/dev": (3,), "c/dev": ()}.items():
        _write_pages(tmp_path / folder, *((page, True) for page in pages))
    aligned = [Aligned(name.partition("/")[0], name, {}) for name in ("a/train", "a/dev", "b/dev", "c/dev")]

    values = page_values(aligned, output=str(tmp_path), n_pages=6, storage=LocalStorage())

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


PAGES = {
    "in_the_release": 66,
    "with_evidence": 3,
    "share": 0.0455,
    "by_number_of_datasets": {"1": 2, "2": 1},
}


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


@pytest.mark.parametrize(
    ("dataset", "total"), [("fever", 125_510), ("nq", 91_653), ("hotpotqa", 100_038), ("triviaqa", 73_789)]
)
def test_published_sizes_are_those_of_all_three_files(dataset: str, total: int) -> None:
    assert sum(count for (name, _), count in PUBLISHED_RECORDS.items() if name == dataset) == total


def test_the_papers_figures_are_of_datasets_that_there_are() -> None:
    assert set(PAPER_AVERAGES) == set(POLICIES) - {"kilt", "jsonl"}
    assert {dataset for dataset, _ in PUBLISHED_RECORDS} == set(PAPER_AVERAGES)
    assert set(PAPER) <= set(PUBLISHED_RECORDS)
