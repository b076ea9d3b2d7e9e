"""``kbsource evaluate kilt`` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.cli import main

GOLD = {"id": "1", "input": "Where?", "output": [{"answer": "Ullane", "provenance": [{"wikipedia_id": "30"}]}]}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    for folder, answer in (("gold", "Ullane"), ("predicted", "The Ullane")):
        (tmp_path / folder).mkdir()
        record = {**GOLD, "output": [{**GOLD["output"][0], "answer": answer}]}
        (tmp_path / folder / "nq-dev-kilt.jsonl").write_text(json.dumps(record) + "\n")
    return str(tmp_path / "predicted"), str(tmp_path / "gold")


def test_a_file_and_the_values_of_its_records(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predicted, gold = (f"{folder}/nq-dev-kilt.jsonl" for folder in files)
    assert main(["evaluate", "kilt", gold, predicted, "--items", str(tmp_path / "items"), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["downstream"] == {"accuracy": 0, "em": 1, "f1": 1, "rougel": pytest.approx(2 / 3, abs=1e-6)}
    (row,) = [json.loads(line) for line in (tmp_path / "items").read_text().splitlines()]
    assert (row["id"], row["KILT-em"], row["Rprec"]) == ("1", 1, 1)


def test_all_tasks_of_a_folder(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    predicted, gold = files
    assert main(["evaluate", "kilt", gold, predicted, "--all"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:4] == ["nq-dev-kilt.jsonl", "1", "em", "100.00"]


def test_an_answer_that_is_a_redirect_counts_where_asked(
    release: Path, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    predicted, gold = (Path(folder) / "nq-dev-kilt.jsonl" for folder in files)
    predicted.write_text(predicted.read_text().replace("The Ullane", "Halvane"))
    gold.write_text(gold.read_text().replace('"Ullane"', '"Halvane Isles"'))
    for accepted, expected in (([], 0), (["--accept-redirects", str(release)], 1)):
        assert main(["evaluate", "kilt", str(gold), str(predicted), "--json", *accepted]) == 0
        assert json.loads(capsys.readouterr().out)["downstream"]["accuracy"] == expected


def test_what_is_needed_is_said(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "kilt", files[1]]) == 2
    assert "PREDICTIONS is needed" in capsys.readouterr().err
