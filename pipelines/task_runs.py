"""Tasks of a job: each is done by a guarded process, and who did it or why it failed is noted in the staging folder."""

from __future__ import annotations

import os
import socket
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from kbsource.errors import SetupError, fault_values, named_faults, told_fault
from kbsource.files import join
from kbsource.identity import stable_sha256
from kbsource.old_guard import Guard, WorkerDiedError
from kbsource.release.manifest import code_facts
from kbsource.staging import read_json, write_json
from pipelines.storage import is_local, storage_for

MAX_FAILED_PAGES = 25
"""Pages, or evidences, of one task that may fail before it is given up: what fails so often is broken."""
MAX_DEATHS = 3
"""Deaths of the process outside of any page before the task is given up."""


@dataclass(frozen=True, slots=True)
class Work:
    """How tasks are done.

    Attributes:
        function: ``module:name`` of what does a task, see ``kbsource.guard``.
        staging: staging folder; what fails is noted in its folder ``failures``.
        page_timeout_s: seconds that one page, or evidence, may take; None for no limit.
        memory_bytes: memory that a process may allocate; None for no limit.
    """

    function: str
    staging: str
    page_timeout_s: float | None
    memory_bytes: int | None


def do_task(guard: Guard, task: Mapping[str, Any], work: Work) -> bool:
    """Does a task and notes that it is done; says whether it could be, and notes why not.

    Raises:
        SetupError: the task cannot be done, and nothing can be written any more, not even this.
    """
    name = task_name(task)
    guard.page_timeout_s = work.page_timeout_s
    try:
        with named_faults():
            run_guarded(guard, task, beat_path=beat_path(work.staging, name))
            note_done(work.staging, name)
    except SetupError as fault:
        note_failure(work.staging, name, fault)
        return False
    return True


@cache
def installed() -> dict[str, str]:
    """Gives what of this environment decides the bytes of a release: versions, and the hash of the source files."""
    return asdict(code_facts())


def check_installed(drivers: Mapping[str, str]) -> None:
    """Finds a worker that would write other bytes than the others.

    Raises:
        SetupError: the worker has another version of something than the driver.
    """
    for name, wanted in drivers.items():
        found = installed()[name]
        if found != wanted:
            raise SetupError(
                f"The worker on {socket.gethostname()} has {name} {found}, the driver {wanted}. Install the same "
                "kbsource on all machines; the image of docker/Dockerfile holds one for both."
            )


def run_guarded(guard: Guard, task: Mapping[str, Any], *, beat_path: str) -> None:
    """Does a task as often as it takes: a page that ends the process is not parsed again, and then not read
    again.

    The verdicts over such pages go into the task as ``verdicts``: by number of the page, as its beat shows it,
    ``fallback_timeout``, ``fallback_crash`` or ``fallback_error`` for the first time, ``page_timeout``, … for the
    second. For a task that searches for evidences these are its pages.

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
                    f"{task_name(task)}: {len(verdicts)} pieces of work ended the process that did them, so what does "
                    f"them is broken. The last one, number {page} of the task: {death.kind}, {death.detail}"
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


def note_done(staging: str, name: str) -> None:
    """Notes who did a task: host and working folder, which is an executor's own on Spark. Metrics of Beam would say it,
    but not every runner gives them back."""
    worker = f"{socket.gethostname()}:{os.getcwd()}"
    write_json(storage_for(staging), join(staging, "done", f"{name}.json"), {"worker": worker})


def workers(staging: str, kind: str) -> Counter[str]:
    """Gives the number of tasks of a kind by the worker that did them, ``host:folder``."""
    storage = storage_for(staging)
    return Counter(read_json(storage, path)["worker"] for path in storage.glob(join(staging, "done", f"{kind}-*.json")))


def workers_line(kind: str, by_worker: Mapping[str, int]) -> str:
    """Gives a line that says how a stage was spread.

    >>> workers_line("scan", {"b:/work/1": 1, "a:/work/0": 2})
    'scan: 3 tasks by 2 workers: a:/work/0 2, b:/work/1 1'
    """
    shares = ", ".join(f"{worker} {count}" for worker, count in sorted(by_worker.items()))
    return f"{kind}: {sum(by_worker.values())} tasks by {len(by_worker)} workers: {shares}"


def note_failure(staging: str, name: str, fault: SetupError) -> None:
    """Notes that a task cannot be done; the job ends with it.

    Raises:
        SetupError: the fault itself, when it cannot be noted.
    """
    try:
        write_json(storage_for(staging), join(staging, "failures", f"{name}.json"), fault_values(fault))
    except OSError as error:
        raise fault from error


def failures(staging: str) -> list[SetupError]:
    """Gives what was noted, by name of the task."""
    storage = storage_for(staging)
    return [told_fault(read_json(storage, path)) for path in storage.glob(join(staging, "failures", "*.json"))]
