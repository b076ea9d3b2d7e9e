"""Joins of chunks with SQL: the same rows with any number of threads, and no copy that cannot fit."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kbsource.columns import schema_of
from kbsource.errors import SetupError
from kbsource.pageviews import TOTALS, TitleViews
from kbsource.runtime import warehouse as module
from kbsource.runtime.chunks import BatchRef, Report, read_chunk_report, write_chunk
from kbsource.runtime.database import MEMORY_MB, ordered_batches
from kbsource.runtime.warehouse import StoredTable, ranges_of, warehouse

SCHEMA = schema_of(TitleViews)
TITLES = np.array([f"{first}{number}" for first in ("a", "Z", "É", "ﬀ", "𝔘") for number in range(20_000)])


def stored(folder: Path, n_chunks: int, n_rows: int) -> tuple[StoredTable, Counter[tuple[str, int]]]:
    """Chunks of sums, and the totals as a dictionary computes them."""
    chunks, totals = [], Counter[tuple[str, int]]()
    for number in range(n_chunks):
        random = np.random.default_rng(number)
        titles = random.choice(TITLES, n_rows)
        page_ids, views = random.integers(-1, 3, n_rows), random.integers(0, 1 << 40, n_rows)
        for title, page_id, n in zip(titles.tolist(), page_ids.tolist(), views.tolist(), strict=True):
            totals[title, page_id] += n
        columns = [pa.array(titles), pa.array(page_ids, mask=page_ids == -1), pa.array(views)]
        batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        path = str(folder / f"{number}.arrow")
        chunks.append(write_chunk([batch], SCHEMA, Report(), path=path))
    return StoredTable(SCHEMA, chunks), totals


def test_rows_weigh_their_bytes_unless_the_writer_counts_something_else(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pylist([{"title": "a", "page_id": None, "views": 1}] * 9, SCHEMA)
    for report, weight in ((Report(), 2 * batch.nbytes), (Report(n_bytes=5), 5)):
        path = str(tmp_path / f"{weight}.arrow")
        chunk = write_chunk([batch, batch], SCHEMA, report, path=path)
        assert (chunk.n_bytes, read_chunk_report(path)[0]) == (weight, chunk)


@pytest.mark.slow  # many rows
def test_page_views_are_summed_in_order_with_any_number_of_threads(tmp_path: Path) -> None:
    table, totals = stored(tmp_path, 3, 130_000)  # threads share a table by 122,880 rows
    expected = [(title, None if page_id == -1 else page_id, n) for (title, page_id), n in sorted(totals.items())]
    found = []
    for threads in (1, 2, 7):
        with warehouse({"sums": table}, threads=threads, memory_mb=MEMORY_MB) as db:
            found.append(list(ordered_batches(db, TOTALS, SCHEMA, n_rows=10_000)))
    rows = [tuple(row.values()) for batch in found[0] for row in batch.to_pylist()]
    assert rows == expected
    assert {batch.num_rows for batch in found[0][:-1]} == {10_000}
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_the_columns_of_a_table_are_read_and_chunks_may_be_missing(tmp_path: Path) -> None:
    table, totals = stored(tmp_path, 1, 100)
    titles = pa.schema([SCHEMA.field("title")])
    with warehouse(
        {"titles": table._replace(schema=titles), "nothing": StoredTable(SCHEMA, ())}, memory_mb=MEMORY_MB
    ) as db:
        assert db.execute("select count(distinct title) from titles").fetchall() == [
            (len({title for title, _ in totals}),)
        ]
        assert db.execute("describe titles").fetchall()[0][0] == "title"
        assert db.execute("select count(*) from nothing").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "shutil",
            SimpleNamespace(disk_usage=lambda _: SimpleNamespace(free=11_999_999)),
            r"joining 4 MB of rows needs 16 MB of disk space, and only 12 MB are free\. Set TMPDIR",
        ),
        ("memory_bytes", lambda: 407_000_000, "needs 408 MB of memory, and this worker's machine has only 407 MB"),
    ],
)
def test_tables_that_do_not_fit_are_refused_before_they_are_read(
    name: str, value: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, value)
    large = StoredTable(SCHEMA, [BatchRef("never read", 0, 1, 1, 4_000_000)])
    with pytest.raises(SetupError, match=said), warehouse({"sums": large}, memory_mb=MEMORY_MB):
        pass


def test_a_join_that_needs_more_than_its_memory_and_disk_says_so(tmp_path: Path) -> None:
    table, _ = stored(tmp_path, 2, 130_000)
    with (
        pytest.raises(SetupError, match="needs more disk space, or more than 10 MB of memory"),
        warehouse({"sums": table}, memory_mb=10) as db,
    ):
        db.execute("select list(title order by title) from sums cross join range(100) as many").fetchall()


@pytest.mark.parametrize("spans", [2, 3, 1 << 14])
def test_ranges_have_few_rows_and_every_value_once(spans: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 10)
    monkeypatch.setattr(module, "_SPANS", spans)
    values = {"ones": [0, 3, 3, 4, 9, 9, 9], "others": [4] * 25 + [5, 6, 7, 8, -2]}
    with warehouse({}, memory_mb=MEMORY_MB) as db:
        assert [db.execute(f"create table {name} (n bigint)") and name for name in values] == [*values]
        assert ranges_of(db, values, "n") == []
        for name, own in values.items():
            db.executemany(f"insert into {name} values (?)", [[n] for n in own])
        ranges = ranges_of(db, values, "n")
    every = [n for own in values.values() for n in own]
    assert [n for first, last in ranges for n in sorted(every) if first <= n <= last] == sorted(every)
    for first, last in ranges:
        assert first == last or sum(first <= n <= last for n in every) <= 10


def test_wide_rows_that_are_sorted_range_by_range_are_not_all_held_at_once() -> None:
    n = 1 << 19  # of 300 bytes
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("text", pa.string())])
    sorting = "select memory_usage_bytes from duckdb_memory() where tag = 'ORDER_BY'"
    held: list[tuple[int]] = []
    n_rows = 0
    with warehouse({}, memory_mb=MEMORY_MB) as db:
        texts = "repeat('word ', 58) || i as text"
        db.execute(f"create table wide as select i * 7919 % {n} as n, {texts} from range({n}) as numbers(i)")
        for first, last in ranges_of(db, ["wide"], "n"):
            query = f"select * from wide where n between {first} and {last} order by n"
            for batch in ordered_batches(db, query, schema):
                held += db.cursor().execute(sorting).fetchall()
                n_rows += batch.num_rows
    assert n_rows == n
    assert 20_000_000 < max(n_bytes for (n_bytes,) in held) < 130_000_000  # 177 MB if all are sorted at once


def test_its_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks, scratch = tmp_path / "chunks", tmp_path / "scratch"
    chunks.mkdir()
    scratch.mkdir()
    table, _ = stored(chunks, 1, 100)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.delenv("KBSOURCE_SCRATCH", raising=False)
    with warehouse({"sums": table}, memory_mb=MEMORY_MB):
        assert os.listdir(scratch)
    assert not os.listdir(scratch)


def test_the_memory_of_this_machine_is_known() -> None:
    assert 100_000_000 < module.memory_bytes() < 1 << 50
