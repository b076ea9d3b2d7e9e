"""Sizes of a release's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.files import LocalStorage
from kbsource.release.intact import check_sizes
from kbsource.release.manifest import FileEntry

ENTRIES = (FileEntry("pages/a.parquet", 2, 5, "0" * 64), FileEntry("index/b.arrow", None, 3, "1" * 64))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for entry in ENTRIES:
        (tmp_path / entry.file).parent.mkdir()
        (tmp_path / entry.file).write_bytes(b"x" * entry.bytes)
    return tmp_path


def test_files_of_the_sizes_that_were_written_are_all_there(folder: Path) -> None:
    check_sizes(str(folder), ENTRIES, LocalStorage())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: one.file)
def test_a_file_that_is_cut_off_or_missing_is_named(folder: Path, entry: FileEntry) -> None:
    path = folder / entry.file
    path.write_bytes(b"x")
    with pytest.raises(SetupError, match=f"{path} has 1 bytes, {entry.bytes} were written; .* kbsource verify"):
        check_sizes(str(folder), ENTRIES, LocalStorage())
    path.unlink()
    with pytest.raises(SetupError, match=f"{path} is missing; .* kbsource verify"):
        check_sizes(str(folder), ENTRIES, LocalStorage())
