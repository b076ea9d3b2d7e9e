"""A pipeline run to its end, with the faults of its workers told as what they are."""

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
from pipelines.runners.counters import StepNames, counted, seconds_of_steps
from pipelines.runners.local_processes import LocalProcessRunner
from pipelines.runners.presets import UnknownFlagError, quiet_beam

# How Beam reports what a worker raised, and how its portable runners report a job that ended badly.
_RAISED = {f"{kind.__module__}.{kind.__name__}: ": kind for kind in (DataError, SetupError)}
_FAILED_JOB = "failed in state FAILED: "
_WHERE = " [while running "


class NotRunError(Exception):
    """A job ended where it would have run its pipeline to the end, as ``instead_of_running`` asked."""

    def __init__(self, result: Any) -> None:
        super().__init__("the pipeline was put together and not run to its end")
        self.result = result


_instead: ContextVar[Callable[[beam.Pipeline], Any] | None] = ContextVar("instead", default=None)


@contextlib.contextmanager
def instead_of_running(use: Callable[[beam.Pipeline], Any]) -> Iterator[None]:
    """Has a job give its pipeline to a function where it would run it to the end: NotRunError has what that gave."""
    before = _instead.set(use)
    try:
        yield
    finally:
        _instead.reset(before)


class JobOptions(PipelineOptions):  # type: ignore[misc]  # Beam is not typed
    """Options of which each view is made once.

    Beam asks for a view several times a transform and makes a parser of arguments for each: a fifth of the processor
    time of a job of some hundred transforms on little data.
    """

    def view_as(self, cls: type[Any]) -> Any:
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]

    def __getstate__(self) -> dict[str, Any]:
        # Views hold the values of the options that they are of; those of a copy are made anew.
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_views"}


def pipeline_options(flags: Sequence[str]) -> PipelineOptions:
    """Beam's options for flags.

    Raises:
        SetupError: a flag that Beam does not know, which it would pass over in silence, or a bad value.
    """
    options = JobOptions(list(flags))
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            known = options.get_all_options()
            given = options.get_all_options(retain_unknown_options=True)
    except SystemExit as error:
        reason = complaint.getvalue().strip().rpartition("error: ")[2]
        raise SetupError(f"Beam does not take these options: {reason}") from error
    unknown = set(given) - set(known)
    for name in (flag.partition("=")[0] for flag in flags):
        if name.lstrip("-").replace("-", "_") in unknown:
            raise UnknownFlagError(name)
    return options


def new_pipeline(flags: Sequence[str]) -> beam.Pipeline:
    """An empty pipeline, with flags of ``presets.beam_flags``.

    Raises:
        SetupError: a flag is unknown or has a bad value, or the runner refuses it.
    """
    quiet_beam()
    options = pipeline_options(flags)
    direct = options.view_as(DirectOptions)
    runner = None
    if direct.direct_running_mode == "multi_processing":
        direct.direct_running_mode = "in_memory"  # else Beam starts workers of its own
        runner = LocalProcessRunner()
    remove_left_behind()
    try:
        pipeline = beam.Pipeline(runner=runner, options=options)
    except ValueError as error:  # options that the runner has looked at
        raise SetupError(" ".join(str(error).split())) from error
    # For programs in other languages, of which there are none; a run that is killed would leave it behind.
    os.rmdir(pipeline.local_tempdir)
    return pipeline


def check_paths(flags: Sequence[str], *paths: str) -> None:
    """Finds files that a pipeline is to read or write where the runner's workers do not see them.

    Raises:
        SetupError: Dataflow would get a path of this machine.
    """
    is_far = f"--runner={DATAFLOW_RUNNER}" in flags
    for path in filter(is_local, paths if is_far else ()):
        raise SetupError(
            f"{path} is a path of this machine, whose files Dataflow's workers do not see: put them into a bucket "
            "and give gs://BUCKET/FOLDER, or choose another runner."
        )


def run_pipeline(pipeline: Any, name: str, *, counts: Counter[str] | None = None) -> dict[str, float]:
    """Runs a pipeline to its end; messages name the job. Gives ``counters.seconds_of_steps``.

    Args:
        counts: takes what steps counted, where the runner says it.

    Raises:
        NotRunError: see ``instead_of_running``.
        SetupError: a worker raised it, or a DataError, and Beam has added where; or the cluster gave the job up.
    """
    if (use := _instead.get()) is not None:
        raise NotRunError(use(pipeline))
    try:
        result = pipeline.run()
        result.wait_until_finish()
    except SetupError as error:  # by Beam's own runner
        kind = DataError if isinstance(error, DataError) else SetupError
        raise kind(str(error).partition(_WHERE)[0]) from error
    except RuntimeError as error:
        # Beam wraps whatever ends a worker, Ctrl-C in a worker of this process too.
        if str(error).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        fault = reported_fault(str(error), name)
        if fault is None:
            raise
        raise fault from error
    if counts is not None:
        counts.update(counted(result))
    return seconds_of_steps(result, StepNames(pipeline.applied_labels))


def reported_fault(report: str, name: str) -> SetupError | None:
    """What a runner's report on a failed job says is wrong; None where it does not say.

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
