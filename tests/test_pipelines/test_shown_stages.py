"""Stages of a job: what becomes of their tasks, and what is shown of them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.files import LocalStorage
from kbsource.staging import write_json
from pipelines.progress import Done, Progress
from pipelines.runners import beam_flags
from pipelines.shown_stages import ShownStages, Task, tasks_done
from pipelines.stages import Stages
from pipelines.task_runs import note_done

FUNCTION = "tests.support.guarded_work:work"


def run(folder: Path, tasks: list[Task], *, unit: str = "") -> str:
    """Runs a stage and gives what was shown."""
    log = io.StringIO()
    with Stages(beam_flags("local", workers=None, beam_args=())) as stages:
        ShownStages(FUNCTION, str(folder), stages, Progress(log), 4 << 30).run("scan", tasks, unit=unit)
    return log.getvalue()


def test_every_task_gets_what_it_needs_and_the_work_done_is_shown(tmp_path: Path) -> None:
    tasks = [Task(number, 10 * n_pages, {"n_pages": n_pages}) for number, n_pages in ((3, 1), (7, 4))]

    shown = run(tmp_path, tasks)

    assert sorted(path.name for path in (tmp_path / "done").iterdir()) == ["scan-00003.json", "scan-00007.json"]
    assert shown.startswith("scan: 5 pages in ")


def test_who_did_the_tasks_is_told_where_several_did(tmp_path: Path) -> None:
    write_json(LocalStorage(), str(tmp_path / "done" / "scan-00009.json"), {"worker": "far:/work"})

    shown = run(tmp_path, [Task(0, 10, {"n_pages": 1})])

    assert "\nscan: 2 tasks by 2 workers: far:/work 1, " in shown


def test_work_is_counted_in_the_unit_of_its_sizes(tmp_path: Path) -> None:
    assert run(tmp_path, [Task(0, 20, {"n_pages": 2})], unit="facts").startswith("scan: 20 facts in ")


def test_without_tasks_there_is_no_stage(tmp_path: Path) -> None:
    assert run(tmp_path, []) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_cannot_be_done_ends_the_stage(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such index; build it first"):
        run(tmp_path, [Task(0, 10, {"n_pages": 1, "how": "set-up"})])


def test_where_no_beats_are_seen_whole_tasks_of_the_kind_are_counted(tmp_path: Path) -> None:
    tasks = [Task(0, 100), Task(2, 30), Task(5, 7)]
    poll = tasks_done(str(tmp_path), "scan", tasks, storage=LocalStorage())

    assert poll() == Done(0, 137)
    for name in ("scan-00000", "scan-00005", "pages-00002"):
        note_done(str(tmp_path), name)
    assert poll() == Done(107, 137)
