"""Pages as datasets name them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from rapidfuzz import fuzz, utils

from kbsource.errors import SetupError
from kbsource.index.title_index import TitleIndex
from kbsource.index.title_index_build import build_title_index
from mapping.records import PageKey, Suggestion
from mapping.search import resolve
from mapping.search.resolve import N_SUGGESTIONS, ResolvedPage, Resolver, read_moves, suggest_titles
from tests.support.pages import synthetic_pages
from tests.support.releases import TitleRow, redirect_to, title_batches, write_release

NAMES = ("Abraham Lincoln", "AC/DC", "AT&T", "1984", "Élodie Vauquelin-Marr", "Tidal harp", "IPod")
PAGES = [
    replace(
        page,
        title=name,
        qid=f"Q{900 + page.page_id}",
        elements=(replace(page.elements[0], text=name), *page.elements[1:]),
    )
    for page, name in zip(synthetic_pages(len(NAMES), n_paragraphs=1), NAMES, strict=True)
]
IDS = {page.title: page.page_id for page in PAGES}
TITLES = [
    *(TitleRow(page.page_id, page.title) for page in PAGES),
    redirect_to(500, "Abe Lincoln", "Abraham Lincoln"),
    redirect_to(501, "Honest Abe", "Abe Lincoln"),
    redirect_to(502, "Loop", "Pool"),
    redirect_to(503, "Pool", "Loop"),
    TitleRow(504, "Rejected article"),
]
MOVES = {"Harp of tides": "Tidal harp", "Old president": str(IDS["Abraham Lincoln"]), "nineteen": "1984"}


def similarity(text: str, other: str) -> float:
    """How alike two titles are, 0 to 100: by characters or by their words in order of the alphabet.

    Letter case and punctuation do not count.
    """
    first, second = utils.default_process(text), utils.default_process(other)
    return max(fuzz.ratio(first, second), fuzz.token_sort_ratio(first, second))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("resolve")
    write_release(folder, PAGES, titles=TITLES)
    return str(folder / "release")


@pytest.fixture(scope="module")
def resolver(release: str) -> Resolver:
    return Resolver.open(release, moves=MOVES)


@pytest.mark.parametrize(
    ("kind", "value", "title", "found_by", "hops"),
    [
        ("title", "Abraham Lincoln", "Abraham Lincoln", "title", 0),
        ("title", " abraham_Lincoln ", "Abraham Lincoln", "title", 0),
        ("title", "E\u0301lodie Vauquelin-Marr", "Élodie Vauquelin-Marr", "title", 0),
        ("title", "AC/DC", "AC/DC", "title", 0),
        ("title", "AT&amp;T", "AT&T", "title", 0),
        ("title", "iPod", "IPod", "title", 0),
        ("title", "Honest Abe", "Abraham Lincoln", "redirect", 2),
        ("title", "Abe Lincoln#Early life", "Abraham Lincoln", "redirect", 1),
        ("title", "1984", "1984", "title", 0),
        ("title", "harp of Tides", None, None, 0),
        ("title", "harp_of tides", "Tidal harp", "title_map", 0),
        ("title", "Old president", "Abraham Lincoln", "title_map", 0),
        ("title", "Nineteen", "1984", "title_map", 0),
        ("title", "Loop", None, None, 0),
        ("title", "Rejected article", None, None, 0),
        ("title", "7", None, None, 0),
        ("title", "", None, None, 0),
        ("url", "https://en.wikipedia.org/wiki/AC/DC#Members", "AC/DC", "url", 0),
        ("url", "http://en.m.wikipedia.org/wiki/%C3%89lodie_Vauquelin-Marr", "Élodie Vauquelin-Marr", "url", 0),
        ("url", "https://en.wikipedia.org/w/index.php?title=Honest_Abe&oldid=5", "Abraham Lincoln", "url", 2),
        ("url", f"https://en.wikipedia.org/?curid={IDS['AT&T']}", "AT&T", "url", 0),
        ("url", "https://en.wikipedia.org/wiki/AT%26T", "AT&T", "url", 0),
        ("url", "https://fr.wikipedia.org/wiki/AC/DC", None, None, 0),
        ("url", "https://example.org/wiki/AC/DC", None, None, 0),
        ("page_id", str(IDS["IPod"]), "IPod", "page_id", 0),
        ("page_id", "500", None, None, 0),
        ("page_id", "minus one", None, None, 0),
        ("qid", f"Q{900 + IDS['1984']}", "1984", "qid", 0),
        ("qid", "Q1", None, None, 0),
    ],
)
def test_a_key_leads_to_its_page(
    resolver: Resolver, kind: str, value: str, title: str | None, found_by: str | None, hops: int
) -> None:
    found = resolver.resolve(PageKey(kind, value))
    assert found[:4] == (IDS[title] if title else None, title, found_by, hops)


def test_a_page_that_was_merged_is_found_by_its_title(resolver: Resolver) -> None:
    found = resolver.resolve(PageKey("page_id", "999"), fallback=PageKey("title", "Abe Lincoln"))
    assert found == ResolvedPage(IDS["Abraham Lincoln"], "Abraham Lincoln", "redirect", 1, "Abe Lincoln")


def test_the_id_wins_over_the_title(resolver: Resolver) -> None:
    found = resolver.resolve(PageKey("page_id", str(IDS["AC/DC"])), fallback=PageKey("title", "IPod"))
    assert found.title == "AC/DC"


def test_missing_pages_say_what_similar_titles_are_looked_up_for(resolver: Resolver) -> None:
    assert resolver.resolve(PageKey("title", "tidal_harps#Tuning")).requested == "Tidal harps"
    assert resolver.resolve(PageKey("url", "https://en.wikipedia.org/wiki/Tidal_harps")).requested == "Tidal harps"
    assert resolver.resolve(PageKey("page_id", "999"), fallback=PageKey("title", "Harps")).requested == "Harps"
    assert resolver.resolve(PageKey("qid", "Q1")).requested is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("A\tB\nno tab here\n", r"moves\.tsv, line 2: 'no tab here'"),
        ("A\tB\nA\tC\n", r"line 2: 'A' was moved to 'B'"),
        ("A\t\n", "line 1"),
    ],
)
def test_a_bad_table_of_moves_stops_at_once(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "moves.tsv"
    path.write_text(content, "utf-8")
    with pytest.raises(SetupError, match=message):
        read_moves(str(path))


def test_a_table_of_moves_is_read(tmp_path: Path) -> None:
    path = tmp_path / "moves.tsv"
    path.write_text("\ufeffOld name\tNew name\n\nOther\t12\n", "utf-8")
    assert read_moves(str(path)) == {"Old name": "New name", "Other": "12"}
    with pytest.raises(SetupError, match="--title-map"):
        read_moves(str(path) + ".not")


def test_nothing_is_suggested_where_nothing_is_similar(resolver: Resolver) -> None:
    assert suggest_titles(["Zyzzyva", "Xy", ""], resolver.index) == {}
    assert suggest_titles([], resolver.index) == {}


def test_blocks_of_any_size_give_the_same_suggestions(resolver: Resolver, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ["Abe Lincolm", "Harp, tidal", "Honest Abes", *(f"Tidal harp {number}" for number in range(6))]
    whole = suggest_titles(missing, resolver.index)
    monkeypatch.setattr(resolve, "BLOCK", (2, 1))
    assert whole
    assert suggest_titles(missing, resolver.index) == whole


def test_an_article_is_suggested_once(resolver: Resolver) -> None:
    titles = [page.title for page in suggest_titles(["Abe Lincolm"], resolver.index)["Abe Lincolm"]]
    assert titles[0] == "Abe Lincoln"
    assert "Abraham Lincoln" not in titles


def test_suggestions_agree_with_a_comparison_of_all_titles(tmp_path: Path) -> None:
    words = ["amber", "harbour", "lantern", "ferry", "isles", "salt", "brindle", "cove", "mill", "tower"]
    titles = sorted(
        {f"{word} {other} {number}".capitalize() for word in words for other in words for number in (1, 22)}
    )
    rows = [TitleRow(number, title) for number, title in enumerate(titles, start=1)]
    build_title_index(title_batches(rows), str(tmp_path / "index"), scratch=str(tmp_path / "scratch"))
    index = TitleIndex.open(str(tmp_path / "index"))
    missing = [title.replace("r", "", 1) + "x" for title in titles[::17]]
    found = suggest_titles(missing, index)
    for wanted in missing:
        ranked = sorted((-similarity(wanted, title), title) for title in titles)[:N_SUGGESTIONS]
        assert found[wanted] == tuple(Suggestion(title, round(-score, 1)) for score, title in ranked)
