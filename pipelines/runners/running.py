"""Runs a pipeline to its end, and reports its workers' faults under their original types."""

from __future__ import annotations

import contextlib
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions

from kbsource.errors import DataError, SetupError, disk_fault
from kbsource.files import is_local
from kbsource.temporary import remove_left_behind
from pipelines.runners.clusters import DATAFLOW_RUNNER
from pipelines.runners.counters import StepNames, seconds_of_steps, step_counts
from pipelines.runners.local_processes import LocalProcessRunner
from pipelines.runners.presets import UnknownFlagError, quiet_beam

# How Beam reports a worker's exception, and how its portable runners report a failed job.
_RAISED = {f"{kind.__module__}.{kind.__name__}: ": kind for kind in (DataError, SetupError)}
_FAILED_JOB = "failed in state FAILED: "
_WHERE = " [while running "


class NotRunError(Exception):
    """A job ended before running its pipeline, as ``instead_of_running`` requested.

    Args:
        result: of the function that was called instead.
        sample: returns an estimate for a number of workers, from a run over samples of the job's input; None if the job
            has no such function.
    """

    def __init__(self, result: Any, sample: Callable[[int], Any] | None = None) -> None:
        super().__init__("the pipeline was constructed, but did not finish")
        self.result = result
        self.sample = sample


_instead: ContextVar[Callable[[beam.Pipeline], Any] | None] = ContextVar("instead", default=None)


@contextlib.contextmanager
def instead_of_running(use: Callable[[beam.Pipeline], Any]) -> Iterator[None]:
    """Makes a job pass its pipeline to a function instead of running it; NotRunError contains the function's result."""
    before = _instead.set(use)
    try:
        yield
    finally:
        _instead.reset(before)


class JobOptions(PipelineOptions):  # type: ignore[misc]  # Beam is not typed
    """Options that construct each view once.

    Beam requests a view several times per transform and constructs an argument parser each time. In a job with some
    hundred transforms and little data, this takes a fifth of the processor time.
    """

    def view_as(self, cls: type[Any]) -> Any:
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]

    def __getstate__(self) -> dict[str, Any]:
        # Views contain the values of their options; a copy needs new views.
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_views"}


def pipeline_options(flags: Sequence[str]) -> PipelineOptions:
    """Returns Beam's options for flags.

    Raises:
        SetupError: Beam does not have a flag, and would silently ignore it, or a value is wrong.
    """
    options = JobOptions(list(flags))
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            known = options.get_all_options()
            given = options.get_all_options(retain_unknown_options=True)
    except SystemExit as error:
        reason = complaint.getvalue().strip().rpartition("error: ")[2]
        raise SetupError(f"Beam rejects these options: {reason}") from error
    unknown = set(given) - set(known)
    for name in (flag.partition("=")[0] for flag in flags):
        if name.lstrip("-").replace("-", "_") in unknown:
            raise UnknownFlagError(name)
    return options


def new_pipeline(flags: Sequence[str]) -> beam.Pipeline:
    """Returns an empty pipeline with flags from ``presets.beam_flags``.

    Raises:
        SetupError: a flag is unknown or has a wrong value, or the runner rejects it.
    """
    quiet_beam()
    options = pipeline_options(flags)
    direct = options.view_as(DirectOptions)
    runner = None
    if direct.direct_running_mode == "multi_processing":
        direct.direct_running_mode = "in_memory"  # otherwise Beam starts workers itself
        runner = LocalProcessRunner()
    remove_left_behind()
    try:
        pipeline = beam.Pipeline(runner=runner, options=options)
    except ValueError as error:  # the runner rejected an option
        raise SetupError(" ".join(str(error).split())) from error
    # It serves programs in other languages, which are not used here; a run that is killed would leave it running.
    os.rmdir(pipeline.local_tempdir)
    return pipeline


def check_paths(flags: Sequence[str], *paths: str) -> None:
    """Rejects input and output files that the runner's workers cannot access.

    Raises:
        SetupError: a path is local, and the runner is Dataflow.
    """
    is_far = f"--runner={DATAFLOW_RUNNER}" in flags
    for path in filter(is_local, paths if is_far else ()):
        raise SetupError(
            f"{path} is a path on this machine, and Dataflow's workers cannot read its files. Copy them to a bucket "
            f"and give gs://BUCKET/FOLDER, or choose another runner."
        )


def run_pipeline(
    pipeline: Any,
    name: str,
    *,
    counts: Counter[str] | None = None,
    sample: Callable[[int], Any] | None = None,
) -> dict[str, float]:
    """Runs a pipeline to its end, and returns ``counters.seconds_of_steps``. Messages name the job.

    Args:
        counts: receives the counts of the steps if the runner reports them.
        sample: see ``NotRunError``.

    Raises:
        NotRunError: see ``instead_of_running``.
        SetupError: a worker raised it or a DataError, and Beam added the step; or the cluster gave up on the job.
    """
    if (use := _instead.get()) is not None:
        raise NotRunError(use(pipeline), sample)
    try:
        result = pipeline.run()
        result.wait_until_finish()
    except SetupError as error:  # raised by Beam's own runner
        kind = DataError if isinstance(error, DataError) else SetupError
        raise kind(str(error).partition(_WHERE)[0]) from error
    except RuntimeError as error:
        # Beam wraps every exception that ends a worker, including Ctrl-C in a worker of this process.
        if str(error).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        fault = reported_fault(str(error), name)
        if fault is None:
            raise
        raise fault from error
    if counts is not None:
        counts.update(step_counts(result))
    return seconds_of_steps(result, StepNames(pipeline.applied_labels))


def reported_fault(report: str, name: str) -> SetupError | None:
    """Returns the error in a runner's report on a failed job, or None.

    >>> reported_fault("Pipeline p failed in state FAILED: java.io.IOException: no space\\n\\tat org.apache", "build")
    SetupError('The runner gave up on build: java.io.IOException: no space')
    """
    for mark, kind in _RAISED.items():
        _, is_raised, message = report.partition(mark)
        if is_raised:
            return kind(_first_line(message))
    _, is_failed, reason = report.partition(_FAILED_JOB)
    if (fault := disk_fault("\n".join(map(_first_line, report.split("\n"))))) is not None:
        return fault
    return SetupError(f"The runner gave up on {name}: {_first_line(reason)}") if is_failed else None


def _first_line(report: str) -> str:
    return report.partition("\n")[0].partition(_WHERE)[0]
