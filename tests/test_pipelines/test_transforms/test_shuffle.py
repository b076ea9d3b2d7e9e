"""CollectSorted, Checkpoint and Regroup: what is kept, and what is shuffled."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.runtime.chunks import BatchRef, ChunkKey, read_chunk_report, read_stored
from kbsource.runtime.regroup import groups_in_place, merge_group, read_group, whole_runs, write_groups
from pipelines.primitives.shuffle import Checkpoint, CollectSorted, Regroup
from tests.support.chunk_functions import NUMBERS
from tests.support.examples import examples


def chunk(part: int, number: int, *values: int) -> tuple[ChunkKey, pa.RecordBatch]:
    return ChunkKey(part, number), pa.record_batch({"n": list(values)}, schema=NUMBERS)


def values(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [n for batch in batches for n in batch["n"].to_pylist()]


def tens(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = batch["n"].to_numpy() // 10
    return found


def test_a_checkpoint_gives_references_and_keeps_what_is_there(tmp_path: Path) -> None:
    for given_values in ((1, 2), (8, 9)):
        with TestPipeline(runner="FnApiRunner") as pipeline:
            kept = pipeline | beam.Create([chunk(0, 1, *given_values)]) | Checkpoint(str(tmp_path))
            assert_that(
                kept | beam.MapTuple(lambda key, stored: (key, stored.n_rows, values(read_stored(stored)))),
                equal_to([(ChunkKey(0, 1), 2, [1, 2])]),
            )


@pytest.mark.parametrize("is_stored", [False, True])
def test_regroup_gives_the_rows_of_each_group_in_the_order_of_the_keys(tmp_path: Path, is_stored: bool) -> None:
    chunks = [chunk(1, 0, 15, 3), chunk(0, 1, 11, 25), chunk(0, 0, 12, 1, 10), chunk(2, 0)]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        rows = pipeline | beam.Create(chunks)
        if is_stored:
            rows = rows | Checkpoint(str(tmp_path / "kept"))
        groups = rows | Regroup(str(tmp_path / "groups"), tens)
        assert_that(
            groups | beam.MapTuple(lambda group, pieces: (group, values(read_group(pieces)))),
            equal_to([(0, [1, 3]), (1, [12, 10, 11, 15]), (2, [25])]),
        )


def test_a_group_comes_in_order_by_merging(tmp_path: Path) -> None:
    chunks = [chunk(part, 0, *((n * 7919 + part) % 1000 for n in range(300))) for part in range(3)]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        groups = pipeline | beam.Create(chunks) | Regroup(str(tmp_path), _one_group, order=("n",))
        merged = groups | beam.MapTuple(lambda _, pieces: values(merge_group(pieces, ("n",))))
        assert_that(merged, equal_to([sorted(values(batch for _, batch in chunks))]))


def _one_group(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    return np.zeros(batch.num_rows, np.int64)


@settings(max_examples=examples(40))
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(-4, 4)), max_size=12), max_size=4), st.integers(1, 3))
def test_merging_is_sorting(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[tuple[int, int]]], at_once: int
) -> None:
    folder = tmp_path_factory.mktemp("groups")
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    pieces: list[BatchRef] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kbsource.runtime.regroup.PIECE_ROWS", at_once)
        for number, rows in enumerate(chunks):
            batch = pa.record_batch([pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)], schema=schema)
            path = str(folder / f"{number}.arrow")
            found = write_groups([batch], [np.zeros(len(rows), np.int64)], schema, path=path, order=("a", "b"))
            pieces += [stored for _, stored in found]
        merged = list(merge_group(pieces, ("a", "b")))

    assert [tuple(row.values()) for batch in merged for row in batch.to_pylist()] == sorted(chain.from_iterable(chunks))


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30), st.integers(1, 4))
def test_rows_that_are_in_groups_are_not_written_again(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], at_once: int
) -> None:
    path = str(tmp_path_factory.mktemp("groups") / "groups.arrow")
    schema = pa.schema([("n", pa.int64()), ("a", pa.int64())])
    batch = pa.record_batch([pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)], schema=schema)

    def parts_of(batches: list[pa.RecordBatch], stored: BatchRef) -> list[tuple[int, BatchRef]] | None:
        groups = [of.column("n").to_numpy() for of in batches]
        return groups_in_place(batches, groups, stored, order=("a",))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kbsource.runtime.regroup.PIECE_ROWS", at_once)
        written = write_groups([batch], [batch["n"].to_numpy()], schema, path=path, order=("a",))
    stored = read_chunk_report(path)[0]
    batches = list(read_stored(stored))
    assert parts_of(batches, stored) == written
    if len(batches) > 1:
        assert parts_of([pa.concat_batches(batches)], stored) is None or len(written) == 1
        assert parts_of(batches[::-1], stored) is None or len(set(rows)) == 1


def test_of_nothing_one_empty_list() -> None:
    with TestPipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | beam.Create([]) | CollectSorted(), equal_to([[]]))


@settings(max_examples=examples(60))
@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 7))
def test_runs_of_equal_rows_are_in_one_batch(numbers: list[int], size: int) -> None:
    numbers = sorted(numbers)
    batches = [
        pa.record_batch({"n": numbers[start : start + size]}, schema=NUMBERS) for start in range(0, len(numbers), size)
    ]

    found = [batch["n"].to_pylist() for batch in whole_runs(batches, ["n"])]

    assert [n for group in found for n in group] == numbers
    assert all(found)
    for number in sorted(set(numbers)):
        assert sum(number in batch for batch in found) == 1
