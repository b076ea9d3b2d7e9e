"""A worker of the local runner in a separate process: Beam's worker, but quiet, and ending as soon as its driver does.

Workers are forks of the fork server (``kbsource.runtime.fork_server``), because importing Beam takes seconds.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from kbsource.runtime.fork_server import ForkServer, ServerGoneError, forget_server, new_server, running_server
from pipelines.runners.presets import import_local_beam, quiet_beam

PREPARE = f"{__name__}:prepare"
"""Imports what workers need, for ``fork_server.new_server``."""
_WORK = f"{__name__}:work"
IMPORTS = ("apache_beam.runners.worker.sdk_worker_main", "pipelines.runners.workers", "pipelines.transforms.pages")
"""Modules that workers need."""


def prepare() -> None:
    """Imports what workers need, in a new fork server."""
    quiet_beam()
    import_local_beam(*IMPORTS)


def worker_server() -> ForkServer:
    """Returns the fork server of this process, and starts it if necessary."""
    return running_server() or new_server(PREPARE)


def run_worker(environment: Mapping[str, str]) -> int:
    """Runs a worker to its end, with further environment variables, and returns its exit code."""
    server = worker_server()
    try:
        return server.fork(_WORK, {"environment": {**environment}}, name="kbsource-worker").wait()
    except ServerGoneError:
        forget_server(server)
        return server.end() or 1


def work(values: Mapping[str, dict[str, str]]) -> None:
    """Becomes Beam's worker in a fork, as if the driver had started it."""
    os.environ.update(values["environment"])
    # The driver receives and reports a worker's exceptions.
    os.environ["PIPELINE_OPTIONS"] = json.dumps({"default_sdk_harness_log_level": "CRITICAL"})
    # Beam also prints a worker's exceptions.
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the lifetime of the process
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main([])
