"""Reading tables: what was changed on the disk is no text of a release."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.columns import schema_of
from kbsource.errors import DataError, SetupError, named_faults
from kbsource.files import Folder
from kbsource.records import Page
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.reader import check_sizes, opened_table, read_table, row_groups
from kbsource.release.writer import write_rows
from kbsource.runtime import chunks
from tests.support.pages import synthetic_pages, write_pages

FILE = "pages/pages-00000-of-00001.parquet"


def test_bits_that_changed_on_the_disk_are_named_and_not_read_as_text(tmp_path: Path) -> None:
    path, draw = tmp_path / FILE, random.Random(1)
    write_pages(synthetic_pages(30), str(tmp_path), FILE)
    content = path.read_bytes()
    table = str(tmp_path), [FileEntry.of(str(tmp_path), FILE)], [schema_of(Page)]
    pages = list(read_table(*table))
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")  # the footer has no checksum
    n_named = 0
    for _ in range(60):
        damaged = bytearray(content)
        damaged[draw.randrange(end)] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            with named_faults():
                assert list(read_table(*table)) == pages
        except DataError:
            n_named += 1
    assert n_named > 40


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc, which says what is mapped")
def test_a_table_is_read_alike_whether_it_is_mapped_or_not(tmp_path: Path) -> None:
    write_pages(synthetic_pages(3), str(tmp_path), FILE)
    path = str(tmp_path / FILE)
    is_mapped = []
    rows = []
    for maps_tables in (True, False):
        with opened_table(Folder(path, is_mapped=maps_tables)) as file:
            rows.append(file.read_row_group(0).to_pylist())
            is_mapped.append(path in Path("/proc/self/maps").read_text())
    assert rows[0] == rows[1]
    assert is_mapped == [True, False]


ENTRIES = (FileEntry("pages/a.parquet", 2, 5, "0" * 64), FileEntry("index/b.arrow", None, 3, "1" * 64))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for entry in ENTRIES:
        (tmp_path / entry.file).parent.mkdir()
        (tmp_path / entry.file).write_bytes(b"x" * entry.bytes)
    return tmp_path


def test_files_of_the_sizes_that_were_written_are_all_there(folder: Path) -> None:
    check_sizes(str(folder), ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda file_entry: file_entry.file)
def test_a_file_that_is_cut_off_or_missing_is_named(folder: Path, entry: FileEntry) -> None:
    path = folder / entry.file
    path.write_bytes(b"x")
    with pytest.raises(SetupError, match=f"{path} has 1 bytes; the manifest lists {entry.bytes}; .* kbsource verify"):
        check_sizes(str(folder), ENTRIES)
    path.unlink()
    with pytest.raises(SetupError, match=f"{path} is missing; .* kbsource verify"):
        check_sizes(str(folder), ENTRIES)


SCHEMA = pa.schema([pa.field("number", pa.int64(), nullable=False), pa.field("texts", pa.list_(pa.string()))])


@pytest.mark.parametrize("n_at_once", [1, 7, 1000])
def test_groups_have_the_rows_that_were_asked_for(
    n_at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(number, [str(number)] * (number % 3) if number % 5 else None) for number in range(100)]

    entries: list[FileEntry] = []

    def written(name: str) -> bytes:
        path = shard_path("numbers", 0, 1)
        given = {"output": str(tmp_path / name), "file": path}
        entries.append(write_rows(iter(rows), "numbers", SCHEMA, group_rows=40, **given))
        assert entries[-1].rows == 100
        return (tmp_path / name / path).read_bytes()

    expected = written("usual")
    monkeypatch.setattr(chunks, "_ROWS_AT_ONCE", n_at_once)
    assert written("other") == expected

    file = pq.ParquetFile(tmp_path / "other" / shard_path("numbers", 0, 1))
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [40, 40, 20]
    found = [tuple(row.values()) for row in read_table(str(tmp_path / "other"), entries[-1:], [SCHEMA])]
    assert found == rows


def _table_of(kind: str) -> tuple[pa.Table, dict[str, object]]:
    """A table that takes a gigabyte or more and few bytes of a file, and how it is written."""
    many = 40_000_000
    if kind == "compressed":
        return pa.table({"x": pa.array([b"a" * 200_000_000])}), {"use_dictionary": False, "compression": "zstd"}
    if kind == "dictionary":
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * 5_000, pa.int32()), pa.array(["a" * 500_000]))
        return pa.table({"x": texts}), {"store_schema": False, "compression": "zstd"}
    if kind == "dictionary in lists":
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * 5_000, pa.int32()), pa.array(["a" * 500_000]))
        lists = pa.ListArray.from_arrays(pa.array([0, 5_000], pa.int32()), texts)
        return pa.table({"x": pa.StructArray.from_arrays([lists], ["y"])}), {"store_schema": False}
    if kind == "runs":
        return pa.table({"x": pa.repeat(0, many)}), {}
    if kind == "deltas":
        return pa.table({"x": pa.repeat(0, many)}), {
            "use_dictionary": False,
            "column_encoding": {"x": "DELTA_BINARY_PACKED"},
        }
    if kind == "prefixes":
        texts = pa.array(["a" * 20_000 + str(number) for number in range(10_000)])
        return pa.table({"x": texts}), {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}}
    return pa.table({"x": pa.nulls(many, pa.string())}), {}


@pytest.mark.slow  # large files
@pytest.mark.parametrize(
    "kind", ["compressed", "dictionary", "dictionary in lists", "runs", "deltas", "prefixes", "nulls"]
)
def test_a_small_file_that_would_take_much_memory_is_refused(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "pages-00000.parquet")
    table, options = _table_of(kind)
    pq.write_table(table, path, row_group_size=1 << 30, write_statistics=False, **options)
    del table
    with opened_table(path) as file, pytest.raises(DataError, match=r"pages-00000\.parquet: row group 0 has .* MB of"):
        file.read_row_group(0)
    with pytest.raises(DataError, match="would need"):
        next(row_groups(path))


def test_what_the_footer_says_of_sizes_is_not_believed(tmp_path: Path) -> None:
    def varint(number: int, n_bytes: int) -> bytes:
        zigzag = 2 * number
        return bytes(zigzag >> 7 * place & 127 | 128 * (place < n_bytes - 1) for place in range(n_bytes))

    path = tmp_path / "pages-00000.parquet"
    table, options = _table_of("compressed")
    pq.write_table(table, path, write_statistics=False, store_schema=False, **options)
    with opened_table(str(path)) as file:
        size = file.metadata.row_group(0).column(0).total_uncompressed_size
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:footer] + data[footer:].replace(varint(size, 5), varint(1_000, 5)))
    with opened_table(str(path)) as file:
        assert file.metadata.row_group(0).column(0).total_uncompressed_size == 1_000
        with pytest.raises(DataError, match="would need"):
            file.read_row_group(0)


def test_large_groups_that_are_stored_as_such_are_read(tmp_path: Path) -> None:
    path = str(tmp_path / "x.parquet")
    values = pa.array(random.Random(1).randbytes(4 << 20).hex() for _ in range(20))
    pq.write_table(pa.table({"x": values}), path)
    with opened_table(path) as file:
        assert file.read_row_group(0).column("x").combine_chunks().equals(values)
