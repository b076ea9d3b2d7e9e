"""What is said of faults that no second try will mend."""

from __future__ import annotations

import errno
import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from kbsource.errors import RecordError, SetupError, lasting_fault, named_faults

TABLE = pa.table({"text": [f"{number} is a number" * 9 for number in range(900)]})


def write_parquet(path: Path) -> None:
    pq.write_table(TABLE, path, compression="zstd")


def write_arrow(path: Path) -> None:
    with ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE)


def damage(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place : place + 40] = b"\xff" * len(content[place : place + 40])
    path.write_bytes(content)


def read_by_file(path: Path) -> None:
    with pq.ParquetFile(path) as file:
        file.read_row_group(0, use_threads=False)


@pytest.mark.parametrize("read", [pq.read_table, read_by_file])
@pytest.mark.parametrize("place", [100, -60])
def test_a_damaged_table_is_told_from_other_faults(tmp_path: Path, read: Callable[[Path], object], place: int) -> None:
    write_parquet(tmp_path / "t")
    damage(tmp_path / "t", place)

    with pytest.raises((OSError, ValueError)) as raised:
        read(tmp_path / "t")

    assert "kbsource verify" in str(lasting_fault(raised.value))


def test_a_damaged_index_is_told_too(tmp_path: Path) -> None:
    write_arrow(tmp_path / "t")
    (tmp_path / "t").write_bytes((tmp_path / "t").read_bytes()[:-30])

    with pytest.raises((OSError, ValueError)) as raised, pa.memory_map(str(tmp_path / "t")) as file:
        ipc.open_file(file).read_all()

    assert "kbsource verify" in str(lasting_fault(raised.value))


def test_what_arrow_cannot_write_is_no_damage() -> None:
    with pytest.raises(pa.ArrowInvalid) as raised:
        pa.array(["x"], pa.int64())

    assert lasting_fault(raised.value) is None


def test_faults_that_may_pass_have_no_remedy(tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_bytes(b"no gzip")
    with pytest.raises(OSError, match="gzip") as raised, gzip.open(tmp_path / "t.gz") as file:
        file.read()

    assert lasting_fault(raised.value) is None
    assert lasting_fault(OSError(errno.EAGAIN, "later")) is None
    assert lasting_fault(ValueError("no number")) is None


def test_a_full_disk_has_one() -> None:
    assert "Make room" in str(lasting_fault(OSError(errno.ENOSPC, "No space left on device")))


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("database or disk is full"),
        RuntimeError("OSError: [Errno 28] No space left on device [while running 'write']"),
        RuntimeError('duckdb.IOException: IO Error: Could not write file "x": No space left on device'),
        OSError("Error writing bytes to file. Detail: [errno 28] No space left on device"),
        RuntimeError("duckdb.OutOfMemoryException: Out of Memory Error: failed to pin block (9.9 MiB/10.0 MiB used)"),
    ],
    ids=str,
)
def test_it_has_one_whatever_library_says_so(error: Exception) -> None:
    with pytest.raises(SetupError, match=r"Make room .*and run the same command again"), named_faults():
        raise error


def test_faults_that_have_a_name_keep_it() -> None:
    for error in (SetupError("No space left on device"), RecordError("page_error", "No space left on device")):
        with pytest.raises(type(error)) as caught, named_faults():
            raise error
        assert caught.value is error


def test_a_folder_in_place_of_a_file_has_one(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        tmp_path.open("rb")

    fault = lasting_fault(caught.value)
    assert fault is not None
    assert str(tmp_path) in str(fault)
    assert "There is a folder where a file is needed" in str(fault)
