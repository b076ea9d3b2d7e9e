"""A confined process reads its libraries, however they are installed, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kbsource.runtime.confinement import landlock_version, linked_packages

_READ = """
import sys
from pathlib import Path
from kbsource.runtime.confinement import Confinement, forbid_reading

sys.path.insert(0, sys.argv[1])
forbid_reading(Confinement(writes=(), reads=(), has_network=True, largest_file_bytes=None))
import by_file, by_file.inner.deep, by_folder, by_module
for path in sys.argv[2:]:
    try:
        print(Path(path).read_text())
    except PermissionError:
        print("forbidden")
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder of packages that are links to a cache beside it."""
    cache, packages = tmp_path / "cache", tmp_path / "site-packages"
    for path in ("a/by_file/__init__.py", "a/by_file/inner/deep.py", "b/by_folder/__init__.py", "c/by_module.py"):
        (cache / path).parent.mkdir(parents=True, exist_ok=True)
        (cache / path).write_text("")
    (cache / "secret.txt").write_text("a secret")
    (packages / "by_file/inner").mkdir(parents=True)
    for path in ("by_file/__init__.py", "by_file/inner/deep.py"):
        (packages / path).symlink_to(cache / "a" / path)
    (cache / "settings.ini").write_text("settings")
    (packages / "by_file/settings.ini").symlink_to(cache / "settings.ini")
    (packages / "by_folder").symlink_to(cache / "b/by_folder")
    (packages / "by_module.py").symlink_to(cache / "c/by_module.py")
    return packages


def test_linked_packages_are_found(installed: Path) -> None:
    cache = installed.parent / "cache"
    found = set(linked_packages([str(installed), str(installed.parent), "missing/site-packages"]))
    assert found == {str(cache / path) for path in ("a/by_file", "b/by_folder", "c/by_module.py", "settings.ini")}


@pytest.mark.skipif(landlock_version() == 0, reason="needs Landlock")
def test_a_confined_process_imports_linked_packages_and_reads_nothing_else(installed: Path) -> None:
    secret = installed.parent / "cache/secret.txt"
    command = [sys.executable, "-c", _READ, str(installed), str(secret)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("forbidden\n", "")
