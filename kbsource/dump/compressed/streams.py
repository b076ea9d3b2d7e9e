"""The decompressed bytes of a dump in segments that know their origin, whatever the compression.

The format of a file is determined from its first bytes, not from its name.
"""

from __future__ import annotations

import codecs
import os
import re
import shlex
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

from kbsource.dump.compressed import bzip2
from kbsource.dump.compressed.bzip2 import Block, Damage
from kbsource.errors import SetupError

Compression = Literal["bzip2", "gzip", "none"]

UTF8 = "utf-8"
_READ_BYTES = 1 << 20
# gzip streams are fed in small steps, so that little is decoded twice at a break.
_GZIP_READ_BYTES = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"

_UNREADABLE = {
    b"7z\xbc\xaf\x27\x1c": ("7z", "7z x -so"),
    b"\x28\xb5\x2f\xfd": ("Zstandard", "zstd -dc"),
    b"\xfd7zXZ\x00": ("xz", "xz -dc"),
    b"\x5d\x00\x00": ("lzma", "xz -dc --format=lzma"),
    b"LZIP": ("lzip", "lzip -dc"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -dc"),
    b"Rar!\x1a\x07": ("rar", "unrar p -inul"),
    b"PK\x03\x04": ("zip", "unzip -p"),
}
"""First bytes of a file -> its format, and the command that writes its content to the standard output."""
_BOMS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
_DECLARATION = re.compile(rb"""\A\s*<\?xml[^>]*?\bencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment of decompressed bytes."""

    #: origin of the bytes: for a block, the byte of the file where the block begins; otherwise the number of
    #: decompressed bytes before them
    offset: int
    data: bytes  #: in UTF-8
    is_block: bool  #: all bytes of a block have the block's offset; otherwise offsets increase byte by byte
    #: number of bytes of the file consumed, up to the beginning of a block, or to the end of any other segment
    position: int


def compression_of(head: bytes, path: str) -> Compression:
    """Returns how a file is compressed, from its first bytes.

    Raises:
        SetupError: the file is empty, or in an unsupported format; the message says how to convert it.
    """
    if not head:
        raise SetupError(f"{path} is empty. Download it again.")
    for magic, (name, command) in _UNREADABLE.items():
        if head.startswith(magic):
            target = f"{os.path.splitext(path)[0]}.bz2"
            raise SetupError(
                f"{path}: {name} is not read; gzip and bzip2 are. Convert it: "
                f"{command} {shlex.quote(path)} | bzip2 > {shlex.quote(target)}"
            )
    if bzip2.STREAM_HEADER.match(head):
        return "bzip2"
    if head.startswith(_GZIP_MAGIC):
        return "gzip"
    return "none"


def encoding_of(head: bytes, path: str) -> str:
    """Returns the name of the character encoding, from the first decompressed bytes.

    Raises:
        SetupError: the XML declaration names an unknown encoding.
    """
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    declared = _DECLARATION.match(head)
    if declared is None:
        return UTF8
    name = declared[1].decode("ascii")
    try:
        encoding = codecs.lookup(name).name
    except LookupError as error:
        raise SetupError(f"{path} declares the encoding {name!r}, which is unknown. Convert it to UTF-8.") from error
    return UTF8 if encoding in (UTF8, "ascii") else encoding


def iter_pieces(
    file: BinaryIO, *, compression: Compression, encoding: str = UTF8, start: int = 0
) -> Iterator[Piece | Damage]:
    """Iterates over the decompressed bytes from byte ``start`` of the file to its end, in UTF-8, and all damage.

    ``start`` must be 0 for gzip and for encodings other than UTF-8. For the latter, offsets that increase byte by byte
    count converted bytes.
    """
    pieces: Iterator[Piece | Damage]
    if compression == "bzip2":
        pieces = _bzip2_pieces(file, start)
    elif compression == "gzip":
        pieces = _gzip_pieces(file)
    else:
        pieces = _plain_pieces(file, start)
    return pieces if encoding == UTF8 else _converted(pieces, encoding)


def _plain_pieces(file: BinaryIO, start: int) -> Iterator[Piece | Damage]:
    file.seek(start)
    while data := file.read(_READ_BYTES):
        yield Piece(start, data, False, start + len(data))
        start += len(data)


def _bzip2_pieces(file: BinaryIO, start: int) -> Iterator[Piece | Damage]:
    for item in bzip2.iter_blocks(file, start=start):
        yield Piece(item.offset, item.data, True, item.offset) if isinstance(item, Block) else item


def _gzip_pieces(file: BinaryIO) -> Iterator[Piece | Damage]:
    file.seek(0)
    decoder = zlib.decompressobj(wbits=31)
    has_member = False
    offset = 0
    while data := file.read(_GZIP_READ_BYTES):
        position = file.tell()
        while data:
            if not has_member:
                data = data.lstrip(b"\0")  # zeros that fill up a block of a tape or a disk
                if not data:
                    break
                if not _GZIP_MAGIC.startswith(data[:2]):
                    yield Damage(offset, offset, "trailing_garbage", "the bytes after the gzip data are not gzip")
                    return
                decoder = zlib.decompressobj(wbits=31)
                has_member = True
            before = decoder.copy()
            try:
                decoded = decoder.decompress(data, _READ_BYTES)
            except zlib.error as error:
                decoded = _decodable(before, data)
                if decoded:
                    yield Piece(offset, decoded, False, position)
                offset += len(decoded)
                yield Damage(offset, offset, "damaged_gzip", f"{error}; what follows cannot be decoded")
                return
            if decoded:
                yield Piece(offset, decoded, False, position)
                offset += len(decoded)
            data = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            has_member = not decoder.eof
    if has_member:
        decoded = decoder.flush()
        if decoded:
            yield Piece(offset, decoded, False, file.tell())
            offset += len(decoded)
        yield Damage(offset, offset, "truncated", "the file ends inside a gzip stream")


def _decodable(decoder: zlib._Decompress, data: bytes) -> bytes:
    """Returns the part of the data that can be decoded before the byte at which it breaks."""
    parts: list[bytes] = []
    for index in range(len(data)):
        try:
            parts.append(decoder.decompress(data[index : index + 1]))
        except zlib.error:
            break
    return b"".join(parts)


def _converted(pieces: Iterable[Piece | Damage], encoding: str) -> Iterator[Piece | Damage]:
    """Converts segments to UTF-8. Invalid input becomes invalid UTF-8, so that the page with it is rejected."""
    errors = "surrogatepass" if encoding.startswith("utf-") else "surrogateescape"
    decoder: codecs.IncrementalDecoder | None = None
    n_converted = 0
    for piece in pieces:
        if isinstance(piece, Damage):
            decoder = None
            yield piece
            continue
        data = piece.data
        if encoding in ("utf-16", "utf-32"):
            is_little = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF32_LE))
            encoding += "-le" if is_little else "-be"
        if decoder is None:
            decoder = codecs.getincrementaldecoder(encoding)(errors)
            if n_converted:
                data = data[_first_character(data, encoding) :]
        text = decoder.decode(data).encode(UTF8, "surrogatepass")
        yield Piece(piece.offset if piece.is_block else n_converted, text, piece.is_block, piece.position)
        n_converted += len(text)


def _first_character(data: bytes, encoding: str) -> int:
    """Returns the byte after a damage at which characters begin, because the damage may have cut a character in two.

    It is the position that makes most characters ASCII, because tags, digits and spaces are frequent.
    """

    def n_ascii(start: int) -> int:
        return sum(character < "\x80" for character in data[start:].decode(encoding, "replace"))

    return max(range(len("<".encode(encoding))), key=n_ascii)


def read_up_to(file: BinaryIO, count: int) -> bytes:
    """Reads ``count`` bytes, fewer only at the end of the file, even from files that return fewer per call."""
    data = b""
    while len(data) < count and (piece := file.read(count - len(data))):
        data += piece
    return data


def read_tail(file: BinaryIO, *, compression: Compression, size: int, count: int) -> tuple[bytes, str | None]:
    """Returns the last ``count`` bytes of a splittable file's content, and the reason of a damage at its very end."""
    if compression == "bzip2":
        return bzip2.read_tail(file, size, count)
    file.seek(max(0, size - count))
    return read_up_to(file, count), None
