"""The records of a chunk with what became of their evidences: nothing is lost, nothing comes twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.errors import DataError
from kbsource.files import LocalStorage
from kbsource.runtime.chunks import Key, Report, Stored, read_stored, write_chunk
from mapping.records import Evidence, Example, Output, PageKey
from mapping.search.page_search import locate_nowhere
from mapping.search.resolve import Resolved
from pipelines.alignment import reading
from pipelines.alignment.reading import Chunks, EvidenceFiles
from pipelines.alignment.rows import NOWHERE, OUTCOMES, one_batch, outcome_columns
from pipelines.alignment.settled import AlignedChunk, settled_records

Place = tuple[int, int, int]


def stage(folder: Path, *pieces: tuple[Place, ...]) -> AlignedChunk:
    """Gives a chunk of two records, of two evidences and of one, and outcomes for the keys of each piece."""
    storage = LocalStorage()
    evidence = Evidence(PageKey("title", "Nowhere"), "x")
    chunks = Chunks(EvidenceFiles("jsonl", ()), 0, str(folder), storage)
    for number, n_evidences in enumerate((2, 1)):
        output = Output("yes", (evidence,) * n_evidences)
        chunks.add(Example(f"r{number}", "?", (output,), None, file="own.jsonl", line=number + 1))
    chunks.end()
    columns = outcome_columns(locate_nowhere(Resolved(None, None, None, 0, "Nowhere"), "x"), None)
    outcomes = []
    for number, places in enumerate(pieces):
        batch = one_batch([(0, 0, *place, NOWHERE, "Nowhere", "x", *columns, []) for place in places], OUTCOMES)
        path = str(folder / f"outcomes-{number}.arrow")
        outcomes.append(write_chunk([batch], OUTCOMES, Report(), path=path, storage=storage))
    (examples,) = chunks.examples.stored
    return AlignedChunk(examples, tuple(outcomes))


def test_every_record_comes_with_the_outcomes_of_its_evidences_wherever_they_were_found(tmp_path: Path) -> None:
    chunk = stage(tmp_path, ((0, 0, 1), (1, 0, 0)), ((0, 0, 0),))

    found = list(settled_records(chunk, is_verified=False, accept=None))

    assert [(one.ordinal, one.example.example_id, list(one.found)) for one in found] == [
        (0, "r0", [(0, 0), (0, 1)]),
        (1, "r1", [(0, 0)]),
    ]
    assert {one.outcome for record in found for one in record.placed().values()} == {"page_missing"}


def _ordinals(stored: list[Stored]) -> list[list[int]]:
    return [
        [number for batch in read_stored(one, LocalStorage()) for number in batch["ordinal"].to_pylist()]
        for one in stored
    ]


@pytest.mark.parametrize(
    ("chunk_records", "lengths", "chunks"),
    [(2, (1, 1, 1, 2_000, 1, 1), [[0, 1], [2, 3], [4, 5]]), (9, (1, 2_000, 1, 1), [[0, 1], [2, 3]]), (9, (), [[]])],
)
def test_a_chunk_ends_when_it_has_as_many_records_or_characters_as_memory_may_hold(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chunk_records: int,
    lengths: tuple[int, ...],
    chunks: list[list[int]],
) -> None:
    monkeypatch.setattr(reading, "CHUNK_CHARS", 1_000)
    written = Chunks(EvidenceFiles("jsonl", (), chunk_records=chunk_records), 3, str(tmp_path), LocalStorage())
    output = Output("yes", (Evidence(PageKey("title", "Nowhere"), "x"),))
    for n_chars in lengths:
        written.add(Example("r", "?" * n_chars, (output,), None, file="own.jsonl", line=1))
    written.end()

    assert _ordinals(written.examples.stored) == _ordinals(written.evidence.stored) == chunks
    for number, stored in enumerate(written.evidence.stored):
        keys = {
            Key(*key)
            for batch in read_stored(stored, LocalStorage())
            for key in zip(batch["part"].to_pylist(), batch["chunk"].to_pylist(), strict=True)
        }
        assert keys <= {Key(3, number)}


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ((((0, 0, 0), (1, 0, 0)),), r"own\.jsonl, line 1: evidence 0, 1 has no outcome"),
        ((((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)),), "1 outcomes belong to no evidence"),
        ((((0, 0, 0), (0, 0, 1), (1, 0, 0)), ((0, 0, 1),)), r"evidence \(0, 0, 1\) has two outcomes"),
    ],
    ids=["none", "of nothing", "twice"],
)
def test_outcomes_that_do_not_fit_the_evidences_end_the_job(
    tmp_path: Path, pieces: tuple[tuple[Place, ...], ...], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        list(settled_records(stage(tmp_path, *pieces), is_verified=False, accept=None))
