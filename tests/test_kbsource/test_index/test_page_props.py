from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.errors import DataError, SetupError
from kbsource.index.mapped_files import read_index_file
from kbsource.index.page_props import CLAIMS, PageProps, build_page_props
from tests.support.databases import LIMITS, limited


def test_items_and_marks_are_found_by_page(tmp_path: Path) -> None:
    rows = [
        (7, "wikibase_item", "Q42"),
        (3, "disambiguation", ""),
        (5, "defaultsort", "Q1"),
        (9, "wikibase_item", "q7"),
        (9, "disambiguation", ""),
    ]
    build_page_props(iter(rows), str(tmp_path), scratch=str(tmp_path))
    props = PageProps.open(str(tmp_path))
    assert [props.qid(page_id) for page_id in (3, 5, 7, 9, 10)] == [None, None, "Q42", "Q7", None]
    assert [props.is_disambiguation(page_id) for page_id in (3, 5, 7, 9, 10)] == [True, False, False, True, False]


def test_pages_that_are_no_articles_take_no_item_from_one(tmp_path: Path) -> None:
    rows = [(4, "wikibase_item", "Q1"), (9, "wikibase_item", "Q1"), (4, "disambiguation", "")]
    report = build_page_props(rows, str(tmp_path), scratch=str(tmp_path), is_article=lambda page_ids: page_ids == 9)
    assert PageProps.open(str(tmp_path)).qid(9) == "Q1"
    assert (report.n_not_articles, report.conflicts) == (2, ())


@pytest.mark.parametrize("value", ["", "Q", "42", "Q0", "Q042", "P31", "Q4294967296", "Q1 "])
def test_what_is_no_item_id_is_counted(tmp_path: Path, value: str) -> None:
    report = build_page_props([(1, "wikibase_item", value)], str(tmp_path), scratch=str(tmp_path))
    assert report.n_invalid_qids == 1
    assert PageProps.open(str(tmp_path)).qid(1) is None


def test_an_impossible_page_id_stops_the_job(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="-1"):
        build_page_props([(-1, "disambiguation", "")], str(tmp_path), scratch=str(tmp_path))


Claims = list[tuple[int, int]]


def apart(cases: list[Claims]) -> Claims:
    """Cases with pages and items of their own, to be decided together, as opening a database takes time."""
    return [
        (first + 100 * number, second + 100 * number) for number, case in enumerate(cases) for first, second in case
    ]


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 6)), unique=True, max_size=20), max_size=10).map(
        apart
    )
)
def test_no_item_has_two_pages_and_the_lowest_claim_wins(claims: Claims) -> None:
    rows = [(page_id, "wikibase_item", f"Q{number}") for page_id, number in claims]
    with TemporaryDirectory() as folder:
        report = build_page_props(rows, folder, scratch=folder)
        props = PageProps.open(folder)
        won = {number: min(page for page, claimed in claims if claimed == number) for _, number in claims}
        expected = {page: min((n for n, winner in won.items() if winner == page), default=None) for page, _ in claims}
        for page_id, number in expected.items():
            assert props.qid(page_id) == (None if number is None else f"Q{number}")
        assert len(report.conflicts) == len(claims) - len(won)


def test_article_test_gets_plain_ids(tmp_path: Path) -> None:
    seen: list[np.dtype[np.int64]] = []
    build_page_props(
        [(4_000_000_000, "wikibase_item", "Q4000000000")],
        str(tmp_path),
        scratch=str(tmp_path),
        is_article=lambda page_ids: (seen.append(page_ids.dtype), page_ids == 4_000_000_000)[1],
    )
    assert PageProps.open(str(tmp_path)).qid(4_000_000_000) == "Q4000000000"
    assert set(seen) == {np.dtype(np.int64)}


