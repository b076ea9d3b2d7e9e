"""Reads the lines of byte ranges of line-based files.

A line belongs to the range that contains the newline before it. So a reader needs no information about the text before
its range.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import (
    CODECS,
    MAGIC_BYTES,
    Compression,
    Piece,
    compression_of,
    iter_pieces,
    read_up_to,
)
from kbsource.dump.ranges import BROKEN_ENDS, FileRange, RangeReading, cuts
from kbsource.files import Files, Folder, base_name
from kbsource.records import BadRecord

AROUND = b" \t\r\n," + codecs.BOM_UTF8
"""Characters that may be before and after a value of an array."""


@dataclass(frozen=True, slots=True)
class LineRange(FileRange):
    """A range of a line-based file."""

    is_array: bool = False  #: true if the file is a JSON array with one value per line, which must end with ``]``


class Line(NamedTuple):
    """The bytes of a line without its newline. ``offset`` is defined as in ``records.BadRecord``."""

    offset: int
    data: bytes


def compression_alone(path: str, files: Files) -> tuple[Compression, bool]:
    """Returns the compression of a file, and False, because the file is not an array. Use it as the argument ``form``
    of ``plan_lines``.

    Raises:
        SetupError: the file is empty, or has an unsupported format.
    """
    with files(path).open() as file:
        return compression_of(read_up_to(file, MAGIC_BYTES), path), False


def plan_lines(
    paths: Sequence[str],
    *,
    range_bytes: int,
    files: Files = Folder.of,
    form: Callable[[str, Files], tuple[Compression, bool]] = compression_alone,
) -> list[LineRange]:
    """Returns the ranges to read: file by file in the given order, and within a file from start to end.

    A file whose compression is not splittable is a single range. ``form`` returns the compression of a file, and
    whether the file is an array.

    Raises:
        SetupError: raised by ``form``.
    """
    ranges: list[LineRange] = []
    for path in paths:
        compression, is_array = form(path, files)
        n_bytes = files(path).size()
        for start, end in cuts(n_bytes, range_bytes if CODECS[compression].is_splittable else n_bytes):
            ranges.append(LineRange(len(ranges), path, start, end, compression, n_bytes, is_array))
    return ranges


def _no_key(_: bytes) -> str:
    return ""


def read_lines(
    line_range: LineRange,
    *,
    files: Files = Folder.of,
    on_progress: Callable[[int], None] | None = None,
    on_damage: Callable[[int], None] | None = None,
    max_bytes: int,
    key_of: Callable[[bytes], str] = _no_key,
    unpack: Callable[[Iterable[Piece | Damage]], Iterator[Piece | Damage]] = iter,
) -> Iterator[Line | BadRecord]:
    """Yields the non-empty lines of a range in order, and a BadRecord for everything that cannot be read.

    The ranges of a file together yield the same lines as a single range over the whole file, wherever the file is
    divided. A line longer than ``max_bytes`` is rejected. ``key_of`` returns the key of a line from its beginning,
    because damage may cut off the rest. ``on_progress`` receives the number of stored bytes of the range that were read
    since its last call; the sum is the size of the range. ``on_damage`` receives, for each damage, the number of stored
    bytes that cannot be read. ``unpack`` extracts the content of an archive, which must be a single range.

    Reasons of the BadRecords (stage ``read``): for lines, ``line_cut`` and ``line_too_large``; for the file, those of
    ``DAMAGES``, ``trailing_garbage`` and ``truncated_dump``.
    """
    file_name = base_name(line_range.path)
    reading = RangeReading(line_range, on_progress)
    splitter = _Splitter(line_range, file_name, max_bytes, key_of, on_damage or (lambda n_bytes: None))
    with files(line_range.path).open() as file:
        pieces = iter_pieces(file, compression=line_range.compression, start=line_range.start)
        yield from splitter.split(unpack(reading.watch(pieces)))
        if line_range.is_last:
            tail, damage, offset = reading.end(file)
            is_ended = not line_range.is_array or tail.rstrip(AROUND).endswith(b"]")
            if detail := BROKEN_ENDS.get(damage or "", "" if is_ended else "the closing ] is missing at the end"):
                yield BadRecord("read", "", "truncated_dump", detail, file_name, offset)
    reading.finish()


class _Splitter:
    """Splits a range into its lines. Each object is for one range."""

    def __init__(
        self,
        line_range: LineRange,
        file_name: str,
        max_bytes: int,
        key_of: Callable[[bytes], str],
        on_damage: Callable[[int], None],
    ) -> None:
        self._end = line_range.content_end
        self._file_name = file_name
        self._max_bytes, self._key_of, self._on_damage = max_bytes, key_of, on_damage
        # Parts of the current line; None if the current line does not belong to this range.
        self._parts: list[bytes] | None = [] if line_range.start == 0 else None
        self._n_bytes = 0
        self._offset = 0

    def split(self, items: Iterable[Piece | Damage]) -> Iterator[Line | BadRecord]:
        for item in items:
            if isinstance(item, Damage):
                if self._parts:
                    yield self._bad("line_cut", "the file is damaged directly after this line")
                self._parts = None
                if item.owner >= self._end:
                    return
                if item.reason != "truncated":  # reported at the end of the file
                    self._on_damage(item.n_bytes)
                    yield BadRecord("read", "", item.reason, item.detail[:1000], self._file_name, item.offset)
                continue
            if self._parts is None and item.offset >= self._end:
                return
            yield from self._read(item)
            if self._parts is None and item.offset >= self._end:
                return
        if self._parts is not None:
            yield from self._close()

    def _read(self, piece: Piece) -> Iterator[Line | BadRecord]:
        start = 0
        while True:
            end = piece.data.find(b"\n", start)
            if self._parts is not None:
                part = piece.data[start:] if end < 0 else piece.data[start:end]
                yield from self._extend(part, piece.offset if piece.is_block else piece.offset + start)
            if end < 0:
                return
            if self._parts is not None:
                yield from self._close()
            newline = piece.offset if piece.is_block else piece.offset + end
            if newline >= self._end:
                self._parts = None
                return
            self._parts, self._n_bytes = [], 0
            start = end + 1

    def _extend(self, part: bytes, offset: int) -> Iterator[BadRecord]:
        """Adds bytes to the current line. The offset of the first bytes is that of the line."""
        assert self._parts is not None
        if not part:
            return
        if not self._parts:
            self._offset = offset
        self._parts.append(part)
        self._n_bytes += len(part)
        if self._n_bytes > self._max_bytes:
            yield self._bad("line_too_large", f"more than {self._max_bytes} bytes without a newline")
            self._parts = None

    def _close(self) -> Iterator[Line]:
        """Ends the current line."""
        assert self._parts is not None
        if self._parts:
            yield Line(self._offset, self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))

    def _bad(self, reason: str, detail: str) -> BadRecord:
        assert self._parts is not None
        return BadRecord("read", self._key_of(self._parts[0]), reason, detail, self._file_name, self._offset)
