"""The records of a chunk with what became of their evidences: nothing is lost, nothing comes twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.errors import DataError
from kbsource.files import LocalStorage
from mapping.locate import locate_nowhere
from mapping.records import Evidence, Example, Output, PageKey
from mapping.resolve import Resolved
from pipelines.alignment import reading
from pipelines.alignment.reading import StagedExamples
from pipelines.alignment.settled import searched_records
from pipelines.alignment.staging import settled_row, write_settled

Key = tuple[int, int, int]


def stage(folder: Path, *settled: Key, aligned: tuple[Key, ...] = ()) -> str:
    """Stages two records in chunks of one, of two evidences and of one, and outcomes for the keys; gives the folder."""
    staging, storage = str(folder), LocalStorage()
    evidence = Evidence(PageKey("title", "Nowhere"), "x")
    with StagedExamples(staging, storage, 1) as examples:
        for number, n_evidences in enumerate((2, 1)):
            output = Output("yes", (evidence,) * n_evidences)
            examples.add(Example(f"r{number}", "?", (output,), None, file="own.jsonl", line=number + 1))
    alignment = locate_nowhere(Resolved(None, None, None, 0, "Nowhere"), "x")
    for path, keys in (("settled.arrow", settled), ("aligned/00000.arrow", aligned)):
        rows = [(key[0], settled_row(key, alignment, None)) for key in keys]
        write_settled(rows, storage, f"{staging}/{path}")
    return staging


def test_every_record_comes_with_the_outcomes_of_its_evidences_wherever_they_were_found(tmp_path: Path) -> None:
    staging = stage(tmp_path, (0, 0, 1), (1, 0, 0), aligned=((0, 0, 0),))

    found = {number: list(searched_records(staging, number)) for number in (0, 1)}

    assert [(one.ordinal, one.example.example_id, list(one.found)) for one in found[0]] == [(0, "r0", [(0, 0), (0, 1)])]
    assert [(one.ordinal, list(one.found)) for one in found[1]] == [(1, [(0, 0)])]
    assert {one.outcome for one in found[0][0].placed().values()} == {"page_missing"}


def test_a_chunk_ends_when_it_has_as_many_records_or_characters_as_memory_may_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK_CHARS", 1_000)
    with StagedExamples(str(tmp_path), LocalStorage(), 2) as examples:
        for n_chars in (1, 1, 1, 2_000, 1, 1):
            examples.add(Example("r", "?" * n_chars, (), None, file="own.jsonl", line=1))

    assert examples.starts == [0, 2, 4]
    with StagedExamples(str(tmp_path), LocalStorage(), 9) as examples:
        for n_chars in (1, 2_000, 1, 1):
            examples.add(Example("r", "?" * n_chars, (), None, file="own.jsonl", line=1))

    assert examples.starts == [0, 2]


@pytest.mark.parametrize(
    ("settled", "aligned", "said"),
    [
        (((0, 0, 0), (1, 0, 0)), (), r"own\.jsonl, line 1: evidence 0, 1 has no outcome"),
        (((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)), (), "chunk 0: 1 outcomes belong to no evidence"),
        (((0, 0, 0), (0, 0, 1), (1, 0, 0)), ((0, 0, 1),), r"evidence \(0, 0, 1\) has two outcomes"),
    ],
    ids=["none", "of nothing", "twice"],
)
def test_outcomes_that_do_not_fit_the_evidences_end_the_job(
    tmp_path: Path, settled: tuple[Key, ...], aligned: tuple[Key, ...], said: str
) -> None:
    staging = stage(tmp_path, *settled, aligned=aligned)

    with pytest.raises(DataError, match=said):
        list(searched_records(staging, 0))
