"""Checks of a dump: what each kind of damage is called."""

from __future__ import annotations

import bz2
import gzip
import hashlib

import orjson
import pytest

from kbsource.dump.check import (
    CheckReport,
    DumpPart,
    dump_findings,
    gaps_and_overlaps,
    index_names,
    is_content_export,
    part_of,
    read_index,
)
from tests.support.dumps import FOOTER, dump_xml, flip, header_xml, multistream, page_xml, stored
from tests.support.real_data import real_path

TITLES = ["A", "B & C", "Talk:D", "E", "F"]
PAGES = [
    (number, title, page_xml(number, title, f"text {number} " * 20, ns=1 if "Talk" in title else 0))
    for number, title in enumerate(TITLES, start=1)
]
DUMP, INDEX = multistream(PAGES)
NAME = "d/enwiki-20260101-pages-articles-multistream.xml.bz2"
INDEX_NAME = "d/enwiki-20260101-pages-articles-multistream-index.txt.bz2"
XML = dump_xml([xml for _, _, xml in PAGES])


def check(files: dict[str, bytes], *, deep: bool = False, paths: list[str] | None = None) -> CheckReport:
    stored(files)
    return dump_findings(paths or [name for name in files if ".xml" in name], deep=deep)


def codes(report: CheckReport, severity: str = "error") -> list[str]:
    return [finding.code for finding in report.findings if finding.severity == severity]


def sums(data: bytes, algorithm: str, name: str = NAME) -> bytes:
    return f"{hashlib.new(algorithm, data).hexdigest()}  {name.split('/')[-1]}\n".encode()


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_dump_has_no_errors_or_warnings(deep: bool) -> None:
    report = check({NAME: DUMP, INDEX_NAME: bz2.compress(INDEX)}, deep=deep)
    assert codes(report) == codes(report, "warning") == []
    assert not report.has_errors
    assert report.header is not None
    assert report.header.site.dbname == "enwiki"
    (file,) = report.inputs
    assert (file.name, file.hashed.n_bytes, file.hashed.sha256) == (
        NAME.removeprefix("d/"),
        len(DUMP),
        hashlib.sha256(DUMP).hexdigest(),
    )


def test_every_finding_says_what_it_means() -> None:
    report = check({NAME: DUMP[:-30], INDEX_NAME: bz2.compress(INDEX + b"bad\n")}, deep=True)
    assert report.has_errors
    for finding in report.findings:
        assert finding.message
        assert finding.remedy or finding.severity == "info"


def test_the_deep_check_counts_the_pages() -> None:
    report = check({NAME: DUMP}, deep=True)
    (content,) = [finding.message for finding in report.findings if finding.code == "content"]
    assert content == "5 pages: 4 articles, 0 redirects, 1 of other namespaces."


@pytest.mark.parametrize(
    ("list_name", "algorithm"),
    [
        ("d/enwiki-20260101-md5sums.txt", "md5"),
        ("d/enwiki-20260101-sha1sums.txt", "sha1"),
        ("d/md5sums.txt", "md5"),
        ("d/SHA256SUMS", "sha256"),
        (NAME + ".sha1", "sha1"),
    ],
)
def test_checksums_are_compared_with_the_lists_beside_the_file(list_name: str, algorithm: str) -> None:
    files = {NAME: DUMP, list_name: b"0" * 32 + b"  other.bz2\n" + sums(DUMP, algorithm)}
    assert codes(check(files, paths=[NAME]), "info") == ["checksum_ok"]
    files[list_name] = sums(DUMP + b"x", algorithm)
    assert codes(check(files, paths=[NAME])) == ["checksum_mismatch"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"size": 5}, ["size_mismatch"]),
        ({"sha1": "0" * 40}, ["checksum_mismatch"]),
        ({"status": "in-progress"}, ["job_not_done"]),
    ],
)
def test_dumpstatus_tells_size_checksums_and_whether_the_job_is_done(
    change: dict[str, object], expected: list[str]
) -> None:
    facts = {"size": len(DUMP), "sha1": hashlib.sha1(DUMP).hexdigest(), **change}
    job = {"status": facts.pop("status", "done"), "files": {NAME.removeprefix("d/"): facts}}
    report = check({NAME: DUMP, "d/dumpstatus.json": orjson.dumps({"jobs": {"articles": job}})}, paths=[NAME])
    assert codes(report) + codes(report, "warning") == expected


