"""Names for ways to run a pipeline, and their Beam flags."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from inspect import Signature
from types import MethodType
from typing import Any

from kbsource.errors import SetupError
from kbsource.runtime.imports import leave_out_pandas, leaving_out, standing_in
from kbsource.runtime.machine import memory_bytes, n_cores


class UnknownFlagError(SetupError):
    """A flag that neither kbsource nor Beam has; Beam would silently ignore it."""

    def __init__(self, flag: str) -> None:
        super().__init__(
            f"Neither kbsource nor Beam has an option {flag}. See the command's --help, and the documentation of "
            f"Beam's pipeline options for the runner."
        )
        self.flag = flag


_LOCAL = ("--runner=FnApiRunner",)

LOCAL = "local"
PRESETS = (LOCAL, "spark", "flink", "dataflow")
_BYTES_OF_A_WORKER = 2 << 30
# Beam imports these packages if they are installed, for its own stores and databases. They take as long to import as
# the rest of Beam.
_NOT_LOCAL = (
    "absl",
    "apache_beam.io.gcp.bigquery",
    "boto3",
    "botocore",
    "bson",
    "google.api_core",
    "google.cloud",
    "hdfs",
    "opentelemetry",
    "pandas",
    "pymongo",
)


def beam_flags(runner: str, *, workers: int | None, beam_args: Sequence[str]) -> list[str]:
    """Returns the Beam flags for a preset or for one of Beam's own runners, followed by ``beam_args`` unchanged.

    The preset ``local`` uses Beam's own runner, which ``DirectRunner`` also selects if Prism is not available. A single
    worker (the default) runs in this process; of several workers, each has a process.

    Raises:
        SetupError: names the error and the choices.
    """
    quiet_beam()
    if runner == LOCAL:
        several = [f"--direct_num_workers={workers}", "--direct_running_mode=multi_processing"]
        return [*_LOCAL, *(several if workers is not None and workers > 1 else ()), *beam_args]
    if workers is not None:
        raise SetupError(
            f"--workers works only with --runner {LOCAL}; with {runner}, give Beam's own flag for the number of "
            f"workers."
        )
    from pipelines.runners.clusters import dataflow_flags, flink_flags, job_server_flags, spark_flags  # takes a while

    given = flags_given(beam_args)
    if "output_executable_path" in given:
        raise SetupError(
            "--output_executable_path writes a pipeline to a file instead of running it; leave it out, or run the job "
            "with a job server."
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
            f"--runner {runner}: there is no such runner. Choose one of kbsource's presets ({presets}) or of Beam's "
            f"runners ({', '.join(known_runners())})."
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


def n_usual_workers() -> int:
    """Returns the number of worker processes for large inputs on this machine: one per core, if memory allows."""
    return max(1, min(n_cores(), memory_bytes() // _BYTES_OF_A_WORKER))


def known_runners() -> list[str]:
    """Returns the names of the runners that Beam has."""
    from apache_beam.options.pipeline_options import StandardOptions

    return sorted({*StandardOptions.KNOWN_RUNNER_NAMES, "FnApiRunner"})


def _is_subhint(sub: Any, base: Any) -> bool:
    from beartype.door import is_subhint
    from beartype.roar import BeartypeDoorException

    try:
        return is_subhint(sub, base)
    except BeartypeDoorException:
        return False  # as in Beam


def _get_new_http(*args: Any) -> Any:
    from apache_beam.internal.http_client import get_new_http

    return get_new_http(*args)


class _NeverRaisedError(Exception):
    """Stands in for an exception that ``_is_subhint`` handles."""


# Beam imports these modules for one function each, which local runs rarely call.
_STAND_INS: dict[str, dict[str, Any]] = {
    "apache_beam.internal.http_client": {"get_new_http": _get_new_http},
    "beartype": {},
    "beartype.door": {"is_subhint": _is_subhint},
    "beartype.roar": {"BeartypeDoorException": _NeverRaisedError},
}


def import_local_beam(*names: str) -> None:
    """Imports Beam, and modules that import it, without the packages that local runs do not use."""
    with leaving_out(*_NOT_LOCAL), standing_in(_STAND_INS):
        for name in ("apache_beam", *names):
            importlib.import_module(name)
    leave_out_pandas()
    _inspect_methods_once()
    # For each transform, Beam imports IPython to find out whether this is a notebook; in a notebook it is imported
    # already.
    sys.modules.setdefault("IPython", None)  # type: ignore[arg-type]


def _inspect_methods_once() -> None:
    """Makes Beam remember the signatures of methods.

    It inspects each method of each step several times. In a job with little data, this takes a fourteenth of the
    processor time.
    """
    core: Any = importlib.import_module("apache_beam.transforms.core")
    if not isinstance(core.get_signature, KnownSignatures):
        core.get_signature = KnownSignatures(core.get_signature)


class KnownSignatures:
    """A function that returns the signatures of callables, and caches those of methods by their function."""

    def __init__(self, inspect: Callable[[Any], Signature]) -> None:
        self._inspect = inspect
        self._known: dict[Any, Signature] = {}

    def __call__(self, function: Any) -> Signature:
        if not isinstance(function, MethodType):
            return self._inspect(function)
        found = self._known.get(function.__func__)
        if found is None:
            found = self._known[function.__func__] = self._inspect(function)
        return found


def quiet_beam() -> None:
    """Silences Beam's log messages below errors, which do not concern the user of a command."""
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    # The driver also receives a worker's exceptions.
    for name in ("apache_beam.runners.common", "apache_beam.runners.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Parts of Beam log through the root logger.
    logging.getLogger().setLevel(logging.ERROR)
