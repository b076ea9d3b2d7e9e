"""``kbsource verify`` for alignments."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kbsource.files import Folder
from mapping.write.kind import ALIGNMENTS
from pipelines.cli import main
from tests.support.alignments import evidence, map_mini, record, write_records
from tests.support.verified import broken, manifest_bytes, seal, verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")


@pytest.fixture
def aligned(tmp_path: Path, release: Path) -> Path:
    page = "Lake Miravel"
    lines = [record("1", [evidence("a lake", title=page)]), record("2", [evidence("no such text", title="No page")])]
    map_mini(tmp_path / "all" / "own" / "dev", release, "jsonl", write_records(tmp_path / "own.jsonl", lines))
    return tmp_path / "all" / "own" / "dev"


def test_an_alignment_is_checked_like_a_release(aligned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(aligned)]) == 0
    assert capsys.readouterr().out.startswith("Sound: ")
    assert main(["verify", str(aligned), "--kb", "somewhere"]) == 2
    assert "but this is an alignment" in capsys.readouterr().err
    file = "misses/misses-00000-of-00001.parquet"
    shutil.copy(aligned / "rejected" / "rejected-00000-of-00001.parquet", aligned / file)
    assert broken(aligned) in ({(file, "size")}, {(file, "sha256")})
    seal(aligned)
    assert broken(aligned) == {(file, "schema")}


def test_a_folder_of_alignments_is_checked_with_all_that_it_holds(aligned: Path) -> None:
    folder = aligned.parents[1]
    (folder / "report.txt").write_text("done\n")
    sha256 = json.loads((aligned / "manifest.json").read_text())["manifest_sha256"]
    path = str(folder / "report.txt")
    values = {
        "alignments": [{"folder": "own/dev", "manifest_sha256": sha256}],
        "files": [{"file": "report.txt", "bytes": 5, "sha256": Folder.of(path).sha256()}],
    }
    (folder / "manifest.json").write_bytes(manifest_bytes(values, form=ALIGNMENTS.format))
    report = verified(folder)
    inner = verified(aligned)

    assert report.findings == inner.findings == ()
    assert (report.n_files, report.n_rows) == (inner.n_files + 2, inner.n_rows)
    assert report.counts == inner.counts == {"records": 2}
    (aligned / "report.json").write_text("{}")
    (aligned / "stray").write_text("x")
    assert broken(folder) == {("own/dev/report.json", "size"), ("own/dev/stray", "unlisted")}
    seal(aligned)
    assert broken(folder) == {("own/dev/manifest.json", "manifest"), ("own/dev/stray", "unlisted")}
    (aligned / "manifest.json").write_text("{}")
    assert broken(folder) == {("own/dev/manifest.json", "manifest")}
