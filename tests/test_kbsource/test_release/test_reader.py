"""Reading tables: what was changed on the disk is no text of a release."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kbsource.errors import DataError, named_faults
from kbsource.files import LocalStorage
from kbsource.release.reader import opened_table, read_table
from tests.support.pages import synthetic_pages, write_pages

FILE = "pages/pages-00000-of-00001.parquet"


def test_bits_that_changed_on_the_disk_are_named_and_not_read_as_text(tmp_path: Path) -> None:
    storage, path, draw = LocalStorage(), tmp_path / FILE, random.Random(1)
    write_pages(synthetic_pages(30), str(tmp_path), FILE, storage)
    content = path.read_bytes()
    pages = list(read_table(str(tmp_path), "pages", storage))
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")  # the footer has no checksum
    n_named = 0
    for _ in range(60):
        damaged = bytearray(content)
        damaged[draw.randrange(end)] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            with named_faults():
                assert list(read_table(str(tmp_path), "pages", storage)) == pages
        except DataError:
            n_named += 1
    assert n_named > 40


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc, which says what is mapped")
def test_a_table_is_read_alike_whether_it_is_mapped_or_not(tmp_path: Path) -> None:
    write_pages(synthetic_pages(3), str(tmp_path), FILE, LocalStorage())
    path = str(tmp_path / FILE)
    is_mapped = []
    rows = []
    for maps_tables in (True, False):
        with opened_table(path, LocalStorage(maps_tables=maps_tables)) as file:
            rows.append(file.read_row_group(0).to_pylist())
            is_mapped.append(path in Path("/proc/self/maps").read_text())
    assert rows[0] == rows[1]
    assert is_mapped == [True, False]
