"""The command that makes a release of Wikidata, end to end."""

from __future__ import annotations

import bz2
import hashlib
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pipelines.jobs.wikidata as job
from kbsource.errors import DataError, SetupError
from kbsource.release.manifest import InputFile
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.verify import verify
from kbsource.wikidata.kind import WIKIDATA_RELEASE
from kbsource.wikidata.records import EntityCounts
from pipelines.cli import main
from pipelines.runners.running import run_pipeline
from tests.support.builds import contents, rows
from tests.support.entities import array, item, item_snak, make, statement, terms
from tests.support.moody_reader import MoodyReader


def test_every_line_is_an_entity_or_counted_as_something_else(release: Path, dump: Path) -> None:
    manifest = WIKIDATA_RELEASE.read(str(release))
    expected = EntityCounts(48, 43, 1, 1, {"duplicate_entity": 2, "malformed_json": 1})
    assert manifest.totals == expected
    assert manifest.counts == {dump.name: expected}
    assert (manifest.date, manifest.findings["type_lexeme"]) == ("20261001", 1)


def test_a_broken_line_in_the_middle_is_a_row_with_file_and_offset(release: Path, dump: Path) -> None:
    broken = [row for row in rows(release, "rejected") if row["reason"] == "malformed_json"]
    assert [(row["stage"], row["key"], row["file"]) for row in broken] == [("parse", "Q7", dump.name)]
    # The offset is that of the block: its stream's head has four bytes.
    stream = dump.read_bytes()[broken[0]["offset"] - 4 :]
    assert b'"Q7"' in bz2.BZ2Decompressor().decompress(stream)


@pytest.mark.slow
def test_other_cuts_give_the_same_rows(release: Path, whole: Path) -> None:
    assert len(list((whole / "items").iterdir())) < len(list((release / "items").iterdir()))
    for table in ("items", "properties", "sitelinks", "statements", "classes", "rejected"):
        assert rows(whole, table) == rows(release, table)


def test_a_finished_release_is_sound_and_never_overwritten(release: Path, dump: Path) -> None:
    assert verify(str(release), [WIKIDATA_RELEASE]).findings == ()
    before = contents(release)
    with pytest.raises(SetupError, match="never overwritten"):
        make(dump, output=release)
    assert contents(release) == before


@pytest.mark.slow
def test_what_fails_leaves_no_release_and_the_next_run_starts_clean(release: Path, dump: Path, tmp_path: Path) -> None:
    output = tmp_path / "release"
    with pytest.raises(DataError, match=r"3 of 48 lines rejected.*malformed_json"):
        make(dump, output=output, range_bytes=500)
    assert not (output / "manifest.json").exists()
    assert (output / "_staging").exists()
    make(dump, output=output, max_rejects=0.1, range_bytes=500)
    assert contents(output) == contents(release)


