"""Queries over batches that are not copied: their own errors are raised, and memory that does not suffice is named."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from kbsource.errors import SetupError, named_faults
from kbsource.runtime.database import connected, ordered_batches, streamed

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])


def batches(n_rows: int, error: BaseException | None = None) -> Iterator[pa.RecordBatch]:
    """Rows in descending order, and then an error."""
    for start in range(n_rows, 0, -1000):
        numbers = range(start, max(start - 1000, 0), -1)
        yield pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(f"{n:0100}" for n in numbers)], schema=SCHEMA)
    if error is not None:
        raise error


def test_batches_are_read_once_and_sorted_in_batches_of_equal_size() -> None:
    with connected(threads=1) as db:
        with streamed(db, rows=(batches(2500), SCHEMA)):
            found = list(ordered_batches(db, "from rows order by number", SCHEMA, n_rows=600))
        assert db.execute("show tables").fetchall() == []
    assert [batch.num_rows for batch in found] == [600] * 4 + [100]
    assert [n for batch in found for n in batch["number"].to_pylist()] == [*range(1, 2501)]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SetupError("bad"), KeyboardInterrupt()])
def test_an_error_of_the_batches_is_raised_as_it_is(error: BaseException) -> None:
    with connected(threads=1) as db:
        with pytest.raises(type(error)) as caught, streamed(db, rows=(batches(1500, error), SCHEMA)):
            list(ordered_batches(db, "from rows order by number", SCHEMA))
        assert caught.value is error


def test_rows_that_exceed_memory_and_disk_are_reported_in_one_line() -> None:
    with (
        pytest.raises(
            SetupError, match=r"^Out of Memory Error: .* Make room on the disk for temporary files"
        ) as caught,
        named_faults(),
        connected(threads=1, memory_mb=20, spill_mb=1) as db,
        streamed(db, rows=(batches(200_000), SCHEMA)),
    ):
        list(ordered_batches(db, "from rows order by number", SCHEMA))
    assert "\n" not in str(caught.value)
