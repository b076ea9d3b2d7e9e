"""How evidences are spread over parts of the release, and read back piece by piece."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.files import LocalStorage
from pipelines.alignment import align, staging
from pipelines.alignment.staging import N_BUCKETS, Buckets, bucket_of, bucket_range
from pipelines.buckets import bucket_groups


@pytest.mark.parametrize("n_pages", [1, 5, 63, 64, 65, 1000])
def test_every_page_is_in_the_range_of_its_bucket(n_pages: int) -> None:
    ranges = [bucket_range(bucket, n_pages) for bucket in range(N_BUCKETS)]

    for position in range(n_pages):
        assert [bucket for bucket, (start, end) in enumerate(ranges) if start <= position < end] == [
            bucket_of(position, n_pages)
        ]


@given(
    positions=st.lists(st.integers(0, 5), max_size=40),
    limit=st.integers(1, 10),
    pending=st.integers(1, 10),
)
def test_pieces_of_a_bucket_hold_every_row_once_and_no_more_than_memory_may(
    tmp_path_factory: pytest.TempPathFactory, positions: list[int], limit: int, pending: int
) -> None:
    folder = str(tmp_path_factory.mktemp("staging"))
    rows = [(number, 0, 0, position, 7, "T", "title", 0, "x") for number, position in enumerate(positions)]
    weight = align._ROW_BYTES + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "PENDING_ROWS", pending)
        patch.setattr(align, "PIECE_BYTES", limit * weight)
        with Buckets(folder, LocalStorage()) as buckets:
            for row in [*rows, (99, 0, 0, 5, 7, "T", "title", 0, None)]:
                buckets.add(0, row)
        path = staging.staged(folder, "wanted", 0)
        pieces = list(align.read_pieces(LocalStorage(), path, (0, 6)))

    found = [row for piece in pieces for row in piece]
    assert [row[3] for row in found] == sorted([*positions, 5])
    assert sorted(found) == sorted([*rows, (99, 0, 0, 5, 7, "T", "title", 0, None)])
    assert all(1 <= len(piece) <= limit + 1 for piece in pieces)
    for before, after in pairwise(pieces):
        if before[-1][3] == after[0][3]:
            assert len({row[3] for row in before}) == len({row[3] for row in after}) == 1


def test_buckets_become_tasks_that_are_worth_it() -> None:
    counts = [0] * N_BUCKETS
    counts[3], counts[9], counts[60] = 499, 1, 5

    assert bucket_groups(counts, least=500) == [[3, 9], [60]]
    assert bucket_groups([0] * N_BUCKETS, least=500) == []
