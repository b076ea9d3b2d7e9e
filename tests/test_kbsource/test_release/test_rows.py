"""Tables are written in groups of rows, however few rows Python holds at once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.files import LocalStorage
from kbsource.release.layout import shard_path
from kbsource.release.reader import read_table
from kbsource.release.writer import write_rows
from kbsource.runtime import chunks

SCHEMA = pa.schema([pa.field("number", pa.int64(), nullable=False), pa.field("texts", pa.list_(pa.string()))])


@pytest.mark.parametrize("n_at_once", [1, 7, 1000])
def test_groups_have_the_rows_that_were_asked_for(
    n_at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(number, [str(number)] * (number % 3) if number % 5 else None) for number in range(100)]

    def written(name: str) -> bytes:
        path = shard_path("numbers", 0, 1)
        given = {"output": str(tmp_path / name), "file": path, "storage": LocalStorage()}
        assert write_rows(iter(rows), "numbers", SCHEMA, group_rows=40, **given).rows == 100
        return (tmp_path / name / path).read_bytes()

    expected = written("usual")
    monkeypatch.setattr(chunks, "_ROWS_AT_ONCE", n_at_once)
    assert written("other") == expected

    file = pq.ParquetFile(tmp_path / "other" / shard_path("numbers", 0, 1))
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [40, 40, 20]
    found = [tuple(row.values()) for row in read_table(str(tmp_path / "other"), "numbers", LocalStorage())]
    assert found == rows
