"""Input files that are hashed once, and then read as what they were: a release says which bytes it was made of.

A file is hashed as a whole, for the manifest, and in blocks. Whoever reads it afterwards, on whatever machine, reads
whole blocks and compares: so what is read is what was hashed, wherever a range begins and however far it looks ahead.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import orjson

from kbsource.dump.compressed.streams import read_up_to
from kbsource.errors import DataError
from kbsource.files import ReadableStorage, Storage, atomic_write

BLOCK_BYTES = 1 << 20
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class HashedFile:
    """What a file held when it was hashed.

    Attributes:
        n_bytes: its size.
        sha256: of all of it, in hex.
        blocks: the first 16 bytes of the sha256 of each block of ``BLOCK_BYTES``, one after the other.
    """

    n_bytes: int
    sha256: str
    blocks: bytes


def hash_file(
    path: str,
    storage: ReadableStorage,
    *,
    further: Iterable[Any] = (),
    on_bytes: Callable[[int], None] | None = None,
) -> HashedFile:
    """Reads a file once and gives its hashes.

    Args:
        path: of the file.
        storage: of the path.
        further: other hashes, of ``hashlib``, that are to be fed with the file too.
        on_bytes: told how many further bytes were hashed.
    """
    whole, n_bytes, blocks, further = hashlib.sha256(), 0, bytearray(), tuple(further)
    with storage.open_read(path) as file:
        while block := read_up_to(file, BLOCK_BYTES):
            whole.update(block)
            for sample in further:
                sample.update(block)
            blocks += _digest(block)
            n_bytes += len(block)
            if on_bytes is not None:
                on_bytes(len(block))
    return HashedFile(n_bytes, whole.hexdigest(), bytes(blocks))


def write_hashes(hashed: Mapping[str, HashedFile], path: str, storage: Storage) -> None:
    """Writes the hashes of files, by the path of each, for those who read the files."""
    value = {
        name: {"n_bytes": one.n_bytes, "sha256": one.sha256, "blocks": base64.b64encode(one.blocks).decode("ascii")}
        for name, one in hashed.items()
    }
    with atomic_write(storage, path) as file:
        file.write(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def read_hashes(path: str, storage: ReadableStorage) -> dict[str, HashedFile]:
    """Gives back what ``write_hashes`` wrote."""
    with storage.open_read(path) as file:
        value = orjson.loads(file.read())
    return {name: HashedFile(**{**one, "blocks": base64.b64decode(one["blocks"])}) for name, one in value.items()}


class CheckedStorage:
    """Hashed files, to be read as what they were: a block that is another one now raises a DataError.

    Args:
        storage: of the files.
        hashed: by path; no other file can be read.
    """

    def __init__(self, storage: ReadableStorage, hashed: Mapping[str, HashedFile]) -> None:
        self._storage, self._hashed = storage, hashed

    def open_read(self, path: str) -> BinaryIO:
        """Gives the file, with the size that it had."""
        checked = _CheckedFile(self._storage.open_read(path), self._hashed[path], path)
        return cast(BinaryIO, io.BufferedReader(checked))

    def size(self, path: str) -> int:
        """Gives the size that the file had."""
        return self._hashed[path].n_bytes

    def exists(self, path: str) -> bool:
        """Says whether a file can be read."""
        return path in self._hashed


class _CheckedFile(io.RawIOBase):
    """Memory: one block."""

    def __init__(self, file: BinaryIO, hashed: HashedFile, path: str) -> None:
        self._file, self._hashed, self._path = file, hashed, path
        self._position = 0
        self._held: tuple[int, memoryview] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._hashed.n_bytes}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        number, start = divmod(self._position, BLOCK_BYTES)
        if self._position >= self._hashed.n_bytes:
            return 0
        data = self._block(number)[start : start + len(buffer)]
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _block(self, number: int) -> memoryview:
        if self._held is None or self._held[0] != number:
            self._file.seek(number * BLOCK_BYTES)
            block = read_up_to(self._file, BLOCK_BYTES)
            start = number * _DIGEST_BYTES
            if _digest(block) != self._hashed.blocks[start : start + _DIGEST_BYTES]:
                raise DataError(
                    f"{self._path} changed while it was read, so nothing was released. Run the command again once "
                    "nothing writes to it."
                )
            self._held = number, memoryview(block)
        return self._held[1]

    def close(self) -> None:
        self._file.close()
        super().close()


def _digest(block: bytes) -> bytes:
    return hashlib.sha256(block).digest()[:_DIGEST_BYTES]
