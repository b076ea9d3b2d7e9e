"""Children, workers and drivers killed in the middle: the same bytes, once the command has come to its end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support import mini_wiki
from tests.support.builds import build_mini, contents
from tests.support.killing import run_and_kill, run_command

RANGE_BYTES = 8_000
N_MOMENTS = 20


def moments() -> list[tuple[str, int]]:
    """Gives whom to kill, and by how many files and folders then."""
    draw = random.Random("kills of a build")
    return [(("child", "worker", "driver")[n % 3], draw.randrange(1, 45)) for n in range(N_MOMENTS)]


def command(output: Path, *, runner: str) -> list[str]:
    return [
        "build",
        f"--dump={mini_wiki.MULTISTREAM}",
        f"--page-props={mini_wiki.PAGE_PROPS}",
        f"--output={output}",
        f"--max-rejects={mini_wiki.MAX_REJECTS}",
        f"--range-bytes={RANGE_BYTES}",
        f"--runner={runner}",
    ]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    output = tmp_path_factory.mktemp("whole") / "release"
    build_mini(output, range_bytes=RANGE_BYTES)
    return contents(output)


@pytest.mark.parametrize(("who", "n_files"), moments())
def test_a_build_gives_the_same_bytes_whoever_is_killed(
    expected: dict[str, bytes], tmp_path: Path, who: str, n_files: int
) -> None:
    output, temporary = tmp_path / "release", tmp_path / "tmp"
    arguments = command(output, runner="local-multi" if who == "worker" else "local")

    code, errors = run_and_kill(arguments, temporary=temporary, who=who, output=output, n_files=n_files)

    if code:
        assert who != "child", errors
        assert not (output / "manifest.json").exists()
        again = run_command(arguments, temporary=temporary)
        errors = again.communicate(timeout=180)[1].decode()
        assert again.returncode == 0, errors
    assert contents(output) == expected


def test_a_build_that_was_killed_goes_on_where_it_was(expected: dict[str, bytes], tmp_path: Path) -> None:
    output = tmp_path / "release"
    arguments = command(output, runner="local")
    run_and_kill(arguments, temporary=tmp_path / "tmp", who="driver", output=output, n_files=40)
    done = {path: path.stat().st_mtime_ns for path in (output / "_staging").rglob("*.arrow")}
    assert len(done) > 15

    # The second run is stopped as late as can be, and then the third one brings it to its end.
    run_and_kill(arguments, temporary=tmp_path / "tmp", who="driver", output=output, n_files=60)

    assert done.items() <= {path: path.stat().st_mtime_ns for path in (output / "_staging").rglob("*.arrow")}.items()
    assert run_command(arguments, temporary=tmp_path / "tmp").wait() == 0
    assert contents(output) == expected
