"""What a guarded process does for QAMPARI: a part of the release searched, or a chunk of facts judged."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kbsource.beat import Beat
from pipelines.qampari.staging import QampariJob

LISTS, SEARCH, PROVE = "lists", "search", "prove"
RUN_TASK = f"{__name__}:run_task"
"""What does a task, for ``kbsource.guard``."""


def run_task(task: dict[str, Any], beat: Beat) -> None:
    """Does one task; all that comes of it is in files.

    Raises:
        SetupError: something about the whole job is wrong.
    """
    job = _job(task["staging"])
    # Only what the task needs is imported.
    if task["kind"].endswith(SEARCH):
        from pipelines.qampari.search import search_part

        search_part(task, job, beat)
    elif task["kind"].endswith(PROVE):
        from pipelines.qampari.prove import prove_chunk

        prove_chunk(task["folder"], task["number"], job, beat)
    else:
        from pipelines.qampari.list_reading import read_lists

        read_lists(task, job, beat)


@lru_cache(maxsize=1)
def _job(staging: str) -> QampariJob:
    return QampariJob.read(staging)
