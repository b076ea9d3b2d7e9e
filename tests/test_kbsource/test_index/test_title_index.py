from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbsource.index.title_index
from kbsource.columns import numbers
from kbsource.errors import SetupError
from kbsource.identity import title_hash
from kbsource.index.mapped_files import title_keys
from kbsource.index.title_index import Resolution, TitleIndex
from kbsource.index.title_index_build import TitleIndexReport, build_title_index, dropped_sources, read_dropped
from kbsource.runtime.database import ordered_batches
from tests.support.databases import LIMITS, limited
from tests.support.releases import TitleRow, redirect_to, title_batches

ARTICLES = [TitleRow(5, "Earth"), TitleRow(3, "Łódź"), TitleRow(9, "AC/DC")]


def build(folder: Path, rows: Sequence[TitleRow], *, size: int = 10_000) -> tuple[TitleIndex, TitleIndexReport]:
    report = build_title_index(title_batches(rows, size=size), str(folder / "i"), scratch=str(folder / "s"))
    return TitleIndex.open(str(folder / "i")), report


def test_an_empty_dump_has_an_empty_index(tmp_path: Path) -> None:
    index, report = build(tmp_path, [])
    assert index.resolve("Earth").status == "unknown"
    assert list(index) == []
    assert report.n_titles == 0
    assert not index.has_articles(np.array([1, 2]))[0]


REDIRECTS = [
    redirect_to(20, "Terra", "Earth", fragment="Name"),
    redirect_to(21, "Tellus", "Terra"),
    redirect_to(22, "World", "Tellus", fragment="People"),
    redirect_to(23, "Loop a", "Loop b"),
    redirect_to(24, "Loop b", "Loop a"),
    redirect_to(25, "Into the loop", "Loop a"),
    redirect_to(26, "Itself", "Itself"),
    redirect_to(27, "Nowhere", "Not there"),
    redirect_to(28, "To nowhere", "Nowhere"),
    TitleRow(29, "Helped", 1, True, "Help:Contents", 12, None),
    TitleRow(30, "Unreadable", 1, True, None, None, None),
    *(redirect_to(40 + n, f"Chain {n}", f"Chain {n + 1}" if n < 11 else "Earth") for n in range(12)),
]


@pytest.mark.parametrize(
    ("title", "final", "fragment", "hops", "status"),
    [
        ("Terra", 5, "Name", 1, "ok"),
        ("Tellus", 5, "Name", 2, "double"),
        ("World", 5, "Name", 3, "double"),
        ("Chain 0", 5, None, 12, "double"),
        ("Loop a", None, None, 2, "loop"),
        ("Into the loop", None, None, 3, "loop"),
        ("Itself", None, None, 1, "loop"),
        ("Nowhere", None, None, 1, "missing_target"),
        ("To nowhere", None, None, 2, "missing_target"),
        ("Helped", None, None, 1, "cross_namespace"),
        ("Unreadable", None, None, 1, "missing_target"),
    ],
)
def test_redirects_are_followed_to_the_end(
    tmp_path: Path, title: str, final: int | None, fragment: str | None, hops: int, status: str
) -> None:
    index, _ = build(tmp_path, ARTICLES + REDIRECTS)
    expected_title = "Earth" if final else title
    assert index.resolve(title) == Resolution(expected_title, final, fragment, hops, status)


def test_an_entry_says_what_the_redirect_itself_names(tmp_path: Path) -> None:
    index, _ = build(tmp_path, ARTICLES + REDIRECTS)
    entry = index.find("World")
    assert entry is not None
    assert (entry.page_id, entry.target_title, entry.fragment) == (22, "Tellus", "People")
    assert (entry.final_title, entry.final_page_id) == ("Earth", 5)


def test_titles_that_lead_to_a_page_are_sorted(tmp_path: Path) -> None:
    index, _ = build(tmp_path, ARTICLES + REDIRECTS)
    assert index.redirects_to(5) == tuple(sorted(["Terra", "Tellus", "World", *(f"Chain {n}" for n in range(12))]))
    assert index.redirects_to(3) == ()


def test_of_one_page_id_the_newest_revision_stays_then_the_first_read(tmp_path: Path) -> None:
    rows = [TitleRow(1, "Old", 10), TitleRow(2, "Two", 5), TitleRow(1, "New", 11), TitleRow(2, "Two", 5)]
    index, report = build(tmp_path, rows)
    assert index.resolve("New").page_id == 1
    assert index.find("Old") is None
    assert index.resolve("Two").page_id == 2
    assert sorted(read_dropped(report.dropped_path)) == [(1, "Old", 0), (2, "Two", 3)]
    assert dropped_sources(report.dropped_path).tolist() == [0, 3]
    assert (report.n_titles, report.n_dropped) == (2, 2)


