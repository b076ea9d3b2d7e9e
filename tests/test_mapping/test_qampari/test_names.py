"""What items are called and where their pages lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.files import LocalStorage
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.wikidata.reader import WikidataTables
from mapping.qampari.facts import names as module
from mapping.qampari.facts.item_sets import ItemSet
from mapping.qampari.facts.names import ItemPages
from tests.support.builds import open_release
from tests.support.entities import array, item, make, terms
from tests.support.examples import examples
from tests.support.pages import synthetic_pages
from tests.support.qampari_joins import names_of
from tests.support.releases import TitleRow, redirect_to, write_release

PAGES = tuple(synthetic_pages(9, n_paragraphs=2))  # page ids 1, 4, …; items Q1000 (none for the first), Q1001, …


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    titles = [TitleRow(page.page_id, page.title) for page in PAGES]
    titles += [redirect_to(500, "Zeta", PAGES[1].title), redirect_to(501, "Alpha", PAGES[1].title)]
    titles.append(TitleRow(600, "A page that was rejected"))
    write_release(folder, PAGES, titles=titles, rows_per_shard=4, n_shards=3)
    return folder / "release"


@pytest.fixture(scope="module")
def pages(kb: Path) -> ItemPages:
    return ItemPages(str(kb), PAGES_RELEASE.read(str(kb)))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> WikidataTables:
    folder = tmp_path_factory.mktemp("wikidata")

    def aliases(**texts: str) -> dict[str, list[dict[str, str]]]:
        return {language: [{"language": language, "value": text}] for language, text in texts.items()}

    lines = [
        item("Q1", labels=terms(en="IBM"), aliases=aliases(en="Big Blue")),
        item("Q2", labels=terms(mul="Ada", **{"en-gb": "Ada of Britain"}), aliases=aliases(en="Ad", mul="Adele")),
        item("Q3", labels=terms(**{"en-us": "Color", "en-gb": "Colour"}), aliases=[]),
        item("Q4", labels=[], aliases=aliases(en="Nameless One")),
        item("Q5", labels=[], aliases=[]),
        item(
            "Q6",
            labels=terms(en="  ", mul=" Eva\u00a0 Perón "),
            aliases=aliases(en=" Evita\u00a0", **{"en-gb": "   Ev "}),
        ),
        item("Q1001", labels=terms(en="One"), aliases=aliases(en="Number One", **{"en-gb": "No. One"})),
        item("Q1002", labels=[], aliases=aliases(en="Number Two")),
    ]
    (folder / "dump.json").write_bytes(array(lines))
    make(folder / "dump.json", output=folder / "wikidata")
    return WikidataTables.open(str(folder / "wikidata"), LocalStorage())


def test_every_page_is_found_at_its_place_and_by_its_item(kb: Path, pages: ItemPages) -> None:
    order = list(open_release(kb))

    positions, is_there = pages.positions(np.array([page.page_id for page in order], np.int64))
    assert is_there.all()
    assert positions.tolist() == list(range(len(PAGES)))
    for page in order:
        if page.qid is not None:
            assert pages.page(int(page.qid[1:])) == (page.page_id, page.title)
    assert pages.n_items == sum(page.qid is not None for page in PAGES) < len(PAGES)


@pytest.mark.parametrize("page_id", [0, 2, 600, 10**9])
def test_a_page_that_the_release_has_not_has_no_place(page_id: int, pages: ItemPages) -> None:
    first = PAGES[0].page_id
    positions, is_there = pages.positions(np.array([page_id, first], np.int64))

    assert is_there.tolist() == [False, True]
    assert positions.tolist() == pages.positions(np.array([first], np.int64))[0].tolist()


@pytest.mark.parametrize("number", [1, 1000, 10**9])
def test_an_item_without_a_page(number: int, pages: ItemPages) -> None:
    assert pages.page(number) is None


def test_titles_that_lead_to_a_page(pages: ItemPages) -> None:
    assert pages.redirects_to(PAGES[1].page_id) == ("Alpha", "Zeta")
    assert pages.redirects_to(PAGES[2].page_id) == ()


EXPECTED: dict[int, list[str]] = {
    1: ["IBM", "Big Blue"],
    2: ["Ada"],
    3: ["Colour"],
    4: ["Nameless One"],
    5: [],
    6: ["Eva Perón", "Evita"],
    77: [],  # Wikidata has no such item
    1001: ["One", "Number One", "No. One"],
    1002: [PAGES[2].title, "Number Two"],
    1003: [PAGES[3].title],
}
"""A label in English comes first, then one for all languages, then one of a variant, then the title of the page;
aliases are in English and have four characters. White space is single blanks between words, as in pages."""


@pytest.mark.parametrize("batch_rows", [1, 4, 1 << 14])
def test_what_items_are_called_however_many_are_named_at_once(
    batch_rows: int, tables: WikidataTables, pages: ItemPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH_ROWS", batch_rows)
    items = np.array(sorted(EXPECTED), np.int64)

    found = names_of(tables, items, pages)

    assert {item: list(row.names) for item, row in found.rows(items[::-1]).items()} == EXPECTED
    for number in EXPECTED:
        page, row = pages.page(number), found.row(number)
        assert (row.page_id, row.title) == ((None, None) if page is None else (page.page_id, page.title))
    some = np.array([1001, 5, 77, 5], np.int64)
    assert found.rows(some) == {number: found.row(number) for number in (5, 77, 1001)}


def test_no_items_at_all(tables: WikidataTables, pages: ItemPages) -> None:
    none = np.empty(0, np.int64)

    assert names_of(tables, none, pages).rows(none) == {}


@settings(max_examples=examples(50))
@given(st.lists(st.integers(0, 300), max_size=40), st.lists(st.integers(0, 400), max_size=40))
def test_a_set_of_items_has_what_was_added(added: list[int], asked: list[int]) -> None:
    items = ItemSet()
    for start in range(0, len(added), 7):
        items.add(np.array(added[start : start + 7], np.int64))

    assert items.has(np.array(asked, np.int64)).tolist() == [one in added for one in asked]
