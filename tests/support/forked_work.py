"""Work for forks of the fork server."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from kbsource.runtime.fork_server import n_threads, running_server

LOCK = threading.Lock()
"""A lock that other threads of the process before the fork hold most of the time."""


def prepare() -> None:
    """Imports nothing more: a server that ran this has imported this module."""


def describe(values: dict[str, Any]) -> None:
    """Writes what the process inherited to the standard output, and noise to the standard error."""
    has_lock = LOCK.acquire(timeout=5)
    name = Path("/proc/self/comm").read_text().strip() if sys.platform == "linux" else ""
    facts = [os.getcwd(), os.environ.get("KBSOURCE_SEEN"), sys.path[0], n_threads(), gc.isenabled(), has_lock, name]
    os.write(1, f"{facts} {values} {running_server() is not None}\n".encode())
    os.write(2, b"noise\n")


def leave(values: dict[str, Any]) -> None:
    """Ends in the way that is named."""
    how = values["how"]
    if how == "exit":
        raise SystemExit(3)
    if how == "raise":
        raise IndexError("list index out of range")
    if how == "wait":
        time.sleep(60)
    if how == "exit function":
        atexit.register(Path(values["path"]).touch)


def delegate(values: dict[str, Any]) -> None:
    """Asks the server for another fork, which touches a file; ends with its exit code, raised by two."""
    server = running_server()
    assert server is not None
    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()  # this process must not be forked itself
    fork = server.fork(f"{__name__}:leave", {"how": "exit function", "path": values["path"]}, name="inner")
    raise SystemExit(fork.wait() + 2)
