"""Files that are read as what they were when they were hashed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from kbsource.dump.digests import BLOCK_BYTES, CheckedFiles, HashedFile, hash_file, read_hashes, write_hashes
from kbsource.dump.ranges import DumpRange, plan_ranges
from kbsource.dump.reader import read_range
from kbsource.dump.siteinfo import read_header
from kbsource.errors import DataError
from kbsource.files import Folder
from kbsource.records import RawPage
from tests.support.dumps import dump_xml, one_stream, page_xml

CHANGED = (
    r"dump changed while it was being read, so no release was made\. "
    r"Run the command again when no other program writes to the file"
)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump"
    path.write_bytes(os.urandom(2 * BLOCK_BYTES + 1000))
    return path


def _checked(path: Path) -> Folder:
    return CheckedFiles({str(path): hash_file(str(path))})(str(path))


def _change(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 1]))


def test_the_hash_is_that_of_the_bytes(dump: Path) -> None:
    told: list[int] = []
    hashed = hash_file(str(dump), on_bytes=told.append)
    content = dump.read_bytes()
    assert (hashed.n_bytes, hashed.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert told == [BLOCK_BYTES, BLOCK_BYTES, 1000]
    assert len(hashed.blocks) == 3 * 16


def test_an_empty_file_has_no_blocks(tmp_path: Path) -> None:
    (tmp_path / "dump").touch()
    assert hash_file(str(tmp_path / "dump")) == HashedFile(0, hashlib.sha256().hexdigest(), b"")
    with _checked(tmp_path / "dump").open() as file:
        assert file.read() == b""


def test_hashes_come_back_from_their_file(dump: Path, tmp_path: Path) -> None:
    hashed = {str(dump): hash_file(str(dump))}
    write_hashes(hashed, str(tmp_path / "hashes.json"))
    assert read_hashes(str(tmp_path / "hashes.json")) == hashed


@pytest.mark.parametrize("start", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 999, 2 * BLOCK_BYTES + 1000])
@pytest.mark.parametrize("count", [1, 7, BLOCK_BYTES, BLOCK_BYTES + 1, -1])
def test_a_file_that_is_as_it_was_reads_like_any_other(dump: Path, start: int, count: int) -> None:
    with _checked(dump).open() as file:
        assert file.seek(start) == start
        expected = dump.read_bytes()[start:][: None if count < 0 else count]
        assert file.read(count) == expected
        assert file.tell() == start + len(expected)
        assert file.seek(-5, os.SEEK_END) == 2 * BLOCK_BYTES + 995
        assert file.seek(2, os.SEEK_CUR) == 2 * BLOCK_BYTES + 997
        assert file.read() == dump.read_bytes()[-3:]


def test_only_what_is_read_is_compared(dump: Path) -> None:
    checked = _checked(dump)
    content = dump.read_bytes()
    _change(dump, BLOCK_BYTES + 5)
    with checked.open() as file:
        assert file.read(BLOCK_BYTES) == content[:BLOCK_BYTES]
        file.seek(2 * BLOCK_BYTES)
        assert file.read() == content[2 * BLOCK_BYTES :]
        file.seek(2 * BLOCK_BYTES - 1)
        with pytest.raises(DataError, match=CHANGED):
            file.read(1)


def test_a_file_that_changes_while_it_is_open_is_found_out(dump: Path) -> None:
    with _checked(dump).open() as file:
        file.read(10)
        _change(dump, BLOCK_BYTES)
        with pytest.raises(DataError, match=CHANGED):
            file.read()


@pytest.mark.parametrize("n_bytes", [0, 2 * BLOCK_BYTES, 2 * BLOCK_BYTES + 999, 2 * BLOCK_BYTES + 1001])
def test_a_file_of_another_length_is_found_out(dump: Path, n_bytes: int) -> None:
    checked = _checked(dump)
    os.truncate(dump, n_bytes)
    assert checked.size() == 2 * BLOCK_BYTES + 1000
    with checked.open() as file, pytest.raises(DataError, match=CHANGED):
        file.read()


def test_ranges_of_a_dump_are_read_through_it(tmp_path: Path) -> None:
    pages = [page_xml(number, title=f"P{number}", text=f"text {number}") for number in range(1, 40)]
    xml = dump_xml(pages)
    path = tmp_path / "dump"
    path.write_bytes(one_stream([xml[start : start + 500] for start in range(0, len(xml), 500)]))
    checked = _checked(path)
    ranges = plan_ranges([str(path)], range_bytes=700)
    assert len(ranges) > 2
    site = read_header(str(path)).site

    def titles(of: DumpRange) -> list[str]:
        return [page.title for page in read_range(of, site, files=lambda _: checked) if isinstance(page, RawPage)]

    assert [title for byte_range in ranges for title in titles(byte_range)] == [f"P{number}" for number in range(1, 40)]
    _change(path, ranges[1].start + 5)
    with pytest.raises(DataError, match=CHANGED):
        titles(ranges[1])
