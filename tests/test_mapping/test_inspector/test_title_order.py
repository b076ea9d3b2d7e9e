"""Titles by their beginnings, compared with a slow search through all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.index.title_index import TitleIndex
from kbsource.index.title_index_build import build_title_index
from mapping.inspector.pages.title_order import TitleOrder, folded, write_title_order
from tests.support.releases import TitleRow, redirect_to, title_batches

TITLES = [
    "Zürich",
    "Zurich (district)",
    "zürn",
    "List of rivers",
    "List of rivers of Łódź",
    "List of roads",
    "北京",
    "北",
    "A",
    "Ärger",
    "ﬁsh",
    "Q" * 300,
]


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> TitleOrder:
    folder: Path = tmp_path_factory.mktemp("titles")
    rows = [TitleRow(number, title) for number, title in enumerate(TITLES, start=1)]
    rows += [redirect_to(50, "ZÜRICHSEE", "Zürich"), redirect_to(51, "Zur gone", "nowhere")]
    build_title_index(title_batches(rows), str(folder), scratch=str(folder / "scratch"))
    index = TitleIndex.open(str(folder))
    seen: list[tuple[int, int]] = []
    write_title_order(index, str(folder), lambda done, total: seen.append((done, total)))
    assert seen[-1] == (28, 28)
    return TitleOrder(str(folder), index)


@pytest.mark.parametrize(
    "typed",
    [
        "z",
        "ZUR",
        "zürich",
        "zurichs",
        "list of r",
        "list of rivers o",
        "北",
        "a",
        "ar",
        "fi",
        "q" * 299,
        "q" * 301,
        "nothing",
        "\U0010ffff",
    ],
)
def test_what_begins_so_is_found_in_order(order: TitleOrder, typed: str) -> None:
    expected = sorted(
        (title for title in [*TITLES, "ZÜRICHSEE"] if folded(title).startswith(folded(typed))), key=folded
    )
    assert [entry.title for entry in order.beginning_with(typed, 99)] == expected
    assert [entry.title for entry in order.beginning_with(typed, 1)] == expected[:1]
