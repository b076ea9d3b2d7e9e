"""What a large build takes, drawn out from two small ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.enwiki_cost import CHECK, Build, costs, disk_gb

SECONDS = {CHECK: 1.0, "dump": 10.0, "index": 2.0, "pages": 20.0, "write": 3.0, "release": 1.0, "ceiling": 0.1}
SMALL = Build(
    xml_mb=100,
    cpu_s=42.0,  # 5 of them start-up
    seconds=SECONDS,
    disk_mb={"_staging/articles": 50.0},
    peak_disk_mb=60.0,
    release_mb=40.0,
    process_mb=200.0,
    tree_mb=500.0,
)
LARGE = replace(
    SMALL,
    xml_mb=300,
    cpu_s=42.0 + 2 * 37,
    seconds={step: 3 * seconds for step, seconds in SECONDS.items()},
    disk_mb={"_staging/articles": 150.0, "_staging/pages": 100.0},
    peak_disk_mb=180.0,
    release_mb=120.0,
)


def test_start_up_does_not_grow_and_all_cpu_time_belongs_to_a_phase() -> None:
    found = costs(SMALL, LARGE, gb=100, cores=(1, 10))
    assert sum(cost.cpu_s for cost in found) == pytest.approx(37 * 1000)
    by_step = {cost.phase.step: cost.cpu_s for cost in found}
    assert by_step["dump"] == pytest.approx(10_000)
    assert by_step[CHECK] == pytest.approx(1000)


def test_steps_that_waited_for_a_busy_machine_count_by_their_cpu_time() -> None:
    def waiting(made: Build) -> Build:
        return replace(made, seconds={step: s if step == CHECK else 4 * s for step, s in made.seconds.items()})

    assert costs(waiting(SMALL), waiting(LARGE), gb=100) == costs(SMALL, LARGE, gb=100)


def test_more_cores_divide_only_the_phases_of_many_workers() -> None:
    found = {cost.phase.step: cost for cost in costs(SMALL, LARGE, gb=100, cores=(1, 10))}
    assert found["pages"].wall_s[10] == pytest.approx(found["pages"].cpu_s / 10)
    assert found["index"].wall_s[10] == pytest.approx(found["index"].cpu_s)
    assert sum(cost.share[10] for cost in found.values()) == pytest.approx(1)
    assert found["index"].share[10] == pytest.approx(2 / (1 + 1 + 2 + 2 + 0.3 + 1))


def test_disk_grows_on_a_straight_line() -> None:
    assert disk_gb(SMALL, LARGE, gb=100) == pytest.approx(
        {"_staging/articles": 50, "_staging/pages": 50, "peak": 60, "release": 40}
    )
