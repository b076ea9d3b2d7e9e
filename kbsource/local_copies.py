"""Copies of remote files on this machine: one copy for all processes, removed by the last process that uses it.

A copy is a folder beside other temporary folders (``TMPDIR``). Its name consists of the user and a hash of the source::

    kbsource-1000-copy-3f2a.../    lock        locked (shared) by all processes that use the copy
                                   copying     locked (exclusive) by the process that copies
                                   titles.arrow, ...    complete as soon as they appear

The locks work as described in ``kbsource.temporary``: at its end, a process tries to remove its copies.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from functools import cache

from kbsource.errors import DataError
from kbsource.files import CHUNK_BYTES, Folder, completed_file
from kbsource.temporary import HeldFolder, open_lock, path_prefix

_COPYING = "copying"


def local_copy(folder: Folder, names: Sequence[str], *, version: str = "") -> str:
    """Returns a local folder that contains these files of a folder, for memory-mapping. Do not write to it.

    A local folder is returned unchanged. A remote folder is copied by ``shared_copy``.
    """
    return folder.url if folder.is_local else shared_copy(folder, names, version=version)


def shared_copy(folder: Folder, names: Sequence[str], *, version: str = "") -> str:
    """Returns a copy of these files of a folder.

    All processes of this machine that request the same files share the copy. It is deleted when each of them has
    ended or called ``release_copies``.

    Args:
        version: distinguishes files that were stored under the same names at different times, for example a hash from
            their manifest. If empty, the sizes of the files are used.

    Raises:
        DataError: a file is missing, or changed while it was copied.
        SetupError: another user created the folder.
    """
    known_by = version or [(name, _size(folder / name)) for name in sorted(names)]
    content = json.dumps([folder.url, folder.options, known_by])
    local = f"{path_prefix()}copy-" + hashlib.sha256(content.encode()).hexdigest()[:32]
    _held_folder(os.getpid(), local)
    with os.fdopen(open_lock(local, _COPYING)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in names:
            target = os.path.join(local, name)
            if not os.path.exists(target):
                _copy(folder / name, target)
    return local


def release_copies() -> None:
    """Releases all copies that this process uses, and removes those that no other process uses."""
    _held_folder.cache_clear()


@cache
def _held_folder(pid: int, local: str) -> HeldFolder:
    """Returns the folder as held by a process. A forked process holds the folder separately."""
    return HeldFolder(local)


def _size(file: Folder) -> int:
    try:
        return file.size()
    except FileNotFoundError as error:
        raise DataError(f"{file} is missing; download or build the release again.") from error


def _copy(source: Folder, target: str) -> None:
    n_bytes = _size(source)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with completed_file(target) as temporary:
        with source.open() as file, open(temporary, "wb") as sink:
            shutil.copyfileobj(file, sink, CHUNK_BYTES)
        if (n_copied := os.path.getsize(temporary)) != n_bytes:
            raise DataError(
                f"{source} had {n_bytes} bytes, but {n_copied} bytes were copied; wait until no program "
                f"writes to it, and run the command again."
            )
