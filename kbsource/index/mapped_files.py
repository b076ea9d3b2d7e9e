"""Files of an index: Arrow IPC, uncompressed, mapped into memory, each row addressed by its number."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kbsource.errors import SetupError
from kbsource.files import Folder, check_regular

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def local_index(folder: str) -> str:
    """A local folder with the files of an index, or of definitions, that may lie in a store."""
    return Folder.of(folder).local_copy(Folder.of(folder).files("*"))


class MappedStrings:
    """Random access to one string column of a mapped batch, straight from its buffers."""

    __slots__ = ("_data", "_offsets", "_validity")

    def __init__(self, array: pa.Array) -> None:
        validity, offsets, data = array.buffers()
        self._validity = None if validity is None else memoryview(validity)
        self._offsets = memoryview(offsets).cast("B").cast("i")
        self._data = memoryview(b"" if data is None else data).cast("B")

    def raw(self, i: int) -> bytes:
        return bytes(self._data[self._offsets[i] : self._offsets[i + 1]])

    def get(self, i: int) -> str | None:
        if self._validity is not None and not self._validity[i >> 3] >> (i & 7) & 1:
            return None
        return str(self.raw(i), "utf-8")

    def text(self, i: int) -> str:
        return str(self.raw(i), "utf-8")


def title_keys(titles: pa.Array) -> npt.NDArray[np.uint64]:
    """Gives ``identity.title_hash`` of every title."""
    import numpy as np

    blake2b = hashlib.blake2b
    digests = b"".join([blake2b(raw, digest_size=8).digest() for raw in titles.cast(pa.binary()).to_pylist()])
    return np.frombuffer(digests, ">u8").astype(np.uint64)


def write_index_file(path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Writes an index file batch by batch, under a temporary name until it is whole."""
    with pa.OSFile(f"{path}.tmp", "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    os.replace(f"{path}.tmp", path)


def read_index_file(path: str) -> Iterator[pa.RecordBatch]:
    """The batches of an index file in order; they are read, where a mapped file would stay in memory."""
    with pa.OSFile(path, "rb") as file:
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(use_threads=False))
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def open_mapped(path: str, schema: pa.Schema) -> pa.ipc.RecordBatchFileReader:
    """Opens a memory-mapped Arrow file and checks that it is what its name says.

    Raises:
        SetupError: the file is missing, a pipe, damaged, or of another format or version.
    """
    try:
        check_regular(path)
        reader = pa.ipc.open_file(pa.memory_map(path, "rb"))
    except (OSError, pa.ArrowInvalid) as error:
        raise SetupError(f"{path}: not a readable index file ({error}); build the release again") from error
    if not reader.schema.equals(schema, check_metadata=True):
        found = (reader.schema.metadata or {}).get(b"format", b"none").decode("utf-8", "replace")
        wanted = schema.metadata[b"format"].decode()
        raise SetupError(f"{path}: index format {found!r}, this version reads {wanted!r}; build the release again")
    return reader
