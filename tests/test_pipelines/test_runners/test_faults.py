"""Faults of the machine in the middle of a job: a clean failure that says what to do, and a next run that starts clean.

Elsewhere: pages that hang or crash, drivers that are killed or interrupted, damaged dumps (test_build.py,
test_map_dataset.py), workers of a cluster that are killed (test_spark.py), changed files (test_release_verify.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError, SetupError
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.verify import verify
from pipelines.cli import main
from pipelines.jobs import build as build_job
from tests.support import mini_wiki
from tests.support.builds import build_mini, contents
from tests.support.command_processes import run_command
from tests.support.killing import run_and_kill

pytestmark = pytest.mark.slow


def command(output: Path, *more: str) -> list[str]:
    return [
        "build",
        f"--dump={mini_wiki.MULTISTREAM}",
        f"--page-props={mini_wiki.PAGE_PROPS}",
        f"--output={output}",
        f"--max-rejects={mini_wiki.MAX_REJECTS}",
        *more,
    ]


@pytest.mark.parametrize("file_bytes", [20_000, 76_800], ids=["scanning", "writing pages"])
@pytest.mark.parametrize("runner", [(), ("--workers=2",)])
def test_no_room_for_a_file_is_said_in_one_line_and_the_next_run_starts_clean(
    release: Path, tmp_path: Path, runner: tuple[str, ...], file_bytes: int
) -> None:
    code, errors = run_command(command(tmp_path / "release", *runner), file_bytes=file_bytes)

    assert code == 2
    assert "File too large" in errors
    assert "Raise the limit (ulimit -f) and run the same command again" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "release" / "manifest.json").exists()
    build_mini(tmp_path / "release")
    assert contents(tmp_path / "release") == contents(release)


def test_workers_end_with_the_process_that_they_are_forked_from(tmp_path: Path) -> None:
    options = ("--workers=2", "--range-bytes=10000")
    arguments = command(tmp_path / "release", *options)

    code, errors = run_and_kill(
        arguments, temporary=tmp_path / "tmp", who="fork server", output=tmp_path / "release", n_files=20
    )

    assert code == 2
    assert "A worker process was killed by SIGKILL" in errors
    assert not (tmp_path / "release" / "manifest.json").exists()


def test_a_folder_that_cannot_be_made_is_a_clean_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("no folder")

    code = main(command(tmp_path / "file" / "release"))

    assert code == 2
    assert "Not a directory" in (errors := capsys.readouterr().err)
    assert "Choose another folder and run the same command again" in errors


def test_a_dump_that_disappears_after_its_check_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = tmp_path / mini_wiki.MULTISTREAM.name
    dump.write_bytes(mini_wiki.MULTISTREAM.read_bytes())
    run_pipeline = build_job.run_pipeline

    def lose_and_run(*arguments: Any, **options: Any) -> None:
        dump.unlink()
        run_pipeline(*arguments, **options)

    monkeypatch.setattr(build_job, "run_pipeline", lose_and_run)

    with pytest.raises(SetupError, match=rf"No such file.*{dump.name}.*put it back") as caught:
        build_mini(tmp_path / "release", dump=dump)

    assert caught.type is SetupError
    assert not (tmp_path / "release" / "manifest.json").exists()
    monkeypatch.undo()
    dump.write_bytes(mini_wiki.MULTISTREAM.read_bytes())
    build_mini(tmp_path / "release", dump=dump)
    assert verify(str(tmp_path / "release"), [PAGES_RELEASE]).findings == ()


def test_a_dump_that_is_overwritten_after_its_check_makes_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = tmp_path / mini_wiki.XML.name
    content = mini_wiki.XML.read_bytes()
    dump.write_bytes(content)
    run_pipeline = build_job.run_pipeline

    def overwrite_and_run(*arguments: Any, **options: Any) -> None:
        dump.write_bytes(content.replace(b"archipelago", b"constellations"[:11]))
        run_pipeline(*arguments, **options)

    monkeypatch.setattr(build_job, "run_pipeline", overwrite_and_run)

    with pytest.raises(DataError, match=rf"{dump.name} changed while it was being read, so no release was made"):
        build_mini(tmp_path / "release", dump=dump)

    assert not (tmp_path / "release" / "manifest.json").exists()


def test_a_staged_part_that_disappears_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"parser": "tests.support.moody_parser:RefusingParser"}
    monkeypatch.setenv("KBSOURCE_TEST_REFUSES", "1")
    with pytest.raises(SetupError, match="no parsing today"):
        build_mini(tmp_path / "release", **options)
    for part in (tmp_path / "release" / "_staging" / "articles").glob("*.arrow"):
        part.unlink()
    monkeypatch.delenv("KBSOURCE_TEST_REFUSES")

    with pytest.raises(SetupError, match=r"No such file.*articles.*\.arrow") as caught:
        build_mini(tmp_path / "release", **options)

    assert caught.type is SetupError
