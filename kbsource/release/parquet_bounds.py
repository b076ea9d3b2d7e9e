"""Estimates how much memory a Parquet file will need, from its footer and page headers, before it is read.

A few thousand bytes can expand to gigabytes: compressed zeros, runs of numbers, or a long text in a dictionary that a
million rows refer to. The sizes in the footer are not trusted.

Source: https://github.com/apache/parquet-format, Thrift's compact protocol and ``parquet.thrift``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kbsource.errors import DataError

MOST_BYTES = 128 << 20
"""Memory that every row group may use, in bytes."""
MOST_TIMES = 64
"""Memory that a row group may use, as a multiple of its stored bytes. Text normally compresses to a third or a
tenth.
"""
_HEADER_BYTES = 1 << 9
_LONGEST_HEADER = 1 << 20
_DICTIONARY_PAGE = 2
_BYTES_A_VALUE = 16  # maximum for a number of any type, with its repetition and definition levels


class _Page(NamedTuple):
    is_dictionary: bool
    n_bytes: int  #: decompressed
    n_values: int
    size: int  #: stored, including its header


class BoundedParquetFile(pq.ParquetFile):  # type: ignore[misc]  # PyArrow has no types
    """A Parquet file (a path or an open file) whose row groups are checked before they are read.

    Reading raises DataError if a row group would use more than ``MOST_BYTES`` and more than ``MOST_TIMES`` its stored
    bytes.
    """

    def __init__(self, source: Any, *, memory_map: bool = False, **options: Any) -> None:
        self.name = source if isinstance(source, str) else str(getattr(source, "name", "a table"))
        if isinstance(source, str):
            source = pa.memory_map(source) if memory_map else pa.OSFile(source)
        elif not isinstance(source, pa.NativeFile):
            source = pa.PythonFile(source, mode="r")
        super().__init__(source, **options)
        self.raw = source
        self._checked: set[tuple[int, tuple[str, ...] | None]] = set()

    def read_row_group(self, i: int, columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
        """Reads a row group, like PyArrow's method of this name, after checking the bounds."""
        self._check([i], columns)
        return super().read_row_group(i, columns=columns, **options)

    def read_row_groups(
        self, row_groups: Iterable[int], columns: Sequence[str] | None = None, **options: Any
    ) -> pa.Table:
        """Reads row groups, like PyArrow's method of this name, after checking the bounds."""
        groups = list(row_groups)
        self._check(groups, columns)
        return super().read_row_groups(groups, columns=columns, **options)

    def iter_batches(
        self,
        batch_size: int = 65536,
        row_groups: Iterable[int] | None = None,
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Reads batches, like PyArrow's method of this name, after checking the bounds."""
        groups = list(range(self.metadata.num_row_groups) if row_groups is None else row_groups)
        self._check(groups, columns)
        batches: Iterator[pa.RecordBatch] = super().iter_batches(
            batch_size, row_groups=groups, columns=columns, **options
        )
        return batches

    def read(self, columns: Sequence[str] | None = None, **options: Any) -> pa.Table:
        """Reads the file, like PyArrow's method of this name, after checking the bounds."""
        self._check(range(self.metadata.num_row_groups), columns)
        return super().read(columns=columns, **options)

    def _check(self, groups: Iterable[int], columns: Sequence[str] | None) -> None:
        wanted = None if columns is None else tuple(columns)
        for group in groups:
            if (group, wanted) not in self._checked:
                _check_group(self, group, wanted)
                self._checked.add((group, wanted))


def _check_group(file: BoundedParquetFile, group: int, columns: tuple[str, ...] | None) -> None:
    """Raises DataError if the columns of a row group would use too much memory."""
    metadata = file.metadata.row_group(group)
    n_stored = n_bytes = 0
    dictionaries: list[str] = []  # dictionary-encoded text columns, whose texts may be long and repeated often
    for number in range(metadata.num_columns):
        column = metadata.column(number)
        path = column.path_in_schema
        if columns is not None and not any(path == name or path.startswith(f"{name}.") for name in columns):
            continue
        pages = list(_pages(file.raw.read_at, column, file.name))
        n_values = max(column.num_values, sum(page.n_values for page in pages if not page.is_dictionary))
        n_chunk = sum(page.n_bytes for page in pages) + _BYTES_A_VALUE * n_values
        n_stored += sum(page.size for page in pages)
        if column.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
            if "DELTA_BYTE_ARRAY" in column.encodings:
                n_chunk += n_values * max((page.n_bytes for page in pages), default=0)
            elif n_named := sum(page.n_bytes for page in pages if page.is_dictionary):
                if n_values * n_named > MOST_BYTES // 8:
                    dictionaries.append(path)
                else:
                    n_chunk += n_values * n_named
        n_bytes += n_chunk
    allowed = max(MOST_BYTES, MOST_TIMES * n_stored)
    if n_bytes <= allowed and dictionaries:
        n_bytes += sum(_named_bytes(file, group, path) for path in dictionaries)
    if n_bytes > allowed:
        raise DataError(
            f"{file.name}: row group {group} has {n_stored} bytes and would need {n_bytes >> 20} MB of memory; the "
            f"maximum is {allowed >> 20} MB. kbsource does not write such files, so download the release again from "
            f"its original source."
        )


def _named_bytes(file: BoundedParquetFile, group: int, path: str) -> int:
    """Returns the decoded size of a dictionary-encoded text column in bytes: each text counts once per row that refers
    to it.
    """
    with pq.ParquetFile(file.raw, read_dictionary=[path]) as named:
        column = named.read_row_group(group, columns=[path], use_threads=False).column(0).combine_chunks()
    while not pa.types.is_dictionary(column.type):
        if pa.types.is_struct(column.type):
            column = column.field(0)
        elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            column = column.flatten()
        else:
            return int(pc.sum(pc.binary_length(column)).as_py() or 0)
    lengths = pc.binary_length(column.dictionary)
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _pages(read_at: Callable[[int, int], bytes], column: Any, name: str) -> Iterator[_Page]:
    """Yields the pages of a column in a row group, as described by their headers."""
    # A column without values may have only a dictionary page. An offset of 0 means that there is no page.
    first = min(filter(None, (column.dictionary_page_offset, column.data_page_offset)), default=0)
    at, end = first, first + column.total_compressed_size
    if first < 0 or end < first:
        raise DataError(f"{name}: a column begins at byte {first} and ends at {end}; download the release again.")
    while at < end:
        n_bytes = _HEADER_BYTES
        while True:
            try:
                page = _read_header(read_at(min(n_bytes, end - at), at))
                break
            except IndexError:
                if n_bytes >= min(_LONGEST_HEADER, end - at):
                    raise DataError(
                        f"{name}: a page at byte {at} has no readable header; download the release again."
                    ) from None
                n_bytes *= 8
        if page.size <= 0 or page.n_bytes < 0 or page.n_values < 0:
            raise DataError(
                f"{name}: the page at byte {at} claims to have {page.size} bytes; download the release again."
            )
        yield page
        at += page.size


def _read_header(data: bytes) -> _Page:
    """Returns the header at the start of the data; raises IndexError if the header is longer than the data."""
    at = field = 0
    kind = n_bytes = stored = n_values = 0
    while True:
        field, type_, at = _field(data, at, field)
        if not type_:
            break
        if field in (1, 2, 3):
            value, at = _varint(data, at)
            value = value >> 1 ^ -(value & 1)
            if field == 1:
                kind = value
            elif field == 2:
                n_bytes = value
            else:
                stored = value
        elif field in (5, 7, 8) and type_ == 12:
            inner, inner_type, after = _field(data, at, 0)
            if inner == 1 and inner_type in (4, 5, 6):
                value, _ = _varint(data, after)
                n_values = value >> 1 ^ -(value & 1)
            at = _skip(data, at, type_)
        else:
            at = _skip(data, at, type_)
    return _Page(kind == _DICTIONARY_PAGE, n_bytes, n_values, stored + at)


def _field(data: bytes, at: int, last: int) -> tuple[int, int, int]:
    """Returns the number, the type and the value's offset of the next field of a struct. At the end of the struct, the
    type is 0.
    """
    byte = data[at]
    at += 1
    if not byte & 15:
        return last, 0, at
    if byte >> 4:
        return last + (byte >> 4), byte & 15, at
    number, at = _varint(data, at)
    return number >> 1 ^ -(number & 1), byte & 15, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError("no number")


def _skip(data: bytes, at: int, type_: int, depth: int = 0) -> int:
    """Returns the offset at which a value ends, from its type and the offset ``at`` at which it starts."""
    if type_ in (1, 2):
        return at
    if type_ == 3:
        return at + 1
    if type_ in (4, 5, 6):
        return _varint(data, at)[1]
    if type_ == 7:
        return at + 8
    if type_ == 8:
        length, at = _varint(data, at)
        if at + length > len(data):
            raise IndexError("a text goes on")
        return at + length
    if type_ != 12 or depth > 4:
        raise IndexError("no header of a page")  # page headers have no lists or maps
    field = 0
    while True:
        field, inner, at = _field(data, at, field)
        if not inner:
            return at
        at = _skip(data, at, inner, depth + 1)
