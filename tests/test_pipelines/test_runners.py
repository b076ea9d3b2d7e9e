"""Presets, and flags that Beam would pass over in silence."""

from __future__ import annotations

import pytest

from kbsource.errors import SetupError
from pipelines.runners import beam_flags, n_cores, pipeline_options, quiet_beam

THREADS = "--direct_running_mode=multi_threading"


@pytest.mark.parametrize(
    ("runner", "workers", "beam_args", "expected"),
    [
        ("local", None, (), ["--runner=FnApiRunner"]),
        ("local", None, ("--job_name=x",), ["--runner=FnApiRunner", "--job_name=x"]),
        ("local-multi", 3, (), ["--runner=FnApiRunner", "--direct_num_workers=3", THREADS]),
        ("local-multi", None, (), ["--runner=FnApiRunner", f"--direct_num_workers={n_cores()}", THREADS]),
        ("SparkRunner", None, ("--spark_version=3",), ["--runner=SparkRunner", "--spark_version=3"]),
    ],
)
def test_a_name_becomes_flags_of_beam(
    runner: str, workers: int | None, beam_args: tuple[str, ...], expected: list[str]
) -> None:
    assert beam_flags(runner, workers=workers, beam_args=beam_args) == expected


@pytest.mark.parametrize(
    ("runner", "workers", "message"),
    [
        ("spark-local", None, r"spark-local: no preset \(local, local-multi\) and no runner of Beam"),
        ("local", 2, "--workers is for --runner local-multi"),
        ("local-multi", 0, "--workers is 0"),
    ],
)
def test_a_wrong_choice_is_named(runner: str, workers: int | None, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        beam_flags(runner, workers=workers, beam_args=())


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--limit-page=5", "an option --limit-page"),
        ("--nonsense", "an option --nonsense"),
        ("--direct_num_workers=many", "direct_num_workers: invalid int value: 'many'"),
    ],
)
def test_a_flag_that_nobody_knows_is_an_error(flag: str, message: str) -> None:
    quiet_beam()
    with pytest.raises(SetupError, match=message):
        pipeline_options(["--runner=FnApiRunner", flag])


def test_flags_of_beam_reach_it() -> None:
    options = pipeline_options(["--runner=FnApiRunner", "--job_name=wiki"])

    assert options.get_all_options(drop_default=True) == {"runner": "FnApiRunner", "job_name": "wiki"}
