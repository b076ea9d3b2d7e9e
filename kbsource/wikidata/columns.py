"""Entities -> record batches of their tables, column by column.

A row of ``statements`` has twenty columns, and most values fill six of them: what is not there costs nothing here, and
what few texts can be, as the rank, is a number until Arrow writes it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.release.columns import encode
from kbsource.release.writer import parquet_schema
from kbsource.schema import VALUE
from kbsource.wikidata.statements import Statement
from kbsource.wikidata.values import FORMS, OWN_COLUMNS, RANKS, Snak

Columns = Sequence[Sequence[Any]]
GROUP_ROWS = {"items": 1 << 13, "properties": 1 << 13, "sitelinks": 1 << 16, "statements": 1 << 15}
_TERMS = ("labels", "descriptions", "aliases")
_SNAKS, _VALUE_TYPES = zip(*FORMS, strict=True)
_TYPES = {field.name: field.type for field in VALUE}
_OWN = [(FORMS.index(("value", value_type)), names) for value_type, names in OWN_COLUMNS.items()]


def row_batch(table: str, columns: Columns) -> pa.RecordBatch:
    """Gives a record batch of one column of whole rows, which are tuples."""
    (rows,) = columns
    return plain_batch(table, _transposed(rows, len(rows[0])))


def plain_batch(table: str, columns: Columns) -> pa.RecordBatch:
    """Gives a record batch of columns of values that stand as they are."""
    schema = parquet_schema(table)
    arrays = [encode(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def statement_columns(entity_id: str, statements: Sequence[Statement]) -> Columns:
    """Gives the columns that ``statements_batch`` takes, for the statements of an entity, at least one."""
    property_ids, ranks, snaks, qualifiers = zip(*statements, strict=True)
    return [entity_id] * len(statements), property_ids, ranks, *zip(*snaks, strict=True), qualifiers


def statements_batch(columns: Columns) -> pa.RecordBatch:
    """Gives a record batch of the table ``statements``.

    Args:
        columns: entity, property, rank, the parts of the snak, qualifiers; each of the last as ``values`` and
            ``statements`` describe them.
    """
    entity_ids, property_ids, ranks, *snaks, qualifiers = columns
    schema = parquet_schema("statements")
    arrays = [
        pa.array(entity_ids, pa.string()),
        pa.array(property_ids, pa.string()),
        _names(RANKS).take(pa.array(_small(ranks))),
        *_snak_arrays(*snaks),
        _qualifier_array(qualifiers, schema.field("qualifiers").type),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class TableRows:
    """Columns of one table, given on a row group at a time."""

    def __init__(
        self, name: str, batch_of: Callable[[Columns], pa.RecordBatch], ready: list[tuple[str, pa.RecordBatch]]
    ) -> None:
        self._name, self._batch_of, self._ready = name, batch_of, ready
        self._group_rows = GROUP_ROWS[name]
        self._columns: list[list[Any]] = []
        self._n_rows = 0

    def extend(self, columns: Columns) -> None:
        """Takes rows, given as columns of one length."""
        if not self._columns:
            self._columns = [[] for _ in columns]
        for own, more in zip(self._columns, columns, strict=True):
            own.extend(more)
        self._n_rows += len(columns[0])
        while self._n_rows >= self._group_rows:
            self._give(self._group_rows)

    def flush(self) -> None:
        """Gives what is pending; call it once after the last row."""
        if self._n_rows:
            self._give(self._n_rows)

    def _give(self, n_rows: int) -> None:
        self._ready.append((self._name, self._batch_of([column[:n_rows] for column in self._columns])))
        for column in self._columns:
            del column[:n_rows]
        self._n_rows -= n_rows


def statement_facts(batch: pa.RecordBatch) -> Counter[str]:
    """Gives how many statements there are of each rank, kind of snak and type of value."""
    found: Counter[str] = Counter()
    for name, prefix in (("rank", "rank"), ("snak", "snak"), ("value_type", "value")):
        for one in pc.value_counts(batch[name].drop_null()).to_pylist():
            found[f"{prefix}_{one['values']}"] += one["counts"]
    found["qualifiers"] += len(batch["qualifiers"].flatten())
    return found


def names_in(table: str, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    """Gives the columns of a batch that options choose from, with what these are."""
    if table == "sitelinks":
        yield "sites", batch["site"]
    elif table == "statements":
        yield "qualifiers", batch["qualifiers"].flatten().field("property_id")
    else:
        yield from (("languages", batch[one].flatten().field("language")) for one in _TERMS)


def _qualifier_array(qualifiers: Sequence[Sequence[tuple[str, Snak]]], type_: pa.DataType) -> pa.ListArray:
    ends = np.cumsum(np.fromiter(map(len, qualifiers), np.int32, len(qualifiers)), dtype=np.int32)
    offsets = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
    property_ids, snaks = _transposed(chain.from_iterable(qualifiers), 2)
    arrays = [pa.array(property_ids, pa.string()), *_snak_arrays(*_transposed(snaks, 4))]
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays(arrays, fields=list(type_.value_type)), type=type_
    )


def _transposed(rows: Iterable[Sequence[Any]], n_columns: int) -> Columns:
    return list(zip(*rows, strict=True)) or [()] * n_columns


def _snak_arrays(
    forms: Sequence[int],
    datatypes: Sequence[str | None],
    values: Sequence[str | None],
    own_values: Sequence[Any],
) -> list[pa.Array]:
    """Gives the columns of ``schema.VALUE``."""
    numbers = _small(forms)
    places = pa.array(numbers)
    arrays = {
        "snak": _names(_SNAKS).take(places),
        "datatype": pa.array(datatypes, pa.string()),
        "value_type": _names(_VALUE_TYPES).take(places),
        "value": pa.array(values, pa.string()),
    }
    for form, names in _OWN:
        at = np.flatnonzero(numbers == form)
        rows = [own_values[place] for place in at.tolist()]
        for name, column in zip(names, _transposed(rows, len(names)), strict=True):
            arrays[name] = _spread(pa.array(column, _TYPES[name]), at, len(numbers))
    return [arrays[field.name] for field in VALUE]


@cache
def _names(names: tuple[str | None, ...]) -> pa.Array:
    return pa.array(names, pa.string())


def _spread(array: pa.Array, at: npt.NDArray[np.int64], n_rows: int) -> pa.Array:
    """Gives an array of ``n_rows`` with the given values at the given places and null elsewhere."""
    if not len(at):
        return pa.nulls(n_rows, array.type)
    is_missing = np.ones(n_rows, np.bool_)
    is_missing[at] = False
    places = np.zeros(n_rows, np.int32)
    places[at] = np.arange(len(at), dtype=np.int32)
    return array.take(pa.array(places, mask=is_missing))


def _small(numbers: Sequence[int]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(bytes(numbers), np.uint8)
