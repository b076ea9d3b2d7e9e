"""The stages of one job: tasks of one kind are done, shown while they are, and it is told who did them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kbsource.files import Storage, base_name, join
from pipelines.progress import Done, Progress, beats_of
from pipelines.stages import Stages
from pipelines.storage import is_local, storage_for
from pipelines.task_runs import Work, task_name, workers_line


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a stage.

    Attributes:
        number: names it among those of its kind.
        size: bytes of work, or whatever else the stage counts.
        further: JSON values that it needs besides.
    """

    number: int
    size: int
    further: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShownStages:
    """Runs the stages of one job.

    Attributes:
        function: ``module:name`` of what does a task, see ``kbsource.guard``.
        staging: staging folder of the job.
        stages: do the tasks.
        progress: shows how far they have come.
        memory_bytes: memory that a working process may allocate.
    """

    function: str
    staging: str
    stages: Stages
    progress: Progress
    memory_bytes: int

    def run(self, kind: str, tasks: Sequence[Task], *, page_timeout_s: float | None = None, unit: str = "") -> None:
        """Does all tasks of one kind; without any there is no stage.

        Args:
            kind: of the tasks.
            tasks: in the order in which they are begun.
            page_timeout_s: seconds that one page, or evidence, may take; None for no limit.
            unit: what the sizes count, where that is not bytes.

        Raises:
            SetupError: a task could not be done; a DataError where its data are at fault.
        """
        if not tasks:
            return
        work = Work(self.function, self.staging, page_timeout_s, self.memory_bytes)
        asked = [{"kind": kind, "staging": self.staging, "number": one.number, **one.further} for one in tasks]
        with self.progress.stage(kind, self._poll(kind, tasks, unit)):
            workers = self.stages.run(asked, work)
        if len(workers) > 1:
            self.progress.note(workers_line(kind, workers))

    def _poll(self, kind: str, tasks: Sequence[Task], unit: str) -> Callable[[], Done]:
        """Beats are only seen where the staging folder is local; elsewhere whole tasks are counted."""
        if is_local(self.staging):
            return beats_of(self.staging, kind, total_bytes=sum(one.size for one in tasks), unit=unit)
        return tasks_done(self.staging, kind, tasks, storage=storage_for(self.staging), unit=unit)


def tasks_done(
    staging: str, kind: str, tasks: Sequence[Task], *, storage: Storage, unit: str = ""
) -> Callable[[], Done]:
    """Gives a poll of the notes that workers leave of the tasks of a kind that they have done."""
    sizes = {f"{task_name({'kind': kind, 'number': one.number})}.json": one.size for one in tasks}

    def poll() -> Done:
        found = map(base_name, storage.glob(join(staging, "done", f"{kind}-*.json")))
        return Done(sum(sizes.get(name, 0) for name in found), sum(sizes.values()), unit=unit)

    return poll
