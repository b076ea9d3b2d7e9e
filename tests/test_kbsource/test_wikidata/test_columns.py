"""Columns of statements beside rows that are put together in the plainest way."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kbsource.release.writer import parquet_schema
from kbsource.schema import VALUE
from kbsource.wikidata.columns import statement_columns, statements_batch
from kbsource.wikidata.statements import Statement
from kbsource.wikidata.values import FORMS, OWN_COLUMNS, RANKS, Snak

TEXT = st.text(max_size=3)
OWN_VALUES = {
    "monolingualtext": st.tuples(TEXT),
    "quantity": st.tuples(*[st.none() | TEXT] * 3),
    "time": st.tuples(
        st.integers(-(1 << 60), 1 << 60),
        st.none() | st.integers(1, 12),
        st.none() | st.integers(1, 31),
        st.integers(0, 14),
        TEXT,
    ),
    "globecoordinate": st.tuples(*[st.floats(-360, 360)] * 2, TEXT),
}


def snaks_of(form: int) -> st.SearchStrategy[Snak]:
    value_type = FORMS[form][1]
    value = st.none() if value_type is None else TEXT
    return st.tuples(st.just(form), st.none() | TEXT, value, OWN_VALUES.get(value_type or "", st.none()))


SNAK = st.integers(0, len(FORMS) - 1).flatmap(snaks_of)
STATEMENT = st.tuples(
    TEXT, st.integers(0, len(RANKS) - 1), SNAK, st.lists(st.tuples(TEXT, SNAK), max_size=3).map(tuple)
)


def value_row(snak: Snak) -> dict[str, Any]:
    form, datatype, value, own = snak
    kind, value_type = FORMS[form]
    row: dict[str, Any] = {field.name: None for field in VALUE}
    row |= {"snak": kind, "datatype": datatype, "value_type": value_type, "value": value}
    return row | dict(zip(OWN_COLUMNS.get(value_type or "", ()), own or (), strict=True))


@given(st.dictionaries(TEXT, st.lists(STATEMENT, min_size=1, max_size=4), min_size=1, max_size=3))
def test_every_row_is_what_the_statement_says(entities: dict[str, list[Statement]]) -> None:
    blocks = [statement_columns(entity_id, statements) for entity_id, statements in entities.items()]
    batch = statements_batch([[value for part in column for value in part] for column in zip(*blocks, strict=True)])
    assert batch.schema.equals(parquet_schema("statements"), check_metadata=True)
    batch.validate(full=True)
    assert batch.to_pylist() == [
        {
            "entity_id": entity_id,
            "property_id": property_id,
            "rank": RANKS[rank],
            **value_row(snak),
            "qualifiers": [{"property_id": name, **value_row(one)} for name, one in qualifiers],
        }
        for entity_id, statements in entities.items()
        for property_id, rank, snak, qualifiers in statements
    ]
