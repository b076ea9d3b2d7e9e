"""Measures the disk space that a folder takes while a job writes and removes files in it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_LEAST_POLL_S = 0.02
_IDLE_SHARE = 100
"""Time between two measurements, as a multiple of the time of one. The staging folder of a large dump has tens of
thousands of files, and a measurement takes tenths of a second.
"""


@dataclass(slots=True)
class DiskUse:
    """The disk space of a folder, in bytes of its files."""

    peak_bytes: int = 0  #: largest size that was measured


@contextmanager
def measured_disk_use(folder: str) -> Iterator[DiskUse]:
    """Measures a local folder many times while the body runs, and once at its end.

    The folder may be missing at first. Measuring takes at most a hundredth of one core.
    """
    use, is_over = DiskUse(), threading.Event()

    def measure() -> None:
        use.peak_bytes = max(use.peak_bytes, folder_bytes(folder))

    def watch() -> None:
        wait_s = _LEAST_POLL_S
        while not is_over.wait(wait_s):
            started = time.perf_counter()
            measure()
            wait_s = max(_LEAST_POLL_S, _IDLE_SHARE * (time.perf_counter() - started))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield use
    finally:
        is_over.set()
        thread.join()
        measure()


def folder_bytes(folder: str) -> int:
    """Returns the size of all files in a local folder; 0 if it does not exist. Files may be removed meanwhile."""
    n_bytes, folders = 0, [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                with suppress(FileNotFoundError):
                    n_bytes += entry.stat().st_size
    return n_bytes
