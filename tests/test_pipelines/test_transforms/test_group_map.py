"""GroupMap and Gather: groups of several inputs worked on, and all that comes of them at one place."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.files import LocalStorage
from kbsource.runtime.chunks import Key, read_stored
from kbsource.runtime.regroup import whole_runs
from pipelines.primitives.gather import Gather
from pipelines.primitives.group_map import COUNTS, GroupMap, GroupWork, as_groups
from pipelines.primitives.regroup import Regroup
from tests.support.chunk_functions import NUMBERS
from tests.support.examples import examples


def tens(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = batch["n"].to_numpy() // 10
    return found


def add_up(work: GroupWork, more: int) -> None:
    """Gives the sum of both inputs with what is given, and the rows of the first that are even, in order."""
    ones = [n for batch in work.rows("ones") for n in batch["n"].to_pylist()]
    others = work.table("others", NUMBERS)["n"].to_pylist()
    if 13 in ones:
        raise AssertionError("done again")
    work.add("sums", (sum(ones) + sum(others) + more,))
    work.extend("even", (np.array([n for n in ones if n % 2 == 0], np.int64),))
    work.counts["rows"] += len(ones) + len(others)


def _chunk(part: int, *values: int) -> tuple[Key, pa.RecordBatch]:
    return Key(part, 0), pa.record_batch({"n": list(values)}, schema=NUMBERS)


def _keep(values: list[Any], path: Path) -> None:
    path.write_bytes(pickle.dumps(values))


def _run(folder: Path, ones: list[Any]) -> list[list[Any]]:
    names = ("sums", "even", COUNTS)
    with TestPipeline(runner="FnApiRunner") as pipeline:
        more = pipeline | "more" >> beam.Create([1000])
        inputs = {
            "ones": pipeline | "1" >> beam.Create(ones) | "by 1" >> Regroup(str(folder / "a"), tens, order=("n",)),
            "others": pipeline | "2" >> beam.Create([_chunk(0, 25, 31)]) | "by 2" >> Regroup(str(folder / "b"), tens),
        }
        made = inputs | GroupMap(
            add_up,
            str(folder / "made"),
            outputs={"sums": NUMBERS, "even": NUMBERS},
            orders={"ones": ("n",)},
            given=(beam.pvalue.AsSingleton(more),),
        )
        for name in names:
            gathered = made[name] | f"gather {name}" >> Gather()
            assert_that(gathered, partial(_keep, path=folder / name), label=f"take {name}")
        groups = made["even"] | "groups" >> beam.MapTuple(as_groups) | "group" >> beam.Keys()
        assert_that(groups, equal_to([0, 1]), label="groups of even")
    return [pickle.loads((folder / name).read_bytes())[0] for name in names]  # noqa: S301  # written above


def test_inputs_come_together_by_group_and_outputs_without_rows_do_not_come(tmp_path: Path) -> None:
    chunks = [_chunk(1, 12, 4, 21), _chunk(0, 2, 11, 10)]

    sums, even, counts = _run(tmp_path, chunks)

    def values(found: list[Any]) -> list[Any]:
        return [
            (key, [n for batch in read_stored(stored, LocalStorage()) for n in batch["n"].to_pylist()])
            for key, stored in found
        ]

    assert values(sums) == [(Key(0, 0), [1006]), (Key(0, 1), [1033]), (Key(0, 2), [1046]), (Key(0, 3), [1031])]
    assert values(even) == [(Key(0, 0), [2, 4]), (Key(0, 1), [10, 12])]
    assert counts == [(Key(0, n), {"rows": rows}) for n, rows in enumerate((2, 3, 2, 1))]

    # What is there is not done again.
    assert _run(tmp_path, [*chunks, _chunk(2, 13)])[2] == counts


def test_of_nothing_one_empty_list() -> None:
    with TestPipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | beam.Create([]) | Gather(), equal_to([[]]))


@settings(max_examples=examples(60))
@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 7))
def test_runs_of_equal_rows_are_in_one_batch(numbers: list[int], size: int) -> None:
    numbers = sorted(numbers)
    batches = [
        pa.record_batch({"n": numbers[start : start + size]}, schema=NUMBERS) for start in range(0, len(numbers), size)
    ]

    found = [batch["n"].to_pylist() for batch in whole_runs(batches, ["n"])]

    assert [n for one in found for n in one] == numbers
    assert all(found)
    for one in sorted(set(numbers)):
        assert sum(one in batch for batch in found) == 1
