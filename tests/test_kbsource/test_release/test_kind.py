"""A kind of release that this code base does not have: begun, committed, read and verified as the others are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from kbsource.errors import DataError, SetupError
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Invariant
from kbsource.release.kind import ListingKind
from kbsource.release.layout import BUILDING, EXTRA, shard_path
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.verify import VerifyReport, verify
from kbsource.release.writer import TableFile, write_lines, write_rows
from kbsource.runtime.chunks import rows_batch

GOATS = pa.schema([pa.field("goat_id", pa.string(), nullable=False), pa.field("name", pa.string())])
TABLE = shard_path("goats", 0, 1)


HERD = ListingKind(
    name="herd",
    format="goats-1",
    made_by="a shepherd",
    tables={"goats": GOATS},
    files=("songs.jsonl",),
    invariants=(
        Invariant("nameless", "a goat has no name", "case when name is null then [goat_id] end", table="goats"),
        Invariant(
            "twins",
            "two goats have one id",
            "select min(_file), goat_id from goats group by goat_id having count(*) > 1",
        ),
    ),
    counts=(TableCount("counts.goats", "select count(*) from goats", summary="goats"),),
)
ROWS = [("g1", "Ada"), ("g2", "Bel"), ("g3", "Cid")]


def make(folder: Path, rows: Sequence[tuple[str | None, ...]], schema: pa.Schema = GOATS, mark: str = "") -> Path:
    output = str(folder)
    with ReleaseFolder(output, kind=HERD):
        entries = [
            write_rows(rows, "goats", schema, output=output, group_rows=2),
            write_lines([b"{}\n", b"{}\n"], "songs.jsonl", output=output),
        ]
        if mark:
            (folder / mark).touch()
        commit(HERD, HERD.listing(entries, {"counts": {"goats": len(rows)}}), output)
    return folder


def herd(folder: Path) -> VerifyReport:
    return verify(str(folder), [HERD])


def broken(folder: Path) -> set[tuple[str, str]]:
    return {(finding.file, finding.rule) for finding in herd(folder).findings}


def test_a_release_is_sound_and_says_what_was_counted(tmp_path: Path) -> None:
    report = herd(make(tmp_path / "herd", ROWS))
    assert report.is_sound
    assert (report.kind, report.n_files, report.n_rows, report.counts) == ("herd", 2, 5, {"goats": 3})
    manifest = HERD.read(str(tmp_path / "herd"))
    assert (manifest.facts["counts"], manifest.n_rows("goats"), len(manifest.files)) == ({"goats": 3}, 3, 1)


def test_the_laws_of_the_kind_are_checked(tmp_path: Path) -> None:
    folder = make(tmp_path / "herd", [*ROWS, ("g4", None), ("g5", None), ("g1", "Dot")])
    assert [
        (finding.file, finding.rule, finding.n_cases, finding.example, finding.meaning)
        for finding in herd(folder).findings
    ] == [
        (TABLE, "nameless", 2, "g4", "a goat has no name"),
        (TABLE, "twins", 1, "g1", "two goats have one id"),
    ]


def test_what_people_add_is_named_and_no_finding(tmp_path: Path) -> None:
    folder = make(tmp_path / "herd", ROWS)
    seen = sorted(name for name in EXTRA if not name.startswith("."))
    for name in EXTRA:
        (folder / name).write_text("added")
    report = herd(folder)
    assert report.is_sound
    assert [name for name in report.extra if not name.startswith(".")] == seen
    (folder / "goats" / "README.md").write_text("not at the top")
    (folder / "notes.txt").write_text("a stranger")
    assert broken(folder) == {("goats/README.md", "unlisted"), ("notes.txt", "unlisted")}


def test_another_kind_or_version_is_told(tmp_path: Path) -> None:
    folder = make(tmp_path / "herd", ROWS)
    manifest = folder / "manifest.json"
    content = manifest.read_text()
    manifest.write_text(content.replace("goats-1", "goats-2"))
    with pytest.raises(SetupError, match="but this kbsource reads 'goats-1'"):
        HERD.read(str(folder))
    manifest.write_text(content.replace("goats-1", "sheep-1"))
    with pytest.raises(
        SetupError, match="not a herd, because its format is 'sheep-1'; name the folder that a shepherd"
    ):
        HERD.read(str(folder))
    assert broken(folder) == {("manifest.json", "manifest")}
    manifest.write_text(content.replace('"goats": 3', '"goats": 4'))
    with pytest.raises(DataError, match="changed since it was written"):
        HERD.read(str(folder))


def test_statistics_that_would_hide_rows_are_found(tmp_path: Path) -> None:

    folder = tmp_path / "herd"
    with ReleaseFolder(str(folder), kind=HERD):
        with TableFile(str(folder), TABLE, "goats", schema=GOATS) as target:
            target.write(rows_batch(ROWS, GOATS))
        path = folder / TABLE
        content = path.read_bytes()
        footer = content.rindex(b"g3")  # the highest id, in the footer's statistics
        path.write_bytes(content[:footer] + b"g2" + content[footer + 2 :])
        entries = [
            write_lines([path.read_bytes()], TABLE, output=str(folder), n_rows=3),
            write_lines([b"{}\n"], "songs.jsonl", output=str(folder)),
        ]
        commit(HERD, HERD.listing(entries, {"counts": {"goats": len(ROWS)}}), str(folder))
    assert broken(folder) == {(TABLE, "statistics")}


def test_a_mark_that_is_just_renewed_is_no_obstacle_and_does_not_stay(tmp_path: Path) -> None:
    folder = make(tmp_path / "herd", ROWS, mark=f"{BUILDING}.tmp")
    assert not broken(folder)
    assert not list(folder.glob(f"{BUILDING}*"))


def test_a_table_of_another_kind_is_found(tmp_path: Path) -> None:
    folder = make(tmp_path / "herd", [("s",)], pa.schema([pa.field("sheep_id", pa.string())]))
    assert broken(folder) == {(TABLE, "schema")}