def test_a_title_of_two_pages_stands_for_the_article_then_the_highest_id(tmp_path: Path) -> None:
    rows = [
        redirect_to(9, "Both", "Target"),
        TitleRow(4, "Both"),
        TitleRow(7, "Both"),
        TitleRow(1, "Target"),
        redirect_to(2, "To both", "Both"),
    ]
    index, report = build(tmp_path, rows)
    assert index.resolve("Both").page_id == 7
    assert index.resolve("To both").page_id == 7
    assert index.article_title(4) == "Both"
    assert index.redirects_to(1) == ()
    assert len(index) == 5
    assert report.n_shadowed == 2


def test_a_listed_redirect_gives_way_to_a_page_with_its_title(tmp_path: Path) -> None:
    rows = [
        TitleRow(1, "Earth"),
        redirect_to(-5, "Terra", "Earth"),
        redirect_to(20, "Terra", "Earth", fragment="Name"),
        redirect_to(-6, "World", "Earth"),
        redirect_to(-6, "World", "Earth"),
        redirect_to(-7, "Earth", "World"),
        redirect_to(-8, "Tellus", "Earth"),
    ]
    for size in (10, 1):
        index, report = build(tmp_path / str(size), rows, size=size)
        assert (index.resolve("Terra").page_id, index.resolve("Terra").fragment) == (1, "Name")
        assert index.redirects_to(1) == ("Tellus", "Terra", "World")
        assert (report.n_titles, report.n_dropped, report.n_shadowed) == (4, 0, 0)
        assert report.relisted == ((0, 3),)
        assert [*read_dropped(report.dropped_path)] == []


def test_bytes_do_not_depend_on_the_order_of_rows_or_the_size_of_batches(tmp_path: Path) -> None:
    rows = ARTICLES + REDIRECTS
    build(tmp_path / "1", rows)
    build(tmp_path / "2", rows[::-1], size=3)
    for name in ("titles.arrow", "articles.arrow"):
        assert (tmp_path / "1" / "i" / name).read_bytes() == (tmp_path / "2" / "i" / name).read_bytes()


@pytest.mark.slow  # many rows
def test_bytes_do_not_depend_on_threads_or_memory(tmp_path: Path) -> None:
    n_rows = 65_000  # threads share a table by 122,880 rows
    rows = ARTICLES + REDIRECTS + [TitleRow(n, f"Page {n % (n_rows // 2)}") for n in range(100, n_rows)]
    rows += [redirect_to(n + n_rows, f"To {n}", f"Page {n * 7 % n_rows}") for n in range(n_rows)]
    rows += [TitleRow(n, f"Newer {n}", 2) for n in range(100, 1000)]
    batches = [*title_batches(rows)]
    found = []
    for limits in ({}, *LIMITS):
        with limited("kbsource.index.title_index_build", **limits):
            report = build_title_index(batches, str(tmp_path / "i"), scratch=str(tmp_path / "s"))
        files = (tmp_path / "i" / "titles.arrow", tmp_path / "i" / "articles.arrow", Path(report.dropped_path))
        found.append([report, *(hashlib.sha256(path.read_bytes()).digest() for path in files)])
    assert found[1:] == found[:1] * len(LIMITS)
    assert report.n_dropped == 900


def test_more_rows_than_the_format_holds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbsource.index.title_index_build.MAX_ROWS", 2)
    with pytest.raises(SetupError, match="3 titles; the index holds at most 2; build the dump in parts"):
        build(tmp_path, ARTICLES)


def test_rows_of_another_form_are_refused(tmp_path: Path) -> None:
    batches = [pa.record_batch({"page_id": [1], "title": ["Earth"]})]
    with pytest.raises(SetupError, match=r"titles table with columns \['page_id', 'title'\]; scan the dump again"):
        build_title_index(batches, str(tmp_path / "i"), scratch=str(tmp_path / "s"))


def test_an_article_with_more_redirects_than_a_batch_has_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [TitleRow(1, "Earth"), TitleRow(2, "Mars"), *(redirect_to(10 + n, f"R{n:02}", "Earth") for n in range(30))]
    build(tmp_path / "whole", rows)
    monkeypatch.setattr(
        "kbsource.index.title_index_build.ordered_batches", lambda *given: ordered_batches(*given, n_rows=7)
    )
    index, _ = build(tmp_path / "parts", rows)
    assert index.redirects_to(1) == tuple(f"R{n:02}" for n in range(30))
    for name in ("titles.arrow", "articles.arrow"):
        assert (tmp_path / "whole" / "i" / name).read_bytes() == (tmp_path / "parts" / "i" / name).read_bytes()


