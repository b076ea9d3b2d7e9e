"""The cores and the memory that this machine, or its container, allows a process to use."""

from __future__ import annotations

import os


def n_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Returns the memory of this machine, or of the container if its limit is lower."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        if os.path.exists(path):
            with open(path, encoding="ascii") as file:
                written = file.read().strip()
            if written.isdigit():  # otherwise "max"
                limits.append(int(written))
    return min(limits)
