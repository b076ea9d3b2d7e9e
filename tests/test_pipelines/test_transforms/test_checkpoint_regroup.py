"""Checkpoint, Regroup and WriteTable: what is kept, what is shuffled, what is written."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.files import LocalStorage
from kbsource.release.kind import ListingKind
from kbsource.release.manifest import FileEntry
from kbsource.release.verify import verify
from kbsource.runtime.chunks import Key, Stored, read_stored
from kbsource.runtime.regroup import merge_group, read_group, write_groups
from kbsource.schema import TEMPLATES
from pipelines.primitives.checkpoint import Checkpoint
from pipelines.primitives.regroup import Regroup
from pipelines.primitives.write_table import WriteTable
from pipelines.transforms.commit_release import CommitRelease
from tests.support.chunk_functions import NUMBERS
from tests.support.examples import examples


def chunk(part: int, number: int, *values: int) -> tuple[Key, pa.RecordBatch]:
    return Key(part, number), pa.record_batch({"n": list(values)}, schema=NUMBERS)


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
                kept
                | beam.MapTuple(lambda key, stored: (key, stored.n_rows, values(read_stored(stored, LocalStorage())))),
                equal_to([(Key(0, 1), 2, [1, 2])]),
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
            groups | beam.MapTuple(lambda group, pieces: (group, values(read_group(pieces, LocalStorage())))),
            equal_to([(0, [1, 3]), (1, [12, 10, 11, 15]), (2, [25])]),
        )


def test_a_group_comes_in_order_by_merging(tmp_path: Path) -> None:
    chunks = [chunk(part, 0, *((n * 7919 + part) % 1000 for n in range(300))) for part in range(3)]
    with TestPipeline(runner="FnApiRunner") as pipeline:
        groups = pipeline | beam.Create(chunks) | Regroup(str(tmp_path), _one_group, order=("n",))
        merged = groups | beam.MapTuple(lambda _, pieces: values(merge_group(pieces, LocalStorage(), ("n",))))
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
    pieces: list[Stored] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kbsource.runtime.regroup.PIECE_ROWS", at_once)
        for number, rows in enumerate(chunks):
            batch = pa.record_batch([pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)], schema=schema)
            path = str(folder / f"{number}.arrow")
            found = write_groups(
                [batch], [np.zeros(len(rows), np.int64)], schema, path=path, storage=LocalStorage(), order=("a", "b")
            )
            pieces += [stored for _, stored in found]
        merged = list(merge_group(pieces, LocalStorage(), ("a", "b")))

    assert [tuple(row.values()) for batch in merged for row in batch.to_pylist()] == sorted(chain.from_iterable(chunks))


def templates(part: int, number: int, *names: str) -> tuple[Key, pa.RecordBatch]:
    numbers = {"uses": 1, "pages": 1, "shown_chars": 0, "lost_chars": 0}
    rows = [{"name": name, "outcome": "unknown", **numbers} for name in names]
    return Key(part, number), pa.RecordBatch.from_pylist(rows, TEMPLATES)


def test_a_part_becomes_a_file_in_the_order_of_its_chunks(tmp_path: Path) -> None:
    chunks = [templates(4, 1, "c"), templates(7, 0, "d"), templates(4, 0, "a", "b")]
    for folder, given_chunks in (("one", chunks), ("two", chunks[::-1])):
        with TestPipeline(runner="FnApiRunner") as pipeline:
            entries = pipeline | beam.Create(given_chunks) | WriteTable("templates", str(tmp_path / folder))
            assert_that(
                entries | beam.Map(lambda entry: (type(entry), entry.file, entry.rows)),
                equal_to(
                    [
                        (FileEntry, "templates/templates-00000-of-00002.parquet", 3),
                        (FileEntry, "templates/templates-00001-of-00002.parquet", 1),
                    ]
                ),
            )

    written = [sorted((tmp_path / folder / "templates").iterdir()) for folder in ("one", "two")]
    assert [pq.read_table(path)["name"].to_pylist() for path in written[0]] == [["a", "b", "c"], ["d"]]
    assert [path.read_bytes() for path in written[0]] == [path.read_bytes() for path in written[1]]


def test_no_chunks_are_one_empty_file(tmp_path: Path) -> None:
    with TestPipeline(runner="FnApiRunner") as pipeline:
        entries = pipeline | beam.Create([]) | WriteTable("templates", str(tmp_path))
        assert_that(entries | beam.Map(lambda entry: entry.rows), equal_to([0]))


GOATS = pa.schema([pa.field("goat_id", pa.int64()), pa.field("name", pa.string())])
HERD = ListingKind(name="herd", format="goats-1", made_by="a shepherd", tables={"goats": GOATS})


def test_a_kind_of_ones_own_becomes_a_release_that_can_be_verified(tmp_path: Path) -> None:
    goats = pa.RecordBatch.from_pylist([{"goat_id": 7, "name": "Ada"}], GOATS)
    output = str(tmp_path / "herd")
    with TestPipeline(runner="FnApiRunner") as pipeline:
        entries = pipeline | beam.Create([(Key(0, 0), goats)]) | WriteTable("goats", output, kind=HERD)
        made = entries | CommitRelease(output, facts={"made_from": "a meadow"}, kind=HERD)
        assert_that(made, equal_to([output]))

    report = verify(output, [HERD])
    assert (report.findings, report.kind, report.n_rows) == ((), "herd", 1)
    assert HERD.read(output, LocalStorage()).facts["facts"] == {"made_from": "a meadow"}
