"""``kbsource verify`` for releases of QAMPARI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from mapping.qampari.release import data_path
from pipelines.cli import main
from tests.support.qampari import PAGES, questions_of_each_split, write_qampari
from tests.support.releases import TitleRow, write_release
from tests.support.tampered.edits import drop, lines
from tests.support.verified import broken, verified

DEV = data_path("dev")


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    write_release(folder, PAGES, titles=[TitleRow(page.page_id, page.title) for page in PAGES])
    return folder / "release"


@pytest.fixture
def qampari(tmp_path: Path) -> Path:
    return write_qampari(tmp_path / "qampari", questions_of_each_split())


def test_a_whole_release_is_sound(qampari: Path, kb: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = verified(qampari, kb=kb, on_progress=lambda *progress: seen.append(progress))

    assert report.findings == ()
    assert report.is_sound
    assert report.n_files == 5
    assert report.n_bytes == sum(path.stat().st_size for path in qampari.rglob("*.*") if path.name != "manifest.json")
    assert (report.counts, report.has_texts) == ({"questions": 5, "answers": 25, "proofs": 30}, True)
    assert report.n_rows == 5 + 6 + 4
    assert seen[-1] == (report.n_bytes, report.n_bytes)


def test_without_questions_a_release_is_sound(tmp_path: Path, kb: Path) -> None:
    report = verified(write_qampari(tmp_path / "empty", []), kb=kb)
    assert report.is_sound
    assert report.counts["questions"] == 0


def test_a_manifest_is_what_was_written(qampari: Path) -> None:
    manifest = qampari / "manifest.json"
    content = manifest.read_text()
    for changed in (content.replace('"with_meta": false', '"with_meta": true'), content[:-5]):
        assert changed != content
        manifest.write_text(changed)
        assert broken(qampari) == {("manifest.json", "manifest")}


def test_proofs_are_compared_with_the_release_that_they_are_from(tmp_path: Path, kb: Path) -> None:
    manifest_sha256 = json.loads((kb / "manifest.json").read_text())["manifest_sha256"]
    right = write_qampari(tmp_path / "right", [], facts={"release": {"manifest_sha256": manifest_sha256}})
    other = write_qampari(tmp_path / "other", [], facts={"release": {"manifest_sha256": "0" * 64}})

    assert verified(right, kb=kb).is_sound
    with pytest.raises(SetupError, match="was not made from the release"):
        verified(other, kb=kb)


def test_the_command_says_what_was_checked(
    qampari: Path, kb: Path, release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(qampari), "--kb", str(kb)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Sound: 5 files, ")
    assert " 15 rows, 5 questions, 25 answers, 30 proofs with their texts checked.\n" in out
    lines(DEV, drop(-1)).apply(qampari)
    assert main(["verify", str(qampari)]) == 1
    out = capsys.readouterr().out
    assert (
        f"{DEV}: a sampled question is not in the file of its split (not_released, 1 case): 1__wikidata_comp__dev\n"
        in out
    )
    assert "NOT sound: 5 files, " in out
    assert "30 proofs checked" in out
    assert main(["verify", str(qampari), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["ok"], said["n_proofs"], said["has_texts"]) == (False, 30, False)
    assert main(["verify", str(release), "--kb", str(kb)]) == 2
    takers = "a corpus of passages, a QAMPARI release, a release of AmbER sets, a release of entity-linking data"
    assert f"--kb can be used only for {takers}, but this is a release of pages" in capsys.readouterr().err
    assert main(["verify", str(qampari.parent / "nowhere"), "--kb", str(kb)]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err
