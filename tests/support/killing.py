"""Processes of a running command killed at a moment that is told by what it has written so far."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.command_processes import CommandProcess, Ended

NAMES = {"child": "kbsource-guard", "fork server": "kbsource-server", "worker": "kbsource-worker"}
"""The name of each kind of process."""
_POLL_S = 0.002


def run_and_kill(arguments: Sequence[str], *, temporary: Path, who: str, output: Path, n_files: int) -> Ended:
    """Runs a command and kills one of its processes as soon as there are so many files in the output folder and a
    process of that kind; gives exit code and standard error.

    Args:
        arguments: of ``kbsource``.
        temporary: folder for its temporary files.
        who: ``driver``, or one of ``NAMES``.
        output: folder that it writes.
        n_files: when.
    """
    with CommandProcess(arguments, temporary=temporary) as driver:
        while driver.is_running():
            victim = driver.pid if who == "driver" else next(_descendants(driver.pid, NAMES[who]), None)
            if victim is not None and count_files(output) >= n_files:
                os.kill(victim, signal.SIGKILL)
                break
            time.sleep(_POLL_S)
        return driver.wait()


def count_files(folder: Path) -> int:
    """Gives the number of files and folders below one, some of which may vanish meanwhile."""
    return sum(len(folders) + len(files) for _, folders, files in os.walk(folder))


def _descendants(pid: int, name: str) -> Iterator[int]:
    """Gives the processes of that name below one."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # it has ended
                continue
            own, _, rest = stat.partition("(")[2].rpartition(")")
            children.setdefault(int(rest.split()[1]), []).append((int(entry.name), own))
    waiting = [pid]
    while waiting:
        for child, own in children.get(waiting.pop(), ()):
            waiting.append(child)
            if own == name:
                yield child
