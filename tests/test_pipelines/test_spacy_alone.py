"""Processes that tokenise do not load PyTorch, which spaCy loads where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.alignments import evidence, record, table, write_records
from tests.support.real_data import ROOT

ENDED = 77


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One with a PyTorch that ends the process that loads it."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(f"import os\nos._exit({ENDED})\n", "utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}


def run(environment: dict[str, str], *arguments: str) -> int:
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=False).returncode


def test_spacy_by_itself_loads_it(environment: dict[str, str]) -> None:
    assert run(environment, "-c", "import spacy") == ENDED


def test_it_can_be_loaded_afterwards(environment: dict[str, str]) -> None:
    script = "from pipelines.spacy_alone import import_spacy; import_spacy(); import mapping.tokens"

    assert run(environment, "-c", script) == 0
    assert run(environment, "-c", f"{script}; import torch") == ENDED


def test_no_process_of_an_alignment_loads_it(tmp_path: Path, release: Path, environment: dict[str, str]) -> None:
    source = write_records(tmp_path / "mine.jsonl", [record("a", [evidence("Lake Miravel", title="Miravel")])])
    kilt = str(tmp_path / "out" / "jsonl-dev-kilt.jsonl")
    kb = ("--kb", str(release))

    for command in (
        ("map", "jsonl", *kb, "--input", str(source), "--output", str(tmp_path / "out")),
        ("validate-kilt", kilt, *kb),
        ("locate", str(release), "--title", "Miravel", "--evidence", "Lake Miravel"),
    ):
        assert run(environment, "-m", "pipelines.cli", *command) == 0, command
    (row,) = table(tmp_path / "out", "alignments")
    assert row["score"] is not None
