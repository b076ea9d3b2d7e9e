"""Copies of remote files on this machine: one for all of its processes, removed by the last that uses it.

A copy is a folder beside other temporary ones (``TMPDIR``), named by user and by what it is a copy of::

    kbsource-copy-1000-3f2a.../    lock        held together by all processes that use the copy
                                   copying     held alone by the one that copies
                                   titles.arrow, ...    whole as soon as they are there

The system takes its locks from a process that ends, however it ends. Whoever gets the first one alone may remove the
copy: a process tries that with its own at its end, and with those of killed processes before it makes another.
"""

from __future__ import annotations

import atexit
import fcntl
import glob
import hashlib
import json
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache

from kbsource.errors import DataError, SetupError
from kbsource.files import CHUNK_BYTES, Folder

_LOCK, _COPYING = "lock", "copying"


def local_copy(folder: Folder, names: Sequence[str], *, version: str = "") -> str:
    """A local folder that holds these files of a remote folder; not to be written to.

    It stays until this process ends, or until ``release_copies``.

    Args:
        version: tells files from others that lay under the same names; without it their sizes do.

    Raises:
        DataError: a file is missing, or changed while it was copied.
        SetupError: somebody else made the folder.
    """
    known_by = version or [(name, _size(folder / name)) for name in sorted(names)]
    content = json.dumps([folder.url, folder.options, known_by])
    local = _prefix() + hashlib.sha256(content.encode()).hexdigest()[:32]
    _copies(os.getpid()).use(local)
    with _copying(local):
        for name in names:
            target = os.path.join(local, name)
            if not os.path.exists(target):
                _copy(folder / name, target)
    return local


def release_copies() -> None:
    """Lets go of all copies that this process uses, and removes those that no other one does."""
    _copies(os.getpid()).release()


class _Copies:
    """What a process uses, and the locks that say so."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._locks: dict[str, int] = {}
        self._guard = threading.Lock()
        atexit.register(self.release)

    def use(self, local: str) -> None:
        with self._guard:
            if local not in self._locks:
                for other in glob.glob(glob.escape(_prefix()) + "*"):
                    if other not in self._locks:
                        _remove_left_behind(other)
                self._locks[local] = _use(local)

    def release(self) -> None:
        if os.getpid() != self._pid:
            return  # a fork of the process that uses them
        with self._guard:
            for local, lock in self._locks.items():
                _remove_unused(local, lock)
            self._locks.clear()


@cache
def _copies(pid: int) -> _Copies:
    return _Copies(pid)


def _prefix() -> str:
    return os.path.join(tempfile.gettempdir(), f"kbsource-copy-{os.getuid()}-")


def _size(file: Folder) -> int:
    try:
        return file.size()
    except FileNotFoundError as error:
        raise DataError(f"{file} is missing; fetch or make the release again.") from error


def _use(local: str) -> int:
    """The lock of a copy, held together with other processes; the folder is made where there is none."""
    while True:
        with suppress(FileExistsError):
            os.mkdir(local, mode=0o700)
        _check_owner(local)
        with suppress(FileNotFoundError):  # it was just removed
            lock = _open_lock(local, _LOCK)
            fcntl.flock(lock, fcntl.LOCK_SH)
            if _is_there(local, lock):
                return lock
            os.close(lock)


def _check_owner(local: str) -> None:
    with suppress(FileNotFoundError):
        found = os.lstat(local)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise SetupError(
                f"{local} is not a folder that this user made; remove it, or set TMPDIR to another folder."
            )


def _open_lock(local: str, name: str) -> int:
    return os.open(os.path.join(local, name), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def _is_there(local: str, lock: int) -> bool:
    """A lock is still that of the folder, which may have been removed and made again."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(os.path.join(local, _LOCK)))
    except FileNotFoundError:
        return False


@contextmanager
def _copying(local: str) -> Iterator[None]:
    lock = _open_lock(local, _COPYING)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _copy(source: Folder, target: str) -> None:
    n_bytes = _size(source)
    temporary = f"{target}.tmp"
    with source.open() as file, open(temporary, "wb") as sink:
        shutil.copyfileobj(file, sink, CHUNK_BYTES)
    if (n_copied := os.path.getsize(temporary)) != n_bytes:
        raise DataError(f"{source} had {n_bytes} bytes, and {n_copied} when it was copied; is it being written?")
    os.replace(temporary, target)


def _remove_left_behind(local: str) -> None:
    with suppress(OSError, SetupError):  # it was just removed, or is somebody else's
        _check_owner(local)
        _remove_unused(local, _open_lock(local, _LOCK))


def _remove_unused(local: str, lock: int) -> None:
    """Removes a copy that nobody uses, and closes its lock."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_there(local, lock):
            for name in sorted(os.listdir(local), key=lambda name: name == _LOCK):
                os.remove(os.path.join(local, name))
            os.rmdir(local)
    except OSError:
        pass  # somebody uses it, or makes it again
    finally:
        os.close(lock)
