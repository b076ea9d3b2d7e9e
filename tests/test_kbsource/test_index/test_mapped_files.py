"""Changed bits in the index of a release: the answers are those of what was written, or a line names the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace as replaced

from kbsource.errors import DataError, SetupError
from kbsource.index.mapped_files import CHECKSUMS_FILE, write_index_file
from kbsource.lookup import KnowledgeSource
from kbsource.release.pages.kind import PAGES_RELEASE
from tests.support.dumps import flip
from tests.support.pages import synthetic_pages, title_of
from tests.support.releases import TitleRow, redirect_to, write_release

N_PAGES = 12
FILES = ["articles.arrow", "checksums.arrow", "pages.arrow", "qids.arrow", "titles.arrow"]
BLOCK_SHIFT = 6
"""Blocks of 64 bytes, so that a small file has many."""


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbsource.index.mapped_files.BLOCK_SHIFT", BLOCK_SHIFT)
    monkeypatch.setattr("kbsource.index.mapped_files.BLOCK_BYTES", 1 << BLOCK_SHIFT)
    for module in ("title_index", "title_index_build"):
        monkeypatch.setattr(f"kbsource.index.{module}.BATCH_ROWS", 4)
    monkeypatch.setattr("kbsource.index.title_index.BATCH_SHIFT", 2)
    monkeypatch.setattr("kbsource.release.pages.locations.BATCH_ROWS", 4)
    monkeypatch.setattr("kbsource.release.pages.writing.BATCH_ROWS", 4)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    pages = [replaced(page, qid=f"Q{page.page_id + 1000}") for page in synthetic_pages(N_PAGES, n_paragraphs=1)]
    rows = [TitleRow(page.page_id, page.title) for page in pages]
    redirects = [redirect_to(500 + n, f"Name {n}", title_of(n), fragment="Life" if n % 2 else None) for n in range(9)]
    write_release(tmp_path, pages, titles=[*rows, *redirects, redirect_to(600, "Twice", "Name 1")])
    return tmp_path / "release"


def answers(path: Path) -> Iterator[Any]:
    """What a release says of all that it has, and of what it has not."""
    with KnowledgeSource.open(path) as source:
        for wanted in (*(title_of(n) for n in range(N_PAGES + 2)), *(f"Name {n}" for n in range(10)), "Twice"):
            yield source.resolve(wanted)
        for page_id in range(1, 3 * N_PAGES + 3):
            yield source.resolve(page_id)
        for page_id in range(0, 3 * N_PAGES + 3, 5):
            yield source.by_qid(f"Q{page_id + 1000}")


def answers_or_fault(path: Path) -> list[Any] | str:
    try:
        return list(answers(path))
    except SetupError as error:
        return str(error)


@pytest.mark.slow
def test_a_changed_bit_gives_no_other_answer(release: Path) -> None:
    index, known = release / "index", list(answers(release))
    assert sorted(path.name for path in index.iterdir()) == FILES
    for file in (index / name for name in FILES):
        content, n_named = file.read_bytes(), 0
        places = range(0, len(content), 11)
        for place in places:
            file.write_bytes(flip(content, place, bits=1 << place % 8))
            found = answers_or_fault(release)
            if isinstance(found, str):
                assert re.fullmatch(rf".*{file.name}.* again.*", found), place
                n_named += 1
            else:
                assert found == known, (file.name, place)
        file.write_bytes(content)
        assert n_named > 0.8 * len(places), file.name  # all is asked for, padding aside


def test_what_is_not_asked_for_is_not_compared(release: Path) -> None:
    titles = release / "index" / "titles.arrow"
    content = titles.read_bytes()
    place = content.index(title_of(3).encode())
    titles.write_bytes(flip(content, place))
    with KnowledgeSource.open(release) as source:
        assert source.resolve(title_of(0)).title == title_of(0)
        with pytest.raises(
            DataError, match=r"titles\.arrow is damaged or changed \(bytes \d+ to \d+ .*kbsource verify"
        ):
            source.resolve(title_of(3))


def test_cut_and_longer_files_are_named(release: Path) -> None:
    for name in FILES:
        file = release / "index" / name
        content = file.read_bytes()
        for changed in (content[:-1], content[: len(content) // 2], content + b"\0", content + bytes(100)):
            file.write_bytes(changed)
            with pytest.raises(SetupError, match=name):
                KnowledgeSource.open(release)
        file.write_bytes(content)


def test_a_release_without_checksums_is_read(release: Path) -> None:
    known = list(answers(release))
    (release / "index" / CHECKSUMS_FILE).unlink()
    with pytest.raises(SetupError, match=r"checksums\.arrow is damaged or changed \(missing\)"):
        KnowledgeSource.open(release)
    manifest = PAGES_RELEASE.read(str(release))
    files = tuple(entry for entry in manifest.files if not entry.file.endswith(CHECKSUMS_FILE))
    (release / "manifest.json").write_bytes(replace(manifest, files=files).to_bytes())
    assert list(answers(release)) == known


def test_an_index_file_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"page_id": [1]})
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_index_file(str(tmp_path / "a.arrow"), pa.schema([("page_id", pa.int64())]), batches())
    assert list(tmp_path.iterdir()) == []
