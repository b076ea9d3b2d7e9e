"""Hashes of a job's input files, worked out while its tasks read them."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from kbsource.errors import DataError
from kbsource.files import Storage, base_name
from kbsource.release.manifest import InputFile
from pipelines.progress import Done
from pipelines.storage import is_local

_BLOCK_BYTES = 1 << 17  # larger ones stay with the thread's allocator


class InputHashes:
    """Hashes files in a thread of its own. A context manager: the thread ends with it.

    Make it before anything reads the files, and ask for ``results`` after everything has: files that are then what they
    were have the hashes of the bytes that were read.

    Args:
        paths: files, in the order of the results.
        storage: where they are.
    """

    def __init__(self, paths: Sequence[str], storage: Storage) -> None:
        self._paths, self._storage = paths, storage
        self._states = [_state(path, storage) for path in paths]
        self._n_bytes = 0
        self._is_over = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self._files: list[Future[InputFile]] = []

    def __enter__(self) -> InputHashes:
        self._files = [self._thread.submit(self._hash, path) for path in self._paths]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.shutdown()

    def done(self) -> Done:
        """Says how far it has come."""
        return Done(self._n_bytes, sum(n_bytes for n_bytes, *_ in self._states))

    def results(self) -> tuple[InputFile, ...]:
        """Gives the files with their hashes, once all are hashed.

        Raises:
            DataError: a file changed since this was made.
            OSError: a file could not be read.
        """
        files = tuple(file.result() for file in self._files)
        for path, state, file in zip(self._paths, self._states, files, strict=True):
            if _state(path, self._storage) != state or file.bytes != state[0]:
                raise DataError(
                    f"{path} changed while it was read, so nothing was released. Run the command again once nothing "
                    "writes to it."
                )
        return files

    def _hash(self, path: str) -> InputFile:
        digest, n_bytes = hashlib.sha256(), 0
        with self._storage.open_read(path) as file:
            while not self._is_over.is_set() and (block := file.read(_BLOCK_BYTES)):
                digest.update(block)
                n_bytes += len(block)
                self._n_bytes += len(block)
        return InputFile(base_name(path), n_bytes, digest.hexdigest())


def _state(path: str, storage: Storage) -> tuple[int, ...]:
    """Gives the size of a file, and of a local one what else changes when it is written to or replaced."""
    if not is_local(path):
        return (storage.size(path),)
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino
