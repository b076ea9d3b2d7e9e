"""CollectSorted, Checkpoint, Regroup and map_groups: what is kept, what is shuffled, what is worked on together."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.runtime.chunks import BatchRef, ChunkKey, read_stored
from kbsource.runtime.regroup import merge_group, read_group, whole_runs, write_groups
from pipelines.primitives.group_map import COUNTS, TOLD, By, GroupWork, map_groups
from pipelines.primitives.shuffle import Checkpoint, Collected, CollectSorted, Regroup, StepCollector, StepOutputs
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


def add_up(work: GroupWork, more: int) -> None:
    """Gives the sum of both inputs with what is given, and the rows of the first that are even, in order."""
    ones = values(work.rows("ones"))
    others = work.table("others", NUMBERS)["n"].to_pylist()
    if 13 in ones:
        raise AssertionError("done again")
    work.add("sums", (sum(ones) + sum(others) + more,))
    work.extend("even", (np.array([n for n in ones if n % 2 == 0], np.int64),))
    work.counts["rows"] += len(ones) + len(others)


def copy(work: GroupWork) -> None:
    """Gives what another step gave."""
    for batch in work.rows("even"):
        work.write("same", batch)


def _keep(values: list[Any], path: Path) -> None:
    path.write_bytes(pickle.dumps(values))


def _told(collected: Collected, *, path: Path) -> Iterable[None]:
    found = StepOutputs(collected)
    pairs = [[values(read_stored(batch)) for batch in step] for step in found.steps("pairs")]
    _keep([pairs, found.counts("numbers")], path)
    return ()


def _run(folder: Path, ones: list[Any]) -> list[list[Any]]:
    names, steps = ("sums", "even", COUNTS), StepCollector()
    with TestPipeline(runner="FnApiRunner") as pipeline:
        more = pipeline | "more" >> beam.Create([1000])
        inputs = {
            "ones": pipeline | "1" >> beam.Create(ones),
            "others": pipeline | "2" >> beam.Create([chunk(0, 0, 25, 31)]),
        }
        made = inputs | map_groups(
            add_up,
            str(folder / "made"),
            outputs={"sums": NUMBERS, "even": NUMBERS},
            by={"ones": By(tens, ("n",)), "others": By(tens)},
            given=(beam.pvalue.AsSingleton(more),),
            step=steps.step(even="pairs", counts="numbers"),
        )
        steps.take(made[TOLD])
        steps.finish(partial(_told, path=folder / "told"))
        for name in names:
            collected = made[name] | f"collect {name}" >> CollectSorted()
            assert_that(collected, partial(_keep, path=folder / name), label=f"take {name}")
        again = {"even": made["even"]} | "again" >> map_groups(copy, str(folder / "again"), outputs={"same": NUMBERS})
        assert_that(again["same"] | beam.Keys(), equal_to([(0, 0), (0, 1)]), label="groups of even")
    return [pickle.loads((folder / name).read_bytes())[0] for name in names]  # noqa: S301  # written above


def test_inputs_come_together_by_group_and_outputs_without_rows_do_not_come(tmp_path: Path) -> None:
    chunks = [chunk(1, 0, 12, 4, 21), chunk(0, 0, 2, 11, 10)]

    sums, even, counts = _run(tmp_path, chunks)

    def in_groups(found: list[Any]) -> list[Any]:
        return [(key, values(read_stored(stored))) for key, stored in found]

    assert in_groups(sums) == [
        (ChunkKey(0, 0), [1006]),
        (ChunkKey(0, 1), [1033]),
        (ChunkKey(0, 2), [1046]),
        (ChunkKey(0, 3), [1031]),
    ]
    assert in_groups(even) == [(ChunkKey(0, 0), [2, 4]), (ChunkKey(0, 1), [10, 12])]
    assert counts == [(ChunkKey(0, n), {"rows": rows}) for n, rows in enumerate((2, 3, 2, 1))]

    assert pickle.loads((tmp_path / "told").read_bytes()) == [[[[2, 4], [10, 12]]], {"rows": 8}]  # noqa: S301

    # What is there is not done again.
    assert _run(tmp_path, [*chunks, chunk(2, 0, 13)])[2] == counts


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
