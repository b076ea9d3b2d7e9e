"""Splits that are drawn after the filter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.decide.sample import Cuts, cut
from mapping.sources.reading.base import Split

SPLITS: tuple[Split, ...] = ("train", "dev", "test")


def _standing(stands: list[bool]) -> list[int]:
    return [ordinal for ordinal, one in enumerate(stands) if one]


def test_the_first_that_stand_are_dev_and_as_many_after_them_are_test() -> None:
    assert cut([1, 4, 5, 9, 12], 2) == Cuts(dev=4, test=9)


def test_no_more_records_are_looked_at_than_are_needed() -> None:
    standing = iter(range(10))
    cut(standing, 2)
    assert next(standing) == 4


def test_nothing_is_drawn_where_nothing_is_asked_for() -> None:
    assert cut([], 0) == Cuts(-1, -1)
    assert Cuts(-1, -1).takes(0, "train", stands=True)


def test_too_few_records_stop_the_job() -> None:
    with pytest.raises(SetupError, match="3 records stand the filter of dev and test, 4 are to be drawn"):
        cut([0, 1, 2], 2)


@given(st.lists(st.booleans()), st.integers(0, 4))
def test_each_record_is_in_one_split_and_sizes_are_exact(stands: list[bool], n_records: int) -> None:
    n_records = min(n_records, sum(stands) // 2)
    cuts = cut(_standing(stands), n_records)
    written = {
        split: [
            ordinal
            for ordinal, one in enumerate(stands)
            # The filter of dev and test drops what does not stand; that of train keeps it.
            if cuts.takes(ordinal, split, stands=one) and (one or split == "train")
        ]
        for split in SPLITS
    }
    assert len(written["dev"]) == len(written["test"]) == n_records
    assert sorted(ordinal for one in written.values() for ordinal in one) == list(range(len(stands)))
