from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.files import LocalStorage
from kbsource.pageviews import PageViews, Popularity, projects_of, read_pageviews
from kbsource.records import BadRecord
from tests.support.real_data import real_path

EN = projects_of("en")


def read(path: Path, content: bytes) -> list[PageViews | BadRecord]:
    path.write_bytes(content)
    return list(read_pageviews(str(path), LocalStorage(), EN))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"en.wikipedia Abraham_Lincoln 307 desktop 8 F8", PageViews("Abraham Lincoln", 307, 8)),
        (b"en.wikipedia Abraham_Lincoln null mobile-app 2 A1B1", PageViews("Abraham Lincoln", None, 2)),
        (b"en.wikipedia Abraham_Lincoln mobile-web 5 A5", PageViews("Abraham Lincoln", None, 5)),
        (b"en.z Abraham_Lincoln 12", PageViews("Abraham Lincoln", None, 12)),
        (b"en.z Abraham_Lincoln 12 A12", PageViews("Abraham Lincoln", None, 12)),
        (b"en Abraham_Lincoln 12 47377", PageViews("Abraham Lincoln", None, 12)),
        (b"en.m Caf%C3%A9_%22Sea%22 1 0", PageViews('Café "Sea"', None, 1)),
        ("en.z 潮の歌 3".encode(), PageViews("潮の歌", None, 3)),
        (b"en.z 100%_Rain 3", PageViews("100% Rain", None, 3)),
    ],
)
def test_both_forms_are_read(line: bytes, expected: PageViews, tmp_path: Path) -> None:
    for pack in (bytes, bz2.compress, gzip.compress):
        assert read(tmp_path / "views", pack(line + b"\n")) == [expected]


def test_other_projects_and_comments_are_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path / "views", b"# en.z\nde.wikipedia A 1 desktop 1 A1\nen.b A 1\nende.z A 1\n") == []


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
    ],
)
def test_a_line_of_another_form_is_rejected(line: bytes, tmp_path: Path) -> None:
    (bad,) = read(tmp_path / "views", line)
    assert isinstance(bad, BadRecord)
    assert (bad.reason, bad.detail, bad.file) == ("malformed_line", line.decode(), "views")


def test_offsets_are_those_of_the_lines(tmp_path: Path) -> None:
    found = read(tmp_path / "views", b"en.z A 1\nen.z\nen.z B 2")
    assert [one.offset for one in found if isinstance(one, BadRecord)] == [9]


def test_damage_is_told_and_what_can_be_read_is(tmp_path: Path) -> None:
    content = bz2.compress(b"en.z A 1\n") + bz2.compress(b"en.z B 2\n")[:-12]
    found = read(tmp_path / "views", content)
    assert found[0] == PageViews("A", None, 1)
    assert {one.reason for one in found if isinstance(one, BadRecord)} == {"truncated"}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="nothing"):
        list(read_pageviews(str(tmp_path / "nothing"), LocalStorage(), EN))


def test_popularity_sums_over_titles_that_lead_to_one_article() -> None:
    articles = {"A": 7, "Redirect to A": 7, "B": 5000}
    popularity = Popularity(lambda row: row.page_id or articles.get(row.title))
    popularity.add([PageViews("A", None, 3), PageViews("Redirect to A", None, 4), PageViews("x", 5000, 1)])
    popularity.add([PageViews("B", None, 1), PageViews("no page", None, 9)])
    assert [popularity.views(page_id) for page_id in (7, 5000, 6, 10**9)] == [7, 2, 0, 0]
    assert (popularity.n_views, popularity.n_elsewhere) == (9, 9)


def test_real_days_add_up() -> None:
    folder = real_path("sql/qrank_dumps/other/pageview_complete/2023/2023-03")
    popularity = Popularity(lambda row: row.page_id)
    for path in sorted(folder.iterdir()):
        rows = list(read_pageviews(str(path), LocalStorage(), projects_of("de")))
        assert not any(isinstance(row, BadRecord) for row in rows)
        popularity.add(row for row in rows if isinstance(row, PageViews))
    assert popularity.views(585473) > 10
    assert popularity.n_elsewhere > 0
