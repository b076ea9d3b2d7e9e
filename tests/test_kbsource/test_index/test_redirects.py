from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.index.redirects import parse_redirect, redirect_rows
from kbsource.index.title_index_build import build_title_index
from kbsource.records import RedirectRow
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


def test_rows_are_in_title_order_with_both_targets(tmp_path: Path) -> None:
    build_title_index(title_batches(ROWS), str(tmp_path / "i"), scratch=str(tmp_path / "s"))
    assert list(redirect_rows(str(tmp_path / "i"), scratch=str(tmp_path / "s"))) == [
        RedirectRow(14, "Aid", "", None, None, None, 1, "missing_target"),
        RedirectRow(13, "Gone", "Not there", None, None, None, 1, "missing_target"),
        RedirectRow(11, "Terra", "Earth", "Name", "Earth", 1, 1, "ok"),
        RedirectRow(15, "Twin", "Earth", None, "Earth", 1, 1, "ok"),
        RedirectRow(16, "Twin", "Earth", None, "Earth", 1, 1, "ok"),
        RedirectRow(12, "Éa", "Terra", None, "Earth", 1, 2, "double"),
    ]


def test_rows_are_the_same_when_sorted_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [redirect_to(100 + number, f"R{number * 7919 % 301}", "Earth") for number in range(301)]
    build_title_index(title_batches(rows + ROWS), str(tmp_path / "i"), scratch=str(tmp_path / "s"))
    whole = list(redirect_rows(str(tmp_path / "i"), scratch=str(tmp_path / "s")))
    monkeypatch.setattr("kbsource.runtime.sorted_runs.PIECE_ROWS", 4)
    monkeypatch.setattr("kbsource.runtime.sorted_runs.RANGE_ROWS", 8)
    monkeypatch.setattr("kbsource.index.redirects._PARTS", 50)
    assert (
        list(redirect_rows(str(tmp_path / "i"), scratch=str(tmp_path / "s")))
        == whole
        == sorted(whole, key=lambda row: (row.title, row.page_id))
    )
    assert len(whole) == 307
