"""ReadEvidence, ResolvePages, AlignSpans, JoinOutcomes and Filter, as a pipeline of one's own uses them."""

from __future__ import annotations

import json
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from kbsource.errors import SetupError
from kbsource.runtime.chunks import BatchRef, ChunkKey
from mapping.records import SCORED, Alignment
from mapping.search.page_search import SearchSettings
from pipelines.alignment.settling import AlignedRecord
from pipelines.options.map_dataset import DatasetOptions
from pipelines.transforms.align import (
    AlignSpans,
    EvidenceOfPairs,
    Filter,
    JoinOutcomes,
    ReadEvidence,
    ResolvePages,
    read_alignments,
)
from tests.support.alignments import evidence, record, write_records

PAIRS = [
    ("River Ullane", "rises in Lake Miravel"),
    ("The monster of Miravel", "Lake Miravel"),
    ("Lake Miravl", "anything"),
    ("Lantern", "lantern"),
]


@pytest.fixture
def own(tmp_path: Path) -> DatasetOptions:
    """Two good records and a bad one, each a chunk of its own."""
    records = [
        record("found", [evidence(PAIRS[0][1], title=PAIRS[0][0])]),
        "{ not json",
        record("lost", [evidence("anything", title="Lake Miravl")]),
    ]
    path = write_records(tmp_path / "own.jsonl", records)
    return DatasetOptions(dataset="jsonl", inputs=(str(path),), chunk_records=1, max_rejects=0.5)


def short(row: Alignment) -> tuple[str, str | None, str, str | None]:
    return row.page.value, row.title, row.outcome, row.text


@pytest.mark.usefixtures("in_this_process")
def test_pairs_of_title_and_text_are_aligned(release: Path) -> None:
    kb = str(release)
    with TestPipeline(runner="FnApiRunner") as pipeline:
        found = pipeline | beam.Create(PAIRS) | EvidenceOfPairs() | ResolvePages(kb) | AlignSpans(kb)
        assert_that(
            found | beam.FlatMap(read_alignments) | beam.Map(short),
            equal_to(
                [
                    ("River Ullane", "River Ullane", "exact", "rises in Lake Miravel"),
                    ("The monster of Miravel", "Lake Miravel", "exact", "Lake Miravel"),
                    ("Lake Miravl", None, "page_missing", None),
                    ("Lantern", "Lantern", "page_ambiguous", None),
                ]
            ),
        )


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("stored", [(), ("resolved", "aligned"), ("aligned",)])
def test_a_title_that_is_like_a_missing_one_is_taken_where_that_is_asked_for(
    release: Path, tmp_path: Path, stored: tuple[str, ...]
) -> None:
    kb, settings = str(release), SearchSettings(accept_fuzzy=90.0)
    folders = [str(tmp_path / name) if name in stored else None for name in ("resolved", "aligned")]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        rows = pipeline | beam.Create(PAIRS[2:3] * 2) | EvidenceOfPairs() | ResolvePages(kb, folder=folders[0])
        found = rows | AlignSpans(kb, settings=settings, folder=folders[1])
        assert_that(
            found | beam.FlatMap(read_alignments) | beam.Map(short),
            equal_to([("Lake Miravl", "Lake Miravel", SCORED, None)] * 2),
        )


def n_rows(element: tuple[ChunkKey, BatchRef]) -> tuple[ChunkKey, int]:
    return element[0], element[1].n_rows


def test_records_evidence_and_rejects_of_datasets_come_by_chunk_and_faults_by_dataset(
    own: DatasetOptions, tmp_path: Path
) -> None:
    strict = DatasetOptions(dataset="jsonl", inputs=own.inputs, max_rejects=0.1)
    for _ in range(2):  # the second time from what the first has left
        with TestPipeline(runner="FnApiRunner") as pipeline:
            read = pipeline | ReadEvidence([strict, own], str(tmp_path / "staging"))
            chunks = [(ChunkKey(1, 0), 1), (ChunkKey(1, 1), 1)]
            with_rejected = [(ChunkKey(1, 0), 2), (ChunkKey(1, 1), 1)]
            assert_that(read.examples | "examples" >> beam.Map(n_rows), equal_to(with_rejected), label="are examples")
            assert_that(read.evidence | "evidence" >> beam.Map(n_rows), equal_to(chunks), label="are evidence")
            assert_that(
                read.rejected | "rejected" >> beam.Map(n_rows), equal_to([(ChunkKey(1, 0), 1)]), label="are rejected"
            )
            assert_that(
                read.datasets | beam.MapTuple(lambda part, dataset: (part, dataset.tally.records)), equal_to([(1, 3)])
            )
            assert_that(
                read.faults | beam.MapTuple(lambda part, fault: (part, fault["of"], fault["message"][:30])),
                equal_to([(0, "data", "1 of 3 records rejected, 33.33")]),
                label="are faults",
            )


def shown(aligned_record: AlignedRecord) -> tuple[str, str | None, str | None]:
    return (
        aligned_record.example.example_id,
        aligned_record.decision.reason,
        aligned_record.record and json.dumps(aligned_record.record["output"])[:30],
    )


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("is_stored", [False, True])
def test_records_are_filtered_with_what_became_of_their_evidence(
    release: Path, own: DatasetOptions, tmp_path: Path, is_stored: bool
) -> None:
    kb, staging = str(release), str(tmp_path / "staging")
    folder = f"{staging}/aligned" if is_stored else None
    with TestPipeline(runner="FnApiRunner") as pipeline:
        read = pipeline | ReadEvidence([own], staging, release=kb if is_stored else None)
        with_pages = read.evidence if is_stored else read.evidence | ResolvePages(kb)
        found = with_pages | AlignSpans(kb, folder=folder)
        chunks = (read.examples, found) | JoinOutcomes(f"{staging}/by_chunk")
        kept = chunks | Filter(DatasetOptions(dataset="jsonl", inputs=()))
        assert_that(
            kept | beam.Map(shown),
            equal_to([("found", None, '[{"answer": "yes", "provenance'), ("lost", "page_missing", None)]),
        )
    # The files of the search have the rows of each chunk together, so they are not written again.
    assert Path(staging, "by_chunk").exists() is not is_stored
    if is_stored:
        assert {path.name for path in Path(staging).iterdir()} == {
            "read",
            "examples",
            "evidence",
            "rejected",
            "aligned",
        }
        assert [path.name for path in Path(staging, "aligned").iterdir()] == ["found"]


def test_a_folder_without_a_release_is_refused_before_anything_runs(tmp_path: Path) -> None:
    for transform in (ResolvePages, AlignSpans):
        with pytest.raises(SetupError, match="no finished release"):
            transform(str(tmp_path))
