"""Converts rows of ``kbsource.rows`` to Arrow columns and back. It works leaf by leaf, which is many times as fast as
through dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import accumulate, chain, pairwise
from types import FunctionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import pyarrow as pa
from msgspec.structs import astuple

from kbsource.rows import ArrowType, Columns, Numbered, Row

R = TypeVar("R", bound=Row)
_NUMBERED = b"numbered"
"""Metadata key that marks a column without a field in the row class, see ``Numbered``."""
_TYPES = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    datetime: pa.timestamp("ms", tz="UTC"),
}
# Format characters of ``struct`` for the types of mapped columns. ``to_numpy`` cannot be used, because numpy is not
# installed where releases are only read.
_FORMATS: dict[Any, Literal["b", "B", "i", "I", "q", "Q"]] = {
    pa.int8(): "b",
    pa.uint8(): "B",
    pa.int32(): "i",
    pa.uint32(): "I",
    pa.int64(): "q",
    pa.uint64(): "Q",
}


@dataclass(frozen=True, slots=True)
class _Form:
    """The Arrow type of values and, for structs, the row class."""

    type: pa.DataType
    item: _Form | None = None
    row: type[Row] | None = None


@dataclass(frozen=True, slots=True)
class _Column:
    """A field of a row that is stored in one column."""

    name: str
    field: pa.Field
    form: _Form


@dataclass(frozen=True, slots=True)
class _Group:
    """A field of a row that is stored in several columns."""

    name: str
    row: type[Row]
    fields: tuple[_Column | _Group, ...]
    is_optional: bool


_Fields = tuple[_Column | _Group, ...]


@cache
def schema_of(row: type[Row]) -> pa.Schema:
    """Returns the Arrow schema of a table of these rows. The metadata ``description`` contains the meaning of the table
    and of each column.
    """
    return pa.schema(_arrow_fields(_fields(row)), {"description": " ".join((row.__doc__ or "").split())})


@cache
def struct_of(row: type[Row]) -> pa.StructType:
    """Returns the Arrow type of a column whose values are these rows."""
    return pa.struct(_arrow_fields(_fields(row)))


def batch_of(rows: Iterable[R], row: type[R]) -> pa.RecordBatch:
    """Returns the rows as one record batch."""
    schema = schema_of(row)
    columns = zip(_transposed(list(rows), row), schema, strict=True)
    arrays = [encode(column, field.type, is_nullable=field.nullable) for column, field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def rows_of(batch: pa.RecordBatch | pa.Table, row: type[R]) -> list[R]:
    """Returns the rows of a batch or table, which has all or some of the columns of ``schema_of(row)``.

    If columns are missing, the rows belong to a new class, which has the methods of ``row`` and the fields whose
    columns are all present. Such rows cannot be pickled.

    Raises:
        ValueError: a column has another type.
    """
    if isinstance(batch, pa.Table):
        return list(chain.from_iterable(rows_of(part, row) for part in batch.to_batches()))
    names = frozenset(batch.schema.names)
    made, fields = (row, _fields(row)) if names >= {*schema_of(row).names} else _part_of(row, names)
    arrays = (batch[field.name] for field in _arrow_fields(fields))
    return _rows_from(arrays, made, fields)


def encode(values: Sequence[Any], type_: pa.DataType, *, is_nullable: bool = False) -> pa.Array:
    """Returns nested values as an Arrow array: sequences become lists, rows and tuples become structs."""
    if pa.types.is_list(type_):
        has_nulls = is_nullable and None in values
        lists = [value or () for value in values] if has_nulls else values
        offsets: list[int | None] = list(accumulate(map(len, lists), initial=0))
        if has_nulls:
            offsets = [None if value is None else at for value, at in zip(values, offsets, strict=False)] + offsets[-1:]
        items, item_type = list(chain.from_iterable(lists)), type_.value_type
        if isinstance(next(iter(items), None), Row) and _NUMBERED in (item_type.fields[-1].metadata or ()):
            own = encode(items, pa.struct(item_type.fields[:-1]))
            places = pa.array([*chain.from_iterable(map(range, map(len, lists)))], item_type.fields[-1].type)
            child = pa.StructArray.from_arrays([*own.flatten(), places], fields=item_type.fields)
        else:
            child = encode(items, item_type)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), child, type=type_)
    if pa.types.is_struct(type_):
        first = (
            next((value for value in values if value is not None), None) if is_nullable else next(iter(values), None)
        )
        if first is None and values:
            return pa.array(values, type_)  # pa.nulls would make null fields, which non-nullable fields must not be
        mask = None
        if is_nullable and None in values:
            mask = pa.array([value is None for value in values])
            # any value, because non-nullable fields need one
            values = [first if value is None else value for value in values]
        columns = zip(
            _transposed(values, type(first) if isinstance(first, Row) else type_.num_fields), type_, strict=True
        )
        arrays = [encode(column, field.type, is_nullable=field.nullable) for column, field in columns]
        return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=mask)
    return pa.array(values, type_)


def numbers(array: pa.Array) -> memoryview:
    """Returns the values of a fixed-width column without nulls as a memory view, without copying.

    Raises:
        ArrowInvalid: the column has nulls.
    """
    if array.null_count:
        raise pa.ArrowInvalid(f"{array.null_count} nulls in a column that must not have any")
    width = array.type.bit_width // 8
    data = memoryview(array.buffers()[1] or b"").cast("B")
    return data[array.offset * width :][: len(array) * width].cast(_FORMATS[array.type])


def rebatched(batches: Iterable[pa.RecordBatch], n_rows: int) -> Iterator[pa.RecordBatch]:
    """Regroups batches with the same schema into batches of exactly ``n_rows`` rows. The last batch may be shorter."""
    pending: list[pa.RecordBatch] = []
    room = n_rows
    for batch in batches:
        while batch.num_rows:
            pending.append(batch.slice(0, room))
            batch = batch.slice(room)
            room -= pending[-1].num_rows
            if not room:
                yield pa.concat_batches(pending)
                pending, room = [], n_rows
    if pending:
        yield pa.concat_batches(pending)


def required(*names: str, of: pa.DataType | None = None) -> list[pa.Field]:
    """Returns columns without nulls, from the types by name. A name without a type is an integer column."""
    return [pa.field(name, of or pa.int64(), nullable=False) for name in names]


def value_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Yields the values of rows, in column order. Memory: one batch."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _transposed(values: Sequence[Any], of: type[Row] | int, *, is_optional: bool = False) -> list[Sequence[Any]]:
    """Returns the columns of rows, or of tuples of ``of`` values. If rows are optional, None becomes null in all
    columns.
    """
    fields = () if isinstance(of, int) else _fields(of)
    n_columns = of if isinstance(of, int) else len(fields)
    if is_optional:
        nothing = (None,) * n_columns
        values = [nothing if value is None else astuple(value) for value in values]
    tuples = map(astuple, values) if fields and not is_optional else values
    columns: list[Sequence[Any]] = list(zip(*tuples, strict=True)) or [()] * n_columns
    if not any(isinstance(field, _Group) for field in fields):
        return columns
    found: list[Sequence[Any]] = []
    for column, field in zip(columns, fields, strict=True):
        if isinstance(field, _Group):
            found += _transposed(column, field.row, is_optional=is_optional or field.is_optional)
        else:
            found.append(column)
    return found


def _decode(array: pa.Array, form: _Form) -> list[Any]:
    """Returns the values of an array that ``encode`` made: lists become tuples, and structs become rows."""
    if form.item is not None:
        lengths = array.value_lengths().to_pylist() if array.null_count else ()
        offsets = list(accumulate((n or 0 for n in lengths), initial=0)) if lengths else array.offsets.to_pylist()
        items = _decode(array.flatten(), form.item)
        first = offsets[0]
        lists = [tuple(items[start - first : end - first]) for start, end in pairwise(offsets)]
        return [None if n is None else cell for n, cell in zip(lengths, lists, strict=True)] if lengths else lists
    if form.row is not None:
        rows = _rows_from(iter(array.flatten()), form.row, _fields(form.row))
        if array.null_count:
            return [row if is_valid else None for row, is_valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
        return rows
    is_plain = array.null_count == 0 and pa.types.is_integer(array.type)
    values: list[Any] = numbers(array).tolist() if is_plain else array.to_pylist()
    return values


def _rows_from(arrays: Iterator[pa.Array], row: type[R], fields: _Fields, *, is_optional: bool = False) -> list[Any]:
    """Returns rows from one array per column. If rows are optional, a row whose columns are all null becomes None."""
    columns = [
        _rows_from(arrays, field.row, field.fields, is_optional=is_optional or field.is_optional)
        if isinstance(field, _Group)
        else _decode(next(arrays), field.form)
        for field in fields
    ]
    if is_optional:
        nothing = (None,) * len(columns)
        return [None if values == nothing else row(*values) for values in zip(*columns, strict=True)]
    return list(map(row, *columns))


@cache
def _part_of(row: type[R], names: frozenset[str]) -> tuple[type[R], _Fields]:
    """Returns a class with the methods of a row class and with those of its fields whose columns are all present, and
    these fields.
    """
    fields = tuple(
        field for field in _fields(row) if names >= {arrow_field.name for arrow_field in _arrow_fields((field,))}
    )
    methods = {name: value for name, value in vars(row).items() if isinstance(value, FunctionType | property)}
    own = [field.name for field in fields]
    made: Any = msgspec.defstruct(row.__name__, own, bases=(Row,), namespace=methods, frozen=True, gc=False)
    return made, fields


def _arrow_fields(fields: _Fields) -> list[pa.Field]:
    return [
        found
        for field in fields
        for found in (_arrow_fields(field.fields) if isinstance(field, _Group) else (field.field,))
    ]


@cache
def _fields(row: type[Row]) -> _Fields:
    hints = get_type_hints(row, include_extras=True)
    return tuple(_field(name, hints[name]) for name in row.__struct_fields__)


def _field(name: str, hint: Any) -> _Column | _Group:
    (marks, hint), is_optional = _annotated(hint), False
    if type(None) in get_args(hint):
        (hint,) = (member for member in get_args(hint) if member is not type(None))
        is_optional = True
    group = next((mark for mark in marks if isinstance(mark, Columns)), None)
    if group is not None:
        return _Group(name, hint, _within(_fields(hint), group, is_optional=is_optional), is_optional)
    form = _form(hint, marks)
    about = next(({"description": mark} for mark in marks if isinstance(mark, str)), None)
    return _Column(name, pa.field(name, form.type, is_optional, about), form)


def _within(fields: _Fields, group: Columns, *, is_optional: bool) -> _Fields:
    """Returns the fields of a row that is a field of another row, as columns of the other row."""
    found: list[_Column | _Group] = []
    for member in fields:
        if isinstance(member, _Group):
            inner = _within(member.fields, group, is_optional=is_optional)
            found.append(_Group(member.name, member.row, inner, member.is_optional))
            continue
        field = member.field.with_name(group.prefix + member.field.name)
        if field.metadata:
            about = field.metadata[b"description"].decode().replace("{}", group.word)
            field = field.with_metadata({"description": about})
        found.append(_Column(member.name, field.with_nullable(True) if is_optional else field, member.form))
    return tuple(found)


def _form(hint: Any, marks: Sequence[Any] = ()) -> _Form:
    more, hint = _annotated(hint)
    named = next((mark for mark in (*marks, *more) if isinstance(mark, ArrowType)), None)
    if named is not None:
        return _Form(getattr(pa, named.name)())
    if get_origin(hint) is tuple:
        item = _form(get_args(hint)[0])
        numbered = next((mark for mark in (*marks, *more) if isinstance(mark, Numbered)), None)
        if numbered is None:
            return _Form(pa.list_(item.type), item)
        about = {"description": "position in the list, from 0", _NUMBERED: "1"}
        place = pa.field(numbered.name, pa.int32(), nullable=False, metadata=about)
        return _Form(pa.list_(pa.struct([*item.type, place])), item)
    return _Form(struct_of(hint), row=hint) if issubclass(hint, Row) else _Form(_TYPES[hint])


def _annotated(hint: Any) -> tuple[tuple[Any, ...], Any]:
    """Returns the annotations of a type, and the type itself."""
    return (hint.__metadata__, hint.__origin__) if get_origin(hint) is Annotated else ((), hint)
