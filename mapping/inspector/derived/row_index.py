"""Rows of a table by their number, and a column or two of all of them for filter and order; nothing else is held."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import Storage, join
from kbsource.release.manifest import Manifest
from kbsource.release.reader import opened_table

NONE = -1
"""Code of a value that is null."""

Numbers = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class TableRows:
    """Rows of the files of a table, one after the other, by number from 0. Holds nothing and opens files when asked.

    Args:
        files: paths with their rows.
        storage: of the paths.
    """

    def __init__(self, files: Sequence[tuple[str, int]], storage: Storage) -> None:
        self.paths = [path for path, _ in files]
        self.starts = list(accumulate((n_rows for _, n_rows in files), initial=0))
        self._storage = storage

    @classmethod
    def of(cls, folder: str, manifest: Manifest, table: str, storage: Storage) -> TableRows:
        """Gives the rows of a table of a release; none where there is no such table."""
        entries = manifest.tables.get(table, ())
        return cls([(join(folder, entry.file), entry.rows or 0) for entry in entries], storage)

    def __len__(self) -> int:
        return self.starts[-1]

    def file_of(self, number: int) -> int:
        """Gives the number of the file that a row is in."""
        return bisect_right(self.starts, number) - 1

    def rows(self, numbers: Sequence[int], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Gives rows in the order that is asked for; ``columns`` or all of them. Memory: a row group."""
        found: dict[int, dict[str, Any]] = {}
        by_file: dict[int, list[int]] = {}
        for number in sorted(set(numbers)):
            by_file.setdefault(self.file_of(number), []).append(number)
        for place, wanted in by_file.items():
            with opened_table(self.paths[place], self._storage) as file:
                sizes = (file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups))
                starts = list(accumulate(sizes, initial=self.starts[place]))
                by_group: dict[int, list[int]] = {}
                for number in wanted:
                    by_group.setdefault(bisect_right(starts, number) - 1, []).append(number)
                for group, own in by_group.items():
                    table = file.read_row_group(group, columns=columns and list(columns), use_threads=False)
                    taken = table.take([number - starts[group] for number in own])
                    found.update(zip(own, taken.to_pylist(), strict=True))
        return [found[number] for number in numbers]

    def with_value(self, column: str, value: Any, files: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
        """Gives the rows that have a value in a column, in order; of these files or of all. Memory: a row group.

        The other columns are only read where there is one.
        """
        for place in range(len(self.paths)) if files is None else files:
            with opened_table(self.paths[place], self._storage) as file:
                for group in range(file.metadata.num_row_groups):
                    own = file.read_row_group(group, columns=[column], use_threads=False)[column]
                    if (is_wanted := pc.fill_null(pc.equal(own, value), False)).combine_chunks().true_count:
                        yield from file.read_row_group(group, use_threads=False).filter(is_wanted).to_pylist()

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Gives columns of all rows in order, with the number of the first row. Memory: a row group."""
        at = 0
        for path in self.paths:
            with opened_table(path, self._storage) as file:
                for group in range(file.metadata.num_row_groups):
                    for batch in file.read_row_group(group, columns=list(columns), use_threads=False).to_batches():
                        yield at, batch
                        at += batch.num_rows

    def equal_to(self, column: str, text: str) -> Mask:
        """Says of each row whether a column is a text."""
        return self._mask(column, lambda values: pc.equal(values, text))

    def containing(self, column: str, text: str) -> Mask:
        """Says of each row whether a column contains a text, case apart."""
        return self._mask(column, lambda values: pc.match_substring(values, text, ignore_case=True))

    def _mask(self, column: str, says: Callable[[pa.Array], pa.Array]) -> Mask:
        found = np.zeros(len(self), dtype=np.bool_)
        for at, batch in self.batches([column]):
            is_there = pc.fill_null(says(batch[column]), False)
            found[at : at + batch.num_rows] = is_there.to_numpy(zero_copy_only=False)
        return found


class RowIndex:
    """What rows are filtered and ordered by: two bytes a row and column of few texts, four a row and number.

    Attributes:
        n_rows: of the table.
        values: texts of each column in the order in which they were first seen; a row has the place of its own.

    Args:
        rows: of the table, read once from end to end.
        texts: columns of few texts.
        numbers: columns of numbers.
    """

    def __init__(self, rows: TableRows, *, texts: Sequence[str], numbers: Sequence[str]) -> None:
        self.n_rows = len(rows)
        self.values: dict[str, list[str]] = {name: [] for name in texts}
        self._codes = {name: np.full(self.n_rows, NONE, dtype=np.int16) for name in texts}
        self._numbers = {name: np.full(self.n_rows, np.nan, dtype=np.float32) for name in numbers}
        places: dict[str, dict[str, int]] = {name: {} for name in texts}
        for at, batch in rows.batches([*texts, *numbers]):
            for name in texts:
                self._codes[name][at : at + batch.num_rows] = _codes(batch[name], places[name])
            for name in numbers:
                number = pc.cast(batch[name], pa.float32(), safe=False)
                self._numbers[name][at : at + batch.num_rows] = number.to_numpy(zero_copy_only=False)
        self.values = {name: list(own) for name, own in places.items()}

    def is_value(self, column: str, value: str | None) -> Mask:
        """Says of each row whether a column has a text; None for null."""
        values = self.values[column]
        if value is not None and value not in values:
            return np.zeros(self.n_rows, np.bool_)
        is_value: Mask = self._codes[column] == (NONE if value is None else values.index(value))
        return is_value

    def is_between(self, column: str, least: float | None, most: float | None) -> Mask:
        """Says of each row whether a number is there and within bounds, both of them included."""
        number = self._numbers[column]
        chosen = ~np.isnan(number)
        if least is not None:
            chosen &= number >= np.float32(least)
        if most is not None:
            chosen &= number <= np.float32(most)
        return chosen

    def total(self, column: str, chosen: Mask) -> int | None:
        """Gives the sum of a whole number of the chosen rows; None where none of them has it."""
        numbers = self._numbers[column][chosen]
        known = numbers[~np.isnan(numbers)]
        return int(known.sum(dtype=np.float64)) if len(known) else None

    def counts(self, column: str, chosen: Mask | None = None) -> Mapping[str, int]:
        """Gives how many rows have each text; of those that are chosen, or of all."""
        codes = self._codes[column] if chosen is None else self._codes[column][chosen]
        n_rows = np.bincount(codes[codes != NONE], minlength=len(self.values[column]))
        return {value: int(n) for value, n in zip(self.values[column], n_rows, strict=True)}

    def ordered(self, chosen: Mask, *, by: str | None = None, is_falling: bool = False) -> Numbers:
        """Gives the numbers of the chosen rows in the order of the table, or of a number; those without one last."""
        rows = np.flatnonzero(chosen).astype(np.int32)
        if by is None:
            return rows[::-1] if is_falling else rows
        number = self._numbers[by][rows]
        order: Numbers = rows[np.argsort(-number if is_falling else number, kind="stable")]
        return order


def _codes(column: pa.Array, places: dict[str, int]) -> npt.NDArray[np.int16]:
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    own = [places.setdefault(value, len(places)) for value in encoded.dictionary.to_pylist()]
    known = np.array([*own, NONE], dtype=np.int16)
    result: npt.NDArray[np.int16] = known[pc.fill_null(encoded.indices, len(own)).to_numpy()]
    return result
