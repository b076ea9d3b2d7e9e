"""The compiled wheel: it has the sources of the pure one, and gives the same bytes and the same identity."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import mini_wiki
from tests.support.real_data import ROOT

# Compiles for a minute: that mypyc's code gives what the interpreter gives.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="mypyc needs gcc, and none is on the PATH"),
]
BUILD = "from pipelines.console import run_and_leave; run_and_leave()"
IDENTITY = (
    "from kbsource.wikitext import walk; from pipelines.runners.workers import installed; "
    "print(walk.__file__.rpartition('.')[2], sorted(installed().items()))"
)


def _wheel(folder: Path, *, is_compiled: bool) -> Path:
    """The content of a wheel built from a copy of the sources, which a build leaves its files in."""
    source = folder / "source"
    for package in ("kbsource", "mapping", "pipelines"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    env = {**os.environ, "KBSOURCE_COMPILE": str(int(is_compiled)), "PYTHONPATH": ""}
    subprocess.run([*pip, str(folder), str(source)], check=True, env=env)
    shutil.rmtree(source)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def _run(installed: Path, code: str, *arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", code, *arguments]
    ended = subprocess.run(command, cwd=installed, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_compiled_wheel_gives_the_bytes_and_the_identity_of_the_pure_one(tmp_path: Path) -> None:
    releases, identities = [], []
    for is_compiled, suffix in ((False, "py"), (True, "so")):
        folder = tmp_path / suffix
        folder.mkdir()
        installed = _wheel(folder, is_compiled=is_compiled)
        found, _, identity = _run(installed, IDENTITY).partition(" ")
        assert found == suffix
        output = folder / "release"
        options = ("--templates", "lua", "--references", "--max-rejects", str(mini_wiki.MAX_REJECTS))
        _run(installed, BUILD, "build", str(mini_wiki.MULTISTREAM), *options, "--output", str(output))
        releases.append({str(p.relative_to(output)): p.read_bytes() for p in output.rglob("*") if p.is_file()})
        identities.append(identity)
    assert identities[0] == identities[1]
    assert "manifest.json" in releases[0]
    assert releases[0] == releases[1]
