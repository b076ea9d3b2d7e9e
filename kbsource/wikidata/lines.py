"""Byte ranges of a dump -> the lines that hold its entities.

The dump is a JSON array with one entity a line, or the same without the array (ndjson); a line holds no other newline.
A line belongs to the range that holds the newline before it: so a reader that starts in the middle needs to know
nothing of what came before.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kbsource.dump.compressed.bzip2 import Damage
from kbsource.dump.compressed.streams import Compression, Piece, compression_of, iter_pieces, read_tail, read_up_to
from kbsource.dump.ranges import natural_key
from kbsource.errors import SetupError
from kbsource.files import ReadableStorage, Storage, base_name
from kbsource.records import BadRecord
from kbsource.wikidata.entity import entity_key

MAX_LINE_BYTES = 32 << 20
"""The longest line of Wikidata has about 5 MB."""
READ_AHEAD_BYTES = 2 << 20
_BAD_RECORD_BYTES = 1 << 11  # at most about
_TAIL_BYTES = 1 << 12
_AROUND = b" \t\r\n," + codecs.BOM_UTF8
"""What may stand around an entity, which begins and ends with a brace."""
_NO_END = 1 << 62


@dataclass(frozen=True, slots=True)
class LineRange:
    """A part of a dump file that one worker reads.

    Attributes:
        index: place in the order of all ranges of all files.
        path: the file.
        start, end: stored bytes [start, end).
        compression: ``bzip2``, ``gzip`` or ``none``.
        n_bytes: size of the file; the range that reaches it is the last one.
        is_array: the file begins with ``[``, so it must end with ``]``.
    """

    index: int
    path: str
    start: int
    end: int
    compression: Compression
    n_bytes: int
    is_array: bool

    @property
    def is_last(self) -> bool:
        """The range reaches the end of its file."""
        return self.end >= self.n_bytes


class EntityLine(NamedTuple):
    """One entity's bytes, without what is around them; ``offset`` as in ``records.BadRecord``."""

    offset: int
    data: bytes


def expand_dumps(patterns: Sequence[str], storage: Storage) -> list[str]:
    """Gives the files that the patterns name, each once, parts in the order of their numbers.

    Raises:
        SetupError: a pattern matches no file.
    """
    paths: dict[str, None] = {}
    for pattern in patterns:
        found = [pattern] if storage.exists(pattern) else storage.glob(pattern)
        if not found:
            raise SetupError(f"No file matches {pattern!r}. Check the path; quote patterns in the shell.")
        paths.update(dict.fromkeys(sorted(found, key=natural_key)))
    return list(paths)


def plan_lines(paths: Sequence[str], storage: ReadableStorage, *, range_bytes: int) -> list[LineRange]:
    """Gives the ranges of the files, in the given order of the files and from front to back.

    gzip files cannot be entered in the middle: they are one range.

    Args:
        paths: dump files.
        storage: where they are.
        range_bytes: stored bytes of a range, at least 1; the last one of a file may have fewer.

    Raises:
        SetupError: a file is no JSON dump.
    """
    ranges: list[LineRange] = []
    for path in paths:
        compression, is_array = _form(path, storage)
        n_bytes = storage.size(path)
        step = n_bytes if compression == "gzip" else range_bytes
        for start in range(0, n_bytes, step):
            end = min(start + step, n_bytes)
            ranges.append(LineRange(len(ranges), path, start, end, compression, n_bytes, is_array))
    return ranges


def _form(path: str, storage: ReadableStorage) -> tuple[Compression, bool]:
    """Gives the compression of a file and whether its content begins as an array."""
    with storage.open_read(path) as file:
        compression = compression_of(read_up_to(file, 8), path)
        begin = b""
        for piece in iter_pieces(file, compression=compression):
            if isinstance(piece, Damage):
                raise SetupError(f"{path} is damaged at its very beginning ({piece.detail}). Fetch it again.")
            begin = piece.data.lstrip(_AROUND)
            if begin:
                break
    if begin[:1] not in (b"[", b"{"):
        raise SetupError(
            f"{path} is no JSON dump of Wikidata: it begins with {begin[:20]!r}, not with [ or {{. Take "
            "wikidata-YYYYMMDD-all.json.bz2 from https://dumps.wikimedia.org/wikidatawiki/entities/."
        )
    return compression, begin[:1] == b"["


