"""What a runner reports of a job that failed."""

from __future__ import annotations

import pytest

from kbsource.errors import DataError, SetupError
from pipelines.runners.running import reported_fault

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
            "The runner gave up on scan: java.io.IOException: no space",
        ),
    ],
)
def test_what_a_cluster_reports_is_a_fault_of_its_kind(report: str, kind: type[SetupError], message: str) -> None:
    fault = reported_fault(report, "scan")

    assert (type(fault), str(fault)) == (kind, message)


def test_a_report_that_names_no_fault_is_none() -> None:
    assert reported_fault("IndexError: list index out of range", "scan") is None
