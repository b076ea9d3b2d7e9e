"""Files through one small protocol, so that the same code reads a laptop's disk and a cloud bucket.

``LocalStorage`` is the plain file system. ``pipelines.stores.storage`` has the same protocol on Beam's file systems.
"""

from __future__ import annotations

import glob as globbing
import hashlib
import os
import posixpath
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

from kbsource.errors import SetupError

CHUNK_BYTES = 1 << 20


class ReadableStorage(Protocol):
    """What reading a file takes. Paths are strings with forward slashes."""

    def open_read(self, path: str) -> BinaryIO:
        """Gives the stored bytes as a seekable binary file; nothing is decompressed."""
        ...

    def size(self, path: str) -> int:
        """Gives the size in bytes."""
        ...

    def exists(self, path: str) -> bool:
        """Says whether a file or folder is there."""
        ...


class Storage(ReadableStorage, Protocol):
    """What the build needs of a file system."""

    def open_ranges(self, path: str) -> BinaryIO:
        """Gives what ``open_read`` does, to be read here and there: little is read ahead of what is asked for."""
        ...

    def local_copy(self, folder: str, names: Sequence[str], *, version: str = "") -> str:
        """Gives a local folder that holds these files of a folder, to be memory-mapped; not to be written to.

        A local folder is given as it is. What is copied belongs to this process, and to others of the machine that
        ask for the same, until they end.

        Args:
            folder: where the files lie.
            names: of the files in it.
            version: tells files from others that lay under the same names, like a hash out of their manifest.

        Raises:
            DataError: a file is missing.
        """
        ...

    def open_write(self, path: str) -> BinaryIO:
        """Gives a binary file for writing; parent folders are made."""
        ...

    def glob(self, pattern: str) -> list[str]:
        """Gives the files that match, sorted."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Moves a file, replacing the target."""
        ...

    def delete_tree(self, path: str) -> None:
        """Removes a file or folder with all it holds; a missing one is no error."""
        ...


class LocalStorage:
    """The local file system.

    Args:
        maps_tables: tables that are read here and there are memory-mapped, which is fastest; else what was read of
            them does not stay in this process's memory.
    """

    def __init__(self, *, maps_tables: bool = True) -> None:
        self.maps_tables = maps_tables

    def open_read(self, path: str) -> BinaryIO:
        check_regular(path)
        return open(path, "rb")

    def open_ranges(self, path: str) -> BinaryIO:
        return self.open_read(path)

    def local_copy(self, folder: str, names: Sequence[str], *, version: str = "") -> str:
        return folder

    def open_write(self, path: str) -> BinaryIO:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        return open(path, "wb")

    def size(self, path: str) -> int:
        return os.path.getsize(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def glob(self, pattern: str) -> list[str]:
        return sorted(p for p in globbing.glob(pattern, recursive=True) if os.path.isfile(p))

    def rename(self, source: str, target: str) -> None:
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        os.replace(source, target)

    def delete_tree(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)


def check_regular(path: str) -> None:
    """Raises where a path cannot be read as a file; every file is asked before it is opened or mapped.

    Raises:
        SetupError: it is a folder, or a pipe: to open that could take for ever, and it can be read once only.
        FileNotFoundError: there is none.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise SetupError(f"{path} is a folder; name a file.")
    if stat.S_ISFIFO(mode):
        raise SetupError(f"{path} is a pipe; write what comes out of it to a file, and name that.")


def is_local(path: str) -> bool:
    """Says whether a path is one of the local file system: it has no ``scheme://``."""
    return "://" not in path


def storage_or_local(path: str, storage: Storage | None) -> Storage:
    """Gives the storage of a path: the one that is given, else the local file system.

    Raises:
        SetupError: none is given and the path is remote.
    """
    if storage is None and not is_local(path):
        raise SetupError(
            f"{path}: a remote path, and no storage was given that reads it; see pipelines.stores.storage.storage_for."
        )
    return LocalStorage() if storage is None else storage


def join(*parts: str) -> str:
    """Gives the path with forward slashes, for local paths and bucket URLs alike."""
    return posixpath.join(*parts)


def base_name(path: str) -> str:
    """Gives the last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1]


@contextmanager
def atomic_write(storage: Storage, path: str) -> Iterator[BinaryIO]:
    """Opens ``path`` for writing under a temporary name and renames it once all was written.

    When the body fails the temporary file is removed and ``path`` stays as it was.
    """
    temporary = f"{path}.tmp"
    file = storage.open_write(temporary)
    try:
        yield file
        file.close()
        storage.rename(temporary, path)
    except BaseException:
        file.close()
        storage.delete_tree(temporary)
        raise


class HashingWriter:
    """A write-only binary file that counts and hashes what passes through it; pyarrow accepts it as a sink."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._sha256 = hashlib.sha256()
        self.n_bytes = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        view = memoryview(data)
        self._sha256.update(view)
        self._sink.write(view)
        self.n_bytes += view.nbytes
        return view.nbytes

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return self.n_bytes

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        self.closed = True

    def hexdigest(self) -> str:
        """Gives the sha256 of everything written so far."""
        return self._sha256.hexdigest()


def sha256_of(storage: Storage, path: str) -> str:
    """Gives the hex sha256 of a stored file."""
    digest = hashlib.sha256()
    with storage.open_read(path) as file:
        while block := file.read(CHUNK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def write_json(storage: Storage, path: str, value: object) -> None:
    """Writes JSON with sorted keys under a temporary name."""
    import orjson  # takes a while to load, and few readers need it

    with atomic_write(storage, path) as file:
        file.write(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def read_json(storage: Storage, path: str) -> Any:
    """Reads a JSON file."""
    import orjson

    with storage.open_read(path) as file:
        return orjson.loads(file.read())
