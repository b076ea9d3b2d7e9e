"""Index files: uncompressed Arrow IPC, memory-mapped, with rows addressed by number.

In a release, ``checksums.arrow`` contains the CRC-32 of every ``BLOCK_BYTES`` of each index file. A block is compared
with its checksum when it is first accessed. Indexes of a running build, and releases from before 2026-12, have no
checksums.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from kbsource.columns import numbers
from kbsource.errors import DataError, SetupError
from kbsource.files import Folder, check_regular, completed_file
from kbsource.local_copies import local_copy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def local_index(folder: str) -> str:
    """Returns a local folder with the files of an index, or of definitions, which may be in a store."""
    return local_copy(Folder.of(folder), Folder.of(folder).files("*"))


CHECKSUMS_FILE = "checksums.arrow"
BLOCK_SHIFT = 16
BLOCK_BYTES = 1 << BLOCK_SHIFT
"""Size of the blocks that have a checksum: the amount that Linux maps at once when one byte is accessed. The comparison
of a block takes 15 µs.
"""
CHECKSUMS_SCHEMA = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("crc32", pa.list_(pa.field("item", pa.uint32(), nullable=False)), nullable=False),
    ],
    metadata={"format": "kbsource-index-checksums-1"},
)
# An Arrow file ends with its footer, the footer's length, and a magic. Source: Arrow's columnar format, IPC file
# format.
_LENGTH_BYTES, _MAGIC_BYTES = 4, 6


def summed_blocks(file: BinaryIO, checksums: list[int]) -> Iterator[bytes]:
    """Reads the blocks of a file, and appends their checksums to a list."""
    while block := file.read(BLOCK_BYTES):
        checksums.append(zlib.crc32(block))
        yield block


def checksums_file(checksums: Mapping[str, Sequence[int]]) -> bytes:
    """Returns the content of ``checksums.arrow``, from the block checksums of index files by name."""
    columns = zip((checksums, checksums.values()), CHECKSUMS_SCHEMA, strict=True)
    arrays = [pa.array(list(values), field.type) for values, field in columns]
    content = pa.BufferOutputStream()
    with pa.ipc.new_file(content, CHECKSUMS_SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=CHECKSUMS_SCHEMA))
    return bytes(content.getvalue())


class CheckedBlocks:
    """The blocks of a mapped file, each of which is compared with its checksum once."""

    __slots__ = ("_checksums", "_content", "_path", "seen")

    def __init__(self, path: str, content: memoryview, checksums: memoryview) -> None:
        self._path, self._content, self._checksums = path, content, checksums
        self.seen = bytearray(-(-len(content) // BLOCK_BYTES))  #: by block number: 1 if the block was compared
        if len(self.seen) != len(checksums):
            raise self._damage(f"{len(content)} bytes, whose checksums differ")

    def see(self, start: int, end: int) -> None:
        """Compares the blocks that contain a range of bytes with their checksums.

        Raises:
            DataError: a block is damaged or changed.
        """
        for number in range(start >> BLOCK_SHIFT, (end + BLOCK_BYTES - 1) >> BLOCK_SHIFT):
            if not self.seen[number]:
                self.compare(number)

    def compare(self, number: int) -> None:
        """Compares a block, as ``see`` does."""
        start = number << BLOCK_SHIFT
        block = self._content[start : start + BLOCK_BYTES]
        if zlib.crc32(block) != self._checksums[number]:
            raise self._damage(f"bytes {start} to {start + len(block)} have another checksum")
        self.seen[number] = 1

    def _damage(self, seen: str) -> DataError:
        return DataError(
            f"{self._path} is damaged or changed ({seen}); fetch or make the release again, and check it with "
            "kbsource verify."
        )


class MappedNumbers:
    """Random access to a column of numbers of a mapped batch, by index from 0."""

    __slots__ = ("_blocks", "_start", "_values", "_width")

    def __init__(self, array: pa.Array, file: MappedFile) -> None:
        self._values = numbers(array)
        self._width = self._values.itemsize
        self._blocks = file.blocks
        self._start = file.place_of(array.buffers()[1]) + array.offset * self._width

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, i: int) -> int:
        blocks = self._blocks
        # A number never spans two blocks, because buffers begin at multiples of eight bytes.
        if blocks is not None and not blocks.seen[number := (self._start + i * self._width) >> BLOCK_SHIFT]:
            blocks.compare(number)
        return self._values[i]

    def part(self, start: int, end: int) -> memoryview:
        """Returns the numbers in [start, end)."""
        if self._blocks is not None:
            self._blocks.see(self._start + start * self._width, self._start + end * self._width)
        return self._values[start:end]

    def find(self, value: int) -> int:
        """Returns the index of the first number that is not less than the value, like ``bisect_left``. The numbers must
        be ascending.

        A damaged block could mislead the search, so the numbers before and after the result are checked.
        """
        values = self._values
        at = bisect_left(values, value)
        if self._blocks is not None and not (
            (at == 0 or self[at - 1] < value) and (at == len(values) or value <= self[at])
        ):
            at = bisect_left(self.part(0, len(values)), value)
        return at


class MappedStrings:
    """Random access to a column of strings of a mapped batch, directly from its buffers."""

    __slots__ = ("_blocks", "_data", "_offsets", "_starts", "_validity")

    def __init__(self, array: pa.Array, file: MappedFile) -> None:
        buffers = validity, offsets, data = array.buffers()
        self._validity = None if validity is None else memoryview(validity)
        self._offsets = memoryview(offsets).cast("B").cast("i")
        self._data = memoryview(b"" if data is None else data).cast("B")
        self._blocks, self._starts = file.blocks, [file.place_of(buffer) for buffer in buffers]

    def raw(self, i: int) -> bytes:
        offsets = self._offsets
        if self._blocks is not None:
            _, own, data = self._starts
            self._blocks.see(own + i * 4, own + i * 4 + 8)
            self._blocks.see(data + offsets[i], data + offsets[i + 1])
        return bytes(self._data[offsets[i] : offsets[i + 1]])

    def get(self, i: int) -> str | None:
        if self._validity is not None:
            if self._blocks is not None:
                self._blocks.see(self._starts[0] + (i >> 3), self._starts[0] + (i >> 3) + 1)
            if not self._validity[i >> 3] >> (i & 7) & 1:
                return None
        return str(self.raw(i), "utf-8")

    def text(self, i: int) -> str:
        return str(self.raw(i), "utf-8")


def title_keys(titles: pa.Array) -> npt.NDArray[np.uint64]:
    """Returns ``identity.title_hash`` of every title."""
    return digest_keys(titles.cast(pa.binary()).to_pylist())


def digest_keys(titles: Iterable[bytes]) -> npt.NDArray[np.uint64]:
    """Returns ``identity.title_hash`` of titles in UTF-8."""
    import numpy as np

    copy = hashlib.blake2b(digest_size=8).copy  # copying a hash object takes two thirds of the time of making one
    digests = []
    for title in titles:
        digest = copy()
        digest.update(title)
        digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)


def write_index_file(path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Writes an index file batch by batch, under a temporary name until it is complete."""
    with (
        completed_file(path) as temporary,
        pa.OSFile(temporary, "wb") as file,
        pa.ipc.new_file(file, schema) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)


