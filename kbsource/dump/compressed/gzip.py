"""Decodes gzip files from their beginning."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from kbsource.dump.compressed.damage import TRAILING_GARBAGE, TRUNCATED, BrokenStreamError

MAGIC = b"\x1f\x8b"
DAMAGED = "damaged_gzip"
# The decoder gets small portions, so that little must be decoded again if the data is damaged.
_READ_BYTES = 1 << 16
_PIECE_BYTES = 1 << 20
_WITH_HEADER = 31  # zlib's wbits for data with a gzip header


def decode(file: BinaryIO) -> Iterator[bytes]:
    """Yields the content of all members of a file.

    Raises:
        BrokenStreamError: the rest cannot be decoded: ``damaged_gzip``, ``trailing_garbage`` or ``truncated``.
    """
    decoder = zlib.decompressobj(_WITH_HEADER)
    has_member = False
    while data := file.read(_READ_BYTES):
        while data:
            if not has_member:
                data = data.lstrip(b"\0")  # zeros that fill the last block of a tape or a disk
                if not data:
                    break
                if not MAGIC.startswith(data[:2]):
                    raise BrokenStreamError(TRAILING_GARBAGE, "the bytes after the gzip data are not gzip data")
                decoder = zlib.decompressobj(_WITH_HEADER)
                has_member = True
            before = decoder.copy()
            try:
                decoded = decoder.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                yield _decodable(before, data)
                raise BrokenStreamError(DAMAGED, f"{error}; the rest cannot be decoded") from error
            yield decoded
            data = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            has_member = not decoder.eof
    if has_member:
        yield decoder.flush()
        raise BrokenStreamError(TRUNCATED, "the file ends inside a gzip stream")


def _decodable(decoder: zlib._Decompress, data: bytes) -> bytes:
    """Returns the content of the data before the byte that cannot be decoded."""
    parts: list[bytes] = []
    for index in range(len(data)):
        try:
            parts.append(decoder.decompress(data[index : index + 1]))
        except zlib.error:
            break
    return b"".join(parts)
