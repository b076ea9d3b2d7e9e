"""Decompresses dump files in every supported format into segments, each with its position in the file.

The format of a file is recognised by its first bytes, not by its name.
"""

from __future__ import annotations

import bz2
import codecs
import gzip as python_gzip
import io
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Literal

from kbsource.dump.compressed import bzip2, gzip
from kbsource.dump.compressed.damage import BrokenStreamError, Damage
from kbsource.dump.compressed.frames import XzFrame, ZstdFrame, decode_frames
from kbsource.errors import SetupError

Compression = Literal["bzip2", "gzip", "zstd", "xz", "none"]

UTF8 = "utf-8"
MAGIC_BYTES = 8
"""Number of bytes at the beginning of a file from which ``compression_of`` recognises the compression."""
_READ_BYTES = 1 << 20
_PIECE_BYTES = 1 << 18

_UNREADABLE = {
    b"7z\xbc\xaf\x27\x1c": ("7z", "7z x -so"),
    b"\x5d\x00\x00": ("lzma", "xz -dc --format=lzma"),
    b"LZIP": ("lzip", "lzip -dc"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -dc"),
    b"Rar!\x1a\x07": ("rar", "unrar p -inul"),
    b"PK\x03\x04": ("zip", "unzip -p"),
}
"""Formats that are not supported: first bytes of a file -> name of the format, and a command that writes the content to
standard output."""
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

    #: position of the bytes: in a block, the byte of the file at which the block begins; otherwise the number of
    #: decompressed bytes before them
    offset: int
    data: bytes  #: in UTF-8
    is_block: bool  #: true for a block, whose bytes all have the same offset; otherwise offsets increase byte by byte
    #: number of stored bytes read: up to the beginning of a block, or up to the end of any other segment
    position: int


@dataclass(frozen=True)
class Codec:
    """A supported compression."""

    suffix: str  #: ending of file names
    magics: frozenset[bytes]  #: first bytes of the files; empty for files that are not compressed
    damage: str  #: reason slug of a part of a file that cannot be decoded
    pieces: Callable[[BinaryIO, int], Iterator[Piece | Damage]]
    """Yields the decompressed segments of a file, from a byte of the file to its end, and all damage."""
    opened: Callable[[BinaryIO], Any]
    """Opens a file for reading its decompressed bytes; it can be rewound. Damage raises an OSError or an EOFError."""
    tail: Callable[[BinaryIO, int, int], tuple[bytes, str | None]] | None = None
    """Returns the last decompressed bytes of a file, and the reason of any damage at its end. The arguments are the
    file, its size and the maximum number of bytes. None if files of this format can only be read from their beginning.
    """

    @property
    def is_splittable(self) -> bool:
        """True if a file can be read from the middle."""
        return self.tail is not None


def compression_of(head: bytes, path: str) -> Compression:
    """Returns the compression of a file, from its first bytes.

    Raises:
        SetupError: the file is empty or has an unsupported format. The message contains a command that converts it.
    """
    if not head:
        raise SetupError(f"{path} is empty. Download it again.")
    for magic, (name, command) in _UNREADABLE.items():
        if head.startswith(magic):
            target = f"{os.path.splitext(path)[0]}.bz2"
            raise SetupError(
                f"{path}: {name} is not supported; only bzip2, gzip, Zstandard and xz are. Convert the file: "
                f"{command} {shlex.quote(path)} | bzip2 > {shlex.quote(target)}"
            )
    return next((name for name, codec in CODECS.items() if head.startswith(tuple(codec.magics))), "none")


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
        raise SetupError(
            f"{path} declares the encoding {name!r}, which is unknown. Convert the file to UTF-8."
        ) from error
    return UTF8 if encoding in (UTF8, "ascii") else encoding


def iter_pieces(
    file: BinaryIO, *, compression: Compression, encoding: str = UTF8, start: int = 0
) -> Iterator[Piece | Damage]:
    """Yields the decompressed segments of a file in UTF-8, from byte ``start`` to its end, and all damage.

    ``start`` must be 0 for codecs that are not splittable and for encodings other than UTF-8. For these encodings,
    offsets count converted bytes.
    """
    pieces = CODECS[compression].pieces(file, start)
    return pieces if encoding == UTF8 else _converted(pieces, encoding)


def _plain_pieces(file: BinaryIO, start: int) -> Iterator[Piece | Damage]:
    file.seek(start)
    while data := file.read(_READ_BYTES):
        yield Piece(start, data, False, start + len(data))
        start += len(data)


def _bzip2_pieces(file: BinaryIO, start: int) -> Iterator[Piece | Damage]:
    for item in bzip2.iter_blocks(file, start=start):
        yield Piece(item.offset, item.data, True, item.offset) if isinstance(item, bzip2.DecodedBlock) else item


def _streamed(decode: Callable[[BinaryIO], Iterator[bytes]], file: BinaryIO, start: int) -> Iterator[Piece | Damage]:
    """Yields the segments of a file that can only be read from its beginning."""
    file.seek(start)
    offset = 0
    broken: BrokenStreamError | None = None
    decoded = decode(file)
    while broken is None:
        parts: list[bytes] = []
        n_bytes = 0
        try:
            while n_bytes < _PIECE_BYTES and (part := next(decoded, None)) is not None:
                if part:  # skipped frames have no output
                    parts.append(part)
                    n_bytes += len(part)
        except BrokenStreamError as error:
            broken = error
        if not n_bytes and broken is None:
            return
        if n_bytes:
            yield Piece(offset, b"".join(parts), False, file.tell())
            offset += n_bytes
    yield Damage(offset, offset, broken.reason, broken.detail)


class _DecodedFile(io.RawIOBase):
    """A file object for the decompressed bytes of a file, which can be rewound."""

    def __init__(self, decode: Callable[[BinaryIO], Iterator[bytes]], file: BinaryIO) -> None:
        self._decode, self._file, self._at = decode, file, 0
        self.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if (offset, whence) == (0, os.SEEK_CUR):
            return self._at
        if (offset, whence) != (0, os.SEEK_SET):
            raise io.UnsupportedOperation("in a compressed file, you can only seek to the beginning")
        self._pieces = _streamed(self._decode, self._file, 0)
        self._left = memoryview(b"")
        self._at = 0
        return 0

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            piece = next(self._pieces, None)
            if isinstance(piece, Damage):
                raise OSError(piece.detail)
            self._left = memoryview(b"" if piece is None else piece.data)
        found = self._left[: len(buffer)]
        buffer[: len(found)] = found
        self._left = self._left[len(found) :]
        self._at += len(found)
        return len(found)


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
    """Returns the position of the first whole character after damage, which may have cut a character in two.

    It is the position from which most characters are ASCII, because tags, digits and spaces are frequent.
    """

    def n_ascii(start: int) -> int:
        return sum(character < "\x80" for character in data[start:].decode(encoding, "replace"))

    return max(range(len("<".encode(encoding))), key=n_ascii)


def read_up_to(file: BinaryIO, count: int) -> bytes:
    """Reads ``count`` bytes, or fewer at the end of the file. Repeats the call if a file returns fewer bytes before its
    end.
    """
    data = b""
    while len(data) < count and (piece := file.read(count - len(data))):
        data += piece
    return data


def _plain_tail(file: BinaryIO, size: int, count: int) -> tuple[bytes, str | None]:
    file.seek(max(0, size - count))
    return read_up_to(file, count), None


def _of_frames(suffix: str, form: type[ZstdFrame] | type[XzFrame]) -> Codec:
    decode = partial(decode_frames, form=form)
    return Codec(
        suffix=suffix,
        magics=form.magics,
        damage=form.damage,
        pieces=partial(_streamed, decode),
        opened=lambda file: io.BufferedReader(_DecodedFile(decode, file)),
    )


CODECS: dict[Compression, Codec] = {
    "bzip2": Codec(
        suffix=".bz2",
        magics=frozenset(b"BZh%d" % level for level in range(1, 10)),
        damage=bzip2.DAMAGED,
        pieces=_bzip2_pieces,
        opened=bz2.BZ2File,
        tail=bzip2.read_bzip2_tail,
    ),
    "gzip": Codec(
        suffix=".gz",
        magics=frozenset({gzip.MAGIC}),
        damage=gzip.DAMAGED,
        pieces=partial(_streamed, gzip.decode),
        opened=lambda file: python_gzip.GzipFile(fileobj=file),
    ),
    "zstd": _of_frames(".zst", ZstdFrame),
    "xz": _of_frames(".xz", XzFrame),
    "none": Codec(
        suffix="",
        magics=frozenset(),
        damage="",
        pieces=_plain_pieces,
        opened=lambda file: file,
        tail=_plain_tail,
    ),
}
"""The compressions of files, by name."""
DAMAGES = frozenset(codec.damage for codec in CODECS.values() if codec.damage)
"""Reasons of parts of files that cannot be decoded."""
SUFFIXES = tuple(codec.suffix for codec in CODECS.values())
"""Endings of file names, one for each compression; empty for uncompressed files."""


def without_suffix(name: str) -> str:
    """Returns the name of a file without the ending of its compression.

    >>> without_suffix("wiki-001.jsonl.zst"), without_suffix("wiki-001.jsonl")
    ('wiki-001.jsonl', 'wiki-001.jsonl')
    """
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if suffix and name.endswith(suffix)), name)