def links(*pairs: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Gives sitelinks, (number of the item, page id)."""
    return np.array([qid << 32 | page_id for qid, page_id in pairs], np.uint64)


@pytest.mark.parametrize(
    ("sitelinks", "props", "expected"),
    [
        ([(1, 4)], [(4, "Q1")], {4: "Q1"}),
        ([(1, 4)], [], {4: "Q1"}),
        ([], [(4, "Q1")], {4: "Q1"}),
        ([(1, 4)], [(4, "Q2")], {4: "Q1"}),
        ([(1, 4)], [(9, "Q1")], {4: "Q1", 9: None}),
        ([(1, 9), (1, 4)], [], {4: "Q1", 9: None}),
        ([(2, 4), (1, 4)], [], {4: "Q1"}),
        ([(1, 4), (1, 9), (2, 9)], [], {4: "Q1", 9: "Q2"}),
        ([(1, 4), (1, 9)], [(9, "Q2")], {4: "Q1", 9: None}),
        ([(1, 4), (2, 4)], [(9, "Q2")], {4: "Q1", 9: None}),
    ],
    ids=[
        "both say the same",
        "sitelink alone",
        "page_props alone",
        "the sitelink counts",
        "an item with a sitelink is not given away",
        "of two pages the lower id has the item",
        "of two items the lower one is taken",
        "a page that loses one item takes another",
        "a page with a sitelink takes none of page_props",
        "an item whose page has a lower one is not given away",
    ],
)
def test_sitelinks_come_before_page_props(
    tmp_path: Path, sitelinks: list[tuple[int, int]], props: list[tuple[int, str]], expected: dict[int, str | None]
) -> None:
    rows = [(page_id, "wikibase_item", qid) for page_id, qid in props]
    build_page_props(rows, str(tmp_path), scratch=str(tmp_path), sitelinks=[links(*sitelinks)])
    found = PageProps.open(str(tmp_path))
    assert {page_id: found.qid(page_id) for page_id in expected} == expected


def settle(claims: Claims) -> dict[int, int]:
    """Gives the item of each page: of an item's pages the lowest, then of a page's items the lowest."""
    won = {qid: min(page for other_qid, page in claims if other_qid == qid) for qid, _ in claims}
    return {page: min(qid for qid in won if won[qid] == page) for page in won.values()}


some_claims = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), max_size=12)


@settings(max_examples=20)
@given(st.lists(some_claims, max_size=10).map(apart), st.lists(some_claims, max_size=10).map(apart))
def test_no_item_has_two_pages_and_claims_tell_who_said_what(sitelinks: Claims, props: Claims) -> None:
    with TemporaryDirectory() as folder:
        rows = [(page_id, "wikibase_item", f"Q{qid}") for qid, page_id in props]
        report = build_page_props(rows, folder, scratch=folder, sitelinks=[links(*sitelinks)])
        claims = pa.Table.from_batches(read_index_file(report.claims_path), CLAIMS)
        found = PageProps.open(folder)
    pages = {page_id for _, page_id in [*sitelinks, *props]}
    settled = settle(sitelinks)
    linked_qids, linked_pages = ({sitelink[place] for sitelink in sitelinks} for place in (0, 1))
    settled |= settle([prop for prop in props if prop[0] not in linked_qids and prop[1] not in linked_pages])
    assert {page_id: found.qid(page_id) for page_id in pages} == {
        page_id: f"Q{settled[page_id]}" if page_id in settled else None for page_id in pages
    }
    qids = [qid for qid in claims["qid"].to_pylist() if qid]
    assert len(set(qids)) == len(qids)
    assert claims["page_id"].to_pylist() == sorted(pages)
    for page_id, qid, wikidata, page_props in zip(*(column.to_pylist() for column in claims.columns), strict=True):
        assert found.qid(page_id) == (f"Q{qid}" if qid else None)
        assert wikidata == min((claimed_qid for claimed_qid, page in sitelinks if page == page_id), default=0)
        assert page_props == min((claimed_qid for claimed_qid, page in props if page == page_id), default=0)
        assert (qid, page_id) in [*sitelinks, *props] or qid == 0


@pytest.mark.slow  # many rows
def test_bytes_are_the_same_with_any_number_of_threads_and_any_memory(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    n_rows = 150_000  # threads share a table by 122,880 rows
    pages, numbers = (draw.integers(1, n_rows, n_rows).tolist() for _ in range(2))
    rows = [(page_id, "wikibase_item", f"Q{number}") for page_id, number in zip(pages, numbers, strict=True)]
    rows += [(page_id, "disambiguation", "") for page_id in pages[::10]]
    sitelinks = [links(*zip(numbers[::7], pages[1::7], strict=False))]
    found = []
    for limits in ({}, *LIMITS):
        with limited("kbsource.index.page_props", **limits):
            report = build_page_props(rows, str(tmp_path), scratch=str(tmp_path / "scratch"), sitelinks=sitelinks)
        files = (tmp_path / "page_props.arrow", Path(report.claims_path))
        found.append((report.conflicts, *(path.read_bytes() for path in files)))
    assert len(found[0][0]) > 10_000
    assert found[1:] == found[:1] * len(LIMITS)
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == ["claims.arrow"]


def test_an_error_of_the_rows_is_raised_as_it_is(tmp_path: Path) -> None:
    def rows() -> Iterator[tuple[int, str, str]]:
        yield 1, "wikibase_item", "Q1"
        raise DataError("props.sql: damaged_gzip at byte 5")

    with pytest.raises(DataError, match=r"^props\.sql: damaged_gzip at byte 5$"):
        build_page_props(rows(), str(tmp_path), scratch=str(tmp_path))
