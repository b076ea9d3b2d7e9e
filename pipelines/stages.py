"""The stages of a job: lists of tasks, done by processes of this machine or through a runner of Beam."""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kbsource.errors import SetupError
from kbsource.old_guard import Guard
from pipelines.clusters import DATAFLOW_RUNNER
from pipelines.runners import local_processes, pipeline_options, quiet_beam
from pipelines.storage import is_local
from pipelines.task_runs import Work, do_task, failures, workers

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions


class Stages:
    """Runs the stages of one job. A context manager: the working processes of this machine end with it.

    The presets ``local`` and ``local-multi`` need nothing of Beam, whose import alone takes longer than a small slice:
    a thread for each working process hands it one task after the other, and the process lives for all stages.
    Everything else is a pipeline for each stage.

    Args:
        flags: from ``runners.beam_flags``.
    """

    def __init__(self, flags: Sequence[str]) -> None:
        self._flags = flags
        self._n_processes = local_processes(flags)
        if self._n_processes is None:
            _ = self.beam_options  # what is wrong with them is said before any work
        self._guards: dict[tuple[str, int | None], list[Guard]] = {}

    def __enter__(self) -> Stages:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for guards in self._guards.values():
            for guard in guards:
                guard.close()

    def check_paths(self, *paths: str) -> None:
        """Finds files that tasks are to read or write where the runner's workers do not see them.

        Raises:
            SetupError: Dataflow would get a path of this machine.
        """
        if f"--runner={DATAFLOW_RUNNER}" not in self._flags:
            return
        for path in filter(is_local, paths):
            raise SetupError(
                f"{path} is a path of this machine, whose files Dataflow's workers do not see: put them into a bucket "
                "and give gs://BUCKET/FOLDER, or choose another runner."
            )

    @property
    def is_here(self) -> bool:
        """Whether the work is done by processes of this machine alone."""
        return self._n_processes is not None

    @cached_property
    def beam_options(self) -> PipelineOptions:
        """Options of Beam for a stage that is a pipeline of its own."""
        quiet_beam()
        return pipeline_options(self._flags)

    def run(self, tasks: Sequence[Mapping[str, Any]], work: Work) -> Counter[str]:
        """Does tasks of one kind; gives the number of tasks by the worker that did them.

        Raises:
            DataError: a task could not be done for its data.
            SetupError: a task could not be done for another reason, or the cluster gave the job up.
        """
        if self._n_processes is None:
            from pipelines.transforms.run_tasks import run_through_beam

            run_through_beam(tasks, work, self.beam_options)
        else:
            self._run_here(tasks, work, min(self._n_processes, len(tasks)))
        if failed := failures(work.staging):
            raise failed[0]
        return workers(work.staging, tasks[0]["kind"])

    def _run_here(self, tasks: Sequence[Mapping[str, Any]], work: Work, n_processes: int) -> None:
        guards = self._guards.setdefault((work.function, work.memory_bytes), [])
        while len(guards) < n_processes:
            guards.append(Guard(work.function, memory_bytes=work.memory_bytes))
        waiting: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)

        def work_off(guard: Guard) -> None:
            while True:
                try:
                    task = waiting.get_nowait()
                except queue.Empty:
                    return
                is_done = False
                try:
                    is_done = do_task(guard, task, work)
                finally:
                    if not is_done:  # the job ends with it
                        _empty(waiting)

        with ThreadPoolExecutor(n_processes) as threads:
            try:
                for done in [threads.submit(work_off, guard) for guard in guards[:n_processes]]:
                    done.result()
            except BaseException:  # Ctrl-C: a thread that waits for its process would keep this one alive
                for guard in guards:
                    guard.close()
                raise


def _empty(waiting: queue.SimpleQueue[Mapping[str, Any]]) -> None:
    with suppress(queue.Empty):
        while True:
            waiting.get_nowait()
