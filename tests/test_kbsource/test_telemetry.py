"""Libraries report nothing to their makers, wherever kbsource is imported from."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kbsource.telemetry import OFF
from tests.support import traced
from tests.support.real_data import ROOT

ENTRANCES = (
    "kbsource",
    "mapping",
    "mapping.entail.signal",
    "pipelines",
    "pipelines.console",
    "pipelines.runners.boot",
    "pipelines.runners.local_worker",
    "kbsource.runtime.guarded",
    "kbsource.runtime.fork_server",
)
"""Modules with which a command, a worker of any runner, a guarded process or a program begins."""
REPORTERS = ("onnxruntime", "huggingface_hub", "transformers", "hf_xet")


@pytest.mark.parametrize("module", ENTRANCES)
def test_telemetry_is_off_before_any_library_that_has_it_is_imported(module: str) -> None:
    watch = f"""
import builtins, os, sys
real = builtins.__import__
def noted(name, *given):
    if name.partition(".")[0] in {REPORTERS}:
        assert {{key: os.environ.get(key) for key in {dict(OFF)}}} == {dict(OFF)}, name
    return real(name, *given)
builtins.__import__ = noted
import {module}
assert {{key: os.environ.get(key) for key in {dict(OFF)}}} == {dict(OFF)}
"""
    contrary = {**os.environ, **dict.fromkeys(OFF, "0"), "HF_XET_TELEMETRY_ENABLED": "1"}
    done = subprocess.run([sys.executable, "-c", watch], env=contrary, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_images_switch_off_the_same() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    stage = text.partition(" AS kbsource\n")[2].partition("\nFROM ")[0]  # which those below begin with
    (line,) = (text_line for text_line in stage.splitlines() if text_line.startswith("ENV DO_NOT_TRACK"))
    assert dict(re.findall(r"(\w+)=(\S+)", line)) == dict(OFF)


def test_documents_name_the_switches() -> None:
    text = (ROOT / "docs" / "running.md").read_text("utf-8")
    assert [name for name in OFF if f"`{name}=" not in text] == []


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for library in ("onnxruntime", "onnx", "transformers"):
        pytest.importorskip(library, reason="needs kbsource[nli]")
    from tests.support.tiny_nli import overlap_model

    return overlap_model(tmp_path_factory.mktemp("model"))


def test_onnx_runtime_keeps_no_device_id_and_no_events(model: Path, tmp_path: Path) -> None:
    code = f"from mapping.entail.model import OnnxComputer; OnnxComputer({str(model)!r}, 'cpu')"
    environment = {**traced.environment(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)

    assert [path for name in ("home", "tmp") for path in (tmp_path / name).rglob("*") if path.is_file()] == []


def test_onnx_runtime_that_was_imported_before_reports_no_more(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    from mapping.entail.model import OnnxComputer

    said: list[str] = []
    monkeypatch.setattr(onnxruntime, "disable_telemetry_events", lambda: said.append("off"))
    OnnxComputer(str(model), "cpu")
    assert said == ["off"]