@pytest.mark.slow
@pytest.mark.parametrize("is_once", [True, False], ids=["from outside", "for its sake"])
def test_only_an_entity_that_ends_the_process_alone_is_lost(
    is_once: bool, whole: Path, dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = str(tmp_path / "killed") if is_once else None
    monkeypatch.setattr(job, "EntityReader", partial(MoodyReader, b'"Q117"', mark))
    output = tmp_path / "release"
    make(dump, output=output, max_rejects=0.1)
    if is_once:
        assert contents(output) == contents(whole)
        return
    lost = [row["key"] for row in rows(output, "rejected") if row["reason"] == "entity_crash"]
    items = [row["item_id"] for row in rows(whole, "items")]
    assert lost == ["Q117"]
    assert [row["item_id"] for row in rows(output, "items")] == [entry for entry in items if entry != "Q117"]


def _grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n")


def _change(path: Path) -> None:
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(content.replace(b"Q1", b"Q3"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes()[:-1] + b" ")
    other.rename(path)


@pytest.mark.slow
@pytest.mark.parametrize("change", [_grow, _change, _replace])
def test_a_dump_that_changes_while_it_is_read_makes_no_release(
    change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(array([item("Q1"), item("Q2")]))

    def run(pipeline: Any, name: str) -> None:
        change(path)
        run_pipeline(pipeline, name)

    with monkeypatch.context() as patch:
        patch.setattr(job, "run_pipeline", run)
        with pytest.raises(DataError, match=r"dump\.json changed while it was being read"):
            make(path, output=tmp_path / "release")
    assert not (tmp_path / "release" / "manifest.json").exists()
    (found,) = make(path, output=tmp_path / "release").manifest.inputs
    assert found == InputFile(path.name, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.mark.slow
def test_a_truncated_dump_needs_leave(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_bytes(array([item("Q5"), item("Q4")])[:-3])
    with pytest.raises(DataError, match="--allow-truncated"):
        make(dump, output=tmp_path / "release")
    summary = make(dump, output=tmp_path / "release", allow_truncated=True)
    assert (summary.manifest.totals.items, summary.manifest.totals.rejected) == (2, {"truncated_dump": 1})
    assert verify(str(tmp_path / "release"), [WIKIDATA_RELEASE]).findings == ()


@pytest.mark.slow
@pytest.mark.parametrize("lines", [[], [{"type": "lexeme", "id": "L1"}]])
def test_a_dump_without_items_and_properties_makes_no_release(lines: list[Any], tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_bytes(array(lines))
    with pytest.raises(DataError, match="no item and no property"):
        make(dump, output=tmp_path / "release")
    assert not (tmp_path / "release" / "manifest.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": ("enwiki", "dewikt_wiki")}, "--sites dewikt_wiki does not occur .*Did you mean"),
        ({"sites": ("frwiki",)}, "--sites frwiki does not occur in the dump"),
        ({"languages": ("en", "de")}, "--languages de does not occur"),
        ({"qualifiers": ("P580",)}, "--qualifiers P580 does not occur"),
    ],
)
def test_names_that_nothing_in_the_dump_has_make_no_release(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    dump = tmp_path / "dump.json"
    qualified = statement(item_snak("P1", "Q2"), qualifiers={"P582": [item_snak("P582", "Q3")]})
    labels = {"labels": terms(**{"en-gb": "one"}), "sitelinks": {"enwiki": {"title": "One"}}}
    dump.write_bytes(array([item("Q1", claims={"P1": [qualified]}, **labels)]))
    make(dump, output=tmp_path / "fine", sites=("enwiki",), qualifiers=("P582",))
    with pytest.raises(DataError, match=message):
        make(dump, output=tmp_path / "release", **options)
    assert not (tmp_path / "release" / "manifest.json").exists()


@pytest.mark.slow
def test_what_a_damaged_block_may_have_held_counts_for_the_ceiling(tmp_path: Path) -> None:
    content = array(item(f"Q{number}") for number in range(1, 1001))
    streams = [bytearray(bz2.compress(content[start : start + 8000])) for start in range(0, len(content), 8000)]
    streams[5][60] ^= 0xFF
    dump = tmp_path / "dump.json.bz2"
    dump.write_bytes(b"".join(streams))
    with pytest.raises(DataError, match=r"rejected, and about \d+ more lost in \d+ damaged bytes"):
        make(dump, output=tmp_path / "none", max_rejects=0.01)
    findings = make(dump, output=tmp_path / "release", max_rejects=0.2, range_bytes=1000).manifest.findings
    lost = 1000 - len(rows(tmp_path / "release", "items"))
    assert lost > 50
    assert abs(findings["estimated_lost"] - lost) < lost / 5
    assert verify(str(tmp_path / "release"), [WIKIDATA_RELEASE]).findings == ()


def test_the_commands_make_and_verify_a_release(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "release")
    assert main(["wikidata", str(dump), "--output", output, "--max-rejects", "0.1", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["counts"]["items"], made["rows"]["classes"]) == (43, 8)
    assert main(["verify", output]) == 0
    assert "43 items, 1 property, 44 statements" in capsys.readouterr().out
    assert main(["wikidata", str(dump), "--output", output]) == 2
    with pytest.raises(SetupError, match="kbsource-wikidata-1"):
        PAGES_RELEASE.read(output)
