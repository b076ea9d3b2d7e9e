"""Every extra alone: kbsource as a wheel and what the extra brings, in an environment with nothing else; commands run.

What it brings are links to the packages of the environment of the tests, chosen as pip chooses them: to fetch, unpack
and compile them again would take minutes.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipelines.commands import COMMANDS as ALL_COMMANDS
from tests.support import mini_wiki
from tests.support.real_data import ROOT
from tests.support.tiny_encoder import tiny_encoder

pytestmark = pytest.mark.slow  # a process that imports everything anew, for each extra

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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    """kbsource as a wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    # Of a copy: what is built leaves its files in the checkout, and takes old ones from there.
    for package in ("kbsource", "mapping", "pipelines"):
        shutil.copytree(
            ROOT / package, folder / "source" / package, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=folder / "source", check=True, stdout=subprocess.DEVNULL
    )
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "unpacked")
    (own,) = distributions(path=[str(folder / "unpacked")])
    return own


def brought(extra: str, own: Distribution) -> list[Distribution]:
    """What pip installs for an extra of kbsource: all that is required, at whatever depth."""
    found = {"kbsource": own}
    waiting, seen = [("kbsource", extra)], set[tuple[str, str]]()
    while waiting:
        if (wanted := waiting.pop()) in seen:
            continue
        seen.add(wanted)
        name, of_extra = wanted
        for requirement in map(Requirement, found[name].requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": of_extra}):
                needed = canonicalize_name(requirement.name)
                found.setdefault(needed, distribution(needed) if needed != "kbsource" else own)
                assert requirement.specifier.contains(found[needed].version), requirement
                waiting += [(needed, inner) for inner in ("", *requirement.extras)]
    return [*found.values()]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder for each distribution that an extra brought so far."""
    return tmp_path_factory.mktemp("shelf")


def shelved(installed: Distribution, shelf: Path) -> Path:
    """The folder with the files of one distribution, and what Python compiled of them."""
    folder = shelf / installed.name
    if not folder.exists():
        packages = Path(str(installed.locate_file("")))
        for file, *_ in csv.reader((installed.read_text("RECORD") or "").splitlines()):
            if not file.startswith("../") and "__pycache__" not in file:
                place = folder / file
                place.parent.mkdir(parents=True, exist_ok=True)
                _link(packages / file, place)
                compiled = Path(cache_from_source(file)) if file.endswith(".py") else None
                if compiled is not None and (packages / compiled).exists():
                    (folder / compiled).parent.mkdir(exist_ok=True)
                    _link(packages / compiled, folder / compiled)
    return folder


def _link(source: Path, place: Path) -> None:
    try:
        os.link(source, place)
    except OSError:  # on another disk
        shutil.copy2(source, place)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    """An environment with nothing in it."""
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("extra", COMMANDS)
def test_an_extra_works_alone(
    extra: str, wheel: Distribution, shelf: Path, environment: Path, release: Path, tmp_path: Path
) -> None:
    (packages,) = environment.glob("lib/python*/site-packages")
    folders = [str(shelved(installed, shelf)) for installed in brought(extra, wheel)]
    (packages / "brought.pth").write_text("\n".join(folders), "utf-8")
    encoder = str(tiny_encoder(tmp_path / "tiny")) if extra == "dense" else ""
    (tmp_path / "out").mkdir()
    places = {"release": release, "out": tmp_path / "out", "dump": mini_wiki.MULTISTREAM, "encoder": encoder}
    lines = [line.format_map(places) for line in COMMANDS[extra]]
    ended = subprocess.run(
        [str(environment / "bin" / "python"), "-c", CONSOLE, *lines],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