def test_a_dumpstatus_that_is_none_is_told() -> None:
    report = check({NAME: DUMP, "d/dumpstatus.json": b"[]"}, paths=[NAME])
    assert codes(report) == ["bad_checksum_list"]
    assert report.inputs[0].hashed.sha256 == hashlib.sha256(DUMP).hexdigest()


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.xml", XML[: -len(FOOTER)], ["truncated_dump"]),
        ("a.xml.bz2", DUMP[:-20], ["truncated_dump"]),
        ("a.xml.bz2", DUMP[: DUMP.rindex(b"BZh")], ["truncated_dump"]),
        ("a.xml.bz2", DUMP + b"garbage", ["trailing_garbage"]),
        ("a.xml.bz2", flip(DUMP, len(DUMP) - 20), ["damaged_block"]),
        ("a.xml", b"", ["unreadable"]),
        ("a.xml", b"<html>", ["unreadable"]),
        ("a.xml", header_xml(version="0.20") + b"</mediawiki>", ["unreadable"]),
    ],
)
def test_ends_and_heads_are_checked(name: str, data: bytes, expected: list[str]) -> None:
    assert codes(check({name: data})) == expected


def test_a_file_that_is_not_there_is_told() -> None:
    assert codes(check({}, paths=["gone.xml"])) == ["missing_file"]


def test_the_end_of_gzip_shows_in_the_deep_check() -> None:
    files = {"a.xml.gz": gzip.compress(XML[: -len(FOOTER)])}
    assert codes(check(files)) == []
    assert "end_not_checked" in codes(check(files), "info")
    assert codes(check(files, deep=True)) == ["truncated_dump"]


def test_damage_in_the_middle_shows_in_the_deep_check() -> None:
    place = DUMP.index(b"BZh", 20) + 60
    assert codes(check({NAME: flip(DUMP, place)})) == []
    assert codes(check({NAME: flip(DUMP, place)}, deep=True)) == ["damaged_block"]


def test_a_stubs_dump_is_told() -> None:
    stub = page_xml(1, "A").replace(b'<text xml:space="preserve" />', b'<text bytes="12" id="5" />')
    report = check({"a.xml": dump_xml([stub, page_xml(2, "Talk:B", "x", ns=1)])})
    assert codes(report) == ["stubs_dump"]


def test_missing_siteinfo_and_root_are_told() -> None:
    assert codes(check({"a.xml": PAGES[0][2]}), "warning") == ["no_root", "no_siteinfo"]


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (INDEX.replace(b"2:B", b"1:B"), ["index_order"]),
        (INDEX + f"{len(DUMP) + 5}:9:X\n".encode(), ["index_beyond_end"]),
        (INDEX + f"{len(DUMP) - 5}:9:X\n".encode(), ["index_mismatch"]),
        (INDEX + b"no line\n", ["unreadable_index"]),
        (b"", ["unreadable_index"]),
    ],
)
def test_the_index_is_checked(index: bytes, expected: list[str]) -> None:
    assert codes(check({NAME: DUMP, INDEX_NAME.removesuffix(".bz2"): index}, paths=[NAME])) == expected


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (INDEX, []),
        (INDEX.replace(b":E\n", b":Other\n"), ["index_retitled"]),
        (b"".join(INDEX.splitlines(keepends=True)[:-1]), ["index_not_indexed"]),
        (b"".join(INDEX.splitlines(keepends=True)[1:]), ["index_not_indexed"]),
        (INDEX + INDEX.splitlines()[-1].replace(b":5:F", b":9:G") + b"\n", ["index_not_read"]),
        (INDEX.replace(b":5:F", b":6:F"), ["index_not_read", "index_not_indexed"]),
    ],
)
def test_the_deep_check_compares_index_and_content(index: bytes, expected: list[str]) -> None:
    assert codes(check({NAME: DUMP, INDEX_NAME: bz2.compress(index)}, deep=True, paths=[NAME])) == expected


