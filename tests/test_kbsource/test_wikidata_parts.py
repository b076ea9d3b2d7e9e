from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kbsource.beat import Beat
from kbsource.errors import SetupError
from kbsource.files import LocalStorage
from kbsource.wikidata import parts, rolling
from kbsource.wikidata.assemble import find_superseded, name_files
from kbsource.wikidata.lines import plan_lines, read_lines
from kbsource.wikidata.parts import PartReport, read_part, write_part
from tests.support.entities import array, item, item_snak, reader

STORAGE = LocalStorage()


def write(folder: Path, entities: list[Any], *, part: int = 0, **options: Any) -> PartReport:
    dump = folder / f"dump-{part}.json"
    dump.write_bytes(array(entities))
    (whole,) = plan_lines([str(dump)], STORAGE, range_bytes=1 << 40)
    given: dict[str, Any] = {"skipped": (), "verdicts": {}, "beat": Beat.unshared(), **options}
    return write_part(
        read_lines(whole, STORAGE),
        STORAGE,
        output=str(folder / "release"),
        staging=str(folder / "staging"),
        part=part,
        file=dump.name,
        reader=reader(),
        **given,
    )


def test_the_report_is_kept_for_the_driver(tmp_path: Path) -> None:
    report = write(tmp_path, [item("Q1"), item("Q2"), b"{", {"type": "mediainfo", "id": "M1"}])
    assert (report.n_lines, report.n_items, report.n_others, report.rejected) == (4, 2, 1, {"malformed_json": 1})
    assert report.facts == {"type_mediainfo": 1}
    assert read_part(STORAGE, str(tmp_path / "staging"), 0) == report
    with pytest.raises(SetupError, match="range 1"):
        read_part(STORAGE, str(tmp_path / "staging"), 1)


def test_an_entity_that_ended_the_process_is_not_read_again(tmp_path: Path) -> None:
    report = write(tmp_path, [item("Q1"), item("Q2")], verdicts={1: "fallback_crash"})
    assert (report.n_items, report.rejected) == (1, {"entity_crash": 1})


def test_the_beat_shows_the_entity_in_work(tmp_path: Path) -> None:
    beat = Beat.unshared()
    write(tmp_path, [item("Q1"), b"{", item("Q2")], beat=beat)
    assert (beat.read().serial, beat.read().page) == (3, 0)


def test_long_tables_are_cut_into_files_and_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts.GROUP_ROWS, "statements", 2)
    monkeypatch.setitem(rolling.ROWS_PER_FILE, "statements", 4)
    report = write(tmp_path, [item(f"Q{number}", *[item_snak("P1", "Q9")] * 3) for number in (1, 2, 3)])
    entries = report.tables["statements"]
    assert [entry.rows for entry in entries] == [4, 4, 1]
    files = [pq.ParquetFile(tmp_path / "release" / entry.file) for entry in entries]
    assert [file.metadata.num_row_groups for file in files] == [2, 2, 1]
    owners = [row for file in files for row in file.read()["entity_id"].to_pylist()]
    assert owners == ["Q1"] * 3 + ["Q2"] * 3 + ["Q3"] * 3
    named = name_files([report], str(tmp_path / "release"), STORAGE)
    assert [entry.file for entry in named["statements"]] == [
        f"statements/statements-{number:05d}-of-00003.parquet" for number in range(3)
    ]
    assert [entry.rows for entry in named["properties"]] == [0]


@pytest.mark.parametrize(
    ("revisions", "superseded"),
    [
        ([[1, 2]], {0: (1,)}),
        ([[2, 2]], {0: (2,)}),
        ([[2], [3]], {0: (1,)}),
        ([[3], [2], [3]], {1: (1,), 2: (1,)}),
        ([[None], [1]], {0: (1,)}),
        ([[1], []], {}),
    ],
)
def test_of_equal_entities_the_newest_then_the_first_stays(
    tmp_path: Path, revisions: list[list[int | None]], superseded: dict[int, tuple[int, ...]]
) -> None:
    reports = [
        write(
            tmp_path,
            [item("Q7", **({} if one is None else {"lastrevid": one})) for one in own] + [item(f"Q{100 + part}")],
            part=part,
        )
        for part, own in enumerate(revisions)
    ]
    scratch = str(tmp_path / "scratch")
    assert find_superseded(reports, STORAGE, staging=str(tmp_path / "staging"), scratch=scratch) == superseded


def test_an_item_and_a_property_of_one_number_are_two(tmp_path: Path) -> None:
    reports = [write(tmp_path, [item("Q7"), {"type": "property", "id": "P7", "datatype": "time"}])]
    assert find_superseded(reports, STORAGE, staging=str(tmp_path / "staging"), scratch=str(tmp_path / "s")) == {}
