"""The notebook of the documentation runs, on what the demo makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.cli import main
from tests.support.demo_datasets import CONFIG
from tests.support.real_data import ROOT

pytestmark = pytest.mark.slow

nbformat = pytest.importorskip("nbformat", reason="needs nbclient: pip install nbclient ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install nbclient ipykernel")

NOTEBOOK = ROOT / "docs" / "first_steps.ipynb"


@pytest.mark.usefixtures("in_this_process")
def test_the_first_steps_are_taken(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fever = CONFIG.parent / "datasets" / "fever"
    (tmp_path / "release").symlink_to(release)
    arguments = ["--input", str(fever / "shared_task_dev.jsonl"), "--wiki-pages", str(fever / "wiki-pages")]
    arguments += ["--split", "dev", "--kb", str(release), "--max-rejects", "0.5"]
    assert main(["map", "fever", *arguments, "--output", str(tmp_path / "aligned" / "fever" / "dev")]) == 0
    monkeypatch.setenv("KBSOURCE_DEMO", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)

    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()

    printed = {
        cell.id: "".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells if "outputs" in cell
    }
    assert "[75, 86) of element 1: 'archipelago' -> Archipelago" in printed["anchors"]
    assert printed["span"].count("\n") == 2


def test_it_is_stored_without_what_it_printed() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
