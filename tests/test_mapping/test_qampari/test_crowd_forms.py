"""Answers to judge in the forms of the tools that people work with, and what comes back of each."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from kbsource.files import LocalStorage
from mapping.qampari.crowd.apply import CrowdFiles, apply_crowd
from mapping.qampari.crowd.tasks import TaskOptions, export_tasks
from mapping.sources.forms.task_files import TaskForm
from tests.support.qampari import drawn, question, write_qampari

STORAGE = LocalStorage()
NAMES = [f"Mill {number}" for number in range(7)]


@pytest.mark.parametrize("form", ["csv", "label-studio"])
def test_a_verdict_drops_its_answer(form: TaskForm, tmp_path: Path) -> None:
    facts = {"release": {"manifest_sha256": "1"}}
    release = write_qampari(tmp_path / "release", [drawn(question("P50__Q1", NAMES), 0, "dev")], facts=facts)
    export_tasks(str(release), str(tmp_path / "tasks"), STORAGE, TaskOptions(form=form))
    said = tmp_path / f"said.{form}"
    if form == "csv":
        with open(tmp_path / "tasks" / "validation.csv", newline="") as file:
            rows: list[Any] = list(csv.DictReader(file))
        assert " https://" in rows[0]["proofs"]
        with open(said, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerow({**rows[0], "label": "incorrect", "worker_id": "w"})
    else:
        rows = json.loads((tmp_path / "tasks" / "validation.json").read_text())
        result = [{"type": "choices", "value": {"choices": ["incorrect"]}}]
        said.write_text(json.dumps([{**rows[0], "annotations": [{"completed_by": {"id": 7}, "result": result}]}]))
    files = CrowdFiles(str(release), str(tmp_path / "tasks"), str(said), None)
    report = apply_crowd(files, str(tmp_path / "judged"), STORAGE)
    assert (report["answers"]["judged"], report["answers"]["dropped"]) == (1, 1)
    assert list(report["workers"]) == ["w" if form == "csv" else "7"]
