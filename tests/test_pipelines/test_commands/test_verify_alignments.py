"""``kbsource verify`` for alignments."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbsource.files import Folder
from kbsource.release.layout import shard_path
from kbsource.release.writer import write_rows
from mapping.schema import RECORDS
from mapping.write.kind import ALIGNMENTS
from pipelines.cli import main
from tests.support.alignments import evidence, map_mini, record, table, write_records
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
    assert "not for this kind (alignment)" in capsys.readouterr().err
    file = "misses/misses-00000-of-00001.parquet"
    shutil.copy(aligned / "rejected" / "rejected-00000-of-00001.parquet", aligned / file)
    assert broken(aligned) in ({(file, "size")}, {(file, "sha256")})
    seal(aligned)
    assert broken(aligned) == {(file, "schema")}


def _rewrite_records(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    rows = table(folder, "records")
    change(rows)
    values = [tuple(row.values()) for row in rows]
    write_rows(values, "records", RECORDS, output=str(folder))
    entries = json.loads((folder / "manifest.json").read_text())["files"]
    for entry in entries:
        if entry["file"] == shard_path("records", 0, 1):
            entry["rows"] = len(rows)
    seal(folder, files=entries)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "rule", "detail"),
    [
        (lambda rows: rows.pop(), "counts", "records.examples: 1 counted, 2 written"),
        (lambda rows: rows.reverse(), "record_order", "from number 0"),
        (
            lambda rows: rows[0].update(outcome="excluded", reason="negative"),
            "counts",
            "records.excluded.negative: 1 counted, 0 written",
        ),
        (
            lambda rows: rows[1].update(reason="no_match"),
            "counts",
            "counts.dropped.no_match: 1 counted, 0 written",
        ),
        (lambda rows: rows[0].update(n_evidences=2), "record_differs", "pieces of evidence: 3 in records, not 2"),
        (
            lambda rows: rows[1].update(n_evidences_written=1),
            "record_differs",
            "evidences written: 1 in alignments, not 2",
        ),
    ],
)
def test_the_records_of_an_alignment_say_what_counts_and_tables_say(
    aligned: Path, change: Callable[[list[dict[str, Any]]], object], rule: str, detail: str
) -> None:
    _rewrite_records(aligned, change)
    report = verified(aligned)
    assert rule in {finding.rule for finding in report.findings}
    assert detail in {finding.example for finding in report.findings}


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
