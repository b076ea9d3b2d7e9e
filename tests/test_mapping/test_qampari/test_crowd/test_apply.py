"""Tasks for people about a QAMPARI release, and the release that their answers make."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.release.reader import read_table
from mapping.qampari.crowd.apply import CrowdFiles, apply_crowd
from mapping.qampari.crowd.tasks import (
    candidate_of,
    export_tasks,
    read_questions,
)
from mapping.qampari.crowd.verdicts import REASONS
from mapping.qampari.question_rows import DrawnQuestion
from mapping.qampari.questions import COMPOSITION, SIMPLE
from mapping.qampari.release_files import data_path
from mapping.qampari.selection import draw_key
from tests.support.alignments import read_lines
from tests.support.crowd import (
    DEV,
    FIRST,
    OPTIONS,
    OTHER,
    QUESTIONS,
    SPARE,
    STORAGE,
    TEST,
    crowd_questions,
    task_ids,
)
from tests.support.qampari import FORM, write_qampari
from tests.support.verified import verified


def _apply(
    tmp_path: Path,
    *,
    verdicts: Iterable[Any] = (),
    paraphrases: Iterable[Any] | None = None,
    **options: int,
) -> dict[str, Any]:
    def write(name: str, lines: Iterable[Any]) -> str:
        path = tmp_path / name
        path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines))
        return str(path)

    given_verdicts = [*verdicts]
    files = CrowdFiles(
        str(tmp_path / "release"),
        str(tmp_path / "tasks"),
        write("verdicts.jsonl", given_verdicts) if given_verdicts else None,
        None if paraphrases is None else write("paraphrases.jsonl", paraphrases),
    )
    return apply_crowd(files, str(tmp_path / "judged"), STORAGE, **options)


def _verdict(task_id: str, verdict: str = "incorrect", **further: str) -> dict[str, str]:
    return {"task_id": task_id, "verdict": verdict, **further}


def _after(tmp_path: Path) -> dict[str, DrawnQuestion]:
    return {
        f"{one.question.subset} {one.question.key}": one for one in read_questions(str(tmp_path / "judged"), STORAGE)
    }


def test_answers_judged_wrong_are_dropped_and_the_last_verdict_counts(tmp_path: Path, tasks: Path) -> None:
    ids = task_ids(tasks)
    report = _apply(
        tmp_path,
        verdicts=[
            _verdict(ids[f"{DEV}__1"], worker="ann"),
            _verdict(ids[f"{OTHER}__0"], worker="ann"),
            _verdict(ids[f"{OTHER}__0"], "correct", worker="bo"),
            _verdict(ids[f"{TEST}__0"], "correct"),
        ],
    )
    after = _after(tmp_path)
    kept = after[f"{SIMPLE} P50__Q1"]

    assert [one.text for one in kept.question.answers] == [FIRST[0], *FIRST[2:]]
    assert (kept.n_dropped, kept.split, kept.qid) == (1, "dev", DEV)
    assert after[f"{COMPOSITION} P86__P50__Q2"] == crowd_questions()[1]
    released = read_lines(tmp_path / "judged" / data_path("dev"))
    assert [one["aid"] for one in released[0]["answer_list"]] == [f"{DEV}__{number}" for number in range(5)]
    assert report["answers"] == {"judged": 3, "missing": 15, "overturned": 1, "dropped": 1}
    assert report["workers"] == {
        "": {"verdicts": 1, "wrong_judged": 0, "wrong_accepted": 0},
        "ann": {"verdicts": 2, "wrong_judged": 0, "wrong_accepted": 0},
        "bo": {"verdicts": 1, "wrong_judged": 0, "wrong_accepted": 0},
    }
    assert report["questions"] == {"replaced": 0, "not_replaced": 0}


def test_wrong_answers_tell_who_does_not_read(tmp_path: Path, tasks: Path) -> None:
    wrong = [one["task_id"] for one in read_lines(tasks / "validation_key.jsonl") if one["is_wrong"]]
    report = _apply(tmp_path, verdicts=[_verdict(one, "correct", worker="ann") for one in wrong])

    assert report["wrong_answers"] == {"judged": len(wrong), "missing": 0, "accepted": len(wrong)}
    assert report["workers"] == {
        "ann": {"verdicts": len(wrong), "wrong_judged": len(wrong), "wrong_accepted": len(wrong)}
    }
    assert [*_after(tmp_path).values()] == crowd_questions()


def test_a_question_with_too_few_answers_is_replaced_by_the_next_that_is_drawn(tmp_path: Path, tasks: Path) -> None:
    ids = task_ids(tasks)
    report = _apply(tmp_path, verdicts=[_verdict(ids[f"{qid}__{number}"]) for qid in (DEV, TEST) for number in (0, 5)])
    after = _after(tmp_path)
    before = {one.question.key: one for one in crowd_questions()}
    gone = sorted(
        [before["P50__Q1"], before["P50__Q3"]], key=lambda one: draw_key(candidate_of(one), FORM.seed, "pool")
    )
    # P51__Q2, P50__Q30 and P50__Q31 would come before these.
    come = sorted((before[key] for key in SPARE), key=lambda one: draw_key(candidate_of(one), FORM.seed, "pool"))

    assert report["questions"] == {"replaced": 2, "not_replaced": 0}
    numbers = {"dev": "2__wikidata_simple__dev", "test": "5__wikidata_simple__test"}
    for old, new in zip(gone, come[:2], strict=True):
        left = after[f"{SIMPLE} {old.question.key}"]
        assert (left.side, left.split, left.qid, left.n_dropped) == ("test", None, None, 2)
        split = str(old.split)
        assert after[f"{SIMPLE} {new.question.key}"] == new._replace(split=old.split, qid=numbers[split])
    for one in come[2:]:
        assert after[f"{SIMPLE} {one.question.key}"] == one
    assert sorted(one["qid"] for one in read_lines(tmp_path / "judged" / data_path("dev"))) == [OTHER, numbers["dev"]]


def test_what_was_written_anew_is_not_kept_with_a_question_that_goes_back(tmp_path: Path) -> None:
    first = crowd_questions()[0]._replace(paraphrase="What lies at Lake Miravel?")
    release = write_qampari(tmp_path / "release", [first, *crowd_questions()[1:]], facts={"release": {}})
    export_tasks(str(release), str(tmp_path / "tasks"), STORAGE, OPTIONS)
    ids = task_ids(tmp_path / "tasks")
    report = _apply(tmp_path, verdicts=[_verdict(ids[f"{DEV}__{number}"]) for number in (0, 5)])

    assert report["questions"]["replaced"] == 1
    assert _after(tmp_path)[f"{SIMPLE} P50__Q1"].paraphrase is None


def test_nothing_is_drawn_from_another_subset_or_relation(tmp_path: Path, tasks: Path) -> None:
    ids = task_ids(tasks)
    report = _apply(tmp_path, verdicts=[_verdict(ids[f"{OTHER}__{number}"]) for number in range(6)])

    assert report["questions"] == {"replaced": 0, "not_replaced": 1}
    assert [one.qid for one in _after(tmp_path).values() if one.split == "dev"] == [DEV]
    left = _after(tmp_path)[f"{COMPOSITION} P86__P50__Q2"]
    assert (left.question.answers, left.qid) == ((), None)


def test_how_many_answers_are_enough_can_be_said(tmp_path: Path, tasks: Path) -> None:
    ids = task_ids(tasks)
    report = _apply(tmp_path, verdicts=[_verdict(ids[f"{OTHER}__{number}"]) for number in range(2)], least=4)

    assert report["questions"] == {"replaced": 0, "not_replaced": 0}
    assert len(_after(tmp_path)[f"{COMPOSITION} P86__P50__Q2"].question.answers) == 4


def test_paraphrases_are_released_and_the_text_is_kept(tmp_path: Path, tasks: Path) -> None:
    report = _apply(
        tmp_path,
        paraphrases=[
            {"qid": DEV, "paraphrase": " What lies at Lake Miravel? "},
            {"qid": TEST, "paraphrase": "What is there?"},
        ],
    )
    after = _after(tmp_path)[f"{SIMPLE} P50__Q1"]

    assert after.paraphrase == "What lies at Lake Miravel?"
    assert after.question == crowd_questions()[0].question
    assert read_lines(tmp_path / "judged" / data_path("dev"))[0]["question_text"] == "What lies at Lake Miravel?"
    assert report["paraphrases"] == {"used": 2, "missing": 2, "of_replaced": 0, "without_entity": 1}


def test_the_paraphrase_of_a_question_that_is_replaced_is_not_used(tmp_path: Path, tasks: Path) -> None:
    ids = task_ids(tasks)
    report = _apply(
        tmp_path,
        verdicts=[_verdict(ids[f"{DEV}__{number}"]) for number in (0, 5)],
        paraphrases=[{"qid": DEV, "paraphrase": "What lies at Lake Miravel?"}],
    )
    assert report["paraphrases"] == {"used": 0, "missing": 3, "of_replaced": 1, "without_entity": 0}
    assert all(one.paraphrase is None for one in _after(tmp_path).values())


def test_lines_that_cannot_be_used_are_rejected_with_their_reason(tmp_path: Path, tasks: Path) -> None:
    task_id = task_ids(tasks)[f"{DEV}__0"]
    report = _apply(
        tmp_path,
        verdicts=[
            "{",
            {"verdict": "correct"},
            _verdict("nothing"),
            _verdict(task_id, "maybe"),
            {"task_id": task_id, "verdict": 1},
            {"task_id": task_id, "verdict": "correct", "worker": 7},
            {"task_id": task_id, "verdict": "correct", "worker": None},
        ],
        paraphrases=[
            {"qid": "9__wikidata_simple__dev", "paraphrase": "What?"},
            {"qid": DEV, "paraphrase": "What?\nWho?"},
            {"qid": DEV, "paraphrase": "\u200b ???_"},
            {"qid": DEV, "paraphrase": "What\0?"},
            {"qid": DEV, "paraphrase": "\x1b[2JWhat?"},
            {"qid": DEV, "paraphrase": "What\t is? "},
            {"qid": DEV, "paraphrase": "Who?"},
        ],
    )
    rows = [*read_table(str(tmp_path / "judged"), "rejected", STORAGE)]

    assert [(row["file"], row["detail"].partition(":")[0], row["reason"]) for row in rows] == [
        ("verdicts.jsonl", "line 1", "malformed_json"),
        ("verdicts.jsonl", "line 2", "missing_field"),
        ("verdicts.jsonl", "line 3", "unknown_task"),
        ("verdicts.jsonl", "line 4", "unknown_verdict"),
        ("verdicts.jsonl", "line 5", "wrong_type"),
        ("verdicts.jsonl", "line 6", "wrong_type"),
        ("paraphrases.jsonl", "line 1", "unknown_question"),
        ("paraphrases.jsonl", "line 2", "empty_paraphrase"),
        ("paraphrases.jsonl", "line 3", "empty_paraphrase"),
        ("paraphrases.jsonl", "line 4", "control_character"),
        ("paraphrases.jsonl", "line 5", "control_character"),
        ("paraphrases.jsonl", "line 7", "duplicate_paraphrase"),
    ]
    assert report["rejected"] == Counter(row["reason"] for row in rows)
    assert set(report["rejected"]) <= set(REASONS)
    assert report["answers"]["judged"] == 1
    assert report["workers"] == {"": {"verdicts": 1, "wrong_judged": 0, "wrong_accepted": 0}}
    assert report["paraphrases"]["used"] == 1
    assert [one.paraphrase for one in _after(tmp_path).values() if one.paraphrase is not None] == ["What is?"]


def test_the_new_release_is_whole_and_names_the_old_one(tmp_path: Path, release: Path, tasks: Path) -> None:
    ids = task_ids(tasks)
    report = _apply(tmp_path, verdicts=[_verdict(ids[f"{DEV}__{number}"]) for number in (0, 5)])
    manifest = json.loads((tmp_path / "judged" / "manifest.json").read_text())

    assert verified(tmp_path / "judged").findings == ()
    assert (
        manifest["qampari"]["manifest_sha256"] == json.loads((release / "manifest.json").read_text())["manifest_sha256"]
    )
    assert manifest["tasks"]["manifest_sha256"] == json.loads((tasks / "manifest.json").read_text())["manifest_sha256"]
    assert manifest["release"] == {"manifest_sha256": "1"}
    assert [one["name"] for one in manifest["inputs"]["verdicts"]] == ["verdicts.jsonl"]
    assert json.loads((tmp_path / "judged" / "report.json").read_text()) == report
    queries = [[*read_table(str(folder), "queries", STORAGE)] for folder in (release, tmp_path / "judged")]
    assert queries[0] == queries[1]
    counts = export_tasks(str(tmp_path / "judged"), str(tmp_path / "next"), STORAGE, OPTIONS)
    assert counts["answers"] == 18
    known = {one["task_id"] for one in read_lines(tasks / "validation_key.jsonl") if not one["is_wrong"]}
    again = {one["task_id"] for one in read_lines(tmp_path / "next" / "validation_key.jsonl") if not one["is_wrong"]}
    assert len(known & again) == 12


def test_what_does_not_belong_together_is_refused(tmp_path: Path, tasks: Path) -> None:
    other = write_qampari(tmp_path / "other", crowd_questions()[:2])
    files = CrowdFiles(str(other), str(tasks), None, None)
    with pytest.raises(SetupError, match="tasks of another release"):
        apply_crowd(files, str(tmp_path / "new"), STORAGE)
    with pytest.raises(
        SetupError, match=r"no folder of tasks, .* name the folder that kbsource qampari-tasks export wrote"
    ):
        apply_crowd(replace(files, tasks=str(other)), str(tmp_path / "new"), STORAGE)
    with pytest.raises(SetupError, match="something finished"):
        apply_crowd(replace(files, release=str(tmp_path / "release")), str(other), STORAGE)
    assert not (tmp_path / "new").exists()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _alter(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [_cut, _alter, Path.unlink], ids=["cut", "altered", "gone"])
@pytest.mark.parametrize(
    "file",
    ["tasks/validation_key.jsonl", "tasks/paraphrase.jsonl", f"release/{data_path('dev')}", f"release/{QUESTIONS}"],
)
def test_damaged_releases_and_tasks_are_refused(
    tmp_path: Path, release: Path, tasks: Path, file: str, damage: Callable[[Path], None]
) -> None:
    damage(tmp_path / file)
    files = CrowdFiles(str(release), str(tasks), None, None)

    with pytest.raises(SetupError, match=f"{file} is not as it was written"):
        apply_crowd(files, str(tmp_path / "new"), STORAGE)
    if file.startswith("release"):
        with pytest.raises(SetupError, match=f"{file} is not as it was written"):
            export_tasks(str(release), str(tmp_path / "new"), STORAGE, OPTIONS)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("manifest", "said"),
    [("{", "not JSON"), ("[]", "not a manifest of kbsource"), ("", "changed since it was written")],
)
def test_a_manifest_of_tasks_that_is_none_is_refused(tmp_path: Path, tasks: Path, manifest: str, said: str) -> None:
    path = tasks / "manifest.json"
    path.write_text(manifest or path.read_text().replace('"wrong_share": 0.2', '"wrong_share": 0.1'))

    with pytest.raises(SetupError, match=said):
        _apply(tmp_path, verdicts=[_verdict("x")])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"verdicts": [{"qid": DEV, "paraphrase": "What?"}]}, r"verdicts\.jsonl is not what .* task_id and verdict"),
        ({"paraphrases": [_verdict("x")]}, r"paraphrases\.jsonl is not what .* qid and paraphrase"),
        ({"paraphrases": []}, r"paraphrases\.jsonl is empty"),
    ],
)
def test_files_of_something_else_are_refused(
    tmp_path: Path, tasks: Path, given: dict[str, list[Any]], said: str
) -> None:
    with pytest.raises(SetupError, match=said):
        _apply(tmp_path, **given)
    assert not (tmp_path / "judged").exists()
