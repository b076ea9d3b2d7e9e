"""Folders of releases: what lies in them, and releases by their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbsource.catalogue import FOLDER_VARIABLE, entries_in, find_release
from kbsource.errors import DataError, SetupError
from kbsource.lookup import KnowledgeSource
from pipelines.cli import main
from tests.support.inspected import inspected_pages, write_inspected


def write(folder: Path, form: str, **facts: Any) -> None:
    folder.mkdir(parents=True)
    files = [{"bytes": 5, "file": "a.jsonl", "rows": 3, "sha256": "0"}]
    values = {"format": f"kbsource-{form}-1", "files": files, "manifest_sha256": f"sha of {folder.name}", **facts}
    (folder / "manifest.json").write_text(json.dumps(values))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "kb", "release", dump={"date": "20261001", "site": {"dbname": "enwiki"}})
    made_from = {"wiki": "enwiki", "dump_date": "20261001", "manifest_sha256": "sha of kb"}
    write(tmp_path / "made" / "passages", "passages", release=made_from)
    write(tmp_path / "kb" / "inside", "alignment", release=made_from)
    write(tmp_path / "questions", "qampari-contexts", passages={"manifest_sha256": "gone"})
    return tmp_path


def test_a_release_is_listed_with_what_it_was_made_from(folder: Path) -> None:
    kb, passages, questions = entries_in(str(folder))
    assert (kb.path, kb.name, kb.rows, kb.bytes, kb.made_from) == ("kb", "enwiki@20261001", 3, 5, ())
    assert (passages.path, passages.name) == ("made/passages", "passages:enwiki@20261001")
    assert passages.made_from == (("release", kb.sha256),)
    assert (questions.form, questions.name, questions.made_from) == ("qampari-contexts", None, (("passages", "gone"),))


def test_a_release_of_several_is_as_large_as_they_are(folder: Path) -> None:
    parts = [{"folder": folder, "manifest_sha256": "sha"} for folder in ("fever/dev", "fever/test")]
    write(folder / "aligned", "alignments", alignments=parts)
    for part in parts:
        write(folder / "aligned" / part["folder"], "alignment")
    entry, *_ = entries_in(str(folder))
    assert (entry.path, entry.rows, entry.bytes) == ("aligned", 3 * 3, 3 * 5)


def test_the_command_names_the_folders(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue", str(folder)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["kb", "enwiki@20261001", "pages", "3", "5", "bytes"] in lines
    assert lines[2][-1] == "kb"
    assert lines[3][-3:] == ["gone,", "not", "here"]
    assert main(["catalogue", str(folder / "made" / "passages" / "empty")]) == 2
    assert "no release in it" in capsys.readouterr().err


def test_releases_are_found_by_their_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match=FOLDER_VARIABLE):
        find_release("enwiki@20261001")
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    assert find_release("enwiki@20261001") == f"{folder}/kb"
    assert find_release("release:enwiki@20261001") == f"{folder}/kb"
    assert find_release("passages:enwiki@20261001") == f"{folder}/made/passages"
    for path in ("enwiki", "s3://bucket/a@20261001", "../enwiki@20261001"):
        assert find_release(path) == path
    with pytest.raises(
        SetupError, match=r"no such release in .* It contains: enwiki@20261001, passages:enwiki@20261001"
    ):
        find_release("dewiki@20261001")
    write(folder / "again", "release", dump={"date": "20261001", "site": {"dbname": "enwiki"}})
    with pytest.raises(SetupError, match=r"several releases in .* match: again, kb"):
        find_release("enwiki@20261001")


def test_commands_and_python_take_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_inspected(tmp_path, inspected_pages())
    (entry,) = entries_in(str(tmp_path))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert entry.name is not None
    assert KnowledgeSource.open(entry.name).manifest == KnowledgeSource.open(path).manifest
    assert main(["info", entry.name]) == 0
    assert entry.sha256 in capsys.readouterr().out


def test_a_damaged_manifest_is_named(folder: Path) -> None:
    (folder / "kb" / "manifest.json").write_text("{")
    with pytest.raises(DataError, match=r"kb/manifest\.json: not JSON"):
        list(entries_in(str(folder)))
