"""Stages done by processes of this machine."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError, SetupError
from pipelines.jobs.build import build
from pipelines.options import BuildOptions
from pipelines.progress import Progress
from pipelines.runners import beam_flags
from pipelines.stages import Stages
from pipelines.task_runs import Work
from tests.support import mini_wiki
from tests.support.builds import build_mini, contents


def tasks(count: int, **how: str) -> list[dict[str, Any]]:
    return [{"kind": "scan", "number": number, "n_pages": 1, **how} for number in range(count)]


def work_in(folder: Path) -> Work:
    return Work("tests.support.guarded_work:work", str(folder), None, None)


@pytest.mark.parametrize("n_processes", [1, 2, 7])
def test_every_task_is_done_once(tmp_path: Path, n_processes: int) -> None:
    with Stages(beam_flags("local-multi", workers=n_processes, beam_args=())) as stages:
        by_worker = stages.run(tasks(5), work_in(tmp_path))

    assert by_worker.total() == 5
    assert len(list((tmp_path / "done").iterdir())) == 5


def test_processes_live_for_all_stages_and_end_with_them(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    with Stages(beam_flags("local", workers=None, beam_args=())) as stages:
        for stage in range(3):
            stages.run(tasks(2, pids=str(pids)), work_in(tmp_path / str(stage)))
        (pid,) = [int(path.name) for path in pids.iterdir()]
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


ONE, TWO = (beam_flags("local-multi", workers=number, beam_args=()) for number in (1, 2))
BEAM = beam_flags("FnApiRunner", workers=None, beam_args=())


@pytest.mark.parametrize("flags", [ONE, TWO, BEAM], ids=["one process", "two", "Beam"])
@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("set-up", SetupError, r"no such index; build it first"),
        ("full disk", SetupError, r"\[Errno 28\] No space left on device: .*\. The disk is full\. Make room .*"),
        ("no right", SetupError, r"\[Errno 13\] Permission denied: 'pages.parquet'\. .* Give the user .* the right .*"),
        ("exit", SetupError, r"scan-0000\d: the working process died 3 times outside of any page.*"),
        ("bad data", DataError, r"2 of 3 pages rejected"),
        ("damaged table", DataError, r"A table is not as it was written .* kbsource verify says which file it is\."),
    ],
)
@pytest.mark.parametrize("can_be_noted", [True, False], ids=["", "and the staging folder cannot be written to"])
def test_a_task_that_cannot_be_done_ends_the_stage_with_its_own_fault(
    tmp_path: Path, flags: list[str], how: str, kind: type[SetupError], message: str, can_be_noted: bool
) -> None:
    if not can_be_noted:
        (tmp_path / "failures").write_text("no folder")

    with Stages(flags) as stages, pytest.raises(SetupError) as caught:
        stages.run(tasks(40, how=how), work_in(tmp_path))

    assert caught.type is kind
    assert re.fullmatch(message, str(caught.value))
    assert not can_be_noted or len(list((tmp_path / "failures").iterdir())) <= 2


def test_a_local_build_leaves_beam_alone(tmp_path: Path) -> None:
    code = (
        "import sys; from pipelines.cli import main; "
        "code = main(sys.argv[1:]); assert 'apache_beam' not in sys.modules; sys.exit(code)"
    )
    arguments = [
        "build",
        "--dump",
        str(mini_wiki.MULTISTREAM),
        "--output",
        str(tmp_path / "release"),
        "--max-rejects",
        "0.05",
    ]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_beam_makes_the_same_bytes(tmp_path: Path) -> None:
    build_mini(tmp_path / "here", range_bytes=10_000)
    build_mini(tmp_path / "beam", range_bytes=10_000, runner="FnApiRunner")

    assert contents(tmp_path / "here") == contents(tmp_path / "beam")


def test_dataflow_is_given_no_path_of_this_machine(tmp_path: Path) -> None:
    flags = ["--runner=DataflowRunner"]
    options = BuildOptions(dump=(str(mini_wiki.MULTISTREAM),), output="gs://bucket/release")

    with pytest.raises(SetupError, match=rf"{mini_wiki.MULTISTREAM.name} is a path of this machine.*give gs://"):
        build(options, flags=flags, progress=Progress(io.StringIO()))
    with pytest.raises(SetupError, match="release is a path of this machine"):
        Stages(flags).check_paths("gs://bucket/x", str(tmp_path / "release"))
    Stages(flags).check_paths("gs://bucket/x")
    Stages(beam_flags("local", workers=None, beam_args=())).check_paths(str(tmp_path))
