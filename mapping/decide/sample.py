"""Splits of a dataset that has none of its own: drawn after the filter, so that dev and test have exact sizes.

A source with ``sample_records`` gives its records in the order of the draw, the same for every split. Those that stand
the filter of dev and test are counted in this order: the first are dev, as many after them are test, and all others,
those that do not stand it too, are train. So each record is in one split alone, whichever is written first.

Source: section 4.2 of the KILT paper (5,000 records of T-REx at random for dev and for test).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kbsource.errors import SetupError
from mapping.sources.reading.base import Split


class Cuts(NamedTuple):
    """Where the draw ends: numbers of the last record of dev and of the last of test; -1 where there is none."""

    dev: int
    test: int

    def takes(self, ordinal: int, split: Split, *, stands: bool) -> bool:
        """Says whether a record is for a split to filter and to write.

        Args:
            ordinal: its number in the order of the draw.
            split: that is written.
            stands: whether it stands the filter of dev and test.
        """
        if split == "train":
            return not stands or ordinal > self.test
        return ordinal <= self.dev if split == "dev" else self.dev < ordinal <= self.test


def cut(standing: Iterable[int], n_records: int) -> Cuts:
    """Gives where dev and test end.

    Args:
        standing: numbers of the records that stand the filter of dev and test, in ascending order; no more are read
            than are needed.
        n_records: of dev, and of test.

    Raises:
        SetupError: there are not enough.
    """
    if not n_records:
        return Cuts(-1, -1)
    dev = -1
    n_found = 0
    for ordinal in standing:
        n_found += 1
        if n_found == n_records:
            dev = ordinal
        if n_found == 2 * n_records:
            return Cuts(dev, ordinal)
    raise SetupError(
        f"{n_found} records stand the filter of dev and test, {2 * n_records} are to be drawn: give a smaller --sample,"
        " or a larger --sample-pool if the dataset has more."
    )
