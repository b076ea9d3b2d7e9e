"""``kbsource evaluate kilt`` as it is typed."""

from __future__ import annotations

import json
import re
import zipfile
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


QUESTIONS = [{"id": name, "input": f"{name}?"} for name in ("b", "a", "none", "empty")]
PREDICTIONS = [
    {"id": "a", "output": [{"answer": "Brack", "provenance": [{"wikipedia_id": 3, "title": "Sorn", "text": "…"}]}]},
    {"id": "b", "output": [{"answer": "Tey", "provenance": [{"title": "no page"}, {"wikipedia_id": "5", "score": 2}]}]},
    {"id": "other", "output": [{"answer": "x"}]},
    {"id": "empty", "output": [{"answer": " ", "provenance": [{"wikipedia_id": "7"}]}]},
]
SUBMITTED = [
    {"id": "b", "output": [{"answer": "Tey", "provenance": [{"wikipedia_id": "5"}]}]},
    {"id": "a", "output": [{"answer": "Brack", "provenance": [{"wikipedia_id": "3", "title": "Sorn"}]}]},
    {"id": "none", "output": [{"answer": "", "provenance": []}]},
    {"id": "empty", "output": [{"answer": " ", "provenance": [{"wikipedia_id": "7"}]}]},
]


def _write(path: Path, records: list[dict[str, object]]) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def test_a_submission_has_one_answer_for_every_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = _write(tmp_path / "test" / "nq-test_without_answers-kilt.jsonl", QUESTIONS)
    predicted = _write(tmp_path / "predicted" / "nq-test_without_answers-kilt.jsonl", PREDICTIONS)
    flags = ["evaluate", "kilt", questions, predicted, "--json", "--submission"]
    assert main([*flags, str(tmp_path / "out.jsonl")]) == 1
    said = capsys.readouterr()
    (counts,) = json.loads(said.out)["files"].values()
    assert counts == {
        "records": 4,
        "without_prediction": 1,
        "empty_answers": 1,
        "rejected": {"predictions": {"missing_field": 1, "unknown_id": 1}},
    }
    assert "without wikipedia_id" in said.err
    assert "unknown_id" in said.err
    assert main([*(flag for flag in flags if flag != "--json"), str(tmp_path / "out.jsonl"), "--force"]) == 1
    assert re.search(r"with an empty answer, which scores 0 +1$", capsys.readouterr().out, re.MULTILINE)
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == SUBMITTED

    _write(tmp_path / "test" / "wow-test_without_answers-kilt.jsonl", QUESTIONS)
    folders = ["evaluate", "kilt", str(tmp_path / "test"), str(tmp_path / "predicted"), "--all", "--submission"]
    for name in ("first", "second"):
        assert main([*folders, str(tmp_path / f"{name}.zip")]) == 1
        assert "wow-test_without_answers-kilt.jsonl: no predictions" in capsys.readouterr().err
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "first.zip") as archive:
        assert archive.namelist() == ["nq-test_without_answers-kilt.jsonl"]
        assert archive.read(archive.namelist()[0]) == (tmp_path / "out.jsonl").read_bytes()


def test_a_submission_can_be_scored(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predicted, gold = (f"{folder}/nq-dev-kilt.jsonl" for folder in files)
    assert main(["evaluate", "kilt", gold, predicted, "--submission", str(tmp_path / "out.jsonl")]) == 0
    assert "nq-dev-kilt.jsonl: records" in capsys.readouterr().out
    results = []
    for path in (predicted, str(tmp_path / "out.jsonl")):
        assert main(["evaluate", "kilt", gold, path, "--json"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--submission", "x.trec"], "does not have the extension of JSON Lines"),
        (["--submission", "x.jsonl", "--bootstrap", "10"], "--bootstrap: --submission computes no scores"),
        (["--submission", "x.zip", "--items", "y"], "--items: --submission computes no scores"),
        (["--submission", "x.zip", "--k", "3"], "--k: --submission computes no scores"),
    ],
)
def test_options_that_do_not_fit_a_submission(
    files: tuple[str, str], tmp_path: Path, flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    predicted, gold = (f"{folder}/nq-dev-kilt.jsonl" for folder in files)
    assert main(["evaluate", "kilt", gold, predicted, *flags]) == 2
    assert said in capsys.readouterr().err
    assert main(["evaluate", "kilt", files[1], files[0], "--all", "--submission", str(tmp_path / "x.jsonl")]) == 2
    assert "name it like" in capsys.readouterr().err
    assert list(tmp_path.glob("x*")) == []
