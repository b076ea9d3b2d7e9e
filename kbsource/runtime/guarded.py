"""The program of a guarded process, which ``kbsource.runtime.guard`` starts as a fork, or as ``python -P -m
kbsource.runtime.guarded MODULE:FUNCTION BEAT_FILE MEMORY_BYTES CONFINEMENT``. The guard describes the arguments.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import queue
import resource
import signal
import sys
import threading
from typing import Any

import msgspec

from kbsource.errors import SetupError, fault_values, named_faults
from kbsource.runtime.beat import Beat
from kbsource.runtime.confinement import Confinement, forbid_reading, forbid_writing
from kbsource.runtime.guard import MEMORY_EXIT_CODE
from kbsource.runtime.imports import leave_out_pandas

_GC_THRESHOLDS = (200_000, 20, 100)


def become(values: dict[str, Any]) -> None:
    """Makes a fork of the fork server a guarded process."""
    os.environ.update(values["environment"])
    main(values["argv"])


def main(argv: list[str]) -> None:
    """Runs tasks until the standard input ends."""
    target, beat_path, memory_bytes, allowed = argv
    confinement = msgspec.json.decode(allowed, type=Confinement | None)
    # The interpreter exits normally only after an error. C++ destructors that run then may abort the process.
    atexit.register(os._exit, 1)
    # Output printed by the work must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    # Ctrl-C is sent to the whole process group. It is left to the supervisor.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    beat = Beat.open(beat_path)
    if confinement is not None:
        forbid_writing(confinement)  # threads that are already running would not be restricted
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_feed, args=(tasks,), daemon=True).start()
    if int(memory_bytes):
        # RLIMIT_DATA rather than RLIMIT_AS, because memory-mapped indexes are not allocations.
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory_bytes), int(memory_bytes)))
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    leave_out_pandas()
    if confinement is not None:
        forbid_reading(confinement)
    spare_collector()
    while True:
        task = json.loads(tasks.get())
        try:
            with named_faults():
                answer = {"done": function(task, beat)}
        except SetupError as fault:
            answer = {"fault": fault_values(fault)}
        except MemoryError:
            os._exit(MEMORY_EXIT_CODE)
        answers.write(json.dumps(answer).encode() + b"\n")


def spare_collector() -> None:
    """Makes the garbage collector run rarely. It would find nothing, because records are trees of tuples without
    cycles.
    """
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _feed(tasks: queue.SimpleQueue[bytes]) -> None:
    """Passes tasks on to the main thread. Ends the process when the supervisor has ended, whatever the main thread is
    doing.
    """
    # Not sys.stdin: a thread that waits inside its lock makes the interpreter abort when it ends.
    pending = b""
    while piece := os.read(0, 1 << 16):
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            tasks.put(line)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
