"""Damage in a compressed file: what is wrong, and where."""

from __future__ import annotations

from dataclasses import dataclass

TRAILING_GARBAGE = "trailing_garbage"
TRUNCATED = "truncated"


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of the file that could not be decoded; the bytes before and after it are not contiguous.

    Attributes:
        offset: byte of the file at which the damage begins. For a compression that can only be read from the beginning
            of the file, it is the number of decompressed bytes before the damage.
        owner: offset of the block that the damage belongs to, or of the block before it. The reader of that block
            reports the damage.
        reason: the ``damage`` of the file's ``Codec``, ``trailing_garbage`` (bytes after the end of a stream that are
            not a stream) or ``truncated`` (the file ends inside a stream).
        detail: what was found.
        n_bytes: number of unreadable bytes of the file that may have contained data.
    """

    offset: int
    owner: int
    reason: str
    detail: str
    n_bytes: int = 0


class BrokenStreamError(Exception):
    """The rest of a file cannot be decoded. ``reason`` and ``detail`` are as in ``Damage``."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail
