"""Tasks through Beam, and what becomes of one whose process dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from apache_beam.testing.test_pipeline import TestPipeline as Pipeline
from apache_beam.testing.util import assert_that, equal_to

from kbsource.errors import DataError, SetupError
from kbsource.guard import WorkerDiedError
from pipelines.runners import quiet_beam
from pipelines.task_runs import MAX_FAILED_PAGES, Work, failures, run_guarded, task_name
from pipelines.transforms.run_tasks import RunTasks, reported_fault

TASK = {"kind": "pages", "number": 3}


class FakeGuard:
    """Dies with the given deaths, one for each run, and then does its task."""

    def __init__(self, *deaths: WorkerDiedError) -> None:
        self._deaths = list(deaths)
        self.verdicts: list[dict[str, str]] = []

    def run(self, task: dict[str, Any], *, beat_path: str) -> None:
        self.verdicts.append(dict(task["verdicts"]))
        if self._deaths:
            raise self._deaths.pop(0)


def run(guard: Any) -> None:
    run_guarded(guard, TASK, beat_path="unused")


def test_a_page_that_ends_the_process_is_not_parsed_again_and_then_not_read_again() -> None:
    guard = FakeGuard(
        WorkerDiedError(7, "timeout", ""), WorkerDiedError(9, "error", ""), WorkerDiedError(7, "crash", "")
    )

    run(guard)

    assert guard.verdicts == [
        {},
        {"7": "fallback_timeout"},
        {"7": "fallback_timeout", "9": "fallback_error"},
        {"7": "page_crash", "9": "fallback_error"},
    ]


def test_a_parser_that_fails_on_page_after_page_ends_the_task() -> None:
    guard = FakeGuard(*(WorkerDiedError(page, "crash", "exit code 3") for page in range(1, 99)))

    with pytest.raises(SetupError, match=r"pages-00003: 26 pieces .* is broken.* number 26 .* exit code 3"):
        run(guard)

    assert len(guard.verdicts) == MAX_FAILED_PAGES + 1


def test_a_process_that_dies_outside_of_pages_is_tried_three_times() -> None:
    survivor = FakeGuard(*[WorkerDiedError(0, "crash", "SIGKILL")] * 2)
    run(survivor)
    assert len(survivor.verdicts) == 3

    with pytest.raises(SetupError, match=r"died 3 times outside of any page.*disk is full"):
        run(FakeGuard(*[WorkerDiedError(0, "error", "disk is full")] * 3))


@pytest.mark.parametrize("threads", [(), ("--direct_num_workers=2", "--direct_running_mode=multi_threading")])
def test_every_task_is_done_once(tmp_path: Path, threads: tuple[str, ...]) -> None:
    quiet_beam()
    work = Work("tests.support.guarded_work:work", str(tmp_path), None, None)
    tasks = [{"kind": "scan", "number": number, "n_pages": number} for number in range(5)]

    with Pipeline("FnApiRunner", argv=["--runner=FnApiRunner", *threads]) as pipeline:
        done = pipeline | RunTasks(tasks, work)
        assert_that(done, equal_to([task_name(task) for task in tasks]))

    assert failures(str(tmp_path)) == []
    assert len(list((tmp_path / "beats").iterdir())) == 5


def test_a_task_that_cannot_be_done_is_noted_and_the_rest_is_not_begun(tmp_path: Path) -> None:
    quiet_beam()
    work = Work("tests.support.guarded_work:work", str(tmp_path), None, None)
    tasks = [{"kind": "scan", "number": number, "n_pages": 1, "how": "set-up"} for number in range(3)]

    with Pipeline("FnApiRunner") as pipeline:
        assert_that(pipeline | RunTasks(tasks, work), equal_to([]))

    (fault,) = failures(str(tmp_path))
    assert (type(fault), str(fault)) == (SetupError, "no such index; build it first")


RAISED = """Traceback (most recent call last):
  File "worker.py", line 7, in process
    raise fault from error
kbsource.errors.{kind}: It is so. Mend it. [while running 'scan/work']

\tat org.apache.beam
"""


@pytest.mark.parametrize(
    ("report", "kind", "message"),
    [
        (RAISED.format(kind="SetupError"), SetupError, "It is so. Mend it."),
        (RAISED.format(kind="DataError"), DataError, "It is so. Mend it."),
        (
            "Pipeline p failed in state FAILED: java.io.IOException: no space\n\tat org.apache",
            SetupError,
            "The runner gave up on the stage scan: java.io.IOException: no space",
        ),
    ],
)
def test_what_a_cluster_reports_is_a_fault_of_its_kind(report: str, kind: type[SetupError], message: str) -> None:
    fault = reported_fault(report, "scan")

    assert (type(fault), str(fault)) == (kind, message)


def test_a_report_that_names_no_fault_is_none() -> None:
    assert reported_fault("IndexError: list index out of range", "scan") is None
