"""Rows by number, and what they are filtered and ordered by, are what reading everything would give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.files import LocalStorage
from mapping.inspector.derived.row_index import RowIndex, TableRows

ROWS = [
    {
        "name": f"Name {number}",
        "kind": [None, "a", "b"][number % 3],
        "score": None if number % 4 == 3 else number % 5 / 4,
    }
    for number in range(50)
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> TableRows:
    folder = tmp_path_factory.mktemp("rows")
    files = []
    for number, (start, end) in enumerate([(0, 20), (20, 20), (20, 21), (21, 50)]):
        schema = pa.schema([("name", pa.string()), ("kind", pa.string()), ("score", pa.float64())])
        path = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(ROWS[start:end], schema), path, row_group_size=7)
        files.append((str(path), end - start))
    return TableRows(files, LocalStorage())


@pytest.fixture(scope="module")
def index(rows: TableRows) -> RowIndex:
    return RowIndex(rows, texts=("kind",), numbers=("score",))


def test_rows_come_in_the_order_that_is_asked_for(rows: TableRows) -> None:
    numbers = [49, 0, 20, 19, 21, 7, 7, 33]
    assert rows.rows(numbers) == [ROWS[number] for number in numbers]
    assert rows.rows([3], ["name"]) == [{"name": "Name 3"}]
    assert rows.rows([]) == []
    assert (len(rows), rows.file_of(19), rows.file_of(20), rows.file_of(21)) == (50, 0, 2, 3)


def test_rows_with_a_value(rows: TableRows) -> None:
    assert list(rows.with_value("kind", "b")) == [row for row in ROWS if row["kind"] == "b"]
    assert list(rows.with_value("name", "Name 30", files=[3])) == [ROWS[30]]
    assert list(rows.with_value("name", "Name 30", files=[0, 1])) == []


def test_texts_are_looked_for_literally_and_case_apart(rows: TableRows) -> None:
    assert np.flatnonzero(rows.containing("name", "NAME 4")).tolist() == [4, *range(40, 50)]
    assert not rows.containing("name", "Name .").any()
    assert np.flatnonzero(rows.equal_to("name", "Name 4")).tolist() == [4]
    assert not rows.equal_to("kind", "c").any()


@pytest.mark.parametrize("kind", ["a", "b", None, "none that there is"])
def test_rows_of_a_text(index: RowIndex, kind: str | None) -> None:
    assert index.is_value("kind", kind).tolist() == [row["kind"] == kind for row in ROWS]


@pytest.mark.parametrize(("least", "most"), [(0.5, None), (None, 0.25), (0.25, 0.75), (None, None), (2, None)])
def test_rows_between_bounds(index: RowIndex, least: float | None, most: float | None) -> None:
    wanted = [
        row["score"] is not None and (least or 0) <= row["score"] <= (1 if most is None else most) for row in ROWS
    ]
    assert index.is_between("score", least, most).tolist() == wanted


@pytest.mark.parametrize("is_falling", [True, False])
def test_rows_in_order_of_a_number_have_those_without_it_last(index: RowIndex, is_falling: bool) -> None:
    chosen = index.is_value("kind", "a")
    found = index.ordered(chosen, by="score", is_falling=is_falling).tolist()
    scored = [number for number, row in enumerate(ROWS) if row["kind"] == "a" and row["score"] is not None]
    scored.sort(key=lambda number: -ROWS[number]["score"] if is_falling else ROWS[number]["score"])
    rest = [number for number, row in enumerate(ROWS) if row["kind"] == "a" and row["score"] is None]
    assert found == scored + rest


def test_counts_and_totals(index: RowIndex) -> None:
    assert index.counts("kind") == {"a": 17, "b": 16}
    assert index.counts("kind", index.is_between("score", 1, None))["a"] == sum(
        row["kind"] == "a" and row["score"] == 1 for row in ROWS
    )
    assert index.total("score", index.is_between("score", 1, 1)) == sum(row["score"] == 1 for row in ROWS)
    assert index.total("score", index.is_value("kind", "c")) is None
