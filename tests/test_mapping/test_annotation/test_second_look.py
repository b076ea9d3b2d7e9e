"""What is asked again about a QAMPARI release: second looks, people who are rejected, questions in place of others."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kbsource.records import BadRecord
from mapping.annotation.crowd import CORRECT, INCORRECT, TaskOptions, write_crowd_tasks
from mapping.annotation.extended_set import ExtendedOptions, added_answers, export_extended, import_extended
from mapping.annotation.revision import apply_crowd
from mapping.annotation.second_look import LookOptions, second_look
from mapping.annotation.verdicts import WorkerOptions
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.records import Question
from mapping.qampari.release import read_questions
from pipelines.cli import main
from tests.support.alignments import read_lines
from tests.support.qampari import drawn, question, undrawn, write_qampari
from tests.support.verified import verified

NAMES = ("Brack", "Sorn", "Tey", "Ullane", "Halvane", "Mirvale")
N_QUESTIONS = 8


def _names(number: int) -> list[str]:
    return [f"{name} {number}" for name in NAMES]


def _questions() -> list[Question]:
    pool = [
        drawn(question(f"P50__Q{number}", _names(number)), number, "dev" if number % 2 else "test")
        for number in range(N_QUESTIONS)
    ]
    spare = [undrawn(question(f"P50__Q{number}", _names(number))) for number in range(20, 24)]
    return [*pool, *spare]


@pytest.fixture
def release(tmp_path: Path) -> str:
    return str(write_qampari(tmp_path / "release", _questions()))


@pytest.fixture
def tasks(tmp_path: Path, release: str) -> str:
    write_crowd_tasks(release, str(tmp_path / "tasks"), TaskOptions(wrong_share=0.2, n_train_paraphrases=0))
    return str(tmp_path / "tasks")


def _read(folder: Path) -> list[Question]:
    return [*read_questions(str(folder), QAMPARI_RELEASE.read(str(folder)))]


def _lines(path: Path, records: Iterable[Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def _key(folder: str) -> list[dict[str, Any]]:
    return read_lines(Path(folder) / "validation_key.jsonl")


def _shown(folder: Path) -> list[str]:
    return [line["task_id"] for line in read_lines(folder / "validation.jsonl")]


def test_all_that_is_judged_incorrect_is_asked_again_and_a_share_of_the_correct(
    release: str, tasks: str, tmp_path: Path
) -> None:
    right = [task["task_id"] for task in _key(tasks) if not task["is_wrong"]]
    incorrect, silent, wrong = right[:5], right[-2:], [task["task_id"] for task in _key(tasks) if task["is_wrong"]]
    said = [
        {"task_id": task_id, "verdict": INCORRECT if task_id in incorrect else CORRECT, "worker": "ann"}
        for task_id in [*right, *wrong]
        if task_id not in silent
    ]
    given = {"verdicts": [_lines(tmp_path / "said.jsonl", said)], "reject": pytest.fail}

    counts = second_look(release, tasks, str(tmp_path / "second"), LookOptions(), **given)

    n_correct = round(0.05 * (len(right) - 7))
    assert counts["incorrect"], counts["correct"] == (5, n_correct)
    assert counts["unjudged"] == 2
    asked = _shown(tmp_path / "second")
    assert len(asked) == 7 + n_correct
    assert {*incorrect, *silent} <= {*asked}
    assert not {*asked} & {*wrong}
    first = {line["task_id"]: line for line in read_lines(Path(tasks) / "validation.jsonl")}
    assert all(first[line["task_id"]] == line for line in read_lines(tmp_path / "second" / "validation.jsonl"))
    assert asked == [task_id for task_id in first if task_id in asked]
    assert verified(tmp_path / "second").is_sound
    second_look(release, tasks, str(tmp_path / "same"), LookOptions(), **given)
    for file in sorted((tmp_path / "second").iterdir()):
        assert file.read_bytes() == (tmp_path / "same" / file.name).read_bytes()
    second_look(release, tasks, str(tmp_path / "all"), LookOptions(correct_share=1), **given)
    assert {*_shown(tmp_path / "all")} == {*right}

    again = [{"task_id": task_id, "verdict": CORRECT, "worker": "bo"} for task_id in incorrect[:4]]
    files = [*given["verdicts"], _lines(tmp_path / "again.jsonl", again)]
    report = apply_crowd(release, tasks, str(tmp_path / "judged"), verdicts=files)
    assert report["answers"]["overturned"] == 4
    assert report["answers"]["dropped"] == 1


@pytest.mark.parametrize(
    "options", [WorkerOptions(reject_worker=("hasty",)), WorkerOptions(most_wrong=0.4, least_wrong=3)]
)
def test_what_rejected_people_said_is_taken_out_and_asked_again(
    options: WorkerOptions, release: str, tasks: str, tmp_path: Path
) -> None:
    key = _key(tasks)
    by_hasty = {task["task_id"] for task in key[::2]}
    said = [
        {
            "task_id": task["task_id"],
            # Who is hasty takes all wrong answers, and no right one.
            "verdict": CORRECT if task["is_wrong"] == (task["task_id"] in by_hasty) else INCORRECT,
            "worker": "hasty" if task["task_id"] in by_hasty else "careful",
        }
        for task in key
    ]
    said = [
        verdict | {"verdict": CORRECT} if verdict["worker"] == "careful" and not wrong else verdict
        for verdict, wrong in zip(said, (task["is_wrong"] for task in key), strict=True)
    ]
    qids = [line["qid"] for line in read_lines(Path(tasks) / "paraphrase.jsonl")]
    written = [
        {"qid": qid, "paraphrase": f"What else is {qid}?", "worker": "hasty" if number < 3 else "careful"}
        for number, qid in enumerate(qids)
    ]
    files = {
        "verdicts": [_lines(tmp_path / "said.jsonl", said)],
        "paraphrases": [_lines(tmp_path / "written.jsonl", written)],
    }
    report = apply_crowd(release, tasks, str(tmp_path / "judged"), **files, workers=options)

    assert report["rejected_workers"] == {"hasty": {"verdicts": len(by_hasty), "paraphrases": 3}}
    assert list(report["workers"]) == ["careful"]
    assert report["answers"]["dropped"] == 0
    assert report["paraphrases"]["used"] == len(qids) - 3
    counts = second_look(
        release,
        tasks,
        str(tmp_path / "second"),
        LookOptions(correct_share=0),
        **files,
        workers=options,
        reject=pytest.fail,
    )
    assert {*_shown(tmp_path / "second")} == by_hasty
    assert counts["unjudged"] == len(by_hasty)
    assert [line["qid"] for line in read_lines(tmp_path / "second" / "paraphrase.jsonl")] == qids[:3]


def test_half_of_the_paraphrases_of_each_person_are_checked(release: str, tasks: str, tmp_path: Path) -> None:
    qids = [line["qid"] for line in read_lines(Path(tasks) / "paraphrase.jsonl")]
    workers = {qid: "ann" if number < 6 else "bo" for number, qid in enumerate(qids)}
    written = [{"qid": qid, "paraphrase": f"Which are {qid}?", "worker": worker} for qid, worker in workers.items()]
    files = [_lines(tmp_path / "written.jsonl", written)]
    second_look(
        release, tasks, str(tmp_path / "second"), LookOptions(), verdicts=[], paraphrases=files, reject=pytest.fail
    )

    checked = read_lines(tmp_path / "second" / "paraphrase_check.jsonl")
    assert sorted(workers[line["qid"]] for line in checked) == ["ann", "ann", "ann", "bo"]
    assert all(line["paraphrase"] == f"Which are {line['qid']}?" and "worker" not in line for line in checked)
    verdicts = [
        {"qid": line["qid"], "verdict": INCORRECT if number == 0 else CORRECT} for number, line in enumerate(checked)
    ]
    report = apply_crowd(
        release,
        tasks,
        str(tmp_path / "judged"),
        paraphrases=files,
        checks=_lines(tmp_path / "checks.jsonl", verdicts),
    )
    assert report["paraphrase_checks"] == {"checked": 4, "rejected": 1}
    after = {
        question_read.qid: question_read.paraphrase for question_read in _read(tmp_path / "judged") if question_read.qid
    }
    assert after == {qid: None if qid == checked[0]["qid"] else f"Which are {qid}?" for qid in qids}


def test_rounds_go_on_until_the_number_of_questions_is_reached(
    release: str, tasks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {line["task_id"]: line for line in read_lines(Path(tasks) / "validation.jsonl")}
    bad = [task["task_id"] for task in _key(tasks) if not task["is_wrong"] and int(task["key"].rpartition("Q")[2]) < 2]
    said = [{"task_id": task_id, "verdict": INCORRECT if task_id in bad else CORRECT} for task_id in shown]
    argv = ["--verdicts", _lines(tmp_path / "said.jsonl", said), "--output", str(tmp_path / "first")]
    assert main(["qampari-tasks", "apply", release, tasks, *argv]) == 0
    assert (
        f"Next, with your own names for DIR: kbsource qampari-tasks export {tmp_path / 'first'} --not-in {tasks}"
        in capsys.readouterr().out
    )

    argv = [str(tmp_path / "first"), "--not-in", tasks, "--output", str(tmp_path / "more"), "--wrong-share", "0.2"]
    assert main(["qampari-tasks", "export", *argv]) == 0
    more = _key(str(tmp_path / "more"))
    spare = {f"P50__Q{number}" for number in range(20, 24)}
    assert len({task["key"] for task in more}) == 2
    assert {task["key"] for task in more} <= spare
    assert not {task["task_id"] for task in more} & shown.keys()
    assert sum(task["is_wrong"] for task in more) == 3
    assert {task["qid"] for task in read_lines(tmp_path / "more" / "paraphrase.jsonl")} == {
        task["qid"] for task in more
    }

    said = [{"task_id": task["task_id"], "verdict": CORRECT} for task in more]
    argv = ["--verdicts", _lines(tmp_path / "more.jsonl", said), "--output", str(tmp_path / "last")]
    capsys.readouterr()
    assert main(["qampari-tasks", "apply", str(tmp_path / "first"), str(tmp_path / "more"), *argv]) == 0
    assert "Next: kbsource verify" in capsys.readouterr().out
    assert sum(question_read.split in ("dev", "test") for question_read in _read(tmp_path / "last")) == N_QUESTIONS


def test_instructions_say_that_text_alone_counts(tasks: str) -> None:
    said = (Path(tasks) / "instructions.txt").read_text()
    assert "Do not use infoboxes, tables or your own knowledge." in said
    assert {"correct", "incorrect"} <= set(said.replace(":", " ").split())


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_extended_set_of_drawn_test_questions(
    form: Any, release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, output = tmp_path / "extend", tmp_path / "extended.jsonl"
    export_extended(release, str(folder), ExtendedOptions(questions=3, form=form))
    assert verified(folder).is_sound
    if form == "csv":
        with open(folder / "extended.csv", newline="") as file:
            rows: list[dict[str, Any]] = list(csv.DictReader(file))
    else:
        rows = read_lines(folder / "extended.jsonl")
    assert len(rows) == 3
    assert all(row["qid"].endswith("__test") and NAMES[0] in str(row["answers"]) for row in rows)
    assert "Spend about 12 minutes on each" in (folder / "instructions.txt").read_text()

    first, second, third = (row["qid"] for row in rows)
    proof = {"found_in_url": "https://en.wikipedia.org/wiki/X", "proof_text": "It says so.", "worker": "ann"}
    known = _questions()[int(first.split("__")[0])].answers[0].text
    said = [
        {"qid": first, "answer_text": "A new  one", **proof},
        {"qid": first, "answer_text": "a new one", **proof},
        {"qid": first, "answer_text": "Another", **proof},
        {"qid": first, "answer_text": known.upper(), **proof},
        {"qid": first, "answer_text": "Unproved", **proof, "proof_text": ""},
        {"qid": second, "answer_text": "", "worker": "ann"},
        {"qid": third, "answer_text": "", "worker": ""},
        {"qid": "nobody", "answer_text": "x", **proof},
    ]
    rejected: list[BadRecord] = []
    report = import_extended(str(folder), [_lines(tmp_path / "said.jsonl", said)], str(output), reject=rejected.append)

    assert [bad_record.reason for bad_record in rejected] == ["known_answer", "no_proof", "unknown_question"]
    assert report["questions"] == {"asked": 3, "done": 2, "missing": 1}
    assert report["added"] == {"answers": 2, "share_of_none": 0.5, "median": 1, "mean": 1, "most": 2}
    made = {line["qid"]: line["answer_list"] for line in read_lines(output)}
    assert [answer["answer_text"] for answer in made[first]] == ["A new one", "Another"]
    assert made[second] == []

    gold = Path(release) / "qampari_data" / "test_data.jsonl"
    predictions = [{"qid": line["qid"], "predictions": ["Another"]} for line in read_lines(gold)]
    argv = ["--predictions", _lines(tmp_path / "predictions.jsonl", predictions), "--extended", str(output), "--json"]
    capsys.readouterr()
    assert main(["evaluate", "qampari", str(gold), *argv]) == 0
    added = json.loads(capsys.readouterr().out)["extended_set"]["added_answers"]
    assert (added["mean"], added["median"], added["most"], added["questions_without"]) == (1, 1, 2, 1)


def test_the_numbers_of_added_answers() -> None:
    assert added_answers([0, 0, 0, 1, 4, 16]) == {
        "answers": 21,
        "share_of_none": 0.5,
        "median": 0.5,
        "mean": 3.5,
        "most": 16,
    }
    assert added_answers([])["mean"] is None
