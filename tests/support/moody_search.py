"""Tasks of an alignment whose search goes wrong for one evidence on purpose."""

from __future__ import annotations

from typing import Any

from kbsource.beat import Beat
from mapping.locate import PageSearch
from mapping.records import Alignment
from mapping.resolve import Resolved
from pipelines.alignment import align, tasks
from tests.support.guarded_work import misbehave

HANGS = "the evidence that nobody finds"


class MoodySearch(PageSearch):
    """Never comes back from ``HANGS``."""

    def locate(self, found: Resolved, text: str | None) -> Alignment:
        if text == HANGS:
            misbehave("hang in C")
        return super().locate(found, text)


def run_task(task: dict[str, Any], beat: Beat) -> None:
    """Does a task as ``tasks.run_task`` does."""
    align.PageSearch = MoodySearch  # type: ignore[misc]
    tasks.run_task(task, beat)
