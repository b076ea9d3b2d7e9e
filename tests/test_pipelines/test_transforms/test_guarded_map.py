"""GuardedMap: chunk by chunk in guarded processes, with every output, and what goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from kbsource.errors import SetupError
from kbsource.records import BadRecord
from kbsource.runtime.chunks import ChunkKey, read_stored
from kbsource.site import Site
from pipelines.primitives import guarded_map
from pipelines.primitives.guarded_chunk import pickled_text
from pipelines.primitives.guarded_map import GuardedMap
from pipelines.runners.running import run_pipeline
from pipelines.transforms import AlignSpans, CutPassages, ParseWikitext
from tests.support.chunk_functions import NUMBERS, Doubling


def chunk(part: int, *values: int) -> tuple[ChunkKey, pa.RecordBatch]:
    return ChunkKey(part, 0), pa.record_batch({"n": list(values)}, schema=NUMBERS)


def bad(value: int, reason: str, number: int) -> BadRecord:
    return BadRecord("double", str(value), reason, "", "", number)


def numbers(element: tuple[ChunkKey, Any]) -> tuple[int, list[int]]:
    key, rows = element
    if isinstance(rows, pa.RecordBatch):
        return key[0], rows["n"].to_pylist()
    return key[0], [n for batch in read_stored(rows) for n in batch["n"].to_pylist()]


def check(
    moods: dict[int, str],
    chunks: list[tuple[ChunkKey, pa.RecordBatch]],
    *,
    made: list[tuple[int, list[int]]],
    rejected: list[BadRecord],
    once: Path | None = None,
    **options: Any,
) -> None:
    make = Doubling(tuple(moods.items()), None if once is None else str(once))
    pipeline = TestPipeline(runner="FnApiRunner")
    results = pipeline | beam.Create(chunks) | GuardedMap(make, **options)
    assert_that(results.chunks | beam.Map(numbers), equal_to(made), label="chunks")
    assert_that(results.rejected, equal_to(rejected), label="rejected")
    counts = [(ChunkKey(part, 0), {"made": len(values)}) for part, values in made]
    assert_that(results.counts, equal_to(counts), label="counts")
    run_pipeline(pipeline, "test")


def test_rows_rejects_and_counts_come_of_every_chunk_in_memory() -> None:
    check(
        {},
        [chunk(0, 1, 2), chunk(1, -3, 4), chunk(2)],
        made=[(0, [2, 4]), (1, [8]), (2, [])],
        rejected=[bad(-3, "negative", 1)],
    )


def test_with_a_folder_references_come_and_the_same_chunk_is_not_done_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {"folder": str(tmp_path / "kept"), "made": [(0, [2, 4])], "rejected": []}
    check({}, [chunk(0, 1, 2)], **options)
    content = (tmp_path / "kept" / "00000-00000.arrow").read_bytes()

    check({1: "segfault"}, [chunk(0, 1, 2)], **options)

    assert (tmp_path / "kept" / "00000-00000.arrow").read_bytes() == content


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mood", "how"),
    [("hang", "timeout"), ("segfault", "crash"), ("raise", "error"), ("memory", "crash"), ("kill", "crash")],
)
def test_a_row_that_ends_its_process_alone_too_is_told_and_the_others_are_done(mood: str, how: str) -> None:
    check(
        {2: mood},
        [chunk(0, 1, 2, 3)],
        made=[(0, [2, 6])],
        rejected=[bad(2, f"{how}_1", 2)],
        timeout_s=0.3,
        memory_bytes=2 << 30,
    )


@pytest.mark.slow
@pytest.mark.parametrize("mood", ["segfault", "kill", "hang"])
def test_what_happens_to_a_process_once_changes_nothing(tmp_path: Path, mood: str) -> None:
    check({2: mood}, [chunk(0, 1, 2, 3)], made=[(0, [2, 4, 6])], rejected=[], once=tmp_path, timeout_s=0.3)

    assert (tmp_path / "2").exists()


@pytest.mark.slow
def test_a_side_input_is_what_the_function_is_made_with() -> None:
    with TestPipeline(runner="FnApiRunner") as pipeline:
        plus = beam.pvalue.AsSingleton(pipeline | "plus" >> beam.Create([7]))
        results = pipeline | beam.Create([chunk(0, 1)]) | GuardedMap(Doubling(), given=(plus,))
        assert_that(results.chunks | beam.Map(numbers), equal_to([(0, [9])]))


def test_wrong_set_up_ends_the_job_with_its_own_words() -> None:
    pipeline = TestPipeline(runner="FnApiRunner")
    _ = pipeline | beam.Create([chunk(0, 1)]) | GuardedMap(Doubling(((1, "set-up"),)))

    with pytest.raises(SetupError, match=r"^no such index; build it first$"):
        run_pipeline(pipeline, "test")


@pytest.mark.slow
def test_too_many_bad_rows_end_the_job() -> None:
    pipeline = TestPipeline(runner="FnApiRunner")
    moods = tuple((n, "raise") for n in range(1, 30))
    _ = pipeline | beam.Create([chunk(0, *range(1, 30))]) | GuardedMap(Doubling(moods))

    with pytest.raises(
        SetupError, match=r"(?s)chunk 0-0: 26 rows crashed the worker process.* row 26: error, .*IndexError"
    ):
        run_pipeline(pipeline, "test")


@pytest.mark.slow
def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    check({}, [chunk(0, 1)], made=[(0, [2])], rejected=[])

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "module",
    [
        "kbsource.pages.articles",
        "mapping.passages.corpus",
        "pipelines.alignment.search",
        "kbsource.wikidata.parts",
        "pipelines.primitives.guarded_chunk",
        "pipelines.qampari.pages",
    ],
)
def test_what_guarded_processes_load_is_without_beam_which_would_cost_each_two_seconds(module: str) -> None:
    code = f"import sys, {module}; sys.exit('apache_beam' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("module", ["kbsource.pages.articles", "kbsource.wikidata.parts"])
def test_processes_that_parse_load_no_database(module: str) -> None:
    code = f"import sys, {module}; sys.exit('duckdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("transform", [lambda kb: ParseWikitext(Site()), lambda kb: CutPassages(), AlignSpans])
def test_what_guarded_processes_are_given_is_without_beam(
    transform: Callable[[str], object], release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(guarded_map, "pickled_text", lambda make: given.append(pickled_text(make)) or given[-1])
    transform(str(release))

    (text,) = given
    code = (
        f"import base64, pickle, sys; pickle.loads(base64.b64decode({text!r})); sys.exit('apache_beam' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
