"""The compiled wheel: it has the sources of the checkout, and gives the same bytes and the same identity."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import mini_wiki
from tests.support.builds import contents
from tests.support.real_data import ROOT

# Compiles for a minute: that mypyc's code gives what the interpreter gives.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="mypyc needs gcc, and none is on the PATH"),
]
BUILD = (
    "from kbsource.wikitext import walk; from pipelines.console import start_command; "
    "from pipelines.runners.workers import installation_facts; "
    "print(walk.__file__.rpartition('.')[2], sorted(installation_facts().items()), flush=True); start_command()"
)


def _compiled(folder: Path) -> Path:
    """The content of a compiled wheel, built from a copy of the sources, which a build leaves its files in."""
    source = folder / "source"
    for package in ("kbsource", "mapping", "pipelines"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    # What mypyc writes is tested, not what gcc makes faster, which takes most of the time.
    env = {**os.environ, "KBSOURCE_COMPILE": "1", "MYPYC_OPT_LEVEL": "0", "PYTHONPATH": ""}
    subprocess.run([*pip, str(folder), str(source)], check=True, env=env)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def _build(code: Path, output: Path) -> tuple[str, str, dict[str, bytes]]:
    """What a build with the code in a folder parses with, the identity of the code, and the bytes of the release."""
    options = ("--references", "--max-rejects", str(mini_wiki.MAX_REJECTS))
    command = [sys.executable, "-c", BUILD, "build", str(mini_wiki.MULTISTREAM), *options, "--output", str(output)]
    env = {**os.environ, "PYTHONPATH": str(code)}
    ended = subprocess.run(command, cwd=code, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    parser, _, identity = ended.stdout.partition("\n")[0].partition(" ")
    return parser, identity, contents(output)


def test_the_compiled_wheel_gives_the_bytes_and_the_identity_of_the_sources(tmp_path: Path) -> None:
    parser, *pure = _build(ROOT, tmp_path / "pure")
    assert parser == "py"
    parser, *compiled = _build(_compiled(tmp_path), tmp_path / "compiled")
    assert parser == "so"
    assert compiled == pure
    assert "manifest.json" in contents(tmp_path / "pure")
