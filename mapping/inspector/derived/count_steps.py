"""Counts step by step, as views show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Step(NamedTuple):
    """A count of what became of things.

    Attributes:
        label: what is counted.
        n: how many.
        of: out of how many.
        depth: 0 for a total, 1 for what it falls into, 2 for why.
        meaning: of a reason or an outcome.
        query: chooses these records in the list; None for what is not of records.
    """

    label: str
    n: int
    of: int
    depth: int = 0
    meaning: str = ""
    query: Mapping[str, str] | None = None

    @property
    def share(self) -> float:
        """Of the whole; 0 of nothing."""
        return self.n / self.of if self.of else 0.0
