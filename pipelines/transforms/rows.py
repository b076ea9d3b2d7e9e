"""Converts chunks to rows with named and typed fields, as Beam's SQL, DataFrames and YAML need, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Optional

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.typehints.row_type import RowTypeConstraint
from msgspec.structs import astuple

from kbsource.columns import encode
from kbsource.errors import SetupError
from kbsource.records import instant, instant_text
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_batches, read_rows
from mapping.passages.cut import Passage
from pipelines.runners.workers import do

ROWS_AT_ONCE = 4096
_ATOMS: dict[pa.DataType, Any] = {
    pa.string(): str,
    pa.binary(): bytes,
    pa.bool_(): bool,
    pa.int8(): np.int8,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float64(): np.float64,
}


def row_type(schema: pa.Schema) -> RowTypeConstraint:
    """Returns the type of ``beam.Row`` with the fields of an Arrow schema and their descriptions.

    Structs become rows, and lists become sequences. Times are texts like ``2019-07-19T20:25:53Z``, as in records.

    Raises:
        SetupError: a column has a type that no table of a release has.
    """
    metadata = {field.name: field.metadata or {} for field in schema}
    return RowTypeConstraint.from_fields(
        [(field.name, _field_type(field)) for field in schema],
        field_descriptions={
            name: field_metadata[b"description"].decode() for name, field_metadata in metadata.items() if field_metadata
        },
    )


def _field_type(field: pa.Field) -> Any:
    of, type_ = field.type, _ATOMS.get(field.type)
    if pa.types.is_list(of):
        type_ = Sequence[_field_type(of.value_field.with_nullable(False))]  # type: ignore[misc]
    elif pa.types.is_struct(of):
        type_ = RowTypeConstraint.from_fields([(inner_field.name, _field_type(inner_field)) for inner_field in of])
    elif pa.types.is_timestamp(of):
        type_ = str
    if type_ is None:
        raise SetupError(f"Column {field.name} has the type {of}, which Beam does not have; leave the column out.")
    return Optional[type_] if field.nullable else type_  # noqa: UP045  # not every type takes "|"


class AsRows(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Turns chunks into ``beam.Row`` with the fields of ``row_type(schema)``, in no particular order.

    (key, rows) -> ``beam.Row``.

    Args:
        schema: schema of the chunks, or some of its columns.
    """

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self._schema, self._type = schema, row_type(schema)

    def expand(self, chunks: Any) -> Any:
        return chunks | "rows" >> do(rows_of_chunk, schema=self._schema).with_output_types(self._type)


def rows_of_chunk(element: tuple[ChunkKey, BatchRef | pa.RecordBatch], *, schema: pa.Schema) -> Iterator[beam.Row]:
    """Iterates over the rows of a chunk, see ``AsRows``."""
    for batch in read_batches(element[1]):
        yield from _values_of_struct([batch[name] for name in schema.names], schema.names)


def _values_of_struct(arrays: Sequence[pa.Array], names: Sequence[str]) -> Iterator[beam.Row]:
    columns = map(_values, arrays)
    return (beam.Row(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True))


def _values(array: pa.Array) -> list[Any]:
    """Returns the values of a column, with rows for structs and texts for times."""
    found: list[Any]
    if pa.types.is_struct(array.type):
        found = list(_values_of_struct(array.flatten(), [field.name for field in array.type]))
    elif pa.types.is_list(array.type):
        items, offsets = (
            _values(array.flatten()),
            [0, *np.cumsum(array.value_lengths().fill_null(0).to_numpy()).tolist()],
        )
        found = [items[start:end] for start, end in pairwise(offsets)]
    elif pa.types.is_timestamp(array.type):
        found = [None if when is None else instant_text(when) for when in array.to_pylist()]
    else:
        return list(array.to_pylist())
    if array.null_count:
        return [
            value if is_valid else None for value, is_valid in zip(found, array.is_valid().to_pylist(), strict=True)
        ]
    return found


