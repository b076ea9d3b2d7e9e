"""Every extra alone: what it brings, out of wheels, in an environment with nothing else; its commands run."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from pipelines.commands import COMMANDS as ALL_COMMANDS
from tests.support import mini_wiki
from tests.support.real_data import ROOT
from tests.support.tiny_encoder import tiny_encoder

pytestmark = pytest.mark.slow  # installs from the package index

COMMANDS: dict[str, tuple[str, ...]] = {
    "": (
        "--help",
        *(f"{name} --help" for name in ALL_COMMANDS),
        "info {release}",
        "show {release} 12",
        "templates {release}",
        "export-kilt {release} --output {out}/kilt.jsonl",
    ),
    "verify": ("verify {release}", "sql {release} select(1)"),
    "publish": ("publish {release} --output {out}/published --licence CC0-1.0",),
    "build": ("check-dump {dump}", "build {dump} --limit-pages 5 --output {out}/built", "verify {out}/built"),
    "diff": ("diff {release} {release} --output {out}/diff", "show {release} 12"),
    "inspect": ("report {release} --output {out}/report.html",),
    "align": ("passages {release} --output {out}/passages", "locate {release} --id 12", "completion bash"),
    "search": ("passages {release} --output {out}/passages", "search {out}/passages island --index {out}/index"),
    "dense": (
        "passages {release} --output {out}/passages",
        "vectors {out}/passages --model {encoder} --output {out}/vectors",
    ),
    "hadoop": ("info {release}",),
    "serve": ("serve {release} --stdio",),
}
"""Command lines that an extra is for."""
CONSOLE = (
    "import sys; from pipelines.cli import main; "
    "sys.exit(next(filter(lambda line: main(line.split()), sys.argv[1:]), 0))"
)
"""Runs command lines one after the other, and ends with the first that fails."""
CONSTRAINTS = str(ROOT / "constraints.txt")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """kbsource and all that these extras bring, each unpacked beside its wheel: so that it is compiled once for all
    environments. Fetched once for all processes of a run, gone with the last."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "wheels"
    with open(shared / "wheels.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _fetch(shared / "source", shared / "fetched")
            (shared / "fetched").rename(folder)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield folder
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


def _fetch(source: Path, folder: Path) -> None:
    # Of a copy: what is built leaves its files in the checkout, and takes old ones from there.
    for package in ("kbsource", "mapping", "pipelines"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    wanted = f"{source}[{','.join(filter(None, COMMANDS))}]"
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "-c", CONSTRAINTS, "--wheel-dir", str(folder), wanted]
    subprocess.run(pip, check=True)
    shutil.rmtree(source)
    for wheel in list(folder.iterdir()):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / wheel.stem)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    """An environment with nothing in it."""
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("extra", COMMANDS)
def test_an_extra_works_alone(extra: str, wheels: Path, environment: Path, release: Path, tmp_path: Path) -> None:
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--dry-run", "--report", "-"]
    own = ["--no-index", "--find-links", str(wheels), "-c", CONSTRAINTS, f"kbsource[{extra}]" if extra else "kbsource"]
    # An editable installation that PYTHONPATH shows would count as installed.
    shown = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    report = subprocess.run([*pip, *own], check=True, cwd=tmp_path, env=shown, stdout=subprocess.PIPE).stdout
    brought = [
        Path(unquote(urlsplit(package["download_info"]["url"]).path)) for package in json.loads(report)["install"]
    ]
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "brought.pth").write_text("\n".join(str(wheel.with_suffix("")) for wheel in brought), "utf-8")
    encoder = str(tiny_encoder(tmp_path / "tiny")) if extra == "dense" else ""
    (tmp_path / "out").mkdir()
    places = {"release": release, "out": tmp_path / "out", "dump": mini_wiki.MULTISTREAM, "encoder": encoder}
    lines = [line.format_map(places) for line in COMMANDS[extra]]
    ended = subprocess.run(
        [str(python), "-c", CONSOLE, *lines],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
