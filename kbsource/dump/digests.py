"""Hashes input files once, and verifies them whenever they are read, so that a manifest lists exactly the bytes from
which a release was made.

A file is hashed as a whole, for the manifest, and in blocks. Every later reader, on any machine, reads whole blocks and
compares their hashes. So only bytes that were hashed are used, wherever a range begins and however far it is read.

This module also reads the lists of sizes and checksums that are published in the same folder as the files. Source:
https://dumps.wikimedia.org/<wiki>/<date>/ (md5sums, sha1sums, dumpstatus.json) and the Content File Exports
(SHA256SUMS), as published in 2026.
"""

from __future__ import annotations

import hashlib
import io
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

import msgspec

from kbsource.dump.compressed.streams import read_up_to
from kbsource.dump.status import STATUS, DumpStatus, read_status
from kbsource.errors import DataError
from kbsource.files import Folder, base_name, join
from kbsource.ranges import RangesFile

BLOCK_BYTES = 1 << 20
_DIGEST_BYTES = 16
_LINE = re.compile(r"\A([0-9a-fA-F]{32,128})\s+\*?(.+?)\s*\Z")
_DUMP_PREFIX = re.compile(r"\A[a-z0-9_]+-(?:\d{8}|latest|\d{4}-\d\d-\d\d)(?=-)")
_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
_LISTS = ("md5sums.txt", "sha1sums.txt", "sha256sums.txt", "MD5SUMS", "SHA1SUMS", "SHA256SUMS")
_OWN_LISTS = (".md5", ".sha1", ".sha256")


@dataclass(frozen=True, slots=True)
class HashedFile:
    """The size and hashes of a file."""

    n_bytes: int  #: size in bytes
    sha256: str  #: of the whole file, in hex
    blocks: bytes  #: the first 16 bytes of the sha256 of each block of ``BLOCK_BYTES``, concatenated


def hash_file(path: str, *, further: Iterable[Any] = (), on_bytes: Callable[[int], None] | None = None) -> HashedFile:
    """Returns the hashes of a file, which is read once.

    ``further`` are additional ``hashlib`` objects to update. ``on_bytes`` receives the number of bytes hashed since its
    last call.
    """
    whole, n_bytes, blocks, further = hashlib.sha256(), 0, bytearray(), tuple(further)
    with Folder.of(path).open() as file:
        while block := read_up_to(file, BLOCK_BYTES):
            whole.update(block)
            for sample in further:
                sample.update(block)
            blocks += _digest(block)
            n_bytes += len(block)
            if on_bytes is not None:
                on_bytes(len(block))
    return HashedFile(n_bytes, whole.hexdigest(), bytes(blocks))


def write_hashes(hashed: Mapping[str, HashedFile], path: str) -> None:
    """Writes the hashes of files, keyed by path, for the processes that read the files."""
    with Folder.of(path).create() as file:
        file.write(msgspec.json.encode(dict(hashed), order="sorted"))


def read_hashes(path: str) -> dict[str, HashedFile]:
    """Returns the hashes that ``write_hashes`` wrote."""
    return msgspec.json.decode(Folder.of(path).read(), type=dict[str, HashedFile])


@dataclass(frozen=True)
class CheckedFiles:
    """Opens files by path. If a block of a file has changed since the file was hashed, reading it raises a
    DataError.
    """

    hashed: Mapping[str, HashedFile]  #: the files that can be opened, by path

    def __call__(self, path: str) -> Folder:
        """Opens a file. Its size is the size that was hashed."""
        given = Folder.of(path)
        return _CheckedFile(given.url, given.options, hashed=self.hashed[path])


@dataclass(frozen=True, order=True)
class _CheckedFile(Folder):
    hashed: HashedFile = field(kw_only=True)

    def open(self, name: str = "") -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_CheckedBytes(super().open(), self.hashed, self.url)))

    def size(self, name: str = "") -> int:
        return self.hashed.n_bytes


class _CheckedBytes(RangesFile):
    """A file whose blocks are verified when they are read. Memory: one block."""

    def __init__(self, file: BinaryIO, hashed: HashedFile, path: str) -> None:
        super().__init__(hashed.n_bytes, self._range)
        self._file, self._hashed, self._path = file, hashed, path
        self._held: tuple[int, memoryview] | None = None

    def _range(self, start: int, end: int) -> memoryview:
        number, first = divmod(start, BLOCK_BYTES)
        return self._block(number)[first : first + end - start]

    def _block(self, number: int) -> memoryview:
        if self._held is None or self._held[0] != number:
            self._file.seek(number * BLOCK_BYTES)
            block = read_up_to(self._file, BLOCK_BYTES)
            start = number * _DIGEST_BYTES
            if _digest(block) != self._hashed.blocks[start : start + _DIGEST_BYTES]:
                raise DataError(
                    f"{self._path} changed while it was being read, so no release was made. Run the command again when "
                    f"no other program writes to the file."
                )
            self._held = number, memoryview(block)
        return self._held[1]

    def close(self) -> None:
        self._file.close()
        super().close()


def _digest(block: bytes) -> bytes:
    return hashlib.sha256(block).digest()[:_DIGEST_BYTES]


@dataclass(slots=True)
class PublishedFile:
    """The published facts about one file."""

    n_bytes: int | None = None  #: size; None if not published
    #: (algorithm, hex digest, name of the list that contains it)
    digests: list[tuple[str, str, str]] = field(default_factory=list)
    unfinished_job: str = ""  #: the job of dumpstatus.json that writes the file, if it is not finished; otherwise empty


def find_published(path: str) -> PublishedFile:
    """Returns the published facts about a file, from the lists in its folder.

    Raises:
        SetupError: a list cannot be read.
    """
    folder, name = posixpath.dirname(path), base_name(path)
    prefix = _DUMP_PREFIX.match(name)
    lists = [*_LISTS, *(name + ending for ending in _OWN_LISTS)]
    if prefix:
        lists += [f"{prefix[0]}-md5sums.txt", f"{prefix[0]}-sha1sums.txt"]
    published = PublishedFile()
    for list_name in lists:
        list_path = join(folder, list_name)
        if not Folder.of(list_path).exists():
            continue
        for line in Folder.of(list_path).read().decode("utf-8", "replace").splitlines():
            found = _LINE.match(line)
            if found and base_name(found[2]) == name and len(found[1]) in _ALGORITHMS:
                published.digests.append((_ALGORITHMS[len(found[1])], found[1].lower(), list_name))
    if (status := read_status(folder)) is not None:
        _add_status(published, status, name)
    return published


def _add_status(published: PublishedFile, status: DumpStatus, name: str) -> None:
    for job_name, job in status.jobs.items():
        if (facts := job.files.get(name)) is None:
            continue
        published.n_bytes = facts.size if facts.size is not None else published.n_bytes
        for algorithm, digest in (("md5", facts.md5), ("sha1", facts.sha1)):
            if digest is not None:
                published.digests.append((algorithm, digest.lower(), STATUS))
        if job.status != "done":
            published.unfinished_job = f"{job_name}: {job.status}"
