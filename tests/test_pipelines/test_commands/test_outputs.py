"""Files that commands write: none is overwritten without --force, and none is called as one of another form."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pipelines.app import make_app, parse_command
from pipelines.cli import main


@pytest.fixture
def release(kb: Path) -> str:
    return str(kb)


@pytest.mark.parametrize(
    "typed",
    [
        ["export", "RELEASE", "Kelp", "--output"],
        ["export-kilt", "RELEASE", "--output"],
        ["report", "RELEASE", "--output"],
        ["search", "passages", "--queries", "q.jsonl", "--output"],
        ["trec", "run.trec", "--output"],
        ["rerank", "passages", "run.trec", "--queries", "q.jsonl", "--model", "m", "--output"],
        ["read", "q.jsonl", "--model", "m", "--output"],
        ["check-sources", "RELEASE", "--output"],
        ["evaluate", "kilt", "gold.jsonl", "p.jsonl", "--items"],
        ["evaluate", "amber", "gold.jsonl", "p.jsonl", "--plot"],
        ["evaluate", "amber", "gold.jsonl", "p.jsonl", "--items"],
        ["evaluate", "qampari", "gold.jsonl", "--predictions", "p.jsonl", "--items"],
        ["campaign", "candidates", "gold.jsonl", "p.jsonl", "--output"],
        ["campaign", "report", "campaign", "--items"],
    ],
    ids=lambda typed: " ".join(typed[:2]),
)
def test_no_file_is_overwritten_unasked(
    typed: list[str], release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (there := tmp_path / "there.jsonl").write_text("mine")
    given = [release if word == "RELEASE" else word for word in (*typed, str(there))]
    assert main(given) == 2
    assert f"{there} already exists; name another file, or add --force" in capsys.readouterr().err
    assert there.read_text() == "mine"
    assert parse_command([*given, "--force"]) is not None


def test_a_folder_that_takes_files_must_be_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "metrics@1.json").write_text("{}")
    assert main(["evaluate", "amber", "gold.jsonl", "p.jsonl", "--metrics", str(tmp_path)]) == 2
    assert "is a folder that is not empty; name another folder, or add --force" in capsys.readouterr().err


def test_force_is_of_commands_that_write_a_file(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", release, "--force"]) == 2
    said = capsys.readouterr().err
    assert "--force: kbsource info writes no file, so nothing can be overwritten; leave it out" in said


def test_what_is_overwritten_on_purpose_is_new(release: str, tmp_path: Path) -> None:
    (there := tmp_path / "there.md").write_text("mine")
    assert main(["export", release, "--output", str(there), "--force"]) == 0
    assert there.read_text().startswith("# ")


@pytest.mark.parametrize(
    ("typed", "name", "said"),
    [
        (["export", "RELEASE", "--format", "text", "--output"], "x.jsonl", "the extension of text"),
        (["export", "RELEASE", "--format", "jsonl", "--output"], "x.md.gz", "the extension of jsonl"),
        (["export", "RELEASE", "--format", "html", "--output"], "x.TXT", "the extension of html"),
        (["export", "RELEASE", "--output"], "x.parquet", "the extension of text"),
        (["export", "RELEASE", "--output"], "x.jsonl.xz", ".xz files cannot be written; .gz and .zst and .bz2 are"),
        (["export-kilt", "RELEASE", "--output"], "x.html", "the extension of JSON Lines"),
        (["report", "RELEASE", "--format", "html", "--output"], "x.md", "the extension of html"),
        (["report", "RELEASE", "--output"], "x.html.gz", ".gz files cannot be written. Leave .gz out"),
        (["search", "p", "--queries", "q", "--format", "trec", "--output"], "x.jsonl", "the extension of runs of TREC"),
        (["search", "p", "--queries", "q", "--output"], "x.trec", "the extension of JSON Lines"),
        (["read", "q.jsonl", "--model", "m", "--output"], "x.csv", "the extension of JSON Lines"),
        (["check-sources", "RELEASE", "--output"], "x.parquet", "the extension of JSON Lines"),
        (["evaluate", "kilt", "g.jsonl", "p.jsonl", "--items"], "x.html", "the extension of JSON Lines"),
        (["evaluate", "amber", "g.jsonl", "p.jsonl", "--plot"], "x.jsonl", "the extension of HTML"),
        (["evaluate", "amber", "g.jsonl", "p.jsonl", "--items"], "x.html", "the extension of JSON Lines"),
        (
            ["evaluate", "qampari", "g.jsonl", "--retrieved", "p.jsonl", "--items"],
            "x.html",
            "the extension of JSON Lines",
        ),
    ],
)
def test_a_file_is_called_as_what_it_holds(
    typed: list[str], name: str, said: str, release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / name
    assert main([*(release if word == "RELEASE" else word for word in typed), str(output)]) == 2
    assert said in capsys.readouterr().err
    assert not output.exists()


def test_the_kilt_form_is_compressed_as_it_is_called(release: str, tmp_path: Path) -> None:
    output = tmp_path / "kilt.jsonl.gz"
    assert main(["export-kilt", release, "--output", str(output)]) == 0
    with gzip.open(output) as file:
        assert "wikipedia_id" in json.loads(file.readline())


def test_every_command_says_force() -> None:
    assert "--force" in str(make_app().meta.assemble_argument_collection())
