from __future__ import annotations

import bz2
import codecs
import gzip
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.dump.lines import Line
from kbsource.dump.ranges import expand_paths
from kbsource.errors import SetupError
from kbsource.records import BadRecord
from kbsource.wikidata.lines import plan_entities, read_ahead, read_entities
from tests.support.entities import array
from tests.support.examples import examples

LINES = [b'{"id":"Q1"}', b'{"id":"Q2","x":"' + b"x" * 300 + b'"}', b'{"id":"Q3"}']


def read(path: Path, *, range_bytes: int = 1 << 40, **options: Any) -> list[Line | BadRecord]:
    return [
        line
        for line_range in plan_entities([str(path)], range_bytes=range_bytes)
        for line in read_entities(line_range, **options)
    ]


def data_of(found: list[Line | BadRecord]) -> list[bytes]:
    return [item.data for item in found if isinstance(item, Line)]


def reasons(found: list[Line | BadRecord]) -> list[str]:
    return [item.reason for item in found if isinstance(item, BadRecord)]


@pytest.mark.parametrize(
    "content",
    [
        array(LINES),
        b"[\n" + b",\n".join(LINES) + b",\n]",
        b"[\r\n" + b",\r\n".join(LINES) + b"\r\n]\r\n",
        b"[" + b",\n".join(LINES) + b"]",
        b"\n".join(LINES),
        b"\n\n" + b"\n".join(LINES) + b"\n\n",
        codecs.BOM_UTF8 + array(LINES),
        codecs.BOM_UTF8 + b"\n".join(LINES),
        array(LINES[:1]) + array(LINES[1:]),
    ],
    ids=[
        "array",
        "comma after the last line",
        "carriage returns",
        "brackets in lines",
        "ndjson",
        "empty lines",
        "byte order mark",
        "byte order mark of ndjson",
        "two arrays",
    ],
)
def test_every_entity_is_a_line_whatever_stands_around(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    for pack in (bytes, bz2.compress, gzip.compress):
        path.write_bytes(pack(content))
        assert data_of(read(path)) == LINES
        assert reasons(read(path)) == []


@settings(max_examples=examples(60))
@given(
    st.lists(st.binary(max_size=12).map(lambda raw: b'{"id":"Q1","x":"' + raw.hex().encode() + b'"}'), max_size=25),
    st.integers(1, 200),
    st.sampled_from(["plain", "bzip2", "many streams"]),
    st.booleans(),
)
def test_any_cut_gives_the_same_lines(lines: list[bytes], range_bytes: int, form: str, is_damaged: bool) -> None:
    content = array(lines)
    if form == "bzip2":
        content = bz2.compress(content, 1)
    elif form == "many streams":
        content = b"".join(bz2.compress(content[start : start + 40]) for start in range(0, len(content), 40))
    is_damaged = is_damaged and form != "bzip2" and len(content) > 200
    if is_damaged:
        at = len(content) // 2
        content = content[:at] + b"\0\0\0" + content[at + 3 :]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dump.json"
        path.write_bytes(content)
        whole = read(path)
        assert read(path, range_bytes=range_bytes) == whole
        if not is_damaged:
            assert data_of(whole) == lines
            assert reasons(whole) == []


def test_a_block_that_cannot_be_decoded_costs_the_lines_that_touch_it(tmp_path: Path) -> None:
    path = tmp_path / "dump.json.bz2"
    content = array(LINES)
    cut = content.index(LINES[1]) + 100
    streams = [bz2.compress(content[:cut]), bz2.compress(content[cut : cut + 50]), bz2.compress(content[cut + 50 :])]
    middle = bytearray(streams[1])
    middle[20] ^= 0xFF
    path.write_bytes(streams[0] + bytes(middle) + streams[2])

    found = read(path)

    assert data_of(found) == [LINES[0], LINES[2]]
    assert [(item.reason, item.key) for item in found if isinstance(item, BadRecord)] == [
        ("line_cut", "Q2"),
        ("damaged_block", ""),
    ]


def test_an_array_that_is_not_closed_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(array(LINES)[:-3])
    for range_bytes in (1 << 40, 10):
        found = read(path, range_bytes=range_bytes)
        assert data_of(found) == LINES
        assert reasons(found) == ["truncated_dump"]


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress])
def test_a_compressed_file_that_breaks_off_is_truncated(pack: Any, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(b"".join(pack(part) for part in (b"[\n", b"\n".join(LINES)))[:-15])
    assert reasons(read(path))[-1] == "truncated_dump"


def test_what_stands_behind_a_damage_of_gzip_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "dump.json.gz"
    members = [gzip.compress(part) for part in (b"[\n", b",\n".join(LINES), b"\n]")]
    broken = members[1][:-8] + bytes(8)
    path.write_bytes(members[0] + broken + members[2])
    assert reasons(read(path)) == ["line_cut", "damaged_gzip", "truncated_dump"]


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress])
def test_garbage_behind_an_array_cuts_nothing_off_and_garbage_within_does(pack: Any, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(pack(array(LINES)) + b"garbage")
    assert reasons(read(path)) == ["trailing_garbage"]
    path.write_bytes(pack(array(LINES)[:-3]) + b"garbage")
    assert reasons(read(path))[-2:] == ["trailing_garbage", "truncated_dump"]


def test_a_line_without_end_is_given_up_and_the_next_one_read(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(array(LINES))
    found = read(path, max_bytes=100)
    assert data_of(found) == [LINES[0], LINES[2]]
    assert [(item.reason, item.key) for item in found if isinstance(item, BadRecord)] == [("line_too_large", "Q2")]


@pytest.mark.parametrize("content", [b"<mediawiki>", b"\x1f\x8bxxxxxxxx", bz2.compress(b"[]")[:20], b""])
def test_what_is_no_json_dump_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(content)
    with pytest.raises(SetupError, match=r"dump\.json"):
        read(path)


def test_progress_adds_up_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "dump.json.bz2"
    path.write_bytes(bz2.compress(array(LINES)))
    done: list[int] = []
    read(path, range_bytes=30, on_progress=done.append)
    assert sum(done) == path.stat().st_size


@given(st.lists(st.integers(0, 40) | st.none(), max_size=30), st.integers(1, 50))
def test_reading_ahead_gives_the_same_and_never_takes_much_more_than_it_should(
    sizes: list[int | None], ahead_bytes: int
) -> None:
    bad = BadRecord("read", "", "line_cut", "", "dump", 0)
    lines = [bad if size is None else Line(number, b"x" * size) for number, size in enumerate(sizes)]
    taken: list[Line | BadRecord] = []

    def source() -> Iterator[Line | BadRecord]:
        for line in lines:
            taken.append(line)
            yield line

    given_back: list[Line | BadRecord] = []
    for line in read_ahead(source(), ahead_bytes=ahead_bytes):
        waiting = taken[len(given_back) : -1]
        assert sum(len(item.data) for item in waiting if isinstance(item, Line)) < ahead_bytes
        assert bad not in waiting  # it counts as more than fits
        given_back.append(line)
    assert given_back == lines


def test_parts_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9):
        (tmp_path / f"part-{number}.json.gz").write_bytes(b"")
    found = expand_paths([str(tmp_path / "*.json.gz"), str(tmp_path / "part-9.json.gz")])
    assert [Path(path).name for path in found] == ["part-9.json.gz", "part-10.json.gz"]
    with pytest.raises(SetupError, match="nothing"):
        expand_paths([str(tmp_path / "nothing*")])
