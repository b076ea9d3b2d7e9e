from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.dump.lines import plan_lines
from kbsource.pageviews import PageViews, projects_of, read_views
from kbsource.records import BadRecord
from tests.support.examples import examples
from tests.support.real_data import real_path

EN = projects_of("en", all_access=True)


def read(path: Path, content: bytes) -> list[PageViews | BadRecord]:
    path.write_bytes(content)
    return read_whole(path, EN)


def read_whole(path: Path, projects: frozenset[str]) -> list[PageViews | BadRecord]:
    (whole,) = plan_lines([str(path)], range_bytes=1 << 30)
    return list(read_views(whole, projects))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"en.wikipedia Abraham_Lincoln 307 desktop 8 F8", PageViews("Abraham Lincoln", 307, 8)),
        (b"en.wikipedia Abraham_Lincoln null mobile-app 2 A1B1", PageViews("Abraham Lincoln", None, 2)),
        (b"en.wikipedia Abraham_Lincoln mobile-web 5 A5", PageViews("Abraham Lincoln", None, 5)),
        (b"en.z Abraham_Lincoln 12", PageViews("Abraham Lincoln", None, 12)),
        (b"en.z Abraham_Lincoln 12 A12", PageViews("Abraham Lincoln", None, 12)),
        (b"en Abraham_Lincoln 12 47377", PageViews("Abraham Lincoln", None, 12)),
        (b"en.zero A 2 0", PageViews("A", None, 2)),
        (b"en.m Caf%C3%A9_%22Sea%22 1 0", PageViews('Café "Sea"', None, 1)),
        ("en.z 潮の歌 3".encode(), PageViews("潮の歌", None, 3)),
        (b"en.z 100%_Rain 3", PageViews("100% Rain", None, 3)),
        (b"en.z A 3\r", PageViews("A", None, 3)),
        (b"en.wikipedia A 4294967295 desktop 999999999999999 A1", PageViews("A", 4294967295, 999_999_999_999_999)),
    ],
)
def test_both_forms_are_read(line: bytes, expected: PageViews, tmp_path: Path) -> None:
    for pack in (bytes, bz2.compress, gzip.compress):
        assert read(tmp_path / "views", pack(line + b"\n")) == [expected]
        assert read(tmp_path / "views", pack(line)) == [expected]


def test_of_the_old_form_one_project_is_taken_unless_all_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "views").write_text(
        "en.z A 1\nen.m.z A 2\nen A 3\nen.m A 4\nen.zero A 5\nen.wikipedia A desktop 6 A6\n"
    )
    found = {wanted: read_whole(tmp_path / "views", projects_of("en", all_access=wanted)) for wanted in (False, True)}
    views = {wanted: [row.views for row in rows if isinstance(row, PageViews)] for wanted, rows in found.items()}
    assert views == {False: [1, 6], True: [1, 2, 3, 4, 5, 6]}


@pytest.mark.parametrize(
    "line",
    [
        b"en.z",
        b"en.z A",
        b"en.z A many",
        b"en.wikipedia A x desktop 8 F8",
        b"en.wikipedia A 1 tv 8 F8",
        b"en.wikipedia A 7 tv 8",
        b"en.z  1",
        b"en.z A -1",
        b"en.z A " + b"9" * 5000,
        b"en.wikipedia A 1 desktop 9999999999999999 A1",
        b"en.wikipedia A 4294967296 desktop 1 A1",
        b"en.wikipedia A " + b"9" * 5000 + b" desktop 1 A1",
    ],
)
def test_a_line_of_another_form_is_rejected(line: bytes, tmp_path: Path) -> None:
    (bad,) = read(tmp_path / "views", line)
    assert isinstance(bad, BadRecord)
    assert (bad.reason, bad.detail, bad.file) == ("malformed_line", line.decode()[:1000], "views")


def test_damage_is_told_and_what_can_be_read_is(tmp_path: Path) -> None:
    content = bz2.compress(b"en.z A 1\n") + bz2.compress(b"en.z B 2\n")[:-12]
    found = read(tmp_path / "views", content)
    assert found[0] == PageViews("A", None, 1)
    assert {row.reason for row in found if isinstance(row, BadRecord)} == {"truncated_dump"}


def test_the_end_of_a_line_that_a_damage_cuts_is_no_line(tmp_path: Path) -> None:
    streams = [bz2.compress(part) for part in (b"en.z A 1\nen.z B ", b"2\nfiu-vro.z C 3\nt", b"en.z D 4\nen.z E 5\n")]
    broken = bytearray(streams[1])
    broken[20] ^= 0xFF
    found = read(tmp_path / "views", streams[0] + bytes(broken) + streams[2])
    assert [row.title for row in found if isinstance(row, PageViews)] == ["A", "E"]
    assert [row.reason for row in found if isinstance(row, BadRecord)] == ["line_cut", "damaged_block"]


@pytest.mark.parametrize("pack", [bytes, bz2.compress, gzip.compress])
def test_a_line_without_end_is_given_up_and_the_next_one_read(pack: Any, tmp_path: Path) -> None:
    long = b"en.z A 5 " + b"en.z " * 700_000
    found = read(tmp_path / "views", pack(long + b"\nen.z B 1\nen.z"))
    assert [row for row in found if isinstance(row, PageViews)] == [PageViews("B", None, 1)]
    bad = [(row.reason, row.offset) for row in found if isinstance(row, BadRecord)]
    assert [reason for reason, _ in bad] == ["line_too_large", "malformed_line"]
    if pack is not bz2.compress:
        assert [offset for _, offset in bad] == [0, len(long) + 10]


LINE = st.sampled_from([b"en", b"en.z", b"en.wikipedia", b"ten.z", b"de.z", b""]).flatmap(
    lambda project: st.sampled_from(
        [b" A 1", b" B_b 2 A2", b" C 7 desktop 8 A8", b" D null mobile-app 3 A3", b" E x", b""]
    ).map(lambda others: project + others)
)


@settings(max_examples=examples(60))
@given(st.lists(LINE, max_size=30), st.integers(1, 60), st.sampled_from([bytes, bz2.compress, gzip.compress]))
def test_any_cut_into_streams_gives_what_the_lines_say(lines: list[bytes], step: int, pack: Any) -> None:
    content = b"\n".join(lines)
    parts = [content[start : start + step] for start in range(0, len(content), step)] or [content]
    expected = []
    for line in lines:
        project, *fields = line.decode().split(" ")
        if project not in EN:
            continue
        if len(fields) == 5:
            page_id, views = (None if fields[1] == "null" else int(fields[1])), int(fields[3])
        else:
            page_id, views = None, int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else -1
        expected.append((fields[0].replace("_", " "), page_id, views) if views >= 0 else "malformed_line")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "views"
        path.write_bytes(b"".join(map(pack, parts)) if content else pack(b"\n"))
        found = read_whole(path, EN)
    assert [row.reason if isinstance(row, BadRecord) else tuple(row) for row in found] == expected


def test_real_days_add_up() -> None:
    folder = real_path("sql/qrank_dumps/other/pageview_complete/2023/2023-03")
    rows = [row for path in sorted(folder.iterdir()) for row in read_whole(path, projects_of("de"))]
    found = [row for row in rows if isinstance(row, PageViews)]
    assert len(found) == len(rows)
    assert sum(row.views for row in found if row.page_id == 585473) > 10
    assert any(row.page_id is None for row in found)
