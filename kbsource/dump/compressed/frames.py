"""Decodes Zstandard and xz files from their beginning. Both are sequences of frames.

A small file may demand a window of gigabytes, or expand to gigabytes of zeros, so memory is limited for both cases.
"""

from __future__ import annotations

import lzma
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar

from kbsource.dump.compressed.damage import TRAILING_GARBAGE, TRUNCATED, BrokenStreamError
from kbsource.errors import SetupError

_PIECE_BYTES = 1 << 18


class FrameDecoder(ABC):
    """Decodes one frame of a file."""

    name: ClassVar[str]  #: name of the format
    damage: ClassVar[str]  #: reason slug of a frame that cannot be decoded
    magics: ClassVar[frozenset[bytes]]  #: the first bytes of frames; all have the same length
    step_bytes: ClassVar[int]  #: number of bytes read at once
    no_memory: ClassVar[tuple[str, str]]
    """The message for a frame that needs too much memory, and the words by which the decoder's own message is
    recognised.
    """

    def __init__(self, decoder: Any, error: type[Exception]) -> None:
        self._decoder, self._error = decoder, error

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yields the content of the next bytes of the frame.

        Raises:
            BrokenStreamError: the rest cannot be decoded, or decoding it needs too much memory.
        """
        try:
            yield from self._steps(data)
        except self._error as error:
            sign, remedy = self.no_memory
            why = remedy if sign in str(error) else str(error)
            raise BrokenStreamError(self.damage, f"{why}; the rest cannot be decoded") from error

    def rest(self) -> bytes | None:
        """Returns the bytes after the frame; None until the frame has ended."""
        return self._decoder.unused_data if self._decoder.eof else None

    @abstractmethod
    def _steps(self, data: bytes) -> Iterator[bytes]:
        """Yields the content of the next bytes, in portions of limited size."""


class ZstdFrame(FrameDecoder):
    """A frame of Zstandard. Source: RFC 8878."""

    name = "Zstandard"
    damage = "damaged_zstd"
    # The magics of frames with data, and of frames that decoders skip.
    magics = frozenset({b"\x28\xb5\x2f\xfd", *(bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60))})
    # A block of 128 KiB takes at least 4 bytes, so a step decodes at most 32 MiB.
    step_bytes = 1 << 10
    no_memory = (
        "too much memory",
        "decompression needs more than 128 MiB of memory; recompress the file with zstd -dc --long=31 FILE | bzip2 > "
        "FILE.bz2",
    )
    _window_bytes = 1 << 27  # the default limit of zstd

    def __init__(self) -> None:
        try:
            import zstandard  # imported only if such a file is read
        except ModuleNotFoundError as error:
            raise SetupError(
                "Reading a Zstandard file requires the package zstandard, which is not installed: pip install "
                "'kbsource[build]'"
            ) from error
        decompressor = zstandard.ZstdDecompressor(max_window_size=self._window_bytes)
        super().__init__(decompressor.decompressobj(), zstandard.ZstdError)

    def _steps(self, data: bytes) -> Iterator[bytes]:
        yield self._decoder.decompress(data)


class XzFrame(FrameDecoder):
    """A stream of xz."""

    name = "xz"
    damage = "damaged_xz"
    magics = frozenset({b"\xfd7zXZ\x00"})
    step_bytes = 1 << 16
    no_memory = (
        "Memory usage limit",
        "decompression needs more than 192 MiB of memory; recompress the file with xz -dc FILE | bzip2 > FILE.bz2",
    )
    _memory_bytes = 192 << 20  # files written by xz -9 need 65 MiB

    def __init__(self) -> None:
        super().__init__(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=self._memory_bytes), lzma.LZMAError)

    def _steps(self, data: bytes) -> Iterator[bytes]:
        yield self._decoder.decompress(data, _PIECE_BYTES)
        while not (self._decoder.eof or self._decoder.needs_input):
            yield self._decoder.decompress(b"", _PIECE_BYTES)


def decode_frames(file: BinaryIO, form: type[ZstdFrame] | type[XzFrame]) -> Iterator[bytes]:
    """Yields the content of all frames of a file. Zeros after frames are skipped.

    Raises:
        BrokenStreamError: the rest cannot be decoded: ``damaged_zstd``, ``damaged_xz``, ``trailing_garbage`` or
            ``truncated``.
        SetupError: the package for the format is not installed.
    """
    frame: FrameDecoder | None = None
    n_magic = max(map(len, form.magics))
    garbage = BrokenStreamError(TRAILING_GARBAGE, f"the bytes after the data are not {form.name} data")
    begin = b""  # the first bytes of the next frame, until they are enough for its magic
    while data := file.read(form.step_bytes):
        while data:
            if frame is None:
                begin = (begin + data).lstrip(b"\0")
                if len(begin) < n_magic:
                    break
                data, begin = begin, b""
                if data[:n_magic] not in form.magics:
                    raise garbage
                frame = form()
            yield from frame.decode(data)
            rest = frame.rest()
            data, frame = (b"", frame) if rest is None else (rest, None)
    if frame is not None or any(magic.startswith(begin) for magic in form.magics if begin):
        raise BrokenStreamError(TRUNCATED, f"the file ends inside {form.name} data")
    if begin:
        raise garbage