class AsChunks(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Turns rows with named fields into chunks, for transforms that accept chunks.

    ``beam.Row`` -> (key, record batch).

    Without an order, rows are batched as they arrive, and a key depends only on the content of its chunk. This suits
    steps that process each row separately. With an order, one worker collects and sorts all rows, so that files written
    from them have the same bytes.

    Args:
        schema: schema of the record batches; rows have at least its fields.
        order: fields that rows are sorted by; rows with equal values must be equal.
    """

    def __init__(self, schema: pa.Schema, *, order: Sequence[str] = ()) -> None:
        super().__init__()
        if missing := sorted(set(order) - set(schema.names)):
            raise SetupError(f"Rows cannot be ordered by {missing[0]}: the fields are {', '.join(schema.names)}.")
        self._schema, self._order = schema, tuple(order)

    def expand(self, rows: Any) -> Any:
        if self._order:
            return (
                rows
                | "tuples" >> beam.Map(as_tuple, fields=tuple(self._schema))
                | "one key" >> beam.WithKeys(0)
                | "all" >> beam.GroupByKey()
                | "in order" >> do(_ordered, schema=self._schema, order=self._order)
            )
        return (
            rows
            | "tuples" >> beam.Map(as_tuple, fields=tuple(self._schema))
            | "together" >> beam.BatchElements(min_batch_size=ROWS_AT_ONCE, max_batch_size=ROWS_AT_ONCE)
            | "chunks" >> beam.Map(_chunk, schema=self._schema)
        )


def as_tuple(row: Any, fields: Sequence[pa.Field]) -> tuple[Any, ...]:
    """Returns the fields of a row, with tuples for nested rows and times parsed from their texts."""
    return tuple(_plain(getattr(row, field.name), field.type) for field in fields)


def _plain(value: Any, type_: pa.DataType) -> Any:
    """Returns a value with tuples for rows and times parsed from their texts."""
    if value is None:
        return None
    if pa.types.is_timestamp(type_):
        return instant(value)
    if pa.types.is_struct(type_):
        return as_tuple(value, tuple(type_))
    return [_plain(item, type_.value_type) for item in value] if pa.types.is_list(type_) else value


def batch_of_tuples(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Returns the results of ``as_tuple`` as a record batch."""
    columns = zip(*rows, strict=True)
    arrays = [
        encode(column, field.type, is_nullable=field.nullable) for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _chunk(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> tuple[ChunkKey, pa.RecordBatch]:
    return ChunkKey(0, int.from_bytes(hashlib.sha256(repr(rows).encode()).digest()[:3])), batch_of_tuples(rows, schema)


def _ordered(
    element: tuple[int, Iterable[tuple[Any, ...]]], *, schema: pa.Schema, order: Sequence[str]
) -> Iterator[tuple[ChunkKey, pa.RecordBatch]]:
    places = [schema.get_field_index(name) for name in order]
    rows = sorted(element[1], key=lambda row: [(row[place] is not None, row[place]) for place in places])
    for number, start in enumerate(range(0, len(rows), ROWS_AT_ONCE)):
        yield ChunkKey(0, number), batch_of_tuples(rows[start : start + ROWS_AT_ONCE], schema)


class AsEmbeddable(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Turns passages into items that Beam can embed and write to vector databases.

    (key, passages) -> ``apache_beam.ml.rag.types.EmbeddableItem``.

    Id, text and number are copied from the passage. The metadata are JSON values with its position: ``page_id``,
    ``title``, ``section``, ``spans``, lists of element, start and end, and ``cells``, lists of table, row, cell, start,
    end, and start in the text of the passage.
    """

    def expand(self, passages: Any) -> Any:
        return passages | "items" >> do(_items)


def _items(element: tuple[ChunkKey, BatchRef | pa.RecordBatch]) -> Iterator[Any]:
    from apache_beam.ml.rag.types import EmbeddableItem  # takes seconds

    for passage in read_rows(element[1], Passage):
        metadata = {
            "page_id": passage.page_id,
            "title": passage.title,
            "section": list(passage.section),
            "spans": [list(astuple(span)) for span in passage.spans],
            "cells": [list(astuple(cell)) for cell in passage.cells],
        }
        yield EmbeddableItem.from_text(passage.text, id=passage.passage_id, index=passage.number, metadata=metadata)