def read_lines(
    line_range: LineRange,
    storage: ReadableStorage,
    *,
    on_progress: Callable[[int], None] | None = None,
    on_damage: Callable[[int], None] | None = None,
    max_bytes: int = MAX_LINE_BYTES,
) -> Iterator[EntityLine | BadRecord]:
    """Yields the entities' lines of a range, and a BadRecord for everything that cannot be read, in order.

    What the ranges of a file yield, one after the other, is what one range over the whole file yields, whatever the
    cuts.

    Args:
        line_range: from ``plan_lines``.
        storage: where the file is.
        on_progress: told, bit by bit, how many further stored bytes of the range were read; all in all its size.
        on_damage: told of each damage how many stored bytes it made unreadable.
        max_bytes: a longer line is given up.

    Reasons of the BadRecords (stage ``read``): ``line_cut``, ``line_too_large``, and for the file: ``damaged_block``,
    ``damaged_gzip``, ``trailing_garbage``, ``truncated_dump``.
    """
    file_name = base_name(line_range.path)
    done = line_range.start

    def reach(position: int) -> None:
        nonlocal done
        position = min(position, line_range.end)
        if on_progress is not None and position > done:
            on_progress(position - done)
            done = position

    tail = b""
    damage: str | None = None
    position = 0

    def watch(items: Iterable[Piece | Damage]) -> Iterator[Piece | Damage]:
        nonlocal tail, damage, position
        for item in items:
            if isinstance(item, Damage):
                damage = item.reason
            else:
                reach(item.position)
                damage, tail = None, (tail + item.data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
                position = item.offset + len(item.data)
            yield item

    splitter = _Splitter(line_range, file_name, max_bytes, on_damage or (lambda n_bytes: None))
    with storage.open_read(line_range.path) as file:
        pieces = iter_pieces(file, compression=line_range.compression, start=line_range.start)
        yield from splitter.split(watch(pieces))
        if line_range.is_last:
            if line_range.compression != "gzip":
                size, form = line_range.n_bytes, line_range.compression
                tail, damage = read_tail(file, compression=form, size=size, count=_TAIL_BYTES)
                position = size
            if detail := _missing_end(tail, damage, is_array=line_range.is_array):
                yield BadRecord("read", "", "truncated_dump", detail, file_name, position)
    reach(line_range.end)


def read_ahead(
    lines: Iterable[EntityLine | BadRecord], *, ahead_bytes: int = READ_AHEAD_BYTES
) -> Iterator[EntityLine | BadRecord]:
    """Yields the same, but takes some of them before the first of these is yielded: until they have ``ahead_bytes``.

    Decompressing and parsing each want the processor's caches for themselves: to change between them at every line
    costs time.
    """
    waiting: deque[EntityLine | BadRecord] = deque()
    n_bytes = 0
    for line in lines:
        waiting.append(line)
        n_bytes += len(line.data) if isinstance(line, EntityLine) else _BAD_RECORD_BYTES
        if n_bytes >= ahead_bytes:
            n_bytes = 0
            while waiting:
                yield waiting.popleft()
    yield from waiting


def _missing_end(tail: bytes, damage: str | None, *, is_array: bool) -> str:
    """Says in what way the file ends before it should; "" when it ends well, or with a damaged block."""
    if damage == "truncated":
        return "the compressed file ends in the middle"
    if damage == "damaged_gzip":
        return "nothing behind the damage can be decoded"
    if damage == "damaged_block" or not is_array or tail.rstrip(_AROUND).endswith(b"]"):
        return ""
    return "the closing ] is missing at the end"


class _Splitter:
    """Cuts a range into its lines; used for one range."""

    def __init__(self, line_range: LineRange, file_name: str, max_bytes: int, on_damage: Callable[[int], None]) -> None:
        self._end = _NO_END if line_range.is_last else line_range.end
        self._file_name = file_name
        self._max_bytes, self._on_damage = max_bytes, on_damage
        # Parts of the open line; None while there is none of our own to be added to.
        self._parts: list[bytes] | None = [] if line_range.start == 0 else None
        self._n_bytes = 0
        self._offset = 0

    def split(self, items: Iterable[Piece | Damage]) -> Iterator[EntityLine | BadRecord]:
        for item in items:
            if isinstance(item, Damage):
                yield from self._cut("a damage of the file follows")
                if item.owner >= self._end:
                    return
                if item.reason != "truncated":  # that is found out at the end
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

    def _read(self, piece: Piece) -> Iterator[EntityLine | BadRecord]:
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
        """Adds to the open line; the line begins where its first byte does."""
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

    def _close(self) -> Iterator[EntityLine]:
        """Ends the open line."""
        assert self._parts is not None
        line = (self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)).strip(_AROUND)
        # Some writers put the array's brackets on the lines of the first and the last entity.
        if line[:1] == b"[":
            line = line[1:].lstrip(_AROUND)
        if line[-1:] == b"]":
            line = line[:-1].rstrip(_AROUND)
        if line:
            yield EntityLine(self._offset, line)

    def _cut(self, why: str) -> Iterator[BadRecord]:
        if self._parts:
            yield self._bad("line_cut", why)
        self._parts = None

    def _bad(self, reason: str, detail: str) -> BadRecord:
        assert self._parts is not None
        return BadRecord("read", entity_key(self._parts[0]), reason, detail, self._file_name, self._offset)
