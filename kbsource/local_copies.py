"""Copies of remote files on this machine: one for all of its processes, removed by the last that uses it.

A copy is a folder beside other temporary ones (``TMPDIR``), named by user and by what it is a copy of::

    kbsource-1000-copy-3f2a.../    lock        held together by all processes that use the copy
                                   copying     held alone by the one that copies
                                   titles.arrow, ...    whole as soon as they are there

They are held as ``kbsource.temporary`` says: a process tries to remove its own at its end.
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
    local = f"{path_prefix()}copy-" + hashlib.sha256(content.encode()).hexdigest()[:32]
    _held(os.getpid(), local)
    with os.fdopen(open_lock(local, _COPYING)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in names:
            target = os.path.join(local, name)
            if not os.path.exists(target):
                _copy(folder / name, target)
    return local


def release_copies() -> None:
    """Lets go of all copies that this process uses, and removes those that no other one does."""
    _held.cache_clear()


@cache
def _held(pid: int, local: str) -> HeldFolder:
    """What a process uses; a fork of it holds its own."""
    return HeldFolder(local)


def _size(file: Folder) -> int:
    try:
        return file.size()
    except FileNotFoundError as error:
        raise DataError(f"{file} is missing; fetch or make the release again.") from error


def _copy(source: Folder, target: str) -> None:
    n_bytes = _size(source)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with completed_file(target) as temporary:
        with source.open() as file, open(temporary, "wb") as sink:
            shutil.copyfileobj(file, sink, CHUNK_BYTES)
        if (n_copied := os.path.getsize(temporary)) != n_bytes:
            raise DataError(f"{source} had {n_bytes} bytes, and {n_copied} when it was copied; is it being written?")
