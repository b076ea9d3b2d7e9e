"""``kbsource qampari-tasks``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mapping.qampari.release import data_path
from pipelines.cli import main
from tests.support.alignments import read_lines
from tests.support.qampari import drawn, question, write_qampari

NAMES = ("Brack", "Sorn", "Tey", "Ullane", "Halvane", "Mirvale")
OTHERS = [f"{name} Mill" for name in NAMES]


@pytest.fixture
def qampari(tmp_path: Path) -> Path:
    questions = [
        drawn(question("P50__Q1", NAMES), 0, "dev"),
        drawn(question("P50__Q2", OTHERS), 0, "test"),
        drawn(question("P50__Q3", OTHERS), 0, "train"),
    ]
    return write_qampari(tmp_path / "qampari", questions)


def test_tasks_are_written_and_taken_in(qampari: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks, judged = tmp_path / "tasks", tmp_path / "judged"
    export = ["qampari-tasks", "export", str(qampari), "--output"]
    assert main([*export, str(tasks), "--wrong-share", "0.25", "--train-paraphrases", "0"]) == 0
    assert capsys.readouterr().out.startswith(
        "answers to judge      16\n  wrong on purpose    4\nquestions to rewrite  2\n"
    )
    assert main([*export, str(tmp_path / "other"), "--seed", "other", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"answers": 12, "wrong_answers": 1, "paraphrases": 3}

    key = read_lines(tasks / "validation_key.jsonl")
    (first,) = (line["task_id"] for line in key if line["aid"].endswith("dev__0") and not line["is_wrong"])
    verdicts, paraphrases = tmp_path / "verdicts.jsonl", tmp_path / "paraphrases.jsonl"
    verdicts.write_text(json.dumps({"task_id": first, "verdict": "incorrect"}) + "\n")
    paraphrases.write_text(json.dumps({"qid": "0__wikidata_simple__test", "paraphrase": "What is there?"}) + "\n")
    apply = ["qampari-tasks", "apply", str(qampari), str(tasks), "--output"]
    assert main([*apply, str(judged), "--verdicts", str(verdicts), "--paraphrases", str(paraphrases)]) == 0
    *said, following = (line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert following == ["Next: kbsource verify", str(judged)]
    assert {name.strip(): int(number) for name, number in said} == {
        "answers judged": 1,
        "answers without a verdict": 11,
        "answers dropped": 1,
        "wrong answers judged": 0,
        "wrong answers accepted": 0,
        "questions replaced": 0,
        "questions lost": 0,
        "paraphrases used": 1,
        "questions without a paraphrase": 1,
        "lines rejected": 0,
    }
    assert [answer["answer_text"] for answer in read_lines(judged / data_path("dev"))[0]["answer_list"]] == [*NAMES[1:]]
    assert read_lines(judged / data_path("test"))[0]["question_text"] == "What is there?"
    assert main(["verify", str(judged)]) == 0
    assert main(["verify", str(tasks)]) == 0

    capsys.readouterr()
    assert main([*apply, str(tmp_path / "more"), "--verdicts", str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder; name a file." in capsys.readouterr().err
    verdicts.write_text('{"task_id": "x", "verdict": "correct"}\n')
    assert main([*apply, str(tmp_path / "more"), "--verdicts", str(verdicts), "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rejected"] == {"unknown_task": 1}
    assert captured.err == "verdicts.jsonl, line 1: 'x' (unknown_task)\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["export", "--verdicts", "x"], "there is no option --verdicts."),
        (["apply", "x", "--verdicts", "x", "--seed", "x"], "there is no option --seed."),
        (["apply", "--verdicts", "x"], "TASKS is needed."),
        (["apply", "x"], "nothing to import"),
        (["apply", "x", "--verdicts", "x", "--least-answers", "0"], "--least-answers is 0. Must be >= 1."),
        (["export", "--wrong-share", "1"], "--wrong-share is 1. Must be < 1."),
        (["export", "--train-paraphrases", "-1"], "--train-paraphrases is -1. Must be >= 0."),
    ],
)
def test_options_that_do_not_fit_are_refused(
    qampari: Path, tmp_path: Path, argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mode, *options = argv
    assert main(["qampari-tasks", mode, str(qampari), *options, "--output", str(tmp_path / "new")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
