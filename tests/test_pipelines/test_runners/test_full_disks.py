"""Outputs on a disk that is full before they are finished: one line, and nothing that looks finished."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import mini_wiki
from tests.support.real_data import ROOT

FEVER = ROOT / "kbsource" / "demo" / "datasets" / "fever"
COMMANDS = {
    "build": ["build", str(mini_wiki.MULTISTREAM), f"--max-rejects={mini_wiki.MAX_REJECTS}"],
    "passages": ["passages", "{release}"],
    "map": [
        *(
            "map",
            "fever",
            "{release}",
            "--input",
            str(FEVER / "train.jsonl"),
            "--wiki-pages",
            str(FEVER / "wiki-pages"),
        ),
        *("--split", "train", "--max-rejects", "0.9"),
    ],
}
SIZES = {"build": "200k", "passages": "100k", "map": "300k"}


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder that takes little."""
    place = tmp_path / "disk"
    place.mkdir()
    size = SIZES[request.node.callspec.params["name"]]
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow  # a process of each command
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_said_in_one_line_and_leaves_no_finished_output(
    release: Path, small_disk: Path, name: str
) -> None:
    given = [word.format(release=release) for word in COMMANDS[name]]
    ended = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *given, "--output", str(small_disk / "out")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 2, ended.stderr
    said = [line for line in ended.stderr.splitlines() if line.startswith("kbsource ")]
    assert len(said) == 1
    assert "The disk is full. Make room and run the same command again" in said[0]
    assert "Traceback" not in ended.stderr
    assert not (small_disk / "out" / "manifest.json").exists()
