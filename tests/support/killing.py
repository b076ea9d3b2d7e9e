"""Processes of a running command killed at a moment that is told by what it has written so far."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.real_data import ROOT

MARKS = {
    "child": (b"kbsource.runtime.guarded", 0),
    "fork server": (b"pipelines.runners.local_worker", 0),
    "worker": (b"pipelines.runners.local_worker", 1),
}
"""What the command line of each kind of process holds, and the number of processes above it whose own holds it too."""
_POLL_S = 0.002


def run_command(arguments: Sequence[str], *, temporary: Path) -> subprocess.Popen[bytes]:
    """Starts ``kbsource`` with a temporary folder of its own."""
    temporary.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def run_and_kill(arguments: Sequence[str], *, temporary: Path, who: str, output: Path, n_files: int) -> tuple[int, str]:
    """Runs a command and kills one of its processes as soon as there are so many files in the output folder and a
    process of that kind; gives exit code and standard error.

    Args:
        arguments: of ``kbsource``.
        temporary: folder for its temporary files.
        who: ``driver``, or one of ``MARKS``.
        output: folder that it writes.
        n_files: when.
    """
    driver = run_command(arguments, temporary=temporary)
    try:
        while driver.poll() is None:
            victim = driver.pid if who == "driver" else next(_descendants(driver.pid, *MARKS[who]), None)
            if victim is not None and count_files(output) >= n_files:
                os.kill(victim, signal.SIGKILL)
                break
            time.sleep(_POLL_S)
        errors = driver.communicate(timeout=180)[1]
    finally:
        driver.kill()
    return driver.returncode, errors.decode()


def count_files(folder: Path) -> int:
    """Gives the number of files and folders below one, some of which may vanish meanwhile."""
    return sum(len(folders) + len(files) for _, folders, files in os.walk(folder))


def _descendants(pid: int, mark: bytes, n_above: int) -> Iterator[int]:
    """Gives the processes below one whose command line holds a mark, as those of so many processes between them do."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # it has ended
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    waiting = [(pid, 0)]
    while waiting:
        parent, n_marked = waiting.pop()
        for child in parents.get(parent, ()):
            try:
                has_mark = mark in Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            waiting.append((child, n_marked + has_mark))
            if has_mark and n_marked == n_above:
                yield child