def test_files_of_different_wikis_are_told() -> None:
    other = dump_xml([PAGES[0][2]], header=header_xml(version="0.10", lang="de", dbname="dewiki"))
    report = check({"a.xml": XML, "b.xml": other})
    assert codes(report) == ["mixed_wikis"]
    assert codes(report, "warning") == ["mixed_schemas"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["1.xml-p1p10", "2.xml-p11p20"], []),
        (["1.xml-p1p10", "2.xml-p12p20"], ["part_missing"]),
        (["1.xml-p5p10", "2.xml-p11p20"], ["part_missing"]),
        (["1.xml-p1p10", "2.xml-p10p20"], ["parts_overlap"]),
    ],
)
def test_parts_must_follow_on_each_other(names: list[str], expected: list[str]) -> None:
    assert codes(check({f"enwiki-20260101-pages-articles{name}": XML for name in names})) == expected


def test_a_single_part_is_told() -> None:
    assert codes(check({"enwiki-20260101-pages-articles1.xml-p1p10": XML}), "warning") == ["single_part"]


def test_revisions_of_one_page_in_several_files() -> None:
    parts = [DumpPart("a", 1, 4), DumpPart("b", 5, 5, 1, 100), DumpPart("c", 5, 5, 101, 200), DumpPart("d", 6, 9)]
    assert gaps_and_overlaps(parts) == ([], [])
    assert gaps_and_overlaps([*parts, DumpPart("e", 5, 5, 150, 250)])[1] == ["c and e"]


def test_an_export_without_success_marker_is_told() -> None:
    name = "e/enwiki-2026-01-01-p1p10.xml.bz2"
    assert "no_success_marker" in codes(check({name: DUMP}), "warning")
    assert "no_success_marker" not in codes(check({name: DUMP, "e/_SUCCESS": b""}, paths=[name]), "warning")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("enwiki-20260101-pages-articles1.xml-p1p41242.bz2", (1, 41242, None, None)),
        ("enwiki-2026-01-01-p100p200.xml.bz2", (100, 200, None, None)),
        ("enwiki-2026-01-01-p5137507r1r1500.xml.bz2", (5137507, 5137507, 1, 1500)),
        ("enwiki-20260101-pages-articles.xml.bz2", None),
    ],
)
def test_names_tell_the_part(name: str, part: tuple[int, int, int | None, int | None] | None) -> None:
    assert part_of("x/" + name) == (None if part is None else DumpPart(name, *part))


def test_names_tell_index_and_kind() -> None:
    assert index_names("x/enwiki-20260101-pages-articles-multistream1.xml-p1p41242.bz2")[0] == (
        "enwiki-20260101-pages-articles-multistream-index1.txt-p1p41242.bz2"
    )
    assert index_names("x/enwiki-20260101-pages-articles.xml.bz2") == ()
    assert is_content_export("x/enwiki-2026-01-01-p100p200.xml.bz2")
    assert not is_content_export("x/enwiki-20260101-pages-articles.xml.bz2")


def test_progress_tells_each_byte_once_or_with_the_deep_check_twice() -> None:
    for deep in (False, True):
        steps: list[int] = []
        stored({NAME: DUMP})
        dump_findings([NAME], deep=deep, on_progress=steps.append)
        assert sum(steps) == len(DUMP) * (1 + deep)


def test_real_index_lines() -> None:
    entries = list(read_index(str(real_path("dumps/ruwiki_multistream_index_sample.txt"))))
    assert len(entries) == 91
    assert (entries[0].offset, entries[0].page_id, entries[0].title) == (772, 4, "Базовая статья")


def test_a_real_dump() -> None:
    path = str(real_path("dumps/aawiki/aawiki-20260101-pages-meta-current.xml.bz2"))
    report = dump_findings([path], deep=True)
    assert codes(report) == codes(report, "warning") == []
    (content,) = [finding.message for finding in report.findings if finding.code == "content"]
    assert content.startswith("507 pages")
