"""What a confined process tries, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from kbsource.runtime.beat import Beat


def attack(task: Mapping[str, Any], _: Beat) -> list[str]:
    """Tries to do harm; returns what succeeded."""
    release, scratch, other = task["release"], task["scratch"], task["other"]
    manifest = os.path.join(release, "manifest.json")
    tried: dict[str, Callable[[], object]] = {
        "overwrite the manifest": lambda: os.open(manifest, os.O_WRONLY),
        "truncate the manifest": lambda: os.truncate(manifest, 0),
        "remove the manifest": lambda: os.remove(manifest),
        "rename the manifest": lambda: os.rename(manifest, f"{manifest}.old"),
        "move the manifest": lambda: os.rename(manifest, os.path.join(scratch, "moved")),
        "make a file in the release": lambda: os.open(os.path.join(release, "x"), os.O_CREAT | os.O_WRONLY),
        "make a folder in the release": lambda: os.mkdir(os.path.join(release, "x")),
        "make a link in the release": lambda: os.symlink("/", os.path.join(release, "x")),
        "make a file elsewhere": lambda: os.open(os.path.join(other, "x"), os.O_CREAT | os.O_WRONLY),
        "write through a link": lambda: _write_through_link(manifest, scratch),
        "read a file elsewhere": lambda: os.listdir(other),
        "start a program": lambda: subprocess.run(["/bin/true"], check=True),
        "connect": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
        "listen": lambda: socket.create_server(("127.0.0.1", 0)),
        "write a large file to the scratch folder": lambda: _write(os.path.join(scratch, "large"), 2_000_000),
        "write to the scratch folder": lambda: _write(os.path.join(scratch, "small"), 1_000),
        "read the release": lambda: os.listdir(release),
    }
    succeeded = []
    for name, attempt in tried.items():
        try:
            attempt()
        except (OSError, subprocess.SubprocessError):
            continue
        succeeded.append(name)
    return succeeded


def _write(path: str, n_bytes: int) -> None:
    with open(path, "wb") as file:
        file.write(b"x" * n_bytes)


def _write_through_link(manifest: str, scratch: str) -> None:
    link = os.path.join(scratch, "link")
    os.symlink(manifest, link)
    with open(link, "r+b"):
        pass
