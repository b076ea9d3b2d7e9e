"""A step that joins tables: its rows and counts, once, with the chunks of its inputs in the order of their keys."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that

from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, chunk_path, read_stored, write_chunk
from kbsource.runtime.database import ordered_batches
from pipelines.primitives.join_tables import JOINED, Join, StepTable, TableJoin, join_tables
from pipelines.primitives.shuffle import CollectSorted

NUMBERS = pa.schema([pa.field("n", pa.int64(), nullable=False)])


def chunk(folder: Path, number: int, *values: int) -> tuple[ChunkKey, BatchRef]:
    """A chunk of numbers."""
    key, batch = ChunkKey(0, number), pa.record_batch({"n": values}, schema=NUMBERS)
    return key, write_chunk([batch], NUMBERS, Report(Counter(chunks=1)), path=chunk_path(str(folder), key))


def join_numbers(work: TableJoin, more: int, *, least: int) -> None:
    """Gives the numbers that both tables have, in tens, each with what is given."""
    for report in work.reports("ones"):
        work.counts.update(report.counts)
    with work.open() as db:
        query = f"select n + {more} as n from ones join others using (n) where n >= {least} order by n"
        for number, batch in enumerate(ordered_batches(db, query, NUMBERS, n_rows=10)):
            work.write("both", [batch], number=number)
    work.facts["least"] = least


def _never(_: TableJoin, *given: Any, **bound: Any) -> None:
    raise AssertionError("done again")


def _store(values: list[Any], path: Path) -> None:
    path.write_bytes(pickle.dumps(values))


def _run(folder: Path, function: Any) -> Iterator[Any]:
    ones = [chunk(folder / "1", 1, *range(20, 40)), chunk(folder / "1", 0, *range(10))]
    others = [chunk(folder / "2", 0, *range(5, 30))]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        more = pipeline | "more" >> beam.Create([1000])
        inputs = {
            name: StepTable(pipeline | name >> beam.Create(chunks), NUMBERS)
            for name, chunks in (("ones", ones), ("others", others))
        }
        given = beam.pvalue.AsSingleton(more)
        joined, done = join_tables(
            *("join", Join(function, {"both": NUMBERS}), inputs, given),
            folder=str(folder / "joined"),
            memory_mb=100,
            least=7,
        )
        both = joined["both"].chunks | "collect" >> CollectSorted()
        for name, values in (("both", both), ("done", done)):
            assert_that(values, partial(_store, path=folder / name), label=f"take {name}")
    for name in ("both", "done"):
        yield pickle.loads((folder / name).read_bytes())[0]  # noqa: S301  # written above


def test_one_worker_joins_all_chunks_and_a_finished_join_is_not_done_again(tmp_path: Path) -> None:
    both, done = _run(tmp_path, join_numbers)

    found = [[n for batch in read_stored(BatchRef(*ref)) for n in batch["n"].to_pylist()] for _, ref in both]
    assert found == [[1007, 1008, 1009, *range(1020, 1027)], [1027, 1028, 1029]]
    assert [BatchRef(*ref).n_bytes for _, ref in both] == [80, 24]
    assert done == ({"chunks": 2}, {"least": 7})
    assert list(_run(tmp_path, _never)) == [both, done]

    (tmp_path / "joined" / JOINED).unlink()
    assert list(_run(tmp_path, join_numbers)) == [both, done]
