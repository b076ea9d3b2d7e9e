"""The estimates of docs/running.md come from the rates of docs/performance.md by the sums that stand beside them."""

from __future__ import annotations

import re

import pytest

from tests.support.real_data import ROOT

RUNNING = " ".join((ROOT / "docs" / "running.md").read_text("utf-8").split())
PERFORMANCE = " ".join((ROOT / "docs" / "performance.md").read_text("utf-8").split())


def number(pattern: str, text: str) -> float:
    """Gives the number that a pattern finds in a text."""
    found = re.search(pattern, text)
    assert found is not None, pattern
    return float(found[1].replace(",", ""))


RATE = number(r"a straight line: ([\d.]+) MB/s a core", PERFORMANCE)
DRIVER_HOURS = number(r"CPU hours, ([\d.]+) of them the driver's", PERFORMANCE)
GB = number(r"([\d.]+) GB of XML", RUNNING)
CORE_HOURS = number(r"\*\*([\d.]+) core hours\*\*", RUNNING)
ROUNDING = 0.0051
ROWS = [
    re.split(r" *\| *", line.strip("| "))
    for line in (ROOT / "docs" / "running.md").read_text("utf-8").splitlines()
    if line.startswith("|") and " / " in line and "=" in line
]


def value(expression: str) -> float:
    """Gives what a sum or a product of quotients comes to."""
    total = 0.0
    for term in expression.split("+"):
        product = 1.0
        for factor in term.split("×"):
            first, _, divisor = factor.replace("$", "").partition("/")
            product *= float(first) / (float(divisor) if divisor.strip() else 1.0)
        total += product
    return total


def test_the_rates_are_the_measured_ones() -> None:
    assert number(r"([\d.]+) MB of XML a second and core", RUNNING) == RATE
    assert number(r"([\d.]+) hours of the driver", RUNNING) == DRIVER_HOURS
    assert number(r"at the measured rate are ([\d.]+) core hours", RUNNING) == pytest.approx(
        GB * 1000 / RATE / 3600, abs=0.05
    )


def test_the_estimates_say_that_they_are_and_what_they_assume() -> None:
    assert "**Everything below is an estimate**" in RUNNING
    assert "prices were not looked up" in RUNNING


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_estimate_is_the_sum_beside_it(row: list[str]) -> None:
    machine, hours, *costs = row
    expression, _, result = hours.partition("=")
    cores = number(r"(\d+) cores", machine)
    assert expression.startswith(f"{DRIVER_HOURS} + {CORE_HOURS:g} / {cores:g} ")
    assert float(result) == pytest.approx(value(expression), abs=ROUNDING)
    for cost in filter(None, costs):
        expression, _, total = cost.partition("=")
        assert expression.startswith(f"{cores:g} × {result.strip()} × ")
        assert float(total.strip(" $")) == pytest.approx(value(expression), abs=ROUNDING)


def test_every_machine_of_the_table_is_looked_at() -> None:
    assert len(ROWS) == 3
    assert sum(len(row) > 2 and bool(row[2]) for row in ROWS) == 2
