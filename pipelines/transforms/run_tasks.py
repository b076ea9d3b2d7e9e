"""Tasks of a job through Beam, each done by a guarded process beside the Beam worker that it came to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from kbsource.errors import DataError, SetupError
from kbsource.old_guard import Guard
from pipelines.storage import options_in_use, use_options
from pipelines.task_runs import Work, check_installed, do_task, failures, installed, note_failure, task_name

# How Beam reports what a worker raised, and how its portable runners report a job that ended badly.
_RAISED = {f"{kind.__module__}.{kind.__name__}: ": kind for kind in (DataError, SetupError)}
_FAILED_JOB = "failed in state FAILED: "
_WHERE = " [while running "


class RunTasks(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Does every task once, in any order, anywhere; gives the names of those that were done.

    Tasks leave what they make in files; doing one again writes the same files again. A task that cannot be
    done is noted in the staging folder, see ``failures``, and no further ones are begun.
    """

    def __init__(self, tasks: Sequence[Mapping[str, Any]], work: Work) -> None:
        super().__init__()
        self._tasks = [json.dumps(task, sort_keys=True) for task in tasks]
        self._work = work

    def expand(self, begin: Any) -> Any:
        return (
            begin
            | "tasks" >> beam.Create(self._tasks, reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "work" >> beam.ParDo(_RunTask(self._work, installed(), options_in_use()))
        )


def run_through_beam(tasks: Sequence[Mapping[str, Any]], work: Work, options: PipelineOptions) -> None:
    """Runs one pipeline of tasks of one kind to its end.

    Raises:
        SetupError: as ``run_pipeline``.
    """
    kind = tasks[0]["kind"]
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | kind >> RunTasks(tasks, work)
    run_pipeline(pipeline, kind)


def run_pipeline(pipeline: beam.Pipeline, stage: str) -> None:
    """Runs a pipeline to its end.

    Args:
        pipeline: of one stage.
        stage: its name, for messages.

    Raises:
        SetupError: a worker raised it, or a DataError, and Beam has added where; or the cluster gave the job up.
    """
    try:
        pipeline.run().wait_until_finish()
    except SetupError as error:  # by Beam's own runner
        kind = DataError if isinstance(error, DataError) else SetupError
        raise kind(str(error).partition(_WHERE)[0]) from error
    except RuntimeError as error:
        # Beam wraps whatever ends a worker, Ctrl-C in a worker of this process too.
        if str(error).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        fault = reported_fault(str(error), stage)
        if fault is None:
            raise
        raise fault from error


def reported_fault(report: str, stage: str) -> SetupError | None:
    """Gives what a runner's report on a failed job says is wrong; None where it does not say.

    >>> reported_fault("Pipeline p failed in state FAILED: java.io.IOException: no space\\n\\tat org.apache", "scan")
    SetupError('The runner gave up on the stage scan: java.io.IOException: no space')
    """
    for mark, kind in _RAISED.items():
        _, is_raised, message = report.partition(mark)
        if is_raised:
            return kind(_first_line(message))
    _, is_failed, reason = report.partition(_FAILED_JOB)
    return SetupError(f"The runner gave up on the stage {stage}: {_first_line(reason)}") if is_failed else None


def _first_line(report: str) -> str:
    return report.partition("\n")[0].partition(_WHERE)[0]


class _RunTask(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    """Owns a guarded process from its first task to the end."""

    def __init__(self, work: Work, drivers: dict[str, str], options: dict[str, Any]) -> None:
        self._work = work
        self._drivers = drivers
        self._options = options
        self._guard: Guard | None = None

    def setup(self) -> None:
        use_options(self._options)

    def process(self, element: str) -> Iterator[str]:
        work = self._work
        if failures(work.staging):
            return
        task = json.loads(element)
        name = task_name(task)
        if self._guard is None:
            try:
                check_installed(self._drivers)
            except SetupError as error:
                note_failure(work.staging, name, error)
                return
            self._guard = Guard(work.function, memory_bytes=work.memory_bytes)
        if do_task(self._guard, task, work):
            yield name

    def teardown(self) -> None:
        if self._guard is not None:
            self._guard.close()
            self._guard = None
