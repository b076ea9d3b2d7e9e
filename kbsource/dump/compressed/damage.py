"""The description of damage in a compressed file."""

from __future__ import annotations

from dataclasses import dataclass

TRAILING_GARBAGE = "trailing_garbage"
TRUNCATED = "truncated"


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a file that could not be decoded. The bytes before and after it are not contiguous.

    Attributes:
        offset: byte of the file at which the damage begins. If a file can only be read from its beginning, it is
            instead the number of decompressed bytes before the damage.
        owner: offset of the block that the damage belongs to, or of the block before it. The reader of that block
            reports the damage.
        reason: the ``damage`` of the file's ``Codec``, ``trailing_garbage`` (bytes after the end of a stream that are
            not a stream) or ``truncated`` (the file ends inside a stream).
        detail: description for people.
        n_bytes: number of unreadable bytes of the file that may have contained data.
    """

    offset: int
    owner: int
    reason: str
    detail: str
    n_bytes: int = 0


class BrokenStreamError(Exception):
    """The rest of a file cannot be decoded. ``reason`` and ``detail`` are described in ``Damage``."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail
