"""Work for guarded processes that goes wrong on purpose."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.errors import DataError, SetupError
from kbsource.html.paired_pages import PairedPage, processed
from kbsource.runtime.beat import Beat
from kbsource.site import Site
from kbsource.temporary import TemporaryFolder

FOLDERS: list[TemporaryFolder] = []


def work(task: dict[str, Any], beat: Beat) -> dict[str, Any]:
    """Does pages 1 to ``n_pages``; page ``bad_page`` goes wrong in the way ``how``.

    The process's id is left as a file's name in the folder ``pids``.
    """
    for page in range(1, task["n_pages"] + 1):
        beat.enter(page)
        if page == task.get("bad_page"):
            misbehave(task["how"])
        beat.leave()
        beat.done(pages=1, amount=10)
    if "pids" in task:
        Path(task["pids"], str(os.getpid())).touch()
    if task.get("has_folder"):
        FOLDERS.append(TemporaryFolder())
    if "how" in task and "bad_page" not in task:
        misbehave(task["how"])
    return {"pid": os.getpid(), "n_pages": task["n_pages"]}


def make_array(task: dict[str, Any], beat: Beat) -> dict[str, Any]:
    """Makes an array, and returns it with whether pandas was imported."""
    return {"array": pa.array([1, 2]).to_pylist(), "has_pandas": "pandas" in sys.modules}


def misbehave(how: str) -> None:
    """Hangs, crashes or fails in the way that is named."""
    if how == "hang":
        threading.Event().wait()
    elif how == "hang in C":
        re.match(r"(?:a|a)*b", "a" * 60)
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "exit":
        os._exit(3)
    elif how == "raise":
        raise IndexError("list index out of range")
    elif how == "type error":
        raise TypeError("a defect of the parser")
    elif how == "set-up":
        raise SetupError("no such index; build it first")
    elif how == "bad data":
        raise DataError("2 of 3 pages rejected")
    elif how == "full disk":
        raise OSError(errno.ENOSPC, "No space left on device", "pages.parquet")
    elif how == "no right":
        raise PermissionError(errno.EACCES, "Permission denied", "pages.parquet")
    elif how == "damaged table":
        pq.read_table(pa.BufferReader(b"no table"))
    elif how == "print":
        print("noise from a library")  # noqa: T201
    elif how == "memory":
        bytearray(1 << 34)
    else:
        raise ValueError(how)


def work_on_title(task: dict[str, Any], beat: Beat) -> Any:
    """Returns the title of a page for ``process_pairs``; goes wrong in the way that the title names."""
    return processed(task, beat, _on_title)


def _on_title(site: Site) -> Callable[[PairedPage], str]:
    def work_on(page: PairedPage) -> str:
        if page.title[0].islower():
            misbehave(page.title)
        return page.title

    return work_on
