"""Copies of remote files: one a machine, which the last process that uses it removes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar

import pytest

from kbsource.errors import DataError, SetupError
from kbsource.files import Folder
from kbsource.local_copies import local_copy, release_copies, shared_copy
from tests.support.real_data import ROOT

NAMES = ("a.arrow", "b.arrow")

# Says where its copy lies and waits for a line; what it reads slowly is noted in a file.
USER = """
import sys
from kbsource.files import Folder
from kbsource.local_copies import shared_copy

class Noted(Folder):
    def open(self, name=""):
        with open(sys.argv[2], "a") as notes:
            print(self / name, file=notes)
        return super().open(name)

print(shared_copy(Noted(sys.argv[1]), ("a.arrow", "b.arrow")), flush=True)
sys.stdin.readline()
"""

# Takes copies and lets go of them, 200 times.
GUEST = """
import random, sys
from pathlib import Path
from kbsource.files import Folder
from kbsource.local_copies import release_copies, shared_copy

chance = random.Random(int(sys.argv[2]))
for _ in range(200):
    local = shared_copy(Folder.of(sys.argv[1]), ("a.arrow",), version=str(chance.randrange(2)))
    assert Path(local, "a.arrow").stat().st_size == 700
    release_copies()
"""


class _Counting(Folder):
    opened: ClassVar[list[str]] = []

    def open(self, name: str = "") -> BinaryIO:
        self.opened.append(self.name)
        return super().open(name)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder of this process and those that it starts."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield scratch
    release_copies()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_bytes(name.encode() * 100)
    return folder


def _start(folder: Path, second: object, code: str = USER) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", code, str(folder), str(second)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes)  # type: ignore[call-overload, no-any-return]


def _place(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def _end(process: subprocess.Popen[str]) -> None:
    process.communicate("\n")
    assert process.returncode == 0


def test_a_copy_is_made_once_and_goes_with_the_process(folder: Path, scratch: Path) -> None:
    counting = _Counting(str(folder))
    _Counting.opened.clear()
    local = shared_copy(counting, NAMES)
    again = shared_copy(counting, NAMES)

    assert again == local
    assert counting.opened == [*NAMES]
    assert {path.name for path in Path(local).iterdir()} == {*NAMES, "lock", "copying"}
    assert (Path(local) / "b.arrow").read_bytes() == (folder / "b.arrow").read_bytes()
    release_copies()
    assert list(scratch.iterdir()) == []
    assert shared_copy(counting, NAMES) == local
    assert counting.opened == [*NAMES, *NAMES]


def test_what_is_local_is_given_as_it_is(folder: Path, scratch: Path) -> None:
    assert local_copy(Folder.of(folder), NAMES) == str(folder)
    assert list(scratch.iterdir()) == []


def test_other_files_under_the_same_names_are_another_copy(folder: Path, scratch: Path) -> None:
    def copy(version: str = "", store: str = "") -> str:
        return shared_copy(Folder(str(folder), (("aws_endpoint_url", store),)), NAMES, version=version)

    copies = [copy(), copy("v1"), copy("v2"), copy("v2", "other")]
    (folder / "a.arrow").write_bytes(b"longer than before" * 100)

    assert len({*copies, copy()}) == 5
    assert copy("v1") == copies[1]


def test_a_file_that_is_missing_or_cut_off_is_named(folder: Path, scratch: Path) -> None:
    class Short(Folder):
        def size(self, name: str = "") -> int:
            return super().size(name) + 1

    with pytest.raises(DataError, match=r"index/c\.arrow is missing; download or build the release again"):
        shared_copy(Folder.of(folder), ("c.arrow",))
    with pytest.raises(DataError, match=r"a\.arrow had 701 bytes, but 700 bytes were copied"):
        shared_copy(Short(str(folder)), ("a.arrow",))


def test_a_folder_that_others_may_write_to_is_refused(folder: Path, scratch: Path) -> None:
    local = Path(shared_copy(Folder.of(folder), NAMES))
    release_copies()
    local.mkdir()
    local.chmod(0o777)

    with pytest.raises(SetupError, match="not a folder that you created"):
        shared_copy(Folder.of(folder), NAMES)


def test_processes_share_a_copy_and_the_last_one_removes_it(folder: Path, scratch: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    processes = [_start(folder, notes) for _ in range(4)]
    (local,) = {_place(process) for process in processes}

    assert sorted(notes.read_text().splitlines()) == [str(folder / name) for name in NAMES]
    for process in processes[1:]:
        _end(process)
        assert {path.name for path in local.iterdir()} > set(NAMES)
    _end(processes[0])
    assert list(scratch.iterdir()) == []


def test_processes_come_and_go(folder: Path, scratch: Path) -> None:
    for guest in [_start(folder, seed, GUEST) for seed in range(4)]:
        _end(guest)

    assert list(scratch.iterdir()) == []


def test_what_killed_processes_left_behind_is_removed_by_the_next_one(
    folder: Path, scratch: Path, tmp_path: Path
) -> None:
    killed = _start(folder, tmp_path / "notes")
    left = _place(killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left.exists()
    (left / "a.arrow").rename(left / "a.arrow.tmp")  # as if it was killed while it copied
    other = scratch / "kbsource-copy-of-nobody"
    other.mkdir()

    again = _start(folder, tmp_path / "notes")
    assert (_place(again) / "a.arrow").read_bytes() == (folder / "a.arrow").read_bytes()
    _end(again)
    assert list(scratch.iterdir()) == [other]


def test_a_copy_of_something_else_does_not_keep_what_was_left_behind(
    folder: Path, scratch: Path, tmp_path: Path
) -> None:
    killed = _start(folder, tmp_path / "notes")
    left = _place(killed)
    killed.kill()
    killed.communicate()

    local = shared_copy(Folder.of(folder), NAMES, version="another")

    assert not left.exists()
    assert [str(path) for path in scratch.iterdir()] == [local]


def test_a_fork_leaves_the_copy_to_its_parent(folder: Path, scratch: Path) -> None:
    local = Path(shared_copy(Folder.of(folder), NAMES))
    child = os.fork()
    if child == 0:
        release_copies()
        os._exit(0)
    os.waitpid(child, 0)

    assert local.exists()
