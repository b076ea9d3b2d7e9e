"""A worker of the local runner in a separate process: Beam's worker, but quiet, and ending as soon as its driver does.

Workers are forks of a process that imports Beam at the same time as the driver; the import takes seconds. This process
has one thread and never opens a channel, so forking it is safe.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from typing import Any

from pipelines.runners.job_server import end_with_parent
from pipelines.runners.presets import import_local_beam, quiet_beam

_IMPORTS = ("apache_beam.runners.worker.sdk_worker_main", "pipelines.runners.workers", "pipelines.transforms.pages")


def main(socket_number: int) -> None:
    """Serves ``fork_server.ForkServer`` on its socket, and becomes Beam's worker in each fork."""
    end_with_parent()
    # Ctrl-C is sent to the whole process group; the driver handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    quiet_beam()
    import_local_beam(*_IMPORTS)
    gc.freeze()  # otherwise the garbage collector of a worker would write to shared memory
    with socket.socket(fileno=socket_number) as driver:
        request = _serve(driver)
    if request is not None:
        _work(request)


def _serve(driver: socket.socket) -> dict[str, Any] | None:
    """Forks for each line and reports how each fork ended. Returns the request in a fork, and None in this process at
    the end."""
    numbers: dict[int, int] = {}

    def tell_ended(*_: object) -> None:
        while numbers and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            driver.sendall(f"{numbers.pop(ended[0])} {os.waitstatus_to_exitcode(ended[1])}\n".encode())

    signal.signal(signal.SIGCHLD, tell_ended)
    with driver.makefile("rb") as asked:
        for number, line in enumerate(asked):
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # until the new fork is registered
            if (process := os.fork()) == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            else:
                numbers[process] = number
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            if process == 0:
                return dict(json.loads(line))
    return None


def _work(request: dict[str, Any]) -> None:
    """Becomes Beam's worker, as if the driver had started it."""
    end_with_parent()
    os.chdir(request["folder"])
    sys.path[:] = request["path"]
    os.environ.clear()
    os.environ.update(request["environment"])
    # The driver receives and reports a worker's exceptions.
    os.environ["PIPELINE_OPTIONS"] = json.dumps({"default_sdk_harness_log_level": "CRITICAL"})
    # Beam also prints a worker's exceptions.
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the lifetime of the process
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)
