from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.columns import batch_of, rows_of, schema_of
from kbsource.rows import Columns, Int8, Int32, Numbered, Row
from tests.support.examples import examples


class Place(Row):
    start: Annotated[Int32, "first of {}"]
    end: Annotated[Int32 | None, "end of {}"]


class Sides(Row):
    left: Annotated[Place, Columns("left_", "the left")]
    size: Int8 | None


class Thing(Row):
    """A table
    of things."""

    number: Annotated[int, "its number"]
    time: Annotated[datetime | None, "when"]
    old: Annotated[Place | None, Columns("old_", "old")]
    sides: Annotated[Sides | None, Columns()]
    places: Annotated[tuple[Place, ...] | None, Numbered()]
    place: Place | None
    words: tuple[str, ...]
    grid: tuple[tuple[Int32, ...], ...]
    raw: bytes
    share: float
    is_good: bool = True

    @property
    def n_words(self) -> int:
        return len(self.words)


_NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)
_PLACES = st.builds(Place, _NUMBERS, st.none() | _NUMBERS)
_TIMES = st.datetimes().map(lambda time: time.replace(microsecond=0, tzinfo=UTC))
THINGS = st.lists(
    st.builds(
        Thing,
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.none() | _TIMES,
        st.none() | _PLACES,
        st.none() | st.builds(Sides, _PLACES, st.none() | st.integers(-128, 127)),
        st.none() | st.lists(_PLACES, max_size=2).map(tuple),
        st.none() | _PLACES,
        st.lists(st.text(max_size=3), max_size=2).map(tuple),
        st.lists(st.lists(_NUMBERS, max_size=2).map(tuple), max_size=2).map(tuple),
        st.binary(max_size=3),
        st.floats(allow_nan=False),
        st.booleans(),
    ),
    max_size=4,
)


def test_the_schema_says_names_types_nulls_and_meanings() -> None:
    schema = schema_of(Thing)
    wanted = {
        "number": (pa.int64(), False, "its number"),
        "time": (pa.timestamp("ms", "UTC"), True, "when"),
        "old_start": (pa.int32(), True, "first of old"),
        "old_end": (pa.int32(), True, "end of old"),
        "left_start": (pa.int32(), True, "first of the left"),
        "left_end": (pa.int32(), True, "end of the left"),
        "size": (pa.int8(), True, None),
        "grid": (pa.list_(pa.list_(pa.int32())), False, None),
        "raw": (pa.binary(), False, None),
        "share": (pa.float64(), False, None),
        "is_good": (pa.bool_(), False, None),
    }
    for name, (type_, is_nullable, meaning) in wanted.items():
        field = schema.field(name)
        assert (field.type, field.nullable) == (type_, is_nullable)
        assert (field.metadata or {}).get(b"description") == (meaning and meaning.encode())
    assert schema.metadata == {b"description": b"A table of things."}
    assert schema.field("place").type == pa.struct([pa.field("start", pa.int32(), nullable=False), ("end", pa.int32())])


@settings(max_examples=examples(60))
@given(THINGS)
def test_rows_come_back_as_they_were(things: list[Thing]) -> None:
    batch = batch_of(things, Thing)
    batch.validate(full=True)
    assert rows_of(batch, Thing) == things
    assert rows_of(batch.slice(1), Thing) == things[1:]
    numbered = [[place["index"] for place in places or ()] for places in batch["places"].to_pylist()]
    assert numbered == [[*range(len(thing.places or ()))] for thing in things]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_batches([batch]), file)
    assert rows_of(pq.read_table(file), Thing) == things


def test_of_some_columns_rows_have_these_fields_alone_and_the_methods() -> None:
    thing = Thing(1, None, Place(2, None), None, None, None, ("a", "b"), (), b"", 0.5)
    batch = batch_of([thing], Thing).select(["words", "old_end", "old_start", "left_start"])
    (part,) = rows_of(batch, Thing)
    assert (part.words, part.n_words, part.old) == (("a", "b"), 2, Place(2, None))
    for name in ("number", "sides"):
        with pytest.raises(AttributeError):
            getattr(part, name)


def test_a_column_of_another_type_is_refused() -> None:
    batch = pa.record_batch({"words": pa.array(["a"])})
    with pytest.raises((ValueError, AttributeError)):
        rows_of(batch, Thing)
