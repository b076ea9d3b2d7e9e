"""Pass one: what is staged, what is counted, what is rejected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.pages import staging
from kbsource.pages.staging import (
    RangeScan,
    RedirectReader,
    ScanReport,
    Selection,
    lost_pages,
    part_path,
    raw_pages,
    read_report,
    read_staged_batches,
    stage_scan,
)
from kbsource.records import BadRecord, RawPage
from kbsource.runtime.chunks import BatchRef, read_stored
from kbsource.site import Site

SITE = Site(lang="de", namespaces={0: "", 14: "Kategorie"})


def page(page_id: int, title: str, text: str = "Text.", **values: Any) -> RawPage:
    given = {
        "page_id": page_id,
        "namespace": 0,
        "title": title,
        "redirect_title": None,
        "revision_id": page_id + 1000,
        "parent_revision_id": None,
        "timestamp": "2026-01-01T00:00:00Z",
        "model": "wikitext",
        "text": text,
        "file": "dump.xml",
        "offset": 10 * page_id,
    }
    return RawPage(**{**given, **values})


def bad(key: str, reason: str) -> BadRecord:
    return BadRecord("read", key, reason, "detail", "dump.xml", 7)


RECORDS: list[RawPage | BadRecord] = [
    page(1, "Alpha", "Ä" * 10),
    page(2, "Kategorie:Alles", namespace=14),
    page(3, "Beta", "#WEITERLEITUNG [[alpha#Ende]]"),
    bad("4", "malformed_xml"),
    page(5, "Gamma", parent_revision_id=77),
    page(6, "Delta", '{"a": 1}', model="json"),
    bad("", "damaged_block"),
    bad("7", "no_revision_as_of"),
]


def scan(folder: Path, records: list[RawPage | BadRecord], **selection: Any) -> ScanReport:
    pages = RangeScan(records, part=3, file="dump.xml", site=SITE, selection=Selection(**selection))
    return stage_scan(pages, staging=str(folder), part=3)


def read(chunk: BatchRef) -> list[tuple[int, RawPage]]:
    return [row for batch in read_stored(chunk) for row in raw_pages(batch)]


def staged(report: ScanReport) -> list[RawPage]:
    return [raw for chunk in report.chunks for _, raw in read(chunk)]


def table(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [row for batch in read_staged_batches(part_path(str(folder), kind, 3)) for row in batch.to_pylist()]


def test_every_record_is_counted_once(tmp_path: Path) -> None:
    report = scan(tmp_path, RECORDS)
    assert (report.n_articles, report.n_redirects, report.n_other, report.n_unselected) == (2, 1, 1, 1)
    assert report.rejected == {"content_model": 1, "damaged_block": 1, "malformed_xml": 1}
    assert report.n_pages == len(RECORDS)
    assert read_report(str(tmp_path), 3) == report


def test_what_went_with_damaged_blocks_is_estimated_from_the_ranges_that_were_read(tmp_path: Path) -> None:
    pages = RangeScan(RECORDS, part=3, file="dump.xml", site=SITE, selection=Selection(), n_bytes=500, damages=[60, 40])
    report = stage_scan(pages, staging=str(tmp_path), part=3)
    unread = replace(report, n_pages=0, n_bytes=1 << 30)
    assert lost_pages([report, unread]) == {"damaged_bytes": 100, "estimated_lost": 2}


def test_articles_come_back_as_they_were_read(tmp_path: Path) -> None:
    report = scan(tmp_path, RECORDS)
    assert staged(report) == [RECORDS[0], RECORDS[4]]
    assert report.chunks[0].n_bytes >= 20 + 5


def test_the_weight_of_a_chunk_is_the_bytes_of_its_text(tmp_path: Path) -> None:
    texts = ["Snow", "Schnee für alle", ""]

    report = scan(tmp_path, [page(number, f"Page {number}", text) for number, text in enumerate(texts, 1)])

    assert [chunk.n_bytes for chunk in report.chunks] == [sum(len(text.encode()) for text in texts)]


def test_titles_hold_articles_and_redirects_and_say_where_they_came_from(tmp_path: Path) -> None:
    report = scan(tmp_path, RECORDS)
    titles = table(tmp_path, "titles")
    assert [(row["page_id"], row["title"], row["is_redirect"]) for row in titles] == [
        (1, "Alpha", False),
        (3, "Beta", True),
        (5, "Gamma", False),
    ]
    assert [row["target_title"] for row in titles] == [None, "Alpha", None]
    assert titles[1]["target_fragment"] == "Ende"
    sources = {row["page_id"]: row["source"] for row in titles}
    assert [source for chunk in report.chunks for source, _ in read(chunk)] == [sources[1], sources[5]]
    assert sources[1] >> 32 == 3


def test_rejected_records_are_written(tmp_path: Path) -> None:
    scan(tmp_path, RECORDS)
    assert [(row["key"], row["reason"]) for row in table(tmp_path, "rejected")] == [
        ("4", "malformed_xml"),
        ("6", "content_model"),
        ("", "damaged_block"),
    ]


def test_chunks_of_any_size_hold_the_same_articles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[RawPage | BadRecord] = [page(n, f"P{n}", "x" * n) for n in range(1, 40)]
    monkeypatch.setattr(staging, "CHUNK_CHARS", 100)
    report = scan(tmp_path, records)
    assert staged(report) == records
    assert len(report.chunks) > 5
    assert read(report.chunks[2])[0][1] == records[sum(chunk.n_rows for chunk in report.chunks[:2])]


def test_scanning_again_writes_the_same_bytes(tmp_path: Path) -> None:
    scan(tmp_path, RECORDS)
    first = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    scan(tmp_path, RECORDS)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == first


def test_a_limit_stops_after_that_many_records(tmp_path: Path) -> None:
    report = scan(tmp_path, RECORDS, max_pages=4)
    assert (report.n_pages, report.n_articles, report.n_redirects) == (4, 1, 1)


def test_only_wanted_titles_and_what_leads_to_them_are_kept(tmp_path: Path) -> None:
    report = scan(tmp_path, RECORDS, titles=frozenset({"Alpha"}))
    assert [raw.title for raw in staged(report)] == ["Alpha"]
    assert (report.n_articles, report.n_redirects, report.n_unselected) == (1, 1, 3)


def test_a_range_that_failed_leaves_no_report(tmp_path: Path) -> None:
    def records() -> Any:
        yield RECORDS[0]
        raise OSError("the disk is gone")

    with pytest.raises(OSError):
        scan(tmp_path, records())

    with pytest.raises(SetupError, match="range 3 of the dump was not finished"):
        read_report(str(tmp_path), 3)
    assert list(tmp_path.rglob("*.*")) == []


@pytest.mark.parametrize(
    ("text", "element", "expected"),
    [
        ("Text.", None, None),
        ("#REDIRECT [[Ziel]]", None, ("Ziel", 0, None)),
        ("#redirect [[ziel#A b]]", None, ("Ziel", 0, "A b")),
        ("#WEITERLEITUNG [[Ziel]]", "Ziel", ("Ziel", 0, None)),
        ("no magic word, but the dump says so", "Ziel", ("Ziel", 0, None)),
        ("#REDIRECT [[Ziel#Teil]]", "Ziel", ("Ziel", 0, "Teil")),
        ("#REDIRECT [[:Kategorie:X]]", "Kategorie:X", ("Kategorie:X", 14, None)),
        ("#REDIRECT [[category:x]]", None, ("Kategorie:X", 14, None)),
    ],
)
def test_redirects_are_told_by_element_or_magic_word(
    text: str, element: str | None, expected: tuple[str | None, int | None, str | None] | None
) -> None:
    assert RedirectReader(SITE).read(page(1, "A", text, redirect_title=element)) == expected


def test_templates_and_modules_are_staged_where_they_are_wanted(tmp_path: Path) -> None:
    records: list[RawPage | BadRecord] = [
        page(1, "Vorlage:lang_ru", "''{{{1}}}''", namespace=10),
        page(2, "Vorlage:Ru", "#WEITERLEITUNG [[Vorlage:Lang ru]] {{x}}", namespace=10),
        page(3, "Vorlage:Weg", "#REDIRECT [[Kategorie:Weg]]", namespace=10),
        page(4, "Vorlage:A/styles.css", ".a {}", namespace=10, model="sanitized-css"),
        page(5, "Modul:Rechne", "return {}", namespace=828, model="Scribunto"),
        page(6, "Kategorie:Alles", namespace=14),
        page(7, "Alpha"),
    ]
    report = scan(tmp_path / "with", records, has_definitions=True)

    assert (report.n_other, report.n_definitions, report.n_articles) == (6, 4, 1)
    found = table(tmp_path / "with", "definitions")
    assert [(row["name"], row["target_name"], row["text"]) for row in found] == [
        ("10:Lang ru", None, "''{{{1}}}''"),
        ("10:Ru", "10:Lang ru", ""),
        ("10:Weg", "14:Weg", ""),
        ("828:Rechne", None, "return {}"),
    ]
    assert scan(tmp_path / "without", records).n_definitions == 0
    assert not Path(part_path(str(tmp_path / "without"), "definitions", 3)).exists()
