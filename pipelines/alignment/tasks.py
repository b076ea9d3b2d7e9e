"""What a guarded process does for an alignment: a part of the release searched, or a chunk of the dataset written."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kbsource.beat import Beat
from pipelines.alignment.staging import MapJob
from pipelines.spacy_alone import import_spacy
from pipelines.storage import storage_for

SUGGEST, ALIGN, ASK, MERGE = "suggest", "align", "ask", "merge"
RUN_TASK = f"{__name__}:run_task"
"""What does a task, for ``kbsource.guard``."""


def run_task(task: dict[str, Any], beat: Beat) -> None:
    """Does one task; all that comes of it is in files.

    Raises:
        SetupError: something about the whole job is wrong.
    """
    job = _job(task["staging"])
    # Only what the task needs is imported: the tokeniser's library takes seconds.
    if task["kind"] == ALIGN:
        import_spacy()
        from pipelines.alignment.align import align_part

        align_part(task, job, beat)
    elif task["kind"] == SUGGEST:
        from pipelines.alignment.missing import suggest_part

        suggest_part(task, job, beat)
    elif task["kind"] == ASK:
        import_spacy()
        from pipelines.alignment.questions import ask_chunk

        ask_chunk(task["staging"], task["number"], job, beat)
    else:
        from pipelines.alignment.merge import merge_chunk

        merge_chunk(task["staging"], task["number"], job, beat)


@lru_cache(maxsize=1)
def _job(staging: str) -> MapJob:
    return MapJob.read(staging, storage_for(staging))
