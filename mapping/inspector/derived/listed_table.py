"""A table of a release as a list: which of its rows are asked for, and in what order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from mapping.inspector.derived.row_index import Mask, Numbers, RowIndex, TableRows
from mapping.inspector.opened import Opened

NOTHING = "-"
"""Stands in addresses for a value that is null."""


class ListedTable:
    """Rows of a table by number, and by what they have in some columns.

    Attributes:
        rows: all of them.

    Args:
        opened: the release.
        table: its name.
        texts: columns of few texts.
        numbers: columns of numbers.
    """

    def __init__(self, opened: Opened, table: str, texts: Sequence[str], numbers: Sequence[str]) -> None:
        self.rows = TableRows.of(opened.path, opened.manifest, table, opened.storage)
        self._texts, self._numbers = texts, numbers

    @cached_property
    def index(self) -> RowIndex:
        """The columns; the table is read for them once."""
        return RowIndex(self.rows, texts=self._texts, numbers=self._numbers)

    def mask(self, wanted: Mapping[str, str]) -> Mask:
        """Says of each row whether its columns have these texts; an empty one is any, ``NOTHING`` is null."""
        mask = np.ones(len(self.rows), dtype=np.bool_)
        for column, value in wanted.items():
            if value:
                mask &= self.index.is_value(column, None if value == NOTHING else value)
        return mask

    def chosen(
        self,
        wanted: Mapping[str, str],
        *,
        equal: Mapping[str, str] | None = None,
        containing: Mapping[str, str] | None = None,
        by: str | None = None,
        is_falling: bool = False,
    ) -> Numbers:
        """Gives the numbers of the rows that are asked for, in the order of the table or of a number.

        Args:
            wanted: as ``mask`` takes it.
            equal: texts that further columns are; an empty one is any.
            containing: texts that further columns contain, case apart; an empty one is any.
            by: column of numbers; rows without one come last.
            is_falling: the highest first.
        """
        mask = self.mask(wanted)
        for column, text in (equal or {}).items():
            if text:
                mask &= self.rows.equal_to(column, text)
        for column, text in (containing or {}).items():
            if text:
                mask &= self.rows.containing(column, text)
        return self.index.ordered(mask, by=by, is_falling=is_falling)

    def choices(self, column: str) -> list[tuple[str, int]]:
        """Gives the texts of a column with the number of their rows, most frequent first."""
        found = sorted(self.index.counts(column).items(), key=lambda pair: (-pair[1], pair[0]))
        n_null = len(self.rows) - sum(n for _, n in found)
        return [*found, *([(NOTHING, n_null)] if n_null else [])]

    def row(self, number: int) -> dict[str, Any]:
        """Gives one row."""
        return self.rows.rows([number])[0]


@lru_cache(maxsize=16)
def listed_table(opened: Opened, table: str, texts: tuple[str, ...], numbers: tuple[str, ...] = ()) -> ListedTable:
    """Gives a table of an open release as a list."""
    return ListedTable(opened, table, texts, numbers)
