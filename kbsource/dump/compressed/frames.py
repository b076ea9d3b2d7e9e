"""Decodes Zstandard and xz files, which are sequences of frames, from their beginning.

A small file may claim a window of gigabytes, or decode to gigabytes of zeros; both are bounded.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar, Protocol

from kbsource.dump.compressed.damage import TRAILING_GARBAGE, TRUNCATED, BrokenStreamError
from kbsource.errors import SetupError

_PIECE_BYTES = 1 << 18


class FrameDecoder(Protocol):
    """Decodes one frame of a file."""

    name: ClassVar[str]  #: name of the format
    magics: ClassVar[frozenset[bytes]]  #: how frames begin; all have the same length
    step_bytes: ClassVar[int]  #: number of bytes read at once

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yields the content of the next bytes of the frame.

        Raises:
            BrokenStreamError: the rest cannot be decoded, or only with too much memory.
        """
        ...

    def rest(self) -> bytes | None:
        """Returns the bytes after the frame; None as long as it has not ended."""
        ...


class ZstdFrame:
    """A frame of Zstandard. Source: RFC 8878."""

    name: ClassVar[str] = "Zstandard"
    # There are frames with data, and frames that decoders skip.
    magics: ClassVar[frozenset[bytes]] = frozenset(
        {b"\x28\xb5\x2f\xfd", *(bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60))}
    )
    # A block of 128 KiB takes at least 4 bytes, so that a step decodes 32 MiB at most.
    step_bytes: ClassVar[int] = 1 << 10
    damage = "damaged_zstd"
    _window_bytes = 1 << 27  # as much as zstd takes without --long

    def __init__(self) -> None:
        try:
            import zstandard  # only for such files
        except ModuleNotFoundError as error:
            raise SetupError(
                "Zstandard files are read by zstandard, which is not installed: pip install 'kbsource[build]'"
            ) from error
        self._error = zstandard.ZstdError
        self._decoder: Any = zstandard.ZstdDecompressor(max_window_size=self._window_bytes).decompressobj()

    def decode(self, data: bytes) -> Iterator[bytes]:
        try:
            yield self._decoder.decompress(data)
        except self._error as error:
            is_large = "too much memory" in str(error)
            why = _too_large("128 MiB", "zstd -dc --long=31") if is_large else str(error)
            raise BrokenStreamError(self.damage, f"{why}; what follows cannot be decoded") from error

    def rest(self) -> bytes | None:
        return self._decoder.unused_data if self._decoder.eof else None


class XzFrame:
    """A stream of xz."""

    name: ClassVar[str] = "xz"
    magics: ClassVar[frozenset[bytes]] = frozenset({b"\xfd7zXZ\x00"})
    step_bytes: ClassVar[int] = 1 << 16
    damage = "damaged_xz"
    _memory_bytes = 192 << 20  # what xz -9 wrote takes 65 MiB

    def __init__(self) -> None:
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=self._memory_bytes)

    def decode(self, data: bytes) -> Iterator[bytes]:
        try:
            yield self._decoder.decompress(data, _PIECE_BYTES)
            while not (self._decoder.eof or self._decoder.needs_input):
                yield self._decoder.decompress(b"", _PIECE_BYTES)
        except lzma.LZMAError as error:
            is_large = "Memory usage limit" in str(error)
            why = _too_large("192 MiB", "xz -dc") if is_large else str(error)
            raise BrokenStreamError(self.damage, f"{why}; what follows cannot be decoded") from error

    def rest(self) -> bytes | None:
        return self._decoder.unused_data if self._decoder.eof else None


def decode_frames(file: BinaryIO, form: type[FrameDecoder]) -> Iterator[bytes]:
    """Yields the content of all frames of a file. Zeros between frames, and after them, are skipped.

    Raises:
        BrokenStreamError: the rest cannot be decoded: ``damaged_zstd``, ``damaged_xz``, ``trailing_garbage`` or
            ``truncated``.
        SetupError: the package for the format is not installed.
    """
    frame: FrameDecoder | None = None
    n_magic = max(map(len, form.magics))
    begin = b""  # of the next frame, while it is shorter than a magic
    while data := file.read(form.step_bytes):
        while data:
            if frame is None:
                begin = (begin + data).lstrip(b"\0")
                if len(begin) < n_magic:
                    break
                data, begin = begin, b""
                if data[:n_magic] not in form.magics:
                    raise BrokenStreamError(TRAILING_GARBAGE, f"the bytes after the data are not {form.name}")
                frame = form()
            yield from frame.decode(data)
            rest = frame.rest()
            data, frame = (b"", frame) if rest is None else (rest, None)
    if frame is not None or begin:
        raise BrokenStreamError(TRUNCATED, f"the file ends inside {form.name} data")


def _too_large(limit: str, command: str) -> str:
    return f"it takes more than {limit} of memory, so write it anew with {command} FILE | bzip2 > FILE.bz2"
