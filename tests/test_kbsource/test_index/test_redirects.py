from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.columns import rows_of
from kbsource.errors import DataError, named_faults
from kbsource.index.redirects import parse_redirect, redirect_batches
from kbsource.index.title_index import TITLES_FILE
from kbsource.index.title_index_build import build_title_index
from kbsource.records import RedirectRow
from tests.support.databases import LIMITS, limited
from tests.support.releases import TitleRow, redirect_to, title_batches


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#REDIRECT [[Earth]]", ("Earth", None)),
        ("#redirect[[Earth]]", ("Earth", None)),
        ("  \n#ReDirect : [[Earth]] {{R from move}}", ("Earth", None)),
        ("#REDIRECT\n[[Earth]]", ("Earth", None)),
        ("#REDIRECT [[Earth|the label]]", ("Earth", None)),
        ("#REDIRECT [[planet_Earth#Its_name ]]", ("planet Earth", "Its name")),
        ("#REDIRECT [[:Category:Planets]]", ("Category:Planets", None)),
        ("#REDIRECT [[AT%26T]]", ("AT&T", None)),
        ("#REDIRECT [[Hamlet &amp; I&#39;m]]", ("Hamlet & I'm", None)),
        ("#REDIRECT [[Earth#]]", ("Earth", None)),
        ("#REDIRECT [[#Here]]", None),
        ("#REDIRECT [[]]", None),
        ("#REDIRECT see [[Earth]]", None),
        ("#REDIRECT Earth", None),
        ("#REDIRECT [[a{b}]]", None),
        ("See #REDIRECT [[Earth]]", None),
        ("", None),
    ],
)
def test_a_redirect_is_read_as_mediawiki_reads_it(text: str, expected: tuple[str, str | None] | None) -> None:
    assert parse_redirect(text, "en") == expected


def test_the_magic_word_may_be_the_languages_own() -> None:
    assert parse_redirect("#WEITERLEITUNG [[Erde]]", "de") == ("Erde", None)
    assert parse_redirect("#перенаправление [[Земля]]", "ru") == ("Земля", None)
    assert parse_redirect("#WEITERLEITUNG [[Erde]]", "en") is None


@pytest.mark.parametrize(
    ("lang", "word"),
    [("tr", "#YÖNLENDİRME"), ("tr", "#yönlendirme"), ("az", "#İSTİQAMƏTLƏNDİRMƏ"), ("gag", "#YÖNLENDİR")],
)
def test_redirect_words_with_a_dotted_capital_are_known(lang: str, word: str) -> None:
    assert parse_redirect(f"{word} [[A]]", lang) == ("A", None)


ROWS = [
    TitleRow(1, "Earth"),
    redirect_to(12, "Éa", "Terra"),
    redirect_to(11, "Terra", "Earth", fragment="Name"),
    redirect_to(13, "Gone", "Not there"),
    TitleRow(14, "Aid", 1, True, None, None, None),
    redirect_to(16, "Twin", "Earth"),
    redirect_to(15, "Twin", "Earth"),
]


def redirect_rows(folder: Path) -> list[RedirectRow]:
    batches = redirect_batches(str(folder / "i"), scratch=str(folder / "s"))
    return [row for batch in batches for row in rows_of(batch, RedirectRow)]


def test_rows_are_in_title_order_with_both_targets(tmp_path: Path) -> None:
    build_title_index(title_batches(ROWS), str(tmp_path / "i"), scratch=str(tmp_path / "s"))
    assert redirect_rows(tmp_path) == [
        RedirectRow(14, "Aid", "", None, None, None, 1, "missing_target"),
        RedirectRow(13, "Gone", "Not there", None, None, None, 1, "missing_target"),
        RedirectRow(11, "Terra", "Earth", "Name", "Earth", 1, 1, "ok"),
        RedirectRow(15, "Twin", "Earth", None, "Earth", 1, 1, "ok"),
        RedirectRow(16, "Twin", "Earth", None, "Earth", 1, 1, "ok"),
        RedirectRow(12, "Éa", "Terra", None, "Earth", 1, 2, "double"),
    ]


@pytest.mark.slow  # many rows
def test_rows_are_the_same_with_any_number_of_threads_and_any_memory(tmp_path: Path) -> None:
    n_rows = 150_000  # threads share a table by 122,880 rows
    rows = [redirect_to(100 + number, f"R{number * 7919 % n_rows}", "Earth") for number in range(n_rows)]
    build_title_index(title_batches(rows + ROWS), str(tmp_path / "i"), scratch=str(tmp_path / "s"))
    whole = redirect_rows(tmp_path)
    assert whole == sorted(whole, key=lambda row: (row.title, row.page_id))
    assert len(whole) == n_rows + 6
    for limits in LIMITS:
        with limited("kbsource.index.redirects", **limits):
            assert redirect_rows(tmp_path) == whole
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["dropped.arrow"]


def test_rows_that_are_no_longer_read_leave_no_files(tmp_path: Path) -> None:
    build_title_index(title_batches(ROWS), str(tmp_path / "i"), scratch=str(tmp_path / "s"))
    batches = redirect_batches(str(tmp_path / "i"), scratch=str(tmp_path / "s"))
    next(batches)
    batches.close()
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["dropped.arrow"]


def test_a_damaged_index_is_reported_as_such(tmp_path: Path) -> None:
    build_title_index(title_batches(ROWS), str(tmp_path / "i"), scratch=str(tmp_path / "s"))
    path = tmp_path / "i" / TITLES_FILE
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="A table has changed since it was written"), named_faults():
        redirect_rows(tmp_path)
