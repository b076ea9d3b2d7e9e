from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.runtime.sorted_runs import SortedRuns

SCHEMA = pa.schema([("key", pa.uint64()), ("text", pa.string())])


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, pieces and ranges of a few rows."""
    for name, value in (("RUN_BYTES", 200), ("PIECE_ROWS", 2), ("RANGE_ROWS", 6)):
        monkeypatch.setattr(f"kbsource.runtime.sorted_runs.{name}", value)


keys = st.integers(0, 5) | st.integers((1 << 64) - 5, (1 << 64) - 1) | st.integers(0, (1 << 64) - 1)


@pytest.mark.usefixtures("little")
@given(st.lists(st.lists(keys, max_size=9), max_size=12))
def test_ranges_hold_every_row_once_and_all_of_a_key(tmp_path: Path, given: list[list[int]]) -> None:
    with SortedRuns(str(tmp_path / "runs"), SCHEMA, by="key") as runs:
        for batch in given:
            runs.add(np.array(batch, np.uint64), pa.array([str(key) for key in batch], pa.string()))
        found = [runs.read(byte_range)["key"].to_pylist() for byte_range in runs.ranges()]
        batches = list(runs.read_sorted(4))
    expected = sorted(key for batch in given for key in batch)
    assert (
        [key for key_range in found for key in sorted(key_range)]
        == expected
        == [key for b in batches for key in b[0].to_pylist()]
    )
    assert sum(len(set(key_range)) for key_range in found) == len(set(expected))
    assert all(batch["text"].to_pylist() == [str(key) for key in batch["key"].to_pylist()] for batch in batches)
    assert [batch.num_rows for batch in batches[:-1]] == [4] * len(batches[:-1])
    assert not (tmp_path / "runs").exists()