def read_index_file(path: str) -> Iterator[pa.RecordBatch]:
    """Reads the batches of an index file in order. The file is not mapped, so it does not stay in memory."""
    with pa.OSFile(path, "rb") as file:
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(use_threads=False))
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


class MappedFile:
    """A memory-mapped index file. If it has checksums, the parts that locate its rows are verified on opening."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        """Opens a file and checks its format.

        Raises:
            SetupError: the file is missing, a pipe, damaged, or of another format or version.
        """
        try:
            check_regular(path)
            with open(path, "rb") as file:
                self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.content = pa.py_buffer(self.memory)
            self.blocks = _blocks(path, memoryview(self.memory))
            #: the batches as stored; only ``MappedNumbers``, ``MappedStrings`` and ``whole`` verify checksums
            self.batches = _batches(path, self.content, schema)
        except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError, as is the error for an empty file
            raise SetupError(f"{path}: not a readable index file ({error}); build the release again") from error
        if self.blocks is not None:
            end = 0
            for batch in self.batches:
                start, next_end = self._body(batch)
                self.blocks.see(end, start)
                end = next_end

    def place_of(self, buffer: pa.Buffer | None) -> int:
        """Returns the offset in the file at which a buffer of a batch begins; 0 if the buffer is empty."""
        return buffer.address - self.content.address if buffer else 0

    def whole(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches in order. All blocks of a batch are verified first.

        Raises:
            DataError: a block is damaged or changed.
        """
        for batch in self.batches:
            if self.blocks is not None:
                self.blocks.see(*self._body(batch))
            yield batch

    def _body(self, batch: pa.RecordBatch) -> tuple[int, int]:
        """Returns the range of bytes that contains the buffers of a batch."""
        buffers = [buffer for column in batch.columns for buffer in column.buffers() if buffer]
        places = [self.place_of(buffer) for buffer in buffers]
        ends = [place + buffer.size for place, buffer in zip(places, buffers, strict=True)]
        return min(places, default=0), max(ends, default=0)


def _blocks(path: str, content: memoryview) -> CheckedBlocks | None:
    """Returns the blocks of a file, and verifies those of its footer; None if the file has no checksums."""
    beside = os.path.join(os.path.dirname(path), CHECKSUMS_FILE)
    if not os.path.exists(beside):
        return None
    (batch,) = _batches(beside, pa.py_buffer(Folder.of(beside).read()), CHECKSUMS_SCHEMA)
    checksums = dict(zip(batch["file"].to_pylist(), batch["crc32"], strict=True)).get(os.path.basename(path))
    blocks = CheckedBlocks(path, content, memoryview(b"") if checksums is None else numbers(checksums.values))
    end = len(content) - _MAGIC_BYTES
    blocks.see(end - _LENGTH_BYTES, len(content))
    blocks.see(end - _LENGTH_BYTES - int.from_bytes(content[end - _LENGTH_BYTES : end], "little"), end)
    return blocks


def _batches(path: str, content: pa.Buffer, schema: pa.Schema) -> list[pa.RecordBatch]:
    reader = pa.ipc.open_file(content)
    if not reader.schema.equals(schema, check_metadata=True):
        found = (reader.schema.metadata or {}).get(b"format", b"none").decode("utf-8", "replace")
        wanted = schema.metadata[b"format"].decode()
        raise SetupError(f"{path}: index format {found!r}, this version reads {wanted!r}; build the release again")
    return [reader.get_batch(number) for number in range(reader.num_record_batches)]
