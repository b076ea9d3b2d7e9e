"""A campaign from runs to what came of it, as it is typed, in every form of task."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pipelines.cli import main

Row = dict[str, Any]


def lines(path: Path, records: Iterable[Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def place(page: str, text: str | None = None) -> Row:
    return {"wikipedia_id": page} | ({} if text is None else {"title": f"T{page}", "text": text})


@pytest.fixture
def candidates(release: Path, tmp_path: Path) -> Path:
    gold = [
        {"id": "q1", "input": "Where?", "output": [{"answer": "Lake Miravel"}]},
        {"id": "q2", "input": "What?", "output": [{"answer": "River"}]},
        {"id": "q3", "input": "Who?", "output": [{"answer": "Nobody"}]},
    ]
    runs = [
        [
            {"id": "q1", "output": [{"provenance": [place("1", "It is near  Miravel, a town."), place("30")]}]},
            {"id": "q9", "output": [{"provenance": []}]},
        ],
        [
            {"id": "q1", "output": [{"provenance": [place("2", "Lake of glass")]}]},
            {"id": "q2", "output": [{"provenance": [place("3", "A river.")]}]},
        ],
    ]
    given = [lines(tmp_path / f"run{number}.jsonl", run) for number, run in enumerate(runs)]
    output = tmp_path / "candidates.jsonl"
    gold_file = lines(tmp_path / "gold.jsonl", gold)
    argv = ["campaign", "candidates", gold_file, *given, "--kb", str(release), "--output", str(output)]
    assert main(argv) == 1  # for q9 is no question
    return output


def test_candidates(candidates: Path) -> None:
    first, second, third = read(candidates)
    texts = [passage["text"] for passage in first["passages"]]
    assert len(texts) == 3
    (of_page,) = [passage for passage in first["passages"] if passage["wikipedia_id"] == "30"]
    assert (of_page["wikipedia_title"], "Miravel" in of_page["text"]) == ("River Ullane", True)
    assert (len(second["passages"]), third["passages"]) == (1, [])


def judged(tasks: Path, form: str, labels: dict[str, str], worker: str) -> list[Row]:
    """What one person says of each task, by the beginning of its text, in the form of a tool."""
    if form == "csv":
        with open(tasks / "tasks.csv", newline="") as file:
            rows: list[Row] = list(csv.DictReader(file))
    elif form == "jsonl":
        rows = read(tasks / "tasks.jsonl")
    else:
        rows = [task["data"] for task in json.loads((tasks / "tasks.json").read_text())]
    said = []
    for row in rows:
        label = next((label for start, label in labels.items() if row["text"].startswith(start)), "")
        highlight = row["text"][:10] if label == "yes" else ""
        if form == "label-studio":
            parts: list[Row] = [{"type": "choices", "value": {"choices": [label]}}] if label else []
            if highlight:
                parts.append({"type": "labels", "value": {"start": 0, "end": 10, "labels": ["evidence"]}})
                parts.append({"type": "relation", "from_id": "a", "to_id": "b", "direction": "right"})
            cancelled = {"completed_by": 99, "result": parts, "was_cancelled": True}
            said.append({"data": row, "annotations": [{"completed_by": worker, "result": parts}, cancelled]})
        else:
            said.append({**row, "worker_id": worker, "label": label, "highlight": highlight})
    return said


def written(rows: list[Row], form: str, path: Path) -> Path:
    if form == "csv":
        path = path.with_suffix(".csv")
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif form == "jsonl":
        lines(path, rows)
    else:
        path.write_text(json.dumps(rows))
    return path


@pytest.mark.parametrize("form", ["jsonl", "csv", "label-studio"])
def test_what_people_say_comes_back_from_every_form(
    form: str, candidates: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, output = tmp_path / "tasks", tmp_path / "campaign"
    assert main(["campaign", "tasks", str(candidates), "--format", form, "--output", str(tasks)]) == 0
    if form == "label-studio":
        assert ElementTree.parse(tasks / "tasks.xml").getroot().tag == "View"
    assert "is_gold" not in next(tasks.glob("tasks.*")).read_text()
    said = [
        {"It is near": "yes", "Lake of": "no", "A river": "yes", "The River": "no"},
        {"It is near": "yes", "Lake of": "yes", "A river": "no"},
        {"It is near": "no", "Lake of": "partial", "A river": "no"},
    ]
    files = [
        str(written(judged(tasks, form, labels, f"w{number}"), form, tmp_path / f"said{number}.json"))
        for number, labels in enumerate(said)
    ]
    assert main(["campaign", "import", str(tasks), *files, "--output", str(output), "--json"]) == 0
    assert main(["verify", str(output)]) == 0
    rows = read(output / "judgements.jsonl")
    (highlight, *_) = [row for row in rows if row["label"] == "yes" and row["worker_id"] == "w0"]
    assert (highlight["start_char"], highlight["end_char"], len(highlight["highlight"])) in {(0, 10, 10), (0, 8, 8)}
    capsys.readouterr()
    fates = tmp_path / "fates.jsonl"
    assert main(["campaign", "report", str(output), "--items", str(fates), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["questions"] == {"asked": 2, "kept": 1, "dropped": 1, "unjudged": 0}
    assert value["passages"] == {"asked": 4, "accepted": 1, "partial": 2, "rejected": 1, "unjudged": 0}
    assert [pair["n_common"] for pair in value["kappa"]["pairs"]] == [3, 3, 3]
    assert {row["question_id"]: row["fate"] for row in read(fates)} == {"q1": "kept", "q2": "dropped"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"passage_id": "none", "worker_id": "w", "label": "yes"}, "unknown_passage"),
        ({"worker_id": "w", "label": "maybe"}, "unknown_label"),
        ({"worker_id": "w", "label": "yes", "highlight": "of steel"}, "highlight_not_found"),
        ({"worker_id": "w", "label": "yes", "passage_id": None}, "wrong_type"),
    ],
)
def test_what_cannot_be_used_is_named(
    row: Row, reason: str, candidates: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, output = tmp_path / "tasks", tmp_path / "campaign"
    main(["campaign", "tasks", str(candidates), "--output", str(tasks)])
    (task, *_) = read(tasks / "tasks.jsonl")
    said = lines(tmp_path / "said.jsonl", [{"passage_id": task["passage_id"], **row}])
    assert main(["campaign", "import", str(tasks), said, "--output", str(output)]) == 1
    assert reason in capsys.readouterr().err


def test_a_task_of_label_studio_that_is_not_to_be_understood_is_named(
    candidates: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, output = tmp_path / "tasks", tmp_path / "campaign"
    main(["campaign", "tasks", str(candidates), "--format", "label-studio", "--output", str(tasks)])
    said = judged(tasks, "label-studio", {"": "no"}, "w")
    del said[1]["annotations"][0]["completed_by"]
    said[2]["annotations"] = [7]
    file = str(written(said, "label-studio", tmp_path / "said.json"))
    assert main(["campaign", "import", str(tasks), file, "--output", str(output)]) == 1
    assert (
        "said.json, line 2: 'passage_id' is missing; found 'data', 'annotations' (missing_field)"
        in capsys.readouterr().err
    )
    assert len(read(output / "judgements.jsonl")) == len(said) - 2
