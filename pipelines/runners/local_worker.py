"""A worker of the local runner in a process of its own: Beam's, but quiet, and gone as soon as its driver is.

``python -m pipelines.runners.local_worker`` is started by ``local_processes``.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from pipelines.runners.job_server import end_with_parent
from pipelines.runners.presets import quiet_beam


def main() -> None:
    """Becomes Beam's worker."""
    end_with_parent()
    # Ctrl-C goes to the whole process group; the driver decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    quiet_beam()
    # What a worker raises reaches the driver, who says it.
    os.environ["PIPELINE_OPTIONS"] = json.dumps({"default_sdk_harness_log_level": "CRITICAL"})
    from apache_beam.runners.worker import sdk_worker_main

    # Beam prints what a worker raises, besides.
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the life of the process

    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
