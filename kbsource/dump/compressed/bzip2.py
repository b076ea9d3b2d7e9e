"""Reads bzip2 files block by block, from any byte.

A bzip2 file consists of streams. A stream consists of a header, blocks that can be decoded independently, and a
trailer. Blocks and trailers begin with a magic number of 48 bits, at any bit position. A reader that starts in the
middle of a file finds the next block by its magic, makes a stream of this block, and lets ``bz2`` decode it and check
its CRC.

Source: https://github.com/dsnet/compress/blob/master/doc/bzip2-format.pdf (format), Hadoop's BZip2Codec (splitting).
"""

from __future__ import annotations

import bz2
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO, NamedTuple

from kbsource.dump.compressed.damage import TRAILING_GARBAGE, TRUNCATED, Damage

BLOCK_MAGIC = 0x314159265359
END_MAGIC = 0x177245385090
STREAM_HEADER = re.compile(rb"BZh[1-9]")
DAMAGED = "damaged_block"

_MAGIC_BITS = 48
_CRC_BITS = 32
# A block contains at most 900,000 bytes. Even with the worst Huffman codes, its compressed size is below this limit.
_MAX_BLOCK_BYTES = 1_250_000
_WINDOW_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DecodedBlock:
    """One decoded block; ``offset`` is the byte of the file where its magic begins."""

    offset: int
    data: bytes


class _Magic(NamedTuple):
    bit: int
    is_end: bool

    @property
    def byte(self) -> int:
        return self.bit >> 3


def _magic_keys() -> dict[int, tuple[tuple[int, int, bool], ...]]:
    """Returns the 16-bit values that indicate a magic. For each: how many bytes before it the magic begins, its bit
    shift, and its kind.

    A magic that begins ``shift`` bits after the beginning of a byte covers five whole bytes (six for shift 0), which
    are always the same. Either their first or their second pair is at an even position, so it is sufficient to check
    the pairs at even positions.
    """
    keys: dict[int, list[tuple[int, int, bool]]] = {}
    for magic, is_end in ((BLOCK_MAGIC, False), (END_MAGIC, True)):
        for shift in range(8):
            whole = (magic << (8 - shift)).to_bytes(7, "big")
            first = 1 if shift else 0
            for back in (first, first + 1):
                pair = int.from_bytes(whole[back : back + 2], "little")
                keys.setdefault(pair, []).append((back, shift, is_end))
    return {pair: tuple(places) for pair, places in keys.items()}


_KEYS = _magic_keys()
_MAGIC_MASK = (1 << _MAGIC_BITS) - 1


@cache
def _is_key() -> Any:
    """Returns a numpy mask over all pairs of bytes. It is made on first use, because other formats do not need
    numpy.
    """
    import numpy as np

    mask = np.zeros(1 << 16, dtype=np.bool_)
    mask[list(_KEYS)] = True
    return mask


