"""The command that makes a release of page views, end to end."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError, SetupError
from kbsource.pageviews import PAGEVIEWS_RELEASE, LineCounts, PageviewsManifest
from kbsource.release.verify import verify
from pipelines.cli import main
from pipelines.jobs.pageviews import check_views_files, make_pageviews
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.pageviews import PageviewsOptions
from tests.support.builds import rows, run_job

FIRST = """\
de.wikipedia Abraham_Lincoln 1 desktop 9 A9
en.wikipedia - null desktop 1000 A1000
en.wikipedia A%2FB 12 desktop 1 A1
en.wikipedia Abraham_Lincoln 307 desktop 8 F8
en.wikipedia Abraham_Lincoln 307 mobile-web 4 F4
en.wikipedia Abraham_Lincoln mobile-app 2 F2
en.wikipedia abe_Lincoln 308 desktop 1 F1
en.wikipedia Broken_line
en.wikipedia Talk:Abraham_Lincoln 309 desktop 3 F3
en.wikipedia <b>x</b> null desktop 3 F3
"""
SECOND = """\
en.wikipedia Abraham_Lincoln 307 desktop 20 F20
en.wikipedia Élan 400 desktop 5 F5
"""
OLD = """\
en.z Abraham_Lincoln 100
en.m.z Abraham_Lincoln 50
de.z Abraham_Lincoln 5
"""
EXPECTED = [
    ("A/B", 12, 1),
    ("Abe Lincoln", 308, 1),
    ("Abraham Lincoln", None, 102),
    ("Abraham Lincoln", 307, 32),
    ("Élan", 400, 5),
]


def make(pattern: str | Path, output: Path, **options: Any) -> Any:
    given = PageviewsOptions(input=(str(pattern),), output=str(output), **{"max_rejects": 0.2, **options})
    return run_job(make_pageviews, given)


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    lines = FIRST.encode().splitlines(keepends=True)
    packed = b"".join(bz2.compress(b"".join(lines[start : start + 3])) for start in range(0, len(lines), 3))
    (folder / "pageviews-20260101-user.bz2").write_bytes(packed)
    (folder / "pageviews-20260102-user.gz").write_bytes(gzip.compress(SECOND.encode()))
    (folder / "pagecounts-2019-10-views-ge-5-totals").write_bytes(OLD.encode())
    return folder


@pytest.fixture(scope="module")
def made(views: Path, tmp_path_factory: pytest.TempPathFactory) -> MadeRelease[PageviewsManifest]:
    summary: MadeRelease[PageviewsManifest] = make(
        views / "page*", tmp_path_factory.mktemp("release") / "views", range_bytes=50
    )
    return summary


def test_both_forms_are_summed_by_title_and_page(made: MadeRelease[PageviewsManifest]) -> None:
    assert [tuple(row.values()) for row in rows(Path(made.output), "pageviews")] == EXPECTED
    assert made.manifest.views == sum(views for _, _, views in EXPECTED)


def test_the_mobile_site_of_old_files_counts_where_it_is_asked_for(views: Path, tmp_path: Path) -> None:
    every = make(views / "page*", tmp_path / "views", all_access=True)
    assert ("Abraham Lincoln", None, 152) in [tuple(row.values()) for row in rows(tmp_path / "views", "pageviews")]
    assert every.manifest.options["all_access"]
    (tmp_path / "pagecounts-201910").write_text("en Abraham_Lincoln 3 100\n")
    with pytest.raises(DataError, match="--all-access takes"):
        make(tmp_path / "pagecounts-201910", tmp_path / "none")


def test_every_line_of_the_wiki_is_accounted_for(made: MadeRelease[PageviewsManifest]) -> None:
    assert made.manifest.totals == LineCounts(12, 8, 1, 2, {"malformed_line": 1})
    assert made.manifest.counts["pageviews-20260102-user.gz"] == LineCounts(2, 2)
    (bad,) = rows(Path(made.output), "rejected")
    assert (bad["reason"], bad["file"], bad["detail"]) == (
        "malformed_line",
        "pageviews-20260101-user.bz2",
        "en.wikipedia Broken_line",
    )
    assert verify(made.output, [PAGEVIEWS_RELEASE]).findings == ()


def test_a_title_is_shown(made: MadeRelease[PageviewsManifest], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", made.output, "Abraham Lincoln", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [tuple(row.values()) for row in shown] == EXPECTED[2:4]
    assert main(["show", made.output, "Abraham Lincoln"]) == 0
    assert "views  102" in capsys.readouterr().out
    assert main(["show", made.output, "Nobody"]) == 1
    assert "has no row for 'Nobody'" in capsys.readouterr().err


def test_the_command_says_what_it_made(views: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["pageviews", str(views / "*user*"), "--site", "dewiki", "--output", str(tmp_path / "de")]
    assert main(argv) == 0
    assert "lines of dewiki" in capsys.readouterr().out
    assert main([*argv[:-1], str(tmp_path / "again"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["views"], said["counts"]["used"]) == (9, 1)


def test_too_many_broken_lines_and_a_wiki_without_views_make_no_release(views: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="malformed_line"):
        make(views / "*user*", tmp_path / "views", max_rejects=0.01)
    with pytest.raises(DataError, match="frwiki"):
        make(views / "*user*", tmp_path / "other", site="frwiki")


def test_files_that_must_not_be_summed_are_refused() -> None:
    with pytest.raises(SetupError, match="spider"):
        check_views_files(["pageviews-20260101-spider.bz2"])
    with pytest.raises(SetupError, match="a day of the month"):
        check_views_files(["pageviews-202601-user.bz2", "pageviews-20260102-user.bz2"])
    check_views_files(["pageviews-202512-user.bz2", "pageviews-20260101-user.bz2"])


def test_lines_in_a_damaged_block_are_estimated_and_count_for_the_ceiling(tmp_path: Path) -> None:
    lines = [f"en.wikipedia Page_{number} {number} desktop 1 A1\n".encode() for number in range(1, 401)]
    blocks = [bz2.compress(b"".join(lines[start : start + 100])) for start in range(0, 400, 100)]
    damaged = bytearray(blocks[1])
    damaged[len(damaged) // 2] ^= 255
    path = tmp_path / "pageviews-20260101-user.bz2"
    path.write_bytes(b"".join([blocks[0], bytes(damaged), *blocks[2:]]))
    with pytest.raises(DataError, match=r"about [0-9]+ more lost in [0-9]+ damaged bytes"):
        make(path, tmp_path / "refused", max_rejects=0.2)
    made = make(path, tmp_path / "views", max_rejects=0.4)
    assert 80 < made.manifest.findings["estimated_lost"] < 120
