"""Faults of the machine in the middle of a job: a clean failure that says what to do, and a next run that starts clean.

Elsewhere: pages that hang or crash, drivers that are killed or interrupted, damaged dumps (test_build.py,
test_map_dataset.py), workers of a cluster that are killed (test_spark.py), changed files (test_release_verify.py).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.release.verify import verify_release
from pipelines.cli import main
from pipelines.jobs import build as build_job
from pipelines.runners import beam_flags
from pipelines.shown_stages import ShownStages
from pipelines.stages import Stages
from pipelines.task_runs import Work
from tests.support import mini_wiki
from tests.support.builds import build_mini, contents
from tests.support.real_data import ROOT


def command(output: Path, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "pipelines.cli",
        "build",
        f"--dump={mini_wiki.MULTISTREAM}",
        f"--page-props={mini_wiki.PAGE_PROPS}",
        f"--output={output}",
        f"--max-rejects={mini_wiki.MAX_REJECTS}",
        *more,
    ]


def run(arguments: list[str], *, file_bytes: int | None = None) -> tuple[int, str]:
    """Runs a command whose processes may write no file above a size; gives exit code and standard error."""

    def limit() -> None:
        if file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    ended = subprocess.run(
        arguments,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("file_bytes", [20_000, 76_800], ids=["scanning", "writing pages"])
@pytest.mark.parametrize("runner", [(), ("--runner=local-multi", "--workers=2"), ("--runner=FnApiRunner",)])
def test_no_room_for_a_file_is_said_in_one_line_and_the_next_run_starts_clean(
    release: Path, tmp_path: Path, runner: tuple[str, ...], file_bytes: int
) -> None:
    code, errors = run(command(tmp_path / "release", *runner), file_bytes=file_bytes)

    assert code == 2
    assert "File too large" in errors
    assert "Raise the limit (ulimit -f) and run the same command again" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "release" / "manifest.json").exists()
    build_mini(tmp_path / "release")
    assert contents(tmp_path / "release") == contents(release)


def test_a_folder_that_cannot_be_made_is_a_clean_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("no folder")

    code = main(command(tmp_path / "file" / "release")[3:])

    assert code == 2
    assert "Not a directory" in (errors := capsys.readouterr().err)
    assert "Choose another folder and run the same command again" in errors


def test_a_dump_that_disappears_after_its_check_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = tmp_path / mini_wiki.MULTISTREAM.name
    dump.write_bytes(mini_wiki.MULTISTREAM.read_bytes())
    scan = build_job._Build._scan

    def lose_and_scan(job: build_job._Build, *arguments: object) -> object:
        dump.unlink()
        return scan(job, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(build_job._Build, "_scan", lose_and_scan)

    with pytest.raises(SetupError, match=rf"No such file.*{dump.name}.*Put it back") as caught:
        build_mini(tmp_path / "release", dump=dump)

    assert caught.type is SetupError
    assert not (tmp_path / "release" / "manifest.json").exists()
    monkeypatch.undo()
    dump.write_bytes(mini_wiki.MULTISTREAM.read_bytes())
    build_mini(tmp_path / "release", dump=dump)
    assert verify_release(str(tmp_path / "release")).findings == ()


def test_a_task_that_cannot_be_noted_as_done_ends_the_stage_as_a_full_disk_does(tmp_path: Path) -> None:
    (tmp_path / "done").write_text("no folder")
    work = Work("tests.support.guarded_work:work", str(tmp_path), None, None)
    task = {"kind": "scan", "number": 0, "n_pages": 1}

    for runner in ("local", "FnApiRunner"):
        with Stages(beam_flags(runner, workers=None, beam_args=())) as stages, pytest.raises(SetupError) as caught:
            stages.run([task], work)
        assert caught.type is SetupError
        assert "A file lies where a folder should be. Choose another folder" in str(caught.value)


def test_a_staged_part_that_disappears_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = build_job._Build._pages

    def lose_and_write(job: build_job._Build, tasks: ShownStages, *arguments: object) -> object:
        for part in Path(tasks.staging, "articles").glob("*.arrow"):
            part.unlink()
        return pages(job, tasks, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(build_job._Build, "_pages", lose_and_write)

    with pytest.raises(SetupError, match=r"No such file.*articles.*\.arrow") as caught:
        build_mini(tmp_path / "release")

    assert caught.type is SetupError
