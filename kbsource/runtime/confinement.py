"""Permanently restricts this process and its threads with Landlock, a security module of Linux.

A process that runs untrusted queries must only write to its temporary folder. Checks inside the process may have gaps.
The restrictions here are enforced by the kernel and cannot be lifted.

Source: https://docs.kernel.org/userspace-api/landlock.html (26 November 2026) and include/uapi/linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from types import ModuleType
from typing import Any

from msgspec import Struct

from kbsource.errors import SetupError

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_CHANGES = sum(1 << bit for bit in range(4, 13))
"""Rights to remove and create files, folders, sockets, pipes, devices and symbolic links."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_OF_FILES = _WRITE_FILE | _TRUNCATE
_ALL_TCP, _ALL_SCOPES = 0b11, 0b11
"""Rights to bind and connect; abstract sockets and signals to other processes."""
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev")
"""Folders that the interpreter and the libraries read."""

_INSTALLED = ("site-packages", "dist-packages")


class Confinement(Struct, frozen=True, kw_only=True):
    """The access that a confined process keeps."""

    writes: tuple[str, ...]  #: folders that it may write to
    reads: tuple[str, ...] | None  #: folders that it may read in addition to the system's; None for all
    has_network: bool
    largest_file_bytes: int | None  #: None for any size


@cache
def landlock_version() -> int:
    """Returns the version of Landlock in the kernel; 0 if it is missing or switched off."""
    if not sys.platform.startswith("linux"):
        return 0
    version: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(0, version)


def missing_restrictions(version: int) -> list[str]:
    """Returns descriptions of what a version of Landlock cannot prevent.

    >>> missing_restrictions(0)
    ['writing files', 'using the network']
    >>> missing_restrictions(7)
    []
    """
    return [
        *(["writing files"] if version == 0 else ["truncating files"] if version < 3 else []),
        *(["using the network"] if version < 4 else []),
    ]


def forbid_writing(allowed: Confinement) -> None:
    """Forbids this process to write outside the allowed folders, to start programs, and to use the network unless it is
    allowed.

    Call it before other threads are started. Without Landlock, only the size of files is limited.

    Raises:
        SetupError: the kernel has Landlock but refuses to apply it.
    """
    if (size := allowed.largest_file_bytes) is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    version = landlock_version()
    if version:
        handled = _EXECUTE | _WRITE_FILE | _CHANGES
        handled |= (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
        tcp = _ALL_TCP if version >= 4 and not allowed.has_network else 0
        scopes = _ALL_SCOPES if version >= 6 else 0
        _restrict(struct.pack("QQQ", handled, tcp, scopes), handled & ~_EXECUTE, (*allowed.writes, os.devnull))


def forbid_reading(allowed: Confinement) -> None:
    """Forbids this process to read files outside its own folders and those of the interpreter and the system.

    Call it when all libraries are loaded.

    Raises:
        SetupError: the kernel has Landlock but refuses to apply it.
    """
    if landlock_version() and allowed.reads is not None:
        # The folders of packages that are installed as editable are not in sys.path.
        packages = (
            module.__path__ for name, module in [*sys.modules.items()] if "." not in name and _is_package(module)
        )
        installed = (sys.prefix, sys.base_prefix, *filter(None, sys.path), *linked_packages(sys.path))
        own = (*installed, *chain.from_iterable(packages), *_SYSTEM)
        handled = _READ_FILE | _READ_DIR
        _restrict(struct.pack("QQQ", handled, 0, 0), handled, (*allowed.reads, *allowed.writes, *own))


def linked_packages(paths: Iterable[str]) -> Iterator[str]:
    """Yields the targets of links in those of the paths that are folders of installed packages. Some installers do not
    copy packages, but link each package, or each file of a package, to a cache.
    """
    for folder in paths:
        if os.path.basename(folder) in _INSTALLED and os.path.isdir(folder):
            for entry in [*os.scandir(folder)]:
                if entry.is_symlink():
                    yield os.path.realpath(entry.path)
                elif entry.is_dir():
                    for path in {os.path.realpath(inner.path) for inner in os.scandir(entry) if inner.is_symlink()}:
                        package = os.path.dirname(path)
                        # A link to a file elsewhere opens this file, not the folder that contains it.
                        yield package if os.path.basename(package) == entry.name else path


def _is_package(module: ModuleType) -> bool:
    return isinstance(getattr(module, "__path__", None), Iterable)


def _restrict(attributes: bytes, access: int, paths: Iterable[str]) -> None:
    """Forbids the actions in ``attributes``, except the actions in ``access`` below the paths. Paths that do not exist
    are skipped.
    """
    libc, version = _libc(), landlock_version()
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _checked(libc.syscall(_CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), ctypes.c_uint32(0)))
    try:
        for path in dict.fromkeys(paths):
            if os.path.exists(path):
                own = access if os.path.isdir(path) else access & (_OF_FILES | _READ_FILE)
                folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
                try:
                    rule = struct.pack("=Qi", own, folder)
                    _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, ctypes.c_uint32(0)))
                finally:
                    os.close(folder)
        _checked(libc.prctl(_NO_NEW_PRIVILEGES, *(ctypes.c_ulong(number) for number in (1, 0, 0, 0))))
        _checked(libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)))
    finally:
        os.close(ruleset)


def _checked(result: int) -> int:
    if result < 0:
        raise SetupError(f"the kernel does not apply Landlock: {os.strerror(ctypes.get_errno())}")
    return result


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
