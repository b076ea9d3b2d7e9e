"""Writes the rows of a query as CSV, JSON, JSON Lines or Parquet. Memory: one batch; for Parquet, one row group."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

ResultForm = Literal["csv", "json", "jsonl", "parquet"]
RESULT_FORMS: tuple[ResultForm, ...] = get_args(ResultForm)
_BATCH_ROWS = 2_048
_GROUP_ROWS, _GROUP_BYTES = 1 << 16, 32 << 20
_JSON = orjson.OPT_NON_STR_KEYS
_LARGEST = 1 << 63


class ResultError(ValueError):
    """The file format cannot store a column, or the query failed while its rows were being computed."""


def write_result(found: DuckDBPyRelation, path: str, form: ResultForm) -> int:
    """Writes all rows of a query to a new local file, and returns their number.

    Columns with the same name get numbers (``a``, ``a_2``). In CSV, nested values are JSON, and null is empty.

    Raises:
        ResultError: Parquet cannot store a column, or the query fails while it runs.
        duckdb.Error: the query fails before it runs.
    """
    reader = found.to_arrow_reader(_BATCH_ROWS)
    schema = pa.schema(
        [field.with_name(name) for field, name in zip(reader.schema, _unique(reader.schema.names), strict=True)]
    )
    with open(path, "wb") as file:
        if form == "parquet":
            return _write_parquet(_batches(reader), schema, file)
        n_rows = 0
        for rows, lines in _lines(_batches(reader), schema.names, form):
            file.write(lines)
            n_rows += rows
    return n_rows


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except OSError as error:  # Arrow's form of an error of DuckDB
        raise ResultError(str(error)) from error


def _lines(batches: Iterable[pa.RecordBatch], names: Sequence[str], form: str) -> Iterator[tuple[int, bytes]]:
    """Yields the number of rows and the bytes of each batch, and of the file's beginning and end, which have 0 rows."""
    if form == "csv":
        yield 0, _csv([names])
    elif form == "json":
        yield 0, b"["
    start = b"\n"
    for batch in batches:
        columns = [column.to_pylist(maps_as_pydicts="strict") for column in batch.columns]
        rows = zip(*columns, strict=True)
        if form == "csv":
            yield batch.num_rows, _csv(map(_csv_value, row) for row in rows)
        elif form == "jsonl":
            yield batch.num_rows, b"".join(json_of(dict(zip(names, row, strict=True))) + b"\n" for row in rows)
        else:
            yield batch.num_rows, start + b",\n".join(json_of(dict(zip(names, row, strict=True))) for row in rows)
            start = b",\n"
    if form == "json":
        yield 0, b"\n]\n"


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _csv_value(value: Any) -> Any:
    if isinstance(value, bool | list | dict):
        return json_of(value).decode()
    return value if isinstance(value, int | float | str | Decimal | None) else _json_value(value)


def json_of(value: Any) -> bytes:
    """Returns a value of a result as JSON. Times are in ISO 8601 and bytes in hexadecimal digits. Numbers that JSON
    cannot represent exactly are strings.
    """
    try:
        return orjson.dumps(value, default=_json_value, option=_JSON)
    except orjson.JSONEncodeError:  # the value contains an integer of more than 64 bits
        return orjson.dumps(_without_large(value), default=_json_value, option=_JSON)


def _json_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        is_whole = value == value.to_integral_value() and abs(value) < _LARGEST
        return int(value) if is_whole else str(value)
    if isinstance(value, pa.MonthDayNano):
        return f"P{value.months}M{value.days}DT{value.nanoseconds / 1e9:g}S"
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _without_large(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_large(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_large(inner) for inner in value]
    return str(value) if isinstance(value, int) and abs(value) >= _LARGEST else value


def _write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: BinaryIO) -> int:
    n_rows = n_bytes = 0
    group: list[pa.RecordBatch] = []
    try:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for batch in batches:
                group.append(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
                n_rows += batch.num_rows
                n_bytes += batch.nbytes
                if n_bytes >= _GROUP_BYTES or sum(part.num_rows for part in group) >= _GROUP_ROWS:
                    writer.write_table(pa.Table.from_batches(group))
                    group, n_bytes = [], 0
            if group:
                writer.write_table(pa.Table.from_batches(group))
    except pa.ArrowNotImplementedError as error:
        raise ResultError(
            f"Parquet cannot store a column of the result ({error}); cast the column in the query, like column::varchar"
        ) from error
    return n_rows


def _unique(names: Sequence[str]) -> list[str]:
    """
    >>> _unique(["a", "b", "a", "a_2"])
    ['a', 'b', 'a_3', 'a_2']
    """
    taken, made = set(names), []
    seen: set[str] = set()
    for name in names:
        own, number = name, 1
        while own in seen or (number > 1 and own in taken):
            number += 1
            own = f"{name}_{number}"
        seen.add(own)
        made.append(own)
    return made
