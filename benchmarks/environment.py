"""The virtual environment of the peers in ``.bench``, and facts about the machine on which a figure was measured."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from benchmarks.slices import REPOSITORY

WORK = REPOSITORY / ".bench"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# 3.1.0 is the newest release, 3.0.8 the fastest that runs on Python 3.11: 3.0.4 and 3.0.6 stop at import with
# "global flags not at the start of the expression", and once that is mended are no faster than 3.0.8.
OLDER_WIKIEXTRACTOR = "3.0.8"


def peer_python() -> Path:
    """Returns the Python interpreter of the environment with the peers. Makes the environment on first use, or after a
    pinned version changed.

    Raises:
        SystemExit: pip cannot install the peers; the message names the command.
    """
    python = WORK / "venv" / "bin" / "python"
    pins = REQUIREMENTS.read_bytes() + OLDER_WIKIEXTRACTOR.encode() + platform.python_version().encode()
    digest = hashlib.sha256(pins).hexdigest()
    stamp = WORK / "venv" / "pins"
    if not (stamp.is_file() and stamp.read_text() == digest):
        print("installing the peers into .bench/venv", file=sys.stderr)
        venv.EnvBuilder(with_pip=True, clear=True).create(WORK / "venv")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _install([*pip, "-r", str(REQUIREMENTS)])
        older = [f"--target={older_wikiextractor()}", f"wikiextractor=={OLDER_WIKIEXTRACTOR}"]
        _install([*pip, "--no-deps", "--upgrade", *older])
        stamp.write_text(digest)
    return python


def older_wikiextractor() -> Path:
    """Returns the folder with the older wikiextractor, for PYTHONPATH."""
    return WORK / f"wikiextractor-{OLDER_WIKIEXTRACTOR}"


def _install(command: list[str]) -> None:
    if subprocess.run(command, check=False).returncode != 0:
        raise SystemExit(f"could not install the peers: {' '.join(command)}. A package index must be reachable.")


def machine() -> dict[str, Any]:
    """Returns processor, cores, load and versions, for the head of a report."""
    model = "unknown"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def write_json(path: str | None, result: dict[str, Any]) -> None:
    """Writes a result to the file named by ``--json``, if there is one."""
    if path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """Returns rows as aligned text: numbers on the right, a dash for None."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [
        max(len(header[i]), *(len(row[i]) for row in cells)) if cells else len(header[i]) for i in range(len(header))
    ]
    numeric = [all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(header))]
    lines = []
    for line in [list(header), ["-" * width for width in widths], *cells]:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"
    return str(value)
