"""Temporary folders: gone with what made them; those of killed processes with the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbsource.temporary import TemporaryFolder, remove_left_behind
from tests.support.real_data import ROOT

HOLDER = """
import sys
from kbsource.temporary import TemporaryFolder
folder = TemporaryFolder()
open(folder.name + "/file", "w").close()
print(folder.name, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's place of temporary folders."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder(place: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has a temporary folder, whose path it says."""
    command = [sys.executable, "-c", HOLDER]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


def told_path(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_a_folder_goes_with_its_context_its_object_and_its_process(place: Path, holder: subprocess.Popen[str]) -> None:
    of_process = told_path(holder)
    with TemporaryFolder() as name:
        (Path(name) / "below" / "deeper").mkdir(parents=True)
        assert Path(name).parent == place
    folder = TemporaryFolder()
    assert {Path(folder.name), of_process} == set(place.iterdir())
    del folder
    holder.communicate("\n")
    assert list(place.iterdir()) == []


def test_a_folder_may_be_gone_before_its_context_ends(place: Path) -> None:
    with TemporaryFolder(str(place)) as name:
        for path in Path(name).iterdir():
            path.unlink()
        Path(name).rmdir()
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_behind_goes_with_the_next_one_and_nothing_else(
    place: Path, holder: subprocess.Popen[str]
) -> None:
    left = told_path(holder)
    others = [place / "kbsource-of-nobody", place / f"kbsource-{os.getuid()}-of-others"]
    for other in others:
        other.mkdir()
    others[1].chmod(0o777)
    own = TemporaryFolder()
    assert left.exists()

    holder.kill()
    holder.wait()
    assert left.exists()
    remove_left_behind()

    assert sorted(place.iterdir()) == sorted([*others, Path(own.name)])


def test_a_fork_leaves_the_folder_to_its_parent(place: Path) -> None:
    folder = TemporaryFolder()
    child = os.fork()
    if child == 0:
        folder.cleanup()
        os._exit(0)
    os.waitpid(child, 0)

    assert Path(folder.name).exists()
