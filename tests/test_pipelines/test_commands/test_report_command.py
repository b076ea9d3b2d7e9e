"""``kbsource report``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipelines.cli import main
from tests.support.reports import span_row, write_alignment

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def aligned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_alignment(tmp_path_factory.mktemp("report") / "aligned", [span_row(0, 0.5)])


def test_the_ending_of_the_file_says_the_form(aligned: Path, tmp_path: Path, capsys: Capsys) -> None:
    for name, start in (("r.html", "<!doctype html>"), ("r.md", "# Alignment"), ("r", "<!doctype html>")):
        assert main(["report", str(aligned), "--output", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text("utf-8").startswith(start)
    assert main(["report", str(aligned), "--output", str(tmp_path / "r"), "--format", "markdown", "--force"]) == 0
    assert (tmp_path / "r").read_text("utf-8").startswith("# Alignment")
    assert main(["report", str(aligned), "--output", str(tmp_path / "r.html"), "--format", "markdown", "--force"]) == 2
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!doctype html>")
    assert str(tmp_path / "r.md") in capsys.readouterr().out


def test_without_a_file_the_report_itself_is_printed(aligned: Path, capsys: Capsys) -> None:
    assert main(["report", str(aligned), "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("# Alignment, fever, dev, enwiki, 20260101\n")


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_the_same_release_elsewhere_gives_the_same_bytes(aligned: Path, tmp_path: Path, form: str) -> None:
    shutil.copytree(aligned, tmp_path / "elsewhere")
    for name, folder in (("here", aligned), ("there", tmp_path / "elsewhere")):
        assert main(["report", str(folder), "--output", str(tmp_path / name), "--format", form]) == 0
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()
    assert str(tmp_path).encode() not in (tmp_path / "here").read_bytes()


def test_several_releases_have_a_section_each(aligned: Path, tmp_path: Path, capsys: Capsys) -> None:
    other = write_alignment(tmp_path / "other", [span_row(0, 0.7)], dataset="nq")
    assert main(["report", str(aligned), str(other), "--format", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# Report on 2 releases"
    assert [line for line in lines if line.startswith("## ")] == [
        f"## Alignment, {name}, dev, enwiki, 20260101" for name in ("fever", "nq")
    ]


def test_what_is_no_release_is_named_and_nothing_is_written(aligned: Path, tmp_path: Path, capsys: Capsys) -> None:
    target = tmp_path / "r.html"
    assert main(["report", str(aligned), str(tmp_path / "none"), "--output", str(target)]) == 2
    assert str(tmp_path / "none") in capsys.readouterr().err
    assert not target.exists()
