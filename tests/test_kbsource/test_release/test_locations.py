"""Files of locations: where each page and each item's page is, whatever the order of the pages."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.errors import DataError, SetupError, named_faults
from kbsource.index.mapped_files import read_index_file
from kbsource.release.pages.writing import write_locations
from tests.support.databases import LIMITS, limited

Pages = list[tuple[int, str | None]]


def write(folder: Path, shards: list[Pages]) -> list[str]:
    """Writes the columns that locations are made of."""
    for number, pages in enumerate(shards):
        page_ids, qids = zip(*pages, strict=True)
        columns = {"page_id": pa.array(page_ids, pa.int64()), "qid": pa.array(qids, pa.string())}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")
    return [f"{number}.parquet" for number in range(len(shards))]


def locations(folder: Path, files: list[str]) -> tuple[str, list[Any]]:
    """The order of pages, and the rows of both files."""
    order = write_locations(str(folder), files, str(folder / "index"), scratch=str(folder / "scratch"))
    assert [*(folder / "scratch").iterdir()] == []
    tables = (read_index_file(str(folder / "index" / name)) for name in ("pages.arrow", "qids.arrow"))
    return order, [[tuple(row.values()) for batch in table for row in batch.to_pylist()] for table in tables]


@pytest.mark.slow  # many rows
def test_pages_and_items_are_located_with_any_number_of_threads(tmp_path: Path) -> None:
    draw = random.Random(1)
    page_ids, numbers = (draw.sample(range(1, 1 << 40), 130_000) for _ in range(2))  # threads share 122,880 rows
    pages: Pages = [(page_id, None if n % 5 == 0 else f"Q{n}") for page_id, n in zip(page_ids, numbers, strict=True)]
    shards = [pages[:70_000], pages[70_000:]]
    placed = [(page_id, shard, row) for shard, own in enumerate(shards) for row, (page_id, _) in enumerate(own)]
    items = sorted((int(qid[1:]), page_id) for page_id, qid in pages if qid is not None)
    files = write(tmp_path, shards)
    assert locations(tmp_path, files) == ("as_dumped", [sorted(placed), items])
    whole = [(tmp_path / "index" / name).read_bytes() for name in ("pages.arrow", "qids.arrow")]
    for limits in LIMITS:
        with limited("kbsource.release.pages.writing", **limits):
            locations(tmp_path, files)
        assert [(tmp_path / "index" / name).read_bytes() for name in ("pages.arrow", "qids.arrow")] == whole


def test_the_order_of_pages_is_that_within_each_file(tmp_path: Path) -> None:
    files = write(tmp_path, [[(4, None), (7, "Q2")], [(1, "Q1"), (5, None)]])
    assert locations(tmp_path, files) == (
        "by_page_id",
        [[(1, 1, 0), (4, 0, 0), (5, 1, 1), (7, 0, 1)], [(1, 1), (2, 7)]],
    )


@pytest.mark.parametrize(
    ("shards", "said"),
    [
        ([[(1, "Q1"), (2, "Q2")], [(3, "Q1")]], "Wikidata item Q1 belongs to two pages"),
        ([[(1, "Q1"), (2, "Q2")], [(2, None)]], "page id 2 belongs to two pages"),
    ],
)
def test_what_two_pages_have_is_refused(tmp_path: Path, shards: list[Pages], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        write_locations(str(tmp_path), write(tmp_path, shards), str(tmp_path), scratch=str(tmp_path / "scratch"))


def test_a_damaged_file_of_pages_is_reported_as_such(tmp_path: Path) -> None:
    files = write(tmp_path, [[(1, "Q1"), (2, "Q2")], [(3, "Q3")]])
    (tmp_path / files[1]).write_bytes((tmp_path / files[0]).read_bytes()[:-9])
    with pytest.raises(DataError, match="A table has changed since it was written"), named_faults():
        write_locations(str(tmp_path), files, str(tmp_path / "index"), scratch=str(tmp_path / "scratch"))
