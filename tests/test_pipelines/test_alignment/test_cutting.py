"""How evidences are put together by their pages, or by the titles that are missing, and cut into chunks."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.files import LocalStorage
from kbsource.runtime.chunks import Report, Stored, write_chunk
from pipelines.alignment import cutting, rows
from pipelines.alignment.cutting import cut_pages, cut_titles
from pipelines.alignment.resolving import page_groups
from pipelines.alignment.rows import NOWHERE, RESOLVED, batch_rows, one_batch

POSITION, ASKED = (RESOLVED.get_field_index(name) for name in ("position", "asked"))


def row(number: int, position: int, asked: str = "T") -> tuple[object, ...]:
    found = (None, None, None) if position == NOWHERE else (7, asked, "title")
    return (2, 0, number, 0, 0, position, asked, *found, 0, asked, "x", None, None, None)


@given(
    positions=st.lists(st.integers(0, 5), max_size=40).map(sorted),
    limit=st.integers(1, 10),
    at_once=st.integers(1, 7),
)
def test_chunks_hold_every_row_once_and_no_more_than_memory_may(positions: list[int], limit: int, at_once: int) -> None:
    wanted = [row(number, position) for number, position in enumerate(positions)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "ROWS_AT_ONCE", at_once)
        patch.setattr(cutting, "PIECE_BYTES", limit * (cutting.ROW_BYTES + 1))
        chunks = [
            [one for batch in chunk for one in batch_rows(batch)]
            for chunk in cut_pages(rows.batches_of(wanted, RESOLVED))
        ]

    assert [one for chunk in chunks for one in chunk] == wanted
    assert all(1 <= len(chunk) <= limit for chunk in chunks)
    for before, after in pairwise(chunks):
        assert len(before) + len([one for one in after if one[POSITION] == after[0][POSITION]]) > limit


@pytest.mark.parametrize("at_once", [2, 64])
def test_rows_without_a_page_come_by_title_and_so_many_titles_at_a_time(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(cutting, "MERGED_AT_ONCE", at_once)
    monkeypatch.setattr(cutting, "QUERIES_AT_ONCE", 2)
    pieces: list[Stored] = []
    for number, titles in enumerate((["", "a", "b", "b"], ["a", "c", "d", "e"], [])):
        batch = one_batch([row(10 * number + place, NOWHERE, title) for place, title in enumerate(titles)], RESOLVED)
        path = f"{tmp_path}/{number}.arrow"
        pieces.append(write_chunk([batch], RESOLVED, Report(), path=path, storage=LocalStorage()))

    chunks = [
        [one[ASKED] for batch in chunk for one in batch_rows(batch)]
        for chunk in cut_titles(pieces, f"{tmp_path}/merging")
    ]

    assert chunks == [["", "a", "a", "b", "b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize(("n_pages", "n_groups"), [(1, 1), (5, 3), (63, 64), (1000, 7)])
def test_neighbours_are_in_one_group_and_those_without_a_page_in_that_of_their_dataset(
    n_pages: int, n_groups: int
) -> None:
    groups_of = partial(page_groups, n_pages=n_pages, n_groups=n_groups)

    groups = groups_of(one_batch([row(0, position) for position in range(n_pages)], RESOLVED)).tolist()

    assert groups == sorted(groups)
    assert set(groups) <= set(range(n_groups))
    assert groups_of(one_batch([row(0, NOWHERE)], RESOLVED)).tolist() == [n_groups + 2]
