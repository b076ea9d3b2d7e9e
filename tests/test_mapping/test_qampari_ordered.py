"""Rows in the order of a key, over scratch files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.qampari import ordered
from mapping.qampari.ordered import KeySample, OrderedFile, OrderedRows, even_edges

SCHEMA = pa.schema([pa.field("name", pa.string()), pa.field("numbers", pa.list_(pa.int64()), nullable=False)])
ROWS = st.lists(
    st.tuples(
        st.integers(0, 20), st.tuples(st.sampled_from(["", "a", "b", "é", "\U0001f600", "\uffff"]), st.just([1, 2]))
    ),
    unique_by=lambda one: (one[0], one[1][0]),
    max_size=60,
)


@settings(deadline=None, max_examples=50)
@given(ROWS, st.lists(st.integers(-2, 22), max_size=6))
def test_rows_are_in_the_order_of_keys_and_ties_wherever_buckets_begin(
    rows: list[tuple[int, tuple[str, list[int]]]], edges: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with OrderedRows(f"{folder}/scratch", SCHEMA, np.sort(np.array(edges, np.int64)), ties=("name",)) as kept:
            for key, row in rows:
                kept.add(key, row)
            kept.write(f"{folder}/rows.arrow")
        assert [one.name for one in Path(folder).iterdir()] == ["rows.arrow"]
        written = OrderedFile(f"{folder}/rows.arrow")
        found = []
        for number in range(len(written)):
            batch, place = written.at(number)
            found.append(tuple(batch.slice(place, 1).to_pylist()[0].values()))

    assert found == [row for _, row in sorted(rows)]


def test_rows_that_come_by_the_thousand_are_spilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "_SPILL_BYTES", 10_000)
    keys = np.random.default_rng(7).permutation(5_000).tolist()
    with OrderedRows(str(tmp_path / "scratch"), SCHEMA, even_edges(5_000, 7)) as kept:
        for key in keys:
            kept.add(key, (None, [key]))
        assert len(list((tmp_path / "scratch").iterdir())) == 7
        batches = list(kept.batches())

    assert [number for batch in batches for (number,) in batch["numbers"].to_pylist()] == list(range(5_000))
    assert max(batch.num_rows for batch in batches) <= 5_000 / 7 + 1


def test_a_sample_deals_keys_out_evenly_and_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "_MOST_SAMPLED", 64)
    keys = np.random.default_rng(7).integers(0, 1_000, 10_000) ** 3
    sample = KeySample()
    for key in keys.tolist():
        sample.add(key)
        assert len(sample._keys) < 64
    edges = sample.edges(4)

    assert len(edges) == 3
    counts = np.bincount(np.searchsorted(edges, keys, side="right"), minlength=4)
    assert counts.min() > 1_000
    assert len(sample._keys) >= 32


def test_no_keys_make_one_bucket() -> None:
    assert KeySample().edges(4).tolist() == []
