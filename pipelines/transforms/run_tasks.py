"""Tasks of a job, each done by a guarded process beside the Beam worker that it came to."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.guard import Guard, WorkerDiedError
from kbsource.identity import stable_sha256
from kbsource.staging import read_json, write_json
from pipelines.storage import is_local, storage_for

MAX_FAILED_PAGES = 25
"""Pages of one task that may fail before it is given up: a parser that fails so often is broken."""
MAX_DEATHS = 3
"""Deaths of the process outside of any page before the task is given up."""


@dataclass(frozen=True, slots=True)
class Work:
    """How tasks are done.

    Attributes:
        function: ``module:name`` of what does a task, see ``kbsource.guard``.
        staging: staging folder; what fails is noted in its folder ``failures``.
        page_timeout_s: seconds that one page may take; None for no limit.
        memory_bytes: memory that a process may allocate; None for no limit.
    """

    function: str
    staging: str
    page_timeout_s: float | None
    memory_bytes: int | None


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
            | "work" >> beam.ParDo(_RunTask(self._work))
        )


class _RunTask(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    """Owns a guarded process from its first task to the end."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._guard: Guard | None = None

    def process(self, element: str) -> Iterator[str]:
        work = self._work
        if failures(work.staging):
            return
        if self._guard is None:
            self._guard = Guard(work.function, page_timeout_s=work.page_timeout_s, memory_bytes=work.memory_bytes)
        task = json.loads(element)
        name = task_name(task)
        try:
            run_guarded(self._guard, task, beat_path=beat_path(work.staging, name))
        except SetupError as error:
            note_failure(work.staging, name, str(error))
            return
        yield name

    def teardown(self) -> None:
        if self._guard is not None:
            self._guard.close()
            self._guard = None


def run_guarded(guard: Guard, task: Mapping[str, Any], *, beat_path: str) -> None:
    """Does a task as often as it takes: a page that ends the process is not parsed again, and then not read
    again.

    The verdicts over such pages go into the task as ``verdicts``: by number of the page ``fallback_timeout``,
    ``fallback_crash`` or ``fallback_error`` for the first time, ``page_timeout``, … for the second.

    Raises:
        SetupError: the task raised it, or its process died too often.
    """
    verdicts: dict[str, str] = {}
    n_deaths = 0
    while True:
        try:
            guard.run({**task, "verdicts": verdicts}, beat_path=beat_path)
            return
        except WorkerDiedError as death:
            page = str(death.page)
            if death.page:
                verdicts[page] = f"{'page' if page in verdicts else 'fallback'}_{death.kind}"
            else:
                n_deaths += 1
            if len(verdicts) > MAX_FAILED_PAGES:
                raise SetupError(
                    f"{task_name(task)}: {len(verdicts)} pages ended the process that parsed them, so the parser is "
                    f"broken. The last one, page {page} of the task: {death.kind}, {death.detail}"
                ) from death
            if n_deaths == MAX_DEATHS:
                raise SetupError(
                    f"{task_name(task)}: the working process died {n_deaths} times outside of any page, the last time "
                    f"of: {death.kind}, {death.detail}"
                ) from death


def task_name(task: Mapping[str, Any]) -> str:
    """Gives a task's name, ``pages-00012``."""
    return f"{task['kind']}-{task['number']:05d}"


def beat_path(staging: str, name: str) -> str:
    """Gives the local path of a task's beat: in the staging folder, where the driver sees it, if that is
    local."""
    if is_local(staging):
        return os.path.join(staging, "beats", f"{name}.beat")
    return os.path.join(
        tempfile.gettempdir(), f"kbsource-beats-{stable_sha256(staging)[:16]}", f"{name}.{os.getpid()}.beat"
    )


def note_failure(staging: str, name: str, message: str) -> None:
    """Notes that a task cannot be done; the job ends with it."""
    write_json(storage_for(staging), join(staging, "failures", f"{name}.json"), {"message": message})


def failures(staging: str) -> list[str]:
    """Gives what was noted, by name of the task."""
    storage = storage_for(staging)
    return [read_json(storage, path)["message"] for path in storage.glob(join(staging, "failures", "*.json"))]
