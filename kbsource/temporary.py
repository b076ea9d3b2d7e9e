"""Temporary folders that are removed even if their process was killed.

Each folder contains a file ``lock``, on which the processes that use the folder hold a shared lock. The system releases
the locks of a process when it ends. So a process that gets an exclusive lock may remove the folder. Whenever a
temporary folder is created, the folders that killed processes left are removed.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress

from kbsource.errors import SetupError

_LOCK = "lock"
SCRATCH_VARIABLE = "KBSOURCE_SCRATCH"
"""Environment variable that names the parent folder for temporary folders of a process that may be killed. The owner of
the parent folder removes it with its contents.
"""


class HeldFolder:
    """A folder that this process holds. It is removed when this process releases it and no other process holds it.

    ``cleanup`` releases it; otherwise it is released when the object or the process ends.
    """

    def __init__(self, path: str) -> None:
        remove_left_behind(os.path.dirname(path))
        self.name = path
        self._end = weakref.finalize(self, _end, path, hold(path), os.getpid())

    def cleanup(self) -> None:
        """Releases the folder."""
        self._end()


class TemporaryFolder(HeldFolder):
    """A new temporary folder of this process. If used as a context manager, it is removed at the end of the block, or
    else when the object or the process ends.

    Args:
        place: parent folder; None for the folder that ``SCRATCH_VARIABLE`` names, or else the system's (``TMPDIR``).
    """

    def __init__(self, place: str | None = None) -> None:
        super().__init__(f"{path_prefix(place or os.environ.get(SCRATCH_VARIABLE))}{os.urandom(8).hex()}")

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        self.cleanup()


def _end(path: str, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # not in a fork of the owner
        remove_unused(path, lock)


def path_prefix(place: str | None = None) -> str:
    """Returns the prefix of the paths of this user's temporary folders."""
    return os.path.join(os.path.abspath(place or tempfile.gettempdir()), f"kbsource-{os.getuid()}-")


def hold(path: str) -> int:
    """Returns a shared lock on a folder, which is created if it does not exist.

    Raises:
        SetupError: another user created the folder.
    """
    while True:
        with suppress(FileExistsError):
            os.mkdir(path, mode=0o700)
        _check_owner(path)
        with suppress(FileNotFoundError):  # it was just removed
            lock = open_lock(path, _LOCK)
            fcntl.flock(lock, fcntl.LOCK_SH)
            if _is_there(path, lock):
                return lock
            os.close(lock)


def open_lock(path: str, name: str) -> int:
    """Opens a lock file in a folder, creating it if it does not exist."""
    return os.open(os.path.join(path, name), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def remove_left_behind(place: str | None = None) -> None:
    """Removes the temporary folders of this user that no process holds. ``place`` is their parent folder; None for the
    system's.
    """
    for path in glob.glob(f"{glob.escape(path_prefix(place))}*"):
        with suppress(OSError, SetupError):  # it was just removed, or belongs to another user
            _check_owner(path)
            remove_unused(path, open_lock(path, _LOCK))


def remove_unused(path: str, lock: int) -> None:
    """Removes a folder that no other process holds, and closes its lock."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_there(path, lock):
            for entry in sorted(os.scandir(path), key=lambda entry: entry.name == _LOCK):
                shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.remove(entry.path)
            os.rmdir(path)
    except OSError:
        pass  # another process uses the folder, or has created it again
    finally:
        os.close(lock)


def _check_owner(path: str) -> None:
    with suppress(FileNotFoundError):
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise SetupError(f"{path} is not a folder that you created; remove it, or set TMPDIR to another folder.")


def _is_there(path: str, lock: int) -> bool:
    """Returns whether a lock file is still that of the folder. The folder may have been removed and created again."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(os.path.join(path, _LOCK)))
    except FileNotFoundError:
        return False
