"""Indexes that a release does not hold: made once a machine, in the background, and kept in a cache folder.

The release is only read. What is made lies in ``$XDG_CACHE_HOME/kbsource/inspector``, below the release's hash.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Generic, TypeVar

from kbsource.errors import SetupError

T = TypeVar("T")
OnProgress = Callable[[int, int], None]


class _StoppedError(Exception):
    """Nobody waits for the index any more."""


def cache_folder(sha256: str) -> Path:
    """Gives the folder for what is made out of a release, named by its hash."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "kbsource" / "inspector" / sha256


class SideIndex(Generic[T]):
    """An index that is opened where it was made before, else made in a thread; any thread may ask for it.

    Args:
        folder: where it lies once it is whole.
        make: writes its files to a folder, and says how much is done and of how much.
        open_index: opens a folder with its files.
    """

    def __init__(self, folder: Path, make: Callable[[str, OnProgress], None], open_index: Callable[[str], T]) -> None:
        self._folder, self._make, self._open = folder, make, open_index
        self._turn = RLock()
        self._stopped = Event()
        self._thread: Thread | None = None
        self._opened: T | None = None
        self._done, self._total = 0, 0
        self.fault: str | None = None

    @property
    def percent(self) -> int:
        """How much is made, in percent."""
        return 100 * self._done // self._total if self._total else 0

    def get(self) -> T | None:
        """Gives the index; None while it is made, which begins with the first call, or where it has a ``fault``."""
        with self._turn:
            if self._opened is None and self._thread is None and self.fault is None:
                if self._folder.is_dir():
                    self._opened = self._open(str(self._folder))
                else:
                    self._thread = Thread(target=self._run, name=self._folder.name, daemon=True)
                    self._thread.start()
            return self._opened

    def wait(self) -> T | None:
        """Gives the index once it is made; None where it has a ``fault``."""
        self.get()
        if (thread := self._thread) is not None:
            thread.join()
        return self.get()

    def close(self) -> None:
        """Stops the work on it; what was begun is removed."""
        self._stopped.set()
        if (thread := self._thread) is not None:
            thread.join(timeout=10)

    def _run(self) -> None:
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder.parent, prefix=f"{self._folder.name}.") as scratch:
                made = os.path.join(scratch, "made")
                os.mkdir(made)
                self._make(made, self._see)
                if not self._folder.is_dir():  # another process may have been sooner
                    os.rename(made, self._folder)
            opened = self._open(str(self._folder))
        except (OSError, SetupError) as error:
            with self._turn:
                self.fault, self._thread = str(error), None
        except _StoppedError:
            pass
        else:
            with self._turn:
                self._opened, self._thread = opened, None

    def _see(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        if self._stopped.is_set():
            raise _StoppedError
