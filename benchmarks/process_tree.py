"""Runs a command and measures the CPU, wall time and memory of the command and its descendants (Linux, from /proc)."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SAMPLES_PER_S = 10
_TICKS = os.sysconf("SC_CLK_TCK")
_SIZES = (b"Rss", b"Pss", b"Pss_Anon")


@dataclass(frozen=True)
class Usage:
    """The resources that a command used.

    Attributes:
        returncode: exit status.
        wall_s: wall time from start to end.
        cpu_s: user and system time of the command and its descendants.
        peak_tree_mb: largest sum over the process tree, with shared pages counted once (PSS), in MB (10^6 bytes).
        peak_process_mb: largest resident set (RSS) of a single process.
        n_processes: largest number of processes at the same time.
        peak_tree_own_mb: as ``peak_tree_mb``, without the pages of mapped files, which the system can take back at any
            time.
        peak_root_own_mb: as ``peak_tree_own_mb``, for the command's first process only.
    """

    returncode: int
    wall_s: float
    cpu_s: float
    peak_tree_mb: float
    peak_process_mb: float
    n_processes: int
    peak_tree_own_mb: float
    peak_root_own_mb: float


def run(command: list[str], *, cwd: Path, log: Path, env: dict[str, str] | None = None) -> Usage:
    """Runs a command with its output written to ``log``, and samples its process tree ten times a second.

    Python processes save their bytecode, whatever this process does: an installed package has its bytecode, and a
    checkout without it would be compiled by each process.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**inherited, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        sampler = _Sampler(process.pid)
        sampler.start()
        _, status, rusage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        sampler.stop()
    # rusage holds descendants that were waited for; the samples also those that were left behind.
    return Usage(
        returncode=process.returncode,
        wall_s=wall_s,
        cpu_s=max(rusage.ru_utime + rusage.ru_stime, sampler.cpu_s()),
        peak_tree_mb=sampler.peak_tree_bytes / 1e6,
        peak_process_mb=sampler.peak_process_bytes / 1e6,
        n_processes=sampler.n_processes,
        peak_tree_own_mb=sampler.peak_tree_own_bytes / 1e6,
        peak_root_own_mb=sampler.peak_root_own_bytes / 1e6,
    )


class _Sampler(threading.Thread):
    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._ended = threading.Event()
        self._cpu_ticks: dict[int, int] = {}
        self.peak_tree_bytes = self.peak_process_bytes = self.n_processes = 0
        self.peak_tree_own_bytes = self.peak_root_own_bytes = 0

    def run(self) -> None:
        while not self._ended.wait(1 / SAMPLES_PER_S):
            self._sample()

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def cpu_s(self) -> float:
        return sum(self._cpu_ticks.values()) / _TICKS

    def _sample(self) -> None:
        tree = tree_own = 0
        members = self._members()
        for pid in members:
            memory = _memory(pid)
            if memory is not None:
                tree += memory.pss
                tree_own += memory.own
                self.peak_process_bytes = max(self.peak_process_bytes, memory.rss)
                if pid == self._root:
                    self.peak_root_own_bytes = max(self.peak_root_own_bytes, memory.own)
        self.peak_tree_bytes = max(self.peak_tree_bytes, tree)
        self.peak_tree_own_bytes = max(self.peak_tree_own_bytes, tree_own)
        self.n_processes = max(self.n_processes, len(members))

    def _members(self) -> list[int]:
        """Returns the root's descendants and every process of its session, whatever its parent is now."""
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        members = {self._root}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    fields = file.read().rsplit(b")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            pid = int(entry)
            parents[pid] = int(fields[1])
            if int(fields[3]) == self._root:
                members.add(pid)
            ticks[pid] = int(fields[11]) + int(fields[12])
        grown = True
        while grown:
            more = {pid for pid, parent in parents.items() if parent in members} - members
            members |= more
            grown = bool(more)
        alive = [pid for pid in members if pid in parents]
        self._cpu_ticks.update((pid, ticks[pid]) for pid in alive)
        return alive


class _Memory(NamedTuple):
    """Memory of a process in bytes: resident set, proportional set, and the proportional set without pages of files."""

    rss: int
    pss: int
    own: int


def _memory(pid: int) -> _Memory | None:
    """Returns the memory of a process; None if the process has ended."""
    found: dict[bytes, int] = {}
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                name, _, value = line.partition(b":")
                if name in _SIZES:
                    found[name] = int(value.split()[0]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Memory(*(found.get(name, 0) for name in _SIZES))
