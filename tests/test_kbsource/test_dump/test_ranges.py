"""Which files and which bytes of them are read."""

from __future__ import annotations

import bz2
import gzip

import pytest

from kbsource.dump.ranges import expand_inputs, plan_ranges
from kbsource.errors import SetupError
from tests.support.dumps import PACKS, dump_xml, page_xml, stored

XML = dump_xml([page_xml(number, f"T{number}", "text " * 50) for number in range(1, 20)])


@pytest.mark.parametrize(
    ("name", "data", "is_split"),
    [
        ("a.xml", XML, True),
        ("a.xml.bz2", bz2.compress(XML), True),
        ("a.xml.gz", gzip.compress(XML, mtime=0), False),
        ("a.xml.zst", PACKS["zstd"](XML), False),
        ("a.xml.xz", PACKS["xz"](XML), False),
        ("utf16.xml", XML.decode().encode("utf-16"), False),
        ("gzip_called.bz2", gzip.compress(XML, mtime=0), False),
        ("bzip2_called.gz", bz2.compress(XML), True),
    ],
)
def test_ranges_cover_each_file_exactly(name: str, data: bytes, is_split: bool) -> None:
    stored({name: data})
    ranges = plan_ranges([name], range_bytes=300)
    assert (len(ranges) > 1) == is_split
    assert [part.start for part in ranges] == [0, *(part.end for part in ranges[:-1])]
    assert ranges[-1].end == len(data)
    assert [part.is_last for part in ranges] == [False] * (len(ranges) - 1) + [True]


def test_ranges_are_numbered_over_all_files_in_their_order() -> None:
    stored({"b.xml": XML, "a.xml": XML})
    ranges = plan_ranges(["b.xml", "a.xml"], range_bytes=len(XML) - 1)
    assert [(part.index, part.path) for part in ranges] == [(0, "b.xml"), (1, "b.xml"), (2, "a.xml"), (3, "a.xml")]


def test_a_range_has_bytes() -> None:
    with pytest.raises(SetupError, match="0"):
        plan_ranges([], range_bytes=0)


FOLDER = [
    "d/enwiki-20260101-md5sums.txt",
    "d/enwiki-20260101-page_props.sql.gz",
    "d/enwiki-20260101-pages-articles-multistream-index1.txt-p1p41242.bz2",
    "d/enwiki-20260101-pages-articles-multistream-index.txt.bz2",
    "d/enwiki-20260101-pages-articles-multistream10.xml-p4045403p5399366.bz2",
    "d/enwiki-20260101-pages-articles-multistream1.xml-p1p41242.bz2",
    "d/enwiki-20260101-pages-articles-multistream2.xml-p41243p151573.bz2",
    "d/enwiki-20260101-siteinfo-namespaces.json.gz",
    "d/SHA256SUMS",
    "d/_SUCCESS",
    "d/dumpstatus.json",
]


def test_a_pattern_gives_the_parts_in_the_order_of_their_numbers() -> None:
    stored(dict.fromkeys(FOLDER, b""))
    assert [path.split("multistream")[1] for path in expand_inputs(["d/*"])] == [
        "1.xml-p1p41242.bz2",
        "2.xml-p41243p151573.bz2",
        "10.xml-p4045403p5399366.bz2",
    ]


def test_a_file_that_several_patterns_name_comes_once() -> None:
    stored({"a1.xml": b"", "a2.xml": b"", "b.xml": b""})
    assert expand_inputs(["b.xml", "a*.xml", "*.xml"]) == ["b.xml", "a1.xml", "a2.xml"]


def test_a_pattern_that_matches_no_dump_is_named() -> None:
    stored(dict.fromkeys(FOLDER, b""))
    with pytest.raises(SetupError, match=r"'d/\*\.7z'"):
        expand_inputs(["d/*.7z"])
