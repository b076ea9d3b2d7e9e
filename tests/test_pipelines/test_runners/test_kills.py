"""Children, workers and drivers killed in the middle: the same bytes, once the command has come to its end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support import mini_wiki
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import build_mini, contents
from tests.support.killing import run_and_kill, run_command

pytestmark = pytest.mark.slow

RANGE_BYTES = 8_000
N_MOMENTS = 20
RECORDS = [
    record("found", [evidence("rises in Lake Miravel", title="River Ullane")]),
    record("weak", [evidence("zebra quagga okapi gnu", title="Lake Miravel")]),
    "{ not json",
    record("missing", [evidence("anything", title="Lake Miravl")]),
    record("other", [evidence("Port Sellick", title="Port Sellick")]),
    record("third", [evidence("the lake", title="Lake Miravel")]),
]


def moments(job: str, n_files: int) -> list[tuple[str, int]]:
    """Gives whom to kill, and by how many files and folders then, of up to so many."""
    draw = random.Random(f"kills of a {job}")
    return [(("child", "worker", "driver")[n % 3], draw.randrange(1, n_files)) for n in range(N_MOMENTS)]


def build_command(output: Path, *, runner: str) -> list[str]:
    return [
        "build",
        f"--dump={mini_wiki.MULTISTREAM}",
        f"--page-props={mini_wiki.PAGE_PROPS}",
        f"--output={output}",
        f"--max-rejects={mini_wiki.MAX_REJECTS}",
        f"--range-bytes={RANGE_BYTES}",
        f"--runner={runner}",
    ]


def map_command(output: Path, release: Path, records: Path, *, runner: str) -> list[str]:
    given = ["map", "jsonl", str(release), f"--input={records}", f"--output={output}", f"--runner={runner}"]
    return [*given, "--split=dev", "--max-rejects=0.5", "--chunk-records=1"]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    output = tmp_path_factory.mktemp("whole") / "release"
    build_mini(output, range_bytes=RANGE_BYTES)
    return contents(output)


def killed(arguments: list[str], temporary: Path, output: Path, who: str, n_files: int) -> dict[str, bytes]:
    """Runs a command of which one process is killed, again where that ended it, and gives what it wrote."""
    code, errors = run_and_kill(arguments, temporary=temporary, who=who, output=output, n_files=n_files)
    if code:
        assert who != "child", errors
        assert not (output / "manifest.json").exists()
        again = run_command(arguments, temporary=temporary)
        errors = again.communicate(timeout=180)[1].decode()
        assert again.returncode == 0, errors
    assert list(temporary.iterdir()) == []
    return contents(output)


@pytest.mark.parametrize(("who", "n_files"), moments("build", 45))
def test_a_build_gives_the_same_bytes_whoever_is_killed(
    expected: dict[str, bytes], tmp_path: Path, who: str, n_files: int
) -> None:
    output = tmp_path / "release"
    arguments = build_command(output, runner="local-multi" if who == "worker" else "local")
    assert killed(arguments, tmp_path / "tmp", output, who, n_files) == expected


@pytest.fixture(scope="module")
def aligned(release: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("records")
    records = write_records(folder / "own.jsonl", RECORDS)
    whole = run_command(map_command(folder / "out", release, records, runner="local"), temporary=folder / "tmp")
    assert whole.communicate(timeout=180)
    assert whole.returncode == 0
    return records, contents(folder / "out")


@pytest.mark.parametrize(("who", "n_files"), moments("map", 66))
def test_an_alignment_gives_the_same_bytes_whoever_is_killed(
    aligned: tuple[Path, dict[str, bytes]], release: Path, tmp_path: Path, who: str, n_files: int
) -> None:
    records, expected = aligned
    output = tmp_path / "out"
    arguments = map_command(output, release, records, runner="local-multi" if who == "worker" else "local")
    assert killed(arguments, tmp_path / "tmp", output, who, n_files) == expected


def test_a_build_that_was_killed_goes_on_where_it_was(expected: dict[str, bytes], tmp_path: Path) -> None:
    output = tmp_path / "release"
    arguments = build_command(output, runner="local")
    run_and_kill(arguments, temporary=tmp_path / "tmp", who="driver", output=output, n_files=40)
    done = {path: path.stat().st_mtime_ns for path in (output / "_staging").rglob("*.arrow")}
    assert len(done) > 15

    # The second run is stopped as late as can be, and then the third one brings it to its end.
    run_and_kill(arguments, temporary=tmp_path / "tmp", who="driver", output=output, n_files=60)

    assert done.items() <= {path: path.stat().st_mtime_ns for path in (output / "_staging").rglob("*.arrow")}.items()
    assert run_command(arguments, temporary=tmp_path / "tmp").wait() == 0
    assert contents(output) == expected