def test_scratch_files_are_removed(tmp_path: Path) -> None:
    build(tmp_path, ARTICLES + REDIRECTS)
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["dropped.arrow"]


def test_an_index_of_another_version_is_refused(tmp_path: Path) -> None:
    build(tmp_path, ARTICLES)
    path = tmp_path / "i" / "titles.arrow"
    with pa.ipc.open_file(path.read_bytes()) as reader:
        table = reader.read_all()
    with pa.ipc.new_file(str(path), table.schema.with_metadata({"format": "other-2"})) as writer:
        writer.write_table(table)
    with pytest.raises(SetupError, match="other-2"):
        TitleIndex.open(str(tmp_path / "i"))


def test_a_damaged_index_is_refused(tmp_path: Path) -> None:
    build(tmp_path, ARTICLES)
    (tmp_path / "i" / "articles.arrow").write_bytes(b"nothing")
    with pytest.raises(SetupError, match=r"articles\.arrow"):
        TitleIndex.open(str(tmp_path / "i"))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_keys_are_the_titles_hashes(titles: list[str]) -> None:
    assert title_keys(pa.array(titles, pa.string())).tolist() == [title_hash(title) for title in titles]


def test_two_titles_with_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kbsource.index.title_index_build.title_keys", lambda titles: np.full(len(titles), 1, np.uint64)
    )
    monkeypatch.setattr(kbsource.index.title_index, "title_hash", lambda title: 1)
    index, _ = build(tmp_path, ARTICLES + REDIRECTS)
    assert index.resolve("AC/DC").page_id == 9
    assert index.resolve("World") == Resolution("Earth", 5, "Name", 3, "double")
    assert index.resolve("Nowhere").status == "missing_target"
    assert index.find("Mars") is None


def test_lookups_cross_the_edges_of_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("kbsource.index.title_index", "kbsource.index.title_index_build"):
        monkeypatch.setattr(f"{module}.BATCH_ROWS", 4)
    monkeypatch.setattr("kbsource.index.title_index.BATCH_SHIFT", 2)
    rows = [TitleRow(number, f"Page {number}") for number in range(1, 40)]
    rows += [redirect_to(100 + number, f"R {number}", f"Page {number % 7 + 1}") for number in range(30)]
    rows += [TitleRow(200 + number, "Twin") for number in range(9)]
    index, _ = build(tmp_path, rows)
    for number in range(1, 40):
        assert index.resolve(f"Page {number}").page_id == number
    for number in range(30):
        assert index.resolve(f"R {number}").page_id == number % 7 + 1
    assert index.resolve("Twin").page_id == 208
    assert len(index.redirects_to(1)) == 5
    ids = np.array([208, 1, 77, 39])
    known = index.article_rows(ids)
    assert [index.title_at(row) for row in known[known >= 0].tolist()] == ["Twin", "Page 1", "Page 39"]
    assert known[2] == -1


def many_rows() -> list[TitleRow]:
    rows = [TitleRow(number, f"Page {number}") for number in range(1, 3000)]
    rows += [
        redirect_to(5000 + n, f"R {n}", f"Page {n % 700}", fragment=f"f{n}" if n % 5 == 0 else None) for n in range(999)
    ]
    rows += [redirect_to(8000 + n, f"RR {n}", f"R {n * 7}") for n in range(200)]
    return [*rows, *REDIRECTS, *ARTICLES, TitleRow(9001, "Page 7"), TitleRow(9002, "北京" * 30)]


@pytest.mark.parametrize("cache_size", [0, 64, 1 << 16])
def test_many_titles_at_once_resolve_as_one_by_one(tmp_path: Path, cache_size: int) -> None:
    rows = many_rows()
    build(tmp_path, rows)
    index = TitleIndex.open(str(tmp_path / "i"), cache_size=cache_size)
    titles = [*(row.title for row in rows), *(f"Not there {n}" for n in range(200)), "\ud800", ""]
    expected = {title: index.resolve(title) for title in titles}
    fresh = TitleIndex.open(str(tmp_path / "i"), cache_size=cache_size)
    for start in range(0, len(titles), 500):
        found = fresh.resolve_all(titles[start : start + 500])
        assert found == {title: expected[title] for title in found}
    assert fresh.resolve_all(titles) == expected
    assert fresh.resolve_all(titles[:3]) == {title: expected[title] for title in titles[:3]}


