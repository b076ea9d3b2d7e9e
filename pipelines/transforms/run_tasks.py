"""Tasks of a job through Beam, each done by a guarded process beside the Beam worker that it came to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from kbsource.assembly import DataError
from kbsource.errors import SetupError
from kbsource.guard import Guard
from pipelines.storage import options_in_use, use_options
from pipelines.task_runs import Work, check_installed, do_task, failures, installed, note_failure, task_name

# How Beam reports what a worker raised, and how its portable runners report a job that ended badly.
_RAISED, _FAILED_JOB = f"{SetupError.__module__}.{SetupError.__name__}: ", "failed in state FAILED: "
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
        DataError: the cluster gave the job up.
    """
    kind = tasks[0]["kind"]
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | kind >> RunTasks(tasks, work)
    try:
        pipeline.run().wait_until_finish()
    except SetupError as error:  # by Beam's own runner, which adds where it was raised
        raise DataError(f"The runner gave up on the stage {kind}: {str(error).partition(_WHERE)[0]}") from error
    except RuntimeError as error:
        # Beam wraps whatever ends a worker, Ctrl-C in a worker of this process too.
        if str(error).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        reason = failure_reason(str(error))
        if reason is None:
            raise
        raise DataError(f"The runner gave up on the stage {kind}: {reason}") from error


def failure_reason(report: str) -> str | None:
    """Gives the line of a runner's report on a failed job that says why; None where there is none.

    >>> failure_reason("Pipeline p failed in state FAILED: java.io.IOException: no space\\n\\tat org.apache")
    'java.io.IOException: no space'
    """
    for mark in (_RAISED, _FAILED_JOB):
        _, found, reason = report.partition(mark)
        if found:
            return reason.partition("\n")[0].partition(_WHERE)[0]
    return None


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
