"""Measuring the processes of a command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.process_tree import run


def test_a_measured_process_saves_its_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("KBSOURCE_SEEN", "yes")
    program = (
        "import os, sys; print(sys.dont_write_bytecode, os.environ['KBSOURCE_SEEN'], os.environ['KBSOURCE_GIVEN'])"
    )

    usage = run([sys.executable, "-c", program], cwd=tmp_path, log=tmp_path / "log", env={"KBSOURCE_GIVEN": "too"})

    assert usage.returncode == 0
    assert (tmp_path / "log").read_text() == "False yes too\n"