def test_many_titles_at_once_are_told_apart_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: dict[bytes, int] = {}

    def keys(titles: Sequence[bytes]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        # every hash is that of three titles
        return np.array([hashed.setdefault(title, len(hashed) // 3 << 50) for title in titles], np.uint64)

    builder = "kbsource.index.title_index_build.title_keys"
    monkeypatch.setattr(builder, lambda titles: keys(titles.cast(pa.binary()).to_pylist()))
    monkeypatch.setattr("kbsource.index.title_columns.digest_keys", keys)
    monkeypatch.setattr(kbsource.index.title_index, "title_hash", lambda title: int(keys([title.encode()])[0]))
    rows = many_rows()
    index, _ = build(tmp_path, rows)
    titles = [*(row.title for row in rows), *(f"Not there {n}" for n in range(200))]
    slow = slow_index(rows)
    assert index.resolve_all(titles) == {title: slow_resolve(title, slow) for title in titles}


NAMES = st.sampled_from([f"T{number}" for number in range(9)])


@st.composite
def title_rows(draw: st.DrawFn) -> TitleRow:
    page_id, title, revision = draw(st.integers(1, 14)), draw(NAMES), draw(st.integers(1, 3))
    if not draw(st.booleans()):
        return TitleRow(page_id, title, revision)
    target = draw(st.none() | NAMES)
    namespace = None if target is None else draw(st.sampled_from([0, 0, 0, 0, 12]))
    return TitleRow(page_id, title, revision, True, target, namespace, draw(st.none() | st.just(f"f{page_id}")))


def apart(worlds: list[list[TitleRow]]) -> list[TitleRow]:
    """Rows with page ids and titles of their own in each world, for one index, as opening a database takes time."""
    return [
        row._replace(
            page_id=row.page_id + 20 * number,
            title=f"{row.title} {number}",
            target_title=None if row.target_title is None else f"{row.target_title} {number}",
        )
        for number, rows in enumerate(worlds)
        for row in rows
    ]


def slow_index(rows: list[TitleRow]) -> dict[str, TitleRow]:
    """Gives the row that each title stands for, by the rules as written."""
    kept: dict[int, TitleRow] = {}
    for row in rows:
        if row.page_id not in kept or row.revision_id > kept[row.page_id].revision_id:
            kept[row.page_id] = row
    titles: dict[str, TitleRow] = {}
    for row in sorted(kept.values(), key=lambda row: (not row.is_redirect, row.page_id)):
        titles[row.title] = row
    return titles


def slow_resolve(title: str, titles: dict[str, TitleRow]) -> Resolution:
    asked, seen, fragment, hops = title, set(), None, 0
    while True:
        row = titles.get(title)
        if row is None:
            return Resolution(asked, None, None, hops, "missing_target" if hops else "unknown")
        if not row.is_redirect:
            return Resolution(title, row.page_id, fragment, hops, ("article", "ok", "double")[min(hops, 2)])
        if title in seen:
            return Resolution(asked, None, None, hops, "loop")
        seen.add(title)
        hops += 1
        fragment = row.target_fragment or fragment
        if row.target_namespace:
            return Resolution(asked, None, None, hops, "cross_namespace")
        if row.target_title is None:
            return Resolution(asked, None, None, hops, "missing_target")
        title = row.target_title


@settings(max_examples=20)
@given(st.lists(st.lists(title_rows(), max_size=25), max_size=6).map(apart), st.integers(1, 5))
def test_the_index_equals_the_slow_and_obvious_one(rows: list[TitleRow], size: int) -> None:
    titles = slow_index(rows)
    with TemporaryDirectory() as folder:
        index, report = build(Path(folder), rows, size=size)
        expected = {title: slow_resolve(title, titles) for title in [*titles, "T0 0", "Other"]}
        assert {title: index.resolve(title) for title in expected} == expected
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kbsource.index.title_index._FEW_TITLES", 1)
            patch.setattr("kbsource.index.title_columns._WINDOW", 4)
            patch.setattr("kbsource.index.title_columns._AROUND", np.arange(4))
            assert TitleIndex.open(str(Path(folder) / "i")).resolve_all(expected) == expected
        for page_id in {row.page_id for row in rows}:
            leading = sorted(t for t, row in titles.items() if row.is_redirect and expected[t].page_id == page_id)
            assert index.redirects_to(page_id) == tuple(leading)
        assert report.n_titles == len({row.page_id for row in rows})
        assert report.n_dropped == len(rows) - report.n_titles
        assert len({entry.page_id for entry in index}) == len(index) == report.n_titles


def test_numbers_are_those_of_a_part_of_a_column() -> None:
    for type_ in (pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()):
        whole = pa.array([7, 8, 9, 10], type_)

        assert numbers(whole).tolist() == [7, 8, 9, 10]
        assert numbers(whole.slice(1, 2)).tolist() == [8, 9]
        assert numbers(whole.slice(4)).tolist() == numbers(pa.array([], type_)).tolist() == []
    with pytest.raises(pa.ArrowInvalid, match="1 nulls"):
        numbers(pa.array([1, None]))
