"""Continuous integration runs the tests on clusters and on PyTorch where they can be had, and says so where not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.real_data import ROOT


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs: what the script is written in, and a ``make`` that notes what it is to make."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "dirname", "grep"):
        path = shutil.which(name)
        assert path is not None
        (folder / name).symlink_to(path)
    add(folder, "make", f'echo "$@" >> {tmp_path}/made; [ "$1" != "$FAILING" ]')
    return folder


def add(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!{shutil.which('sh')}\n{script}\n", "utf-8")
    (folder / name).chmod(0o755)


def run(programs: Path, *, failing: str = "nothing") -> tuple[int, list[str], str]:
    """Gives the exit code, what was made, and what was said."""
    ended = subprocess.run(
        [programs / "bash", ROOT / ".ci" / "run"],
        env={"PATH": str(programs), "FAILING": failing},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, (programs.parent / "made").read_text("utf-8").split(), ended.stdout


@pytest.mark.parametrize(
    ("java", "has_maven", "made"),
    [
        ("17.0.15", True, ["test", "spark-test"]),
        ("11.0.2", True, ["test", "spark-test"]),
        ("21.0.1", True, ["test"]),
        ("1.8.0_392", True, ["test"]),
        (None, True, ["test"]),
        ("17.0.15", False, ["test"]),
    ],
)
def test_the_clusters_are_tried_where_they_can_be(
    java: str | None, has_maven: bool, made: list[str], programs: Path
) -> None:
    if java is not None:
        add(programs, "java", f"echo 'openjdk version \"{java}\"' >&2")
    if has_maven:
        add(programs, "mvn", "exit 0")

    code, found, said = run(programs)

    assert (code, found) == (0, [*made, "nli-environment", "nli-test"])
    assert ("were NOT run" in said) is (len(made) == 1)


def test_without_pytorch_its_tests_are_left_out_aloud(programs: Path) -> None:
    code, found, said = run(programs, failing="nli-environment")

    assert (code, found[-1]) == (0, "nli-environment")
    assert "PyTorch could not be installed" in said


@pytest.mark.parametrize("failing", ["test", "spark-test", "nli-test"])
def test_what_fails_fails_the_whole(failing: str, programs: Path) -> None:
    add(programs, "java", "echo 'openjdk version \"17.0.15\"' >&2")
    add(programs, "mvn", "exit 0")

    code, made, _ = run(programs, failing=failing)

    assert code != 0
    assert made[-1] == failing
