"""What ``kbsource verify`` finds wrong with a corpus of passages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.records import Page
from pipelines.cli import main
from tests.support.passages import CORPUS_PAGES, page, write_kb
from tests.support.verified import verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")


def test_a_corpus_is_sound(corpus: Path, kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    report = verified(corpus, kb=kb, on_progress=lambda *progress: seen.append(progress))

    assert report.findings == ()
    assert (report.n_files, report.counts["passages"], report.n_rows, report.has_texts) == (6, 8, 8 + 8 + 9, True)
    assert seen[-1] == (report.n_bytes, report.n_bytes)
    assert main(["verify", str(corpus)]) == 0
    assert "25 rows, 8 passages checked.\n" in capsys.readouterr().out
    assert main(["verify", str(corpus), "--kb", str(kb)]) == 0
    assert "25 rows, 8 passages with their texts checked.\n" in capsys.readouterr().out


def test_a_damaged_release_is_nothing_to_compare_a_corpus_with(
    tmp_path: Path, corpus: Path, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(kb, tmp_path / "kb")
    pages = tmp_path / "kb" / "pages" / "pages-00001-of-00002.parquet"
    pages.write_bytes(pages.read_bytes()[:-1])
    assert main(["verify", str(corpus), "--kb", str(tmp_path / "kb")]) == 2
    assert f"{pages} is damaged or changed (size)" in capsys.readouterr().err


def test_a_corpus_is_compared_with_the_release_that_it_is_from(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other: tuple[Page, ...] = (*CORPUS_PAGES[:-1], page(11, "Very last", "It was."))
    with pytest.raises(SetupError, match="was not made from the release"):
        verified(corpus, kb=write_kb(tmp_path, other))
    assert main(["verify", str(corpus), "--kb", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err