def find_magics(data: bytes) -> list[tuple[int, bool]]:
    """Returns the bit position of every magic in the data, in order, and whether it is that of a trailer. A magic is
    found only if at least 7 bytes of data begin with its first byte.
    """
    import numpy as np

    pairs = np.frombuffer(data, dtype="<u2", count=len(data) // 2)
    found: list[tuple[int, bool]] = []
    for index in np.flatnonzero(_is_key()[pairs]).tolist():
        for back, shift, is_end in _KEYS[int(pairs[index])]:
            start = 2 * index - back
            if start < 0 or start + 7 > len(data):
                continue
            value = int.from_bytes(data[start : start + 7], "big") >> (8 - shift) & _MAGIC_MASK
            if value == (END_MAGIC if is_end else BLOCK_MAGIC):
                found.append((8 * start + shift, is_end))
    found.sort()
    return found


class _Window:
    """The bytes of a file from the current magic on, and the magics in them. It contains at most a few blocks."""

    def __init__(self, file: BinaryIO, start: int) -> None:
        file.seek(start)
        self._file = file
        self._base = start
        self._data = bytearray()
        self._scanned = start
        self._magics: list[_Magic] = []
        self.at_end = False

    @property
    def end(self) -> int:
        """The offset after the last byte that was read. If ``at_end`` is set, this is the size of the file."""
        return self._base + len(self._data)

    def magic(self, index: int) -> _Magic | None:
        """Returns the magic at an index, counted from the current one, which is 0; None if the file has no more
        magics.
        """
        while len(self._magics) <= index:
            if not self._read():
                return None
        return self._magics[index]

    def advance(self, count: int) -> None:
        """Makes the magic at index ``count`` the current one, and drops the bytes before it."""
        del self._magics[:count]
        keep = self._magics[0].byte if self._magics else self._scanned
        self._forget(keep)

    def _forget(self, keep: int) -> None:
        count = min(keep, self.end) - self._base
        if count > 0:
            del self._data[:count]
            self._base += count

    def _read(self) -> bool:
        if self.at_end:
            return False
        piece = self._file.read(_WINDOW_BYTES)
        if not piece:
            self.at_end = True
            return False
        # no block is so long, so the bytes are dropped from memory
        if len(self._data) > 2 * _MAX_BLOCK_BYTES:
            self._forget(self._scanned)
        self._data += piece
        first = self._scanned
        for bit, is_end in find_magics(bytes(self._data[first - self._base :])):
            self._magics.append(_Magic(bit + 8 * first, is_end))
        self._scanned = max(first, self.end - 6)
        return True

    def peek(self, start: int, count: int) -> bytes:
        """Returns ``count`` bytes of the file from ``start`` on, or fewer at its end."""
        while self.end < start + count and self._read():
            pass
        return bytes(self._data[start - self._base : start - self._base + count])

    def _bits(self, start: int, end: int) -> int | None:
        first = (start >> 3) - self._base
        if first < 0:
            return None
        value = int.from_bytes(self._data[first : ((end + 7) >> 3) - self._base], "big") >> (-end % 8)
        return value & ((1 << (end - start)) - 1)

    def decode(self, start: int, end: int) -> bytes | None:
        """Returns the content of the block in the bits [start, end); None if they are not exactly one undamaged
        block.
        """
        length = end - start
        bits = self._bits(start, end) if length > _MAGIC_BITS + _CRC_BITS else None
        if bits is None:
            return None
        crc = bits >> (length - _MAGIC_BITS - _CRC_BITS) & 0xFFFFFFFF
        length += _MAGIC_BITS + _CRC_BITS
        padding = -length % 8
        bits = ((bits << _MAGIC_BITS | END_MAGIC) << _CRC_BITS | crc) << padding
        decoder = bz2.BZ2Decompressor()
        try:
            data = decoder.decompress(b"BZh9" + bits.to_bytes((length + padding) >> 3, "big"))
        except OSError:
            return None
        return data if decoder.eof and not decoder.unused_data else None

    def decode_last(self, start: int) -> bytes | None:
        """Returns the content of a block directly before the end of a truncated file; None if the block is
        incomplete.
        """
        length = 8 * self.end - start
        bits = self._bits(start, 8 * self.end) if length > _MAGIC_BITS + _CRC_BITS else None
        if bits is None:
            return None
        # The decoder reads whole bytes and expects a magic after the block, so the bits of the last incomplete byte are
        # dropped. If decoding then fails, these bits belong to the block, and are padded to a byte instead.
        odd = length % 8
        left_out = (bits >> odd).to_bytes(length >> 3, "big")
        filled_up = (bits << (-length % 8)).to_bytes((length + 7) >> 3, "big")
        return _decode_unfinished(left_out) or _decode_unfinished(filled_up)


def _decode_unfinished(data: bytes) -> bytes | None:
    """Returns the content of a stream that has no trailer; None if its block is incomplete."""
    decoder = bz2.BZ2Decompressor()
    try:
        parts = [decoder.decompress(b"BZh9" + data)]
        while part := decoder.decompress(b""):
            parts.append(part)
    except (OSError, EOFError):
        return None
    return b"".join(parts) or None


def _end_of_covering_block(file: BinaryIO, magic: _Magic) -> int | None:
    """Returns the end bit of the undamaged block that contains the bits of a magic by chance; None if there is no such
    block.
    """
    window = _Window(file, max(0, magic.byte - _MAX_BLOCK_BYTES))
    before: list[_Magic] = []
    after: list[_Magic] = []
    index = 0
    while (found := window.magic(index)) and found.byte <= magic.byte + _MAX_BLOCK_BYTES:
        if found.bit < magic.bit and not found.is_end:
            before.append(found)
        elif found.bit > magic.bit:
            after.append(found)
        index += 1
    for start in reversed(before):
        for end in after:
            if end.byte - start.byte <= _MAX_BLOCK_BYTES and window.decode(start.bit, end.bit) is not None:
                return end.bit
    return None


def iter_blocks(file: BinaryIO, *, start: int = 0) -> Iterator[DecodedBlock | Damage]:
    """Yields the blocks whose magic begins at byte ``start`` or later, and all damage between them, in order.

    The iteration continues to the end of the file. The reader of a range stops at the first item that belongs to
    another range. An item belongs to the block with the offset ``owner``. The items are the same as from 0, without
    those whose owner is before ``start``.

    Args:
        file: a seekable file with the compressed bytes.
        start: byte offset.
    """
    window = _Window(file, start)
    owner = start
    is_synced = start == 0
    if is_synced:
        first = window.magic(0)
        if first is None or first.bit != 8 * len(b"BZh9"):
            n_bytes = first.byte if first else window.end
            yield Damage(0, 0, DAMAGED, "the first block does not begin at the expected position", n_bytes)
    while magic := window.magic(0):
        if magic.is_end:
            if is_synced:
                damage = _damage_after_stream(window, magic, owner)
                if damage:
                    yield damage
            window.advance(1)
            continue
        count, data = _decode_from(window, magic)
        if data is None and not is_synced:
            covering_end = _end_of_covering_block(file, magic)
            file.seek(window.end)
            if covering_end is not None:
                while (skipped := window.magic(0)) and skipped.bit < covering_end:
                    window.advance(1)
                # The reader of that block also reports everything after it.
                continue
        is_synced = True
        owner = magic.byte
        if data is not None:
            yield DecodedBlock(owner, data)
        following = window.magic(1)
        if following is None:
            yield Damage(window.end, owner, TRUNCATED, "the file ends inside a bzip2 stream")
        elif data is None:
            detail = f"compressed bytes {magic.byte} to {following.byte} could not be decoded"
            yield Damage(magic.byte, owner, DAMAGED, detail, following.byte - magic.byte)
        window.advance(count)


def _decode_from(window: _Window, magic: _Magic) -> tuple[int, bytes | None]:
    """Decodes a block. Returns the number of magics that it spans, and its data; (1, None) if it cannot be decoded.

    The bits of a magic may occur inside a block by chance. So if decoding up to the next magic fails, it is tried up to
    each of the following magics, as far as a block can reach.
    """
    count = 1
    while following := window.magic(count):
        if following.byte - magic.byte > _MAX_BLOCK_BYTES:
            break
        data = window.decode(magic.bit, following.bit)
        if data is not None:
            return count, data
        count += 1
    return 1, (window.decode_last(magic.bit) if window.magic(1) is None else None)


def _damage_after_stream(window: _Window, magic: _Magic, owner: int) -> Damage | None:
    """Returns the damage after a stream's trailer; None if the file ends there or the next stream begins."""
    end = (magic.bit + _MAGIC_BITS + _CRC_BITS + 7) >> 3
    rest = window.peek(end, len(b"BZh9") + 6)
    if not rest:
        return Damage(window.end, owner, TRUNCATED, "the file ends inside a trailer") if window.end < end else None
    following = window.magic(1)
    has_header = STREAM_HEADER.match(rest) is not None
    if has_header and following and following.bit == 8 * (end + 4):
        return None
    if len(rest) < len(b"BZh9") + 6 and _begins_stream(rest):
        return Damage(window.end, owner, TRUNCATED, "the file ends inside a stream header")
    n_bytes = following.byte - end if following else 0
    if has_header:
        detail = "the first block of a stream does not begin at the expected position"
        return Damage(end + 4, owner, DAMAGED, detail, n_bytes)
    until = following.byte if following else "the end of the file"
    return Damage(end, owner, TRAILING_GARBAGE, f"bytes {end} to {until} are not a bzip2 stream", n_bytes)


def _begins_stream(rest: bytes) -> bool:
    digit = rest[3:4] if rest[3:4].isdigit() and rest[3:4] != b"0" else b"9"
    header = b"BZh" + digit
    return any((header + magic.to_bytes(6, "big")).startswith(rest) for magic in (BLOCK_MAGIC, END_MAGIC))


def read_bzip2_tail(file: BinaryIO, size: int, count: int) -> tuple[bytes, str | None]:
    """Returns the last ``count`` decoded bytes of the file (fewer if it is shorter), and a description of the damage at
    its end, or None if there is none.

    Only as many blocks as needed are decoded. Bytes before the last damaged block are not returned.
    """
    reach = 1 << 16
    while True:
        start = max(0, size - reach)
        tail = b""
        ending: str | None = None
        for item in iter_blocks(file, start=start):
            if isinstance(item, DecodedBlock):
                tail = (tail + item.data)[-count:]
                ending = None
            else:
                tail = tail if item.reason == TRAILING_GARBAGE else b""
                ending = item.reason
        if start == 0 or len(tail) >= count or ending in (DAMAGED, TRUNCATED):
            return tail, ending
        reach *= 4
