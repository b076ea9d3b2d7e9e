"""ReadTable: a table in chunks, whatever its row groups and files."""

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
from apache_beam.testing.util import assert_that

from kbsource.runtime.chunks import Key
from pipelines.transforms import read_table
from pipelines.transforms.read_table import ReadStatements, ReadTable

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


def _plain(key: Key, batch: pa.RecordBatch) -> tuple[Key, list[tuple[str, int]]]:
    assert batch.schema.names == ["entity_id", "n"]
    return Key(*key), list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _read(transform: ReadTable, folder: Path) -> list[tuple[Key, list[tuple[str, int]]]]:
    with TestPipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | transform | beam.MapTuple(_plain), partial(_keep, path=folder / "kept"))
    return sorted(pickle.loads((folder / "kept").read_bytes()))  # noqa: S301  # written above


@pytest.mark.parametrize("group_rows", [1, 2, 5, 50])
@pytest.mark.parametrize("edges", [(0, 20), (0, 4, 11, 11, 15, 20)])
def test_rows_in_order_and_those_of_an_entity_in_one_batch(
    edges: tuple[int, ...], group_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_table, "CHUNK_ROWS", 3)
    paths = _write(tmp_path, edges, group_rows)

    plain = _read(ReadTable(paths, ("entity_id", "n")), tmp_path)
    whole = _read(ReadStatements(paths, ("entity_id", "n")), tmp_path)

    assert [row for _, rows in plain for row in rows] == ROWS
    assert [row for _, rows in whole for row in rows] == ROWS
    assert all(
        {name for name, _ in one} & {name for name, _ in other} == set() for (_, one), (_, other) in pairwise(whole)
    )
    assert len(plain) > 1 or group_rows == 50


def test_nothing_of_no_rows(tmp_path: Path) -> None:
    assert _read(ReadStatements(_write(tmp_path, (0, 0), 5), ("entity_id", "n")), tmp_path) == []
    assert _read(ReadTable([], ("entity_id", "n")), tmp_path) == []
