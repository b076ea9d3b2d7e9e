"""Tables read in chunks, whatever their row groups and files, and written part by part."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from kbsource.columns import schema_of
from kbsource.records import TemplateRow
from kbsource.release.kind import ListingKind
from kbsource.release.manifest import FileEntry
from kbsource.release.verify import verify
from kbsource.runtime.chunks import ChunkKey
from pipelines.transforms import tables
from pipelines.transforms.tables import CommitRelease, ReadStatements, ReadTable, WriteTable

ROWS = [(f"Q{number // 3}" if number < 9 else "Q7", number) for number in range(20)]
"""Three statements of each of three entities, and eleven of one."""


def _write(folder: Path, edges: Sequence[int], group_rows: int) -> list[str]:
    schema = pa.schema([("entity_id", pa.string()), ("n", pa.int64()), ("more", pa.string())])
    paths = []
    for number, (start, end) in enumerate(pairwise(edges)):
        rows = [{"entity_id": name, "n": n, "more": "x"} for name, n in ROWS[start:end]]
        paths.append(str(folder / f"{number}.parquet"))
        pq.write_table(pa.Table.from_pylist(rows, schema), paths[-1], row_group_size=group_rows)
    return paths


def _keep(values: list[Any], path: Path) -> None:
    path.write_bytes(pickle.dumps(values))


def _plain(key: ChunkKey, batch: pa.RecordBatch) -> tuple[ChunkKey, list[tuple[str, int]]]:
    assert batch.schema.names == ["entity_id", "n"]
    return ChunkKey(*key), list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _read(transform: ReadTable, folder: Path) -> list[tuple[ChunkKey, list[tuple[str, int]]]]:
    with TestPipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | transform | beam.MapTuple(_plain), partial(_keep, path=folder / "kept"))
    return sorted(pickle.loads((folder / "kept").read_bytes()))  # noqa: S301  # written above


@pytest.mark.parametrize("group_rows", [1, 2, 5, 50])
@pytest.mark.parametrize("edges", [(0, 20), (0, 4, 11, 11, 15, 20)])
def test_rows_in_order_and_those_of_an_entity_in_one_batch(
    edges: tuple[int, ...], group_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "CHUNK_ROWS", 3)
    paths = _write(tmp_path, edges, group_rows)

    plain = _read(ReadTable(paths, ("entity_id", "n")), tmp_path)
    whole = _read(ReadStatements(paths, ("entity_id", "n")), tmp_path)

    assert [row for _, rows in plain for row in rows] == ROWS
    assert [row for _, rows in whole for row in rows] == ROWS
    assert all(
        {name for name, _ in row} & {name for name, _ in other} == set() for (_, row), (_, other) in pairwise(whole)
    )
    assert len(plain) > 1 or group_rows == 50


def test_nothing_of_no_rows(tmp_path: Path) -> None:
    assert _read(ReadStatements(_write(tmp_path, (0, 0), 5), ("entity_id", "n")), tmp_path) == []
    assert _read(ReadTable([], ("entity_id", "n")), tmp_path) == []


def templates(part: int, number: int, *names: str) -> tuple[ChunkKey, pa.RecordBatch]:
    numbers = {"uses": 1, "pages": 1, "shown_chars": 0, "lost_chars": 0}
    rows = [{"name": name, "outcome": "unknown", **numbers} for name in names]
    return ChunkKey(part, number), pa.RecordBatch.from_pylist(rows, schema_of(TemplateRow))


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
        entries = pipeline | beam.Create([(ChunkKey(0, 0), goats)]) | WriteTable("goats", output, kind=HERD)
        made = entries | CommitRelease(output, facts={"made_from": "a meadow"}, kind=HERD)
        assert_that(made, equal_to([output]))

    report = verify(output, [HERD])
    assert (report.findings, report.kind, report.n_rows) == ((), "herd", 1)
    assert HERD.read(output).facts["facts"] == {"made_from": "a meadow"}
