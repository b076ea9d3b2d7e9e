"""Reading tables: what was changed on the disk is no text of a release."""

from __future__ import annotations

import random
from pathlib import Path

from kbsource.errors import DataError, named_faults
from kbsource.files import LocalStorage
from kbsource.release.reader import read_table
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
