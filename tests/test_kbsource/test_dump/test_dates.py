"""Files of two days are not one dump."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from kbsource.dump.check import dump_findings
from kbsource.dump.dates import check_one_day, check_revision_days, day_of
from kbsource.errors import SetupError

_HEAD = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="ltg">'
_PAGE = (
    "<page><title>A</title><ns>0</ns><id>1</id><revision><id>1</id><timestamp>{}T00:00:00Z</timestamp>"
    "<model>wikitext</model><format>text/x-wiki</format><text>a</text></revision></page>"
)


def _write(path: Path, newest: str = "2019-07-19") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{_HEAD}{_PAGE.format(newest)}</mediawiki>")
    return str(path)


def test_a_day_is_found_in_names_status_and_folders(tmp_path: Path) -> None:
    status = {"jobs": {"articles": {"status": "done", "files": {"ltgwiki-20260901-pages-articles.xml.bz2": {}}}}}
    (tmp_path / "with_status").mkdir()
    (tmp_path / "with_status" / "dumpstatus.json").write_text(json.dumps(status))
    cases = {
        "ltgwiki-20261001-pages-articles.xml": (date(2026, 10, 1), "its name"),
        "ltgwiki-2026-10-02-p1p99.xml": (date(2026, 10, 2), "its name"),
        "wikidata-20261005-all.json.bz2": (date(2026, 10, 5), "its name"),
        "with_status/pages.xml": (date(2026, 9, 1), "dumpstatus.json"),
        "20261001/pages.xml": (date(2026, 10, 1), "its folder"),
        "pages.xml": None,
        "ltgwiki-latest-pages-articles.xml": None,
        "ltgwiki-20269999-pages-articles.xml": None,
    }
    assert {name: day_of(str(tmp_path / name)) for name in cases} == cases


@pytest.mark.parametrize(
    "names",
    [
        ("ltgwiki-20261001-pages-articles1.xml-p1p9", "ltgwiki-20261101-pages-articles2.xml-p10p19"),
        ("ltgwiki-20261001-pages-articles1.xml-p1p9", "20261101/pages-articles2.xml-p10p19"),
        ("20261001/pages-articles1.xml-p1p9", "20261101/pages-articles2.xml-p10p19"),
    ],
)
def test_parts_of_two_days_are_refused_with_both(names: tuple[str, ...], tmp_path: Path) -> None:
    paths = [_write(tmp_path / name) for name in names]
    found = {finding.code: finding for finding in dump_findings(paths).findings if finding.severity == "error"}
    assert {"2026-10-01", "2026-11-01"} == {word for word in found["mixed_dates"].message.split() if "2026-" in word}
    with pytest.raises(
        SetupError, match=r"from 2026-10-01 .* from 2026-11-01 .*, so the files do not belong to one dump"
    ):
        check_one_day(paths)


def test_parts_of_one_day_are_one_dump(tmp_path: Path) -> None:
    names = ("ltgwiki-20261001-pages-articles1.xml-p1p9", "ltgwiki-2026-10-01-p10p19.xml", "other/part.xml")
    check_one_day([_write(tmp_path / name) for name in names])


def test_a_revision_of_a_later_time_is_told(tmp_path: Path) -> None:
    kept = _write(tmp_path / "ltgwiki-20261001-pages-articles.xml", "2026-10-03")
    assert "mixed_dates" not in {finding.code for finding in dump_findings([kept], deep=True).findings}
    later = _write(tmp_path / "ltgwiki-20260901-pages-articles.xml", "2026-10-03")
    (found,) = (finding for finding in dump_findings([later], deep=True).findings if finding.code == "mixed_dates")
    assert "is 2026-09-01 (from its name), but its newest revision is from 2026-10-03" in found.message


_OLD = {"2019-05-01": 40, "2019-07-19": 3}
_NEW = {"2019-01-01": 30, "2024-03-04": 10, "2024-07-01": 3}


def test_parts_whose_revisions_end_far_apart_are_refused_with_both_days() -> None:
    files = {"a.xml": _OLD, "b.xml": _NEW}
    message = r"b.xml has revisions up to 2024-07-01, but a.xml has none after 2019-07-19, .* do not belong to one dump"
    for undated in (["a.xml", "b.xml"], ["a.xml"], ["b.xml"]):
        with pytest.raises(SetupError, match=message):
            check_revision_days(files, undated)


@pytest.mark.parametrize(
    ("files", "undated"),
    [
        ({"a.xml": _OLD}, ["a.xml"]),
        ({"a.xml": _OLD, "b.xml": _NEW}, []),  # their names give one day
        ({"a.xml": {"2019-07-19": 2}, "b.xml": {"2024-07-01": 2}}, ["a.xml", "b.xml"]),  # few pages
        (
            {"a.xml": {"2019-07-19": 5000}, "b.xml": {"2019-01-01": 500, "2024-07-01": 90}},
            ["a.xml", "b.xml"],
        ),  # rarely changed
        ({"a.xml": _OLD, "b.xml": {"2019-07-25": 43}}, ["a.xml", "b.xml"]),  # written over some days
        ({"a.xml": {}, "b.xml": _NEW, "c.xml": {"": 3}}, ["a.xml", "b.xml", "c.xml"]),
    ],
)
def test_parts_that_may_be_of_one_dump_are_taken(files: dict[str, dict[str, int]], undated: list[str]) -> None:
    check_revision_days(files, undated)
