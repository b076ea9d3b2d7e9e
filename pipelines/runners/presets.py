"""Names for ways to run a pipeline, and their Beam flags."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence

from kbsource.errors import SetupError
from kbsource.runtime.imports import leave_out_pandas, leaving_out


class UnknownFlagError(SetupError):
    """A flag that neither kbsource nor Beam has; Beam would silently ignore it."""

    def __init__(self, flag: str) -> None:
        super().__init__(
            f"Neither kbsource nor Beam has an option {flag}. See the command's --help, and Beam's pipeline options "
            "for the runner."
        )
        self.flag = flag


_LOCAL = ("--runner=FnApiRunner",)

PRESETS = ("local", "local-multi", "spark", "flink", "dataflow")
LOCAL_PRESETS = ("local", "local-multi")
# Beam imports them if they are installed, for stores and databases of its own. They take as long as the rest of Beam.
_NOT_LOCAL = (
    "apache_beam.io.gcp.bigquery",
    "boto3",
    "botocore",
    "bson",
    "google.cloud",
    "hdfs",
    "opentelemetry",
    "pandas",
    "pymongo",
)


def beam_flags(runner: str, *, workers: int | None, beam_args: Sequence[str]) -> list[str]:
    """Returns the Beam flags for a preset or for one of Beam's own runners, followed by ``beam_args`` unchanged.

    The local presets use Beam's own runner, which ``DirectRunner`` selects if Prism is not available. It runs in this
    process, or in a separate process for each worker.

    Raises:
        SetupError: names the error and the choices.
    """
    quiet_beam()
    if workers is not None and runner != "local-multi":
        instead = "give that one" if runner == "local" else "give Beam's own flag for the number of workers"
        raise SetupError(f"--workers is for --runner local-multi, not for {runner}; {instead}.")
    if runner == "local":
        return [*_LOCAL, *beam_args]
    if runner == "local-multi":
        processes = [f"--direct_num_workers={workers or n_cores()}", "--direct_running_mode=multi_processing"]
        return [*_LOCAL, *processes, *beam_args]
    from pipelines.runners.clusters import dataflow_flags, flink_flags, job_server_flags, spark_flags  # takes a while

    given = flags_given(beam_args)
    if "output_executable_path" in given:
        raise SetupError(
            "--output_executable_path writes a pipeline to a file instead of running it; run it with a job server."
        )
    if runner == "spark":
        return [*spark_flags(given), *beam_args, *job_server_flags(runner, given)]
    if runner == "flink":
        return [*flink_flags(given, n_cores=n_cores()), *beam_args, *job_server_flags(runner, given)]
    if runner == "dataflow":
        return [*dataflow_flags(given), *beam_args]
    if runner not in known_runners():
        presets = ", ".join(PRESETS)
        raise SetupError(
            f"--runner {runner}: no preset ({presets}) and no runner of Beam ({', '.join(known_runners())})."
        )
    return [f"--runner={runner}", *beam_args]


def flags_given(beam_args: Sequence[str]) -> dict[str, str]:
    """Returns flags by name without dashes. The last occurrence counts; a flag without a value has an empty value.

    >>> flags_given(["--job_name=a", "--region", "us-central1", "--streaming"])
    {'job_name': 'a', 'region': 'us-central1', 'streaming': ''}
    """
    given: dict[str, str] = {}
    name = None
    for argument in beam_args:
        if argument.startswith("--"):
            name, _, value = argument[2:].partition("=")
            given[name] = value
        elif name is not None:
            given[name] = argument
    return given


def n_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def known_runners() -> list[str]:
    """Returns the names of the runners that Beam has."""
    from apache_beam.options.pipeline_options import StandardOptions

    return sorted({*StandardOptions.KNOWN_RUNNER_NAMES, "FnApiRunner"})


def import_local_beam(*names: str) -> None:
    """Imports Beam, and modules that import it, without the packages that local runs do not use."""
    with leaving_out(*_NOT_LOCAL):
        for name in ("apache_beam", *names):
            importlib.import_module(name)
    leave_out_pandas()
    # For each transform, Beam imports IPython to find out whether this is a notebook; in a notebook it is imported
    # already.
    sys.modules.setdefault("IPython", None)  # type: ignore[arg-type]


def quiet_beam() -> None:
    """Silences Beam's log messages below errors, which do not concern the user of a command."""
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    # The driver also receives a worker's exceptions.
    for name in ("apache_beam.runners.common", "apache_beam.runners.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Parts of Beam log through the root logger.
    logging.getLogger().setLevel(logging.ERROR)
