"""Snapshots of rendered HTML: forms of files, ranges, what becomes of each record."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbsource.dump.article_records import content_form, unpacked
from kbsource.dump.check import dump_findings
from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import Piece
from kbsource.dump.ranges import plan_ranges
from kbsource.dump.reader import read_range
from kbsource.dump.siteinfo import read_header
from kbsource.errors import SetupError
from kbsource.records import BadRecord, RawPage
from tests.support.snapshots import LANTERN, PORT, RECORDS, document, record, write_lines, write_tar


def read(path: Path, *, range_bytes: int = 1 << 30, **options: Any) -> list[RawPage | BadRecord]:
    site = read_header(str(path)).site
    ranges = plan_ranges([str(path)], range_bytes=range_bytes)
    return [found for part in ranges for found in read_range(part, site, **options)]


def shown(found: list[RawPage | BadRecord]) -> list[tuple[object, ...]]:
    return [
        (page.reason, page.key) if isinstance(page, BadRecord) else (page.title, page.page_id > 0, page.redirect_title)
        for page in found
    ]


WHOLE = [
    ("Lantern (ferry)", True, None),
    ("The Lantern", False, "Lantern (ferry)"),
    ("Lantern ferry", False, "Lantern (ferry)"),
    ("Port Sellick", True, None),
    ("Sellick", False, "Port Sellick"),
]


def test_every_form_of_file_has_the_same_pages(tmp_path: Path) -> None:
    halves = [RECORDS[:1], RECORDS[1:]]
    paths = [
        write_lines(tmp_path / "a.ndjson", RECORDS),
        write_lines(tmp_path / "b.json.gz", RECORDS),
        write_tar(tmp_path / "c.tar.gz", halves),
        write_tar(tmp_path / "d.tar", halves, form=tarfile.GNU_FORMAT),
        write_tar(tmp_path / "misnamed.xml.bz2", halves),
    ]
    for path in paths:
        found = read(path)
        assert shown(found) == WHOLE, path.name
        texts = [page.text for page in found if isinstance(page, RawPage)]
        assert texts == [LANTERN["article_body"]["html"], "", "", PORT["article_body"]["html"], ""]
        facts = found[0]
        assert isinstance(facts, RawPage)
        assert (facts.revision_id, facts.parent_revision_id, facts.timestamp, facts.model) == (
            157,
            107,
            "2026-01-02T03:04:05Z",
            "html",
        )


@pytest.mark.parametrize("range_bytes", [1, 300, 2000])
def test_lines_are_read_once_wherever_the_cuts_are(tmp_path: Path, range_bytes: int) -> None:
    path = write_lines(tmp_path / "a.ndjson", RECORDS)
    assert read(path, range_bytes=range_bytes) == read(path)


def test_the_first_record_names_the_wiki(tmp_path: Path) -> None:
    site = read_header(str(write_tar(tmp_path / "a.tar.gz", [RECORDS]))).site
    assert (site.dbname, site.lang, site.host) == ("enwiki", "en", "en.wikipedia.org")


def redirect_record(body: str, **values: Any) -> dict[str, Any]:
    return record(9, "Old", body, **values)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        # the three shapes of a redirect page
        (
            redirect_record('<link rel="mw:PageProp/redirect" href="./Port_Sellick#A"/>'),
            ("Old", True, "Port Sellick#A"),
        ),
        (redirect_record('<p><span typeof="mw:Nowiki">#REDIRECT [[Port Sellick]]</span></p>'), ("Old", True, None)),
        (
            redirect_record(
                "<section></section>",
                article_body={
                    "html": document("<section></section>", page_id=9, revision=109),
                    "wikitext": "#REDIRECT [[Port Sellick]]",
                },
            ),
            ("Old", True, None),
        ),
        (redirect_record("<section></section>"), ("html_empty", "9")),
        (redirect_record("a", article_body={"html": " "}), ("html_empty", "9")),
        (redirect_record("a", article_body={}), ("html_empty", "9")),
        (redirect_record("a", event={"type": "delete"}), ("text_deleted", "9")),
        (redirect_record("a", visibility={"text": False}), ("text_deleted", "9")),
        (redirect_record("a", version={}), ("missing_field", "9")),
        (redirect_record("a", name=""), ("missing_field", "9")),
        (redirect_record("a", identifier=-9), ("missing_field", "-9")),
        (redirect_record("a", date_modified="today"), ("invalid_field", "9")),
        (
            redirect_record("a", redirects=None, main_entity=None, previous_version={"identifier": None}),
            ("Old", True, None),
        ),
        (redirect_record("a", redirects=None, article_body={"html": 5}), ("invalid_field", "")),
        (redirect_record("a", article_body=None), ("html_empty", "9")),
        (redirect_record("a", identifier="9"), ("invalid_field", "")),
        (redirect_record("a", article_body={"html": document("a", page_id=8, revision=109)}), ("ids_disagree", "9")),
        (redirect_record("a", article_body={"html": document("a", page_id=9, revision=1)}), ("ids_disagree", "9")),
    ],
)
def test_every_record_is_a_page_or_has_a_reason(
    tmp_path: Path, own: dict[str, Any], expected: tuple[object, ...]
) -> None:
    found = read(write_lines(tmp_path / "a.ndjson", [PORT, own]))
    assert shown(found)[2:] == [expected]


@pytest.mark.slow  # large pages
@pytest.mark.parametrize("piece", ['<link rel="mw:PageProp/redirect" ', "<html about=", "<!--", "<head", "<style "])
def test_pages_that_look_like_redirects_take_no_longer_than_others(tmp_path: Path, piece: str) -> None:
    body = piece * (7000 // len(piece))
    own = [redirect_record("", article_body={"html": body}, identifier=number) for number in range(1, 20)]
    assert len(read(write_lines(tmp_path / "a.ndjson", own))) == 19


def test_words_of_a_redirect_are_the_text_that_names_its_target(tmp_path: Path) -> None:
    own = redirect_record('<p><span typeof="mw:Nowiki">#REDIRECT [[Port Sellick]]</span></p>')
    page = read(write_lines(tmp_path / "a.ndjson", [own]))[0]
    assert isinstance(page, RawPage)
    assert page.text == "#REDIRECT [[Port Sellick]]"


def test_a_line_that_is_no_record_has_a_reason(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.ndjson", [PORT])
    path.write_bytes(path.read_bytes() + b'{"name": "cut\n\n[1]\n')
    assert shown(read(path))[2:] == [("malformed_json", ""), ("invalid_field", "")]


def test_a_later_revision_is_not_in_the_snapshot_of_an_earlier_time(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.ndjson", [LANTERN])
    assert shown(read(path, as_of="2026-01-01T00:00:00Z")) == [("no_revision_as_of", "57")]
    assert len(read(path, as_of="2026-01-03T00:00:00Z")) == 3


def test_a_truncated_archive_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    noise = "".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(200))
    whole = write_tar(tmp_path / "a.tar.gz", [RECORDS, [record(99, "Noise", f"<p>{noise}</p>")]])
    cut = tmp_path / "b.tar.gz"
    cut.write_bytes(whole.read_bytes()[:-200])
    found = read(cut)
    assert shown(found)[:3] == WHOLE[:3]
    assert "truncated_dump" in {bad.reason for bad in found if isinstance(bad, BadRecord)}
    plain = tmp_path / "c.tar"
    plain.write_bytes(gzip.decompress(whole.read_bytes())[:4000])
    assert shown(read(plain))[-1] == ("malformed_tar", "")


def test_a_size_above_8_gib_is_read_from_the_header_before_the_file() -> None:
    facts = b"22 size=9000000000000\n"
    extended = tarfile.TarInfo("x")
    extended.type, extended.size = tarfile.XHDTYPE, len(facts)
    own = tarfile.TarInfo("a.ndjson")
    data = extended.tobuf() + facts.ljust(512, b"\0") + own.tobuf() + b'{"name": "A"}\n'
    pieces = [Piece(0, data, False, len(data))]
    found = [*unpacked(pieces)]
    assert [item.data for item in found if isinstance(item, Piece)] == [b'{"name": "A"}\n']
    assert [item.reason for item in found if isinstance(item, Damage)] == ["malformed_tar"]


@pytest.mark.parametrize("n_bytes", [1, 7, 511, 512, 513, 100_000])
def test_an_archive_has_the_same_content_however_it_is_cut(tmp_path: Path, n_bytes: int) -> None:
    data = write_tar(tmp_path / "a.tar", [RECORDS[:1], (), RECORDS[1:]]).read_bytes()
    pieces = [Piece(at, data[at : at + n_bytes], False, at) for at in range(0, len(data), n_bytes)]
    content = b"".join(item.data for item in unpacked(pieces) if isinstance(item, Piece))
    assert [json.loads(line) for line in content.split(b"\n") if line] == [*RECORDS]


def test_the_form_is_in_the_first_bytes() -> None:
    assert [content_form(head) for head in (b"\xef\xbb\xbf {", b"<mediawiki", b"")] == ["lines", "xml", "xml"]


def test_check_dump_knows_snapshots_and_refuses_a_mixture(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar.gz", [RECORDS])
    report = dump_findings([str(path)], deep=True)
    codes = {finding.code for finding in report.findings}
    assert not report.has_errors
    assert {"html_snapshot", "content"} <= codes
    assert not {"no_root", "no_siteinfo", "no_schema_version"} & codes
    xml = tmp_path / "b.xml"
    xml.write_text("<mediawiki><siteinfo><dbname>enwiki</dbname></siteinfo></mediawiki>")
    assert "mixed_content" in {finding.code for finding in dump_findings([str(path), str(xml)]).findings}


def test_json_that_is_no_snapshot_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"name": 7}) + "\n" + "x" * 600)
    with pytest.raises(SetupError, match="not a snapshot of HTML"):
        read_header(str(path))


def test_a_range_of_a_snapshot_says_what_form_it_has(tmp_path: Path) -> None:
    (part,) = plan_ranges([str(write_tar(tmp_path / "a.tar", [RECORDS]))], range_bytes=10)
    assert (part.form, part.is_last) == ("tar", True)
    assert replace(part, form="xml").form == "xml"
