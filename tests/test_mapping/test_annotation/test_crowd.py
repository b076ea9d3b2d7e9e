"""Tasks for people about a release, and the wrong answers among them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kbsource.errors import SetupError
from kbsource.release.layout import shard_path
from mapping.annotation.crowd import (
    TaskOptions,
    candidate_of,
    validation_record,
    validation_tasks,
    write_crowd_tasks,
)
from mapping.annotation.revision import apply_crowd
from mapping.annotation.tasks import TaskForm
from mapping.annotation.verdicts import REASONS
from mapping.qampari.kind import QAMPARI_RELEASE
from mapping.qampari.questions import COMPOSITION, SIMPLE
from mapping.qampari.records import Question
from mapping.qampari.release import data_path, read_questions
from mapping.qampari.selection import draw_key
from tests.support.alignments import read_lines
from tests.support.qampari import FORM, drawn, question, undrawn, write_qampari
from tests.support.tables import read_table
from tests.support.verified import verified

QUESTIONS = shard_path("questions", 0, 1)
FIRST, SECOND, THIRD = (
    [f"{name} {place}" for name in ("Brack", "Sorn", "Tey", "Ullane", "Halvane", "Mirvale")]
    for place in ("Mill", "Falls", "Bridge")
)


OPTIONS = TaskOptions(wrong_share=0.2, n_train_paraphrases=1)
DEV, OTHER, TEST = "0__wikidata_simple__dev", "1__wikidata_comp__dev", "4__wikidata_simple__test"
SPARE = [f"P50__Q{number}" for number in range(20, 24)]


def crowd_questions() -> list[Question]:
    return [
        drawn(question("P50__Q1", FIRST), 0, "dev"),
        drawn(question("P86__P50__Q2", SECOND, subset=COMPOSITION, property_ids=("P50", "P86")), 1, "dev"),
        drawn(question("P50__Q3", SECOND), 4, "test"),
        drawn(question("P50__Q4", FIRST), 0, "train"),
        drawn(question("P50__Q5", FIRST), 1, "train"),
        *(undrawn(question(key, THIRD)) for key in SPARE),
        undrawn(question("P51__Q2", THIRD, property_ids=("P51",))),
        undrawn(question("P50__Q30", [*THIRD[:4], THIRD[0].upper()])),
        structs.replace(undrawn(question("P50__Q31", THIRD)), eligible_split=None),
    ]


def task_ids(tasks: Path) -> dict[str, str]:
    """The id of the task about each answer, by aid."""
    return {line["aid"]: line["task_id"] for line in read_lines(tasks / "validation_key.jsonl") if not line["is_wrong"]}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return write_qampari(tmp_path / "release", crowd_questions(), facts={"release": {"manifest_sha256": "1"}})


@pytest.fixture
def tasks(tmp_path: Path, release: Path) -> Path:
    write_crowd_tasks(str(release), str(tmp_path / "tasks"), OPTIONS)
    return tmp_path / "tasks"


def test_every_answer_of_the_pool_is_a_task_and_some_are_wrong(release: Path, tasks: Path) -> None:
    shown, key = read_lines(tasks / "validation.jsonl"), read_lines(tasks / "validation_key.jsonl")
    right = [line for line in key if not line["is_wrong"]]
    wrong = [line for line in key if line["is_wrong"]]
    assert [line["task_id"] for line in shown] == [line["task_id"] for line in key]
    assert len({line["task_id"] for line in key}) == len(key)
    assert {line["aid"] for line in right} == {f"{qid}__{n}" for qid in (DEV, OTHER, TEST) for n in range(6)}
    # The composition stands alone in its subset, so nothing is wrong for it.
    assert len(wrong) == round(18 * 0.2 / 0.8)
    for line in wrong:
        assert (line["qid"], line["aid"].rpartition("__")[0]) in {(DEV, TEST), (TEST, DEV)}
    assert all(set(line) == {"task_id", "qid", "question_text", "answer_text", "links", "proofs"} for line in shown)


def test_a_task_shows_the_answer_with_its_pages_and_proofs(tasks: Path) -> None:
    task_id = task_ids(tasks)[f"{OTHER}__0"]
    (shown,) = (line for line in read_lines(tasks / "validation.jsonl") if line["task_id"] == task_id)
    source = crowd_questions()[1]
    answer = source.answers[0]
    pages = [f"https://en.wikipedia.org/wiki/{proof.title.replace(' ', '_')}" for proof in answer.proofs]

    assert shown == {
        "task_id": task_id,
        "qid": OTHER,
        "question_text": source.question_text,
        "answer_text": "Brack Falls",
        "links": pages,
        "proofs": [{"text": proof.text, "url": page} for proof, page in zip(answer.proofs, pages, strict=True)],
    }


def test_links_open_in_a_browser() -> None:
    asked = question("P50__Q1", FIRST[:1])
    answer = structs.replace(asked.answers[0], title="100% Łódź: What's Up, Doc?", proofs=())
    (task,) = validation_tasks([drawn(structs.replace(asked, answers=(answer,)), 0, "dev")], OPTIONS)
    assert validation_record(task, FORM)["links"] == ["https://en.wikipedia.org/wiki/100%25_Łódź:_What's_Up,_Doc%3F"]


def test_questions_of_the_pool_and_drawn_training_ones_are_written_anew(tasks: Path) -> None:
    asked = read_lines(tasks / "paraphrase.jsonl")
    train = crowd_questions()[3:5]
    first = min(train, key=lambda drawn_candidate: draw_key(candidate_of(drawn_candidate), OPTIONS.seed, "paraphrase"))
    assert [paraphrase["qid"] for paraphrase in asked] == [DEV, OTHER, TEST, first.qid]
    assert asked[0] == {
        "qid": DEV,
        "question_text": "What is by Lake Miravel (P50__Q1)?",
        "entities": ["Lake Miravel"],
        "answers": FIRST,
    }


def test_the_same_release_gives_the_same_tasks(tmp_path: Path, release: Path, tasks: Path) -> None:
    counts = write_crowd_tasks(str(release), str(tmp_path / "again"), OPTIONS)
    for file in sorted(tasks.iterdir()):
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    assert verified(tasks).is_sound
    assert counts == {
        "answers": 18,
        "wrong_answers": len((tasks / "validation.jsonl").read_text().splitlines()) - 18,
        "paraphrases": 4,
    }


@given(
    st.lists(st.lists(st.sampled_from([*FIRST, *SECOND, *THIRD]), min_size=1, unique=True), max_size=6),
    st.floats(0, 0.6),
)
def test_no_wrong_answer_has_a_name_of_a_right_one(names: list[list[str]], share: float) -> None:
    pool = [drawn(question(f"P50__Q{number}", given_names), number, "dev") for number, given_names in enumerate(names)]
    found = validation_tasks(pool, TaskOptions(wrong_share=share))
    n_right = sum(map(len, names))
    assert sum(not task.is_wrong for task in found) == n_right
    assert len(found) - n_right <= round(n_right * share / (1 - share))
    assert len({task.task_id for task in found}) == len(found)
    for task in found:
        has_it = task.answer.text in [answer.text for answer in task.question.answers]
        assert has_it != task.is_wrong
        owner = next(other for other in pool if other.qid == task.aid.rpartition("__")[0])
        assert owner.answers[int(task.aid.rpartition("__")[2])] == task.answer


def _without_pages(question_with_pages: Question) -> Question:
    return structs.replace(
        question_with_pages,
        answers=tuple(structs.replace(answer, title=None) for answer in question_with_pages.answers),
    )


@pytest.mark.parametrize(("share", "n_wrong"), [(0.5, 12), (0.25, 4), (0.1, 1), (0, 0)])
def test_the_share_of_wrong_answers_is_that_of_all_tasks(share: float, n_wrong: int) -> None:
    asked = [_without_pages(question(f"P50__Q{number}", names)) for number, names in enumerate((FIRST, SECOND))]
    pool = [drawn(question_drawn, number, "dev") for number, question_drawn in enumerate(asked)]
    found = validation_tasks(pool, TaskOptions(wrong_share=share))
    assert Counter(task.is_wrong for task in found) == Counter({False: 12, True: n_wrong})


@pytest.mark.parametrize(("share", "n_wrong"), [(0.6, 27), (0.9, 36)])
def test_more_wrong_answers_than_right_ones_are_given_as_long_as_there_are_any(share: float, n_wrong: int) -> None:
    asked = [_without_pages(question(f"P50__Q{number}", names)) for number, names in enumerate((FIRST, SECOND, THIRD))]
    pool = [drawn(question_drawn, number, "dev") for number, question_drawn in enumerate(asked)]
    found = validation_tasks(pool, TaskOptions(wrong_share=share))
    assert Counter(task.is_wrong for task in found) == {False: 18, True: n_wrong}
    assert len({task.task_id for task in found}) == len(found)


def test_a_right_answer_under_another_name_is_no_wrong_answer() -> None:
    first, second = question("P50__Q1", FIRST[:1]), question("P50__Q2", ["The Mill"])
    assert first.answers[0].title == second.answers[0].title
    for second_question, n_wrong in ((second, 0), (_without_pages(second), 1)):
        pool = [drawn(first, 0, "dev"), drawn(second_question, 1, "dev")]
        found = validation_tasks(pool, TaskOptions(wrong_share=0.9))
        assert sum(task.is_wrong for task in found if task.question is pool[0]) == n_wrong


def test_what_is_asked_about_is_no_wrong_answer() -> None:
    others = [question("P50__Q1", FIRST, entity="Tey Falls"), question("P50__Q2", ["Lake Miravel", "The Tey Falls"])]
    pool = [drawn(_without_pages(other), number, "dev") for number, other in enumerate(others)]
    wrong = [task for task in validation_tasks(pool, TaskOptions(wrong_share=0.9)) if task.is_wrong]
    assert {(task.question.key, task.answer.text) for task in wrong if task.question is pool[0]} == {
        ("P50__Q1", "Lake Miravel")
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"wrong_share": 1}, "--wrong-share is 1. Must be < 1"),
        ({"n_train_paraphrases": -1}, "--train-paraphrases is -1. Must be >= 0"),
    ],
)
def test_options_are_checked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        TaskOptions(**options)


def _apply(
    tmp_path: Path, *, verdicts: Iterable[Any] = (), paraphrases: Iterable[Any] | None = None, **options: int
) -> dict[str, Any]:
    def write(name: str, lines: Iterable[Any]) -> str:
        path = tmp_path / name
        path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        return str(path)

    given_verdicts = [*verdicts]
    return apply_crowd(
        *(str(tmp_path / name) for name in ("release", "tasks", "judged")),
        verdicts=[write("verdicts.jsonl", given_verdicts)] if given_verdicts else (),
        paraphrases=() if paraphrases is None else [write("paraphrases.jsonl", paraphrases)],
        **options,
    )


def _verdict(task_id: str, verdict: str = "incorrect", **further: str) -> dict[str, str]:
    return {"task_id": task_id, "verdict": verdict, **further}


def _questions(folder: Path) -> Iterator[Question]:
    return read_questions(str(folder), QAMPARI_RELEASE.read(str(folder)))


def _after(tmp_path: Path) -> dict[str, Question]:
    return {
        f"{question_read.subset} {question_read.key}": question_read
        for question_read in _questions(tmp_path / "judged")
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

    assert [answer.text for answer in kept.answers] == [FIRST[0], *FIRST[2:]]
    assert (kept.n_dropped, kept.split, kept.qid) == (1, "dev", DEV)
    assert after[f"{COMPOSITION} P86__P50__Q2"] == crowd_questions()[1]
    released = read_lines(tmp_path / "judged" / data_path("dev"))
    assert [answer["aid"] for answer in released[0]["answer_list"]] == [f"{DEV}__{number}" for number in range(5)]
    assert report["answers"] == {"judged": 3, "missing": 15, "overturned": 1, "dropped": 1}
    assert report["workers"] == {
        "": {"verdicts": 1, "wrong_judged": 0, "wrong_accepted": 0},
        "ann": {"verdicts": 2, "wrong_judged": 0, "wrong_accepted": 0},
        "bo": {"verdicts": 1, "wrong_judged": 0, "wrong_accepted": 0},
    }
    assert report["questions"] == {"replaced": 0, "not_replaced": 0}


def test_wrong_answers_tell_who_does_not_read(tmp_path: Path, tasks: Path) -> None:
    wrong = [line["task_id"] for line in read_lines(tasks / "validation_key.jsonl") if line["is_wrong"]]
    report = _apply(tmp_path, verdicts=[_verdict(task_id, "correct", worker="ann") for task_id in wrong])
    assert report["wrong_answers"] == {"judged": len(wrong), "missing": 0, "accepted": len(wrong)}
    assert report["workers"] == {
        "ann": {"verdicts": len(wrong), "wrong_judged": len(wrong), "wrong_accepted": len(wrong)}
    }
    assert [*_after(tmp_path).values()] == crowd_questions()


def test_a_question_with_too_few_answers_is_replaced_by_the_next_that_is_drawn(tmp_path: Path, tasks: Path) -> None:
    ids = task_ids(tasks)
    report = _apply(tmp_path, verdicts=[_verdict(ids[f"{qid}__{number}"]) for qid in (DEV, TEST) for number in (0, 5)])
    after = _after(tmp_path)
    before = {pool_question.key: pool_question for pool_question in crowd_questions()}
    gone = sorted(
        [before["P50__Q1"], before["P50__Q3"]],
        key=lambda pool_question: draw_key(candidate_of(pool_question), FORM.seed, "pool"),
    )
    # P51__Q2, P50__Q30 and P50__Q31 would come before these.
    come = sorted(
        (before[key] for key in SPARE),
        key=lambda pool_question: draw_key(candidate_of(pool_question), FORM.seed, "pool"),
    )

    assert report["questions"] == {"replaced": 2, "not_replaced": 0}
    numbers = {"dev": "2__wikidata_simple__dev", "test": "5__wikidata_simple__test"}
    for old, new in zip(gone, come[:2], strict=True):
        left = after[f"{SIMPLE} {old.key}"]
        assert (left.eligible_split, left.split, left.qid, left.n_dropped) == ("test", None, None, 2)
        split = str(old.split)
        assert after[f"{SIMPLE} {new.key}"] == structs.replace(new, split=old.split, qid=numbers[split])
    for pool_question in come[2:]:
        assert after[f"{SIMPLE} {pool_question.key}"] == pool_question
    assert sorted(line["qid"] for line in read_lines(tmp_path / "judged" / data_path("dev"))) == [OTHER, numbers["dev"]]


def test_what_was_written_anew_is_not_kept_with_a_question_that_goes_back(tmp_path: Path) -> None:
    first = structs.replace(crowd_questions()[0], paraphrase="What lies at Lake Miravel?")
    release = write_qampari(tmp_path / "release", [first, *crowd_questions()[1:]], facts={"release": {}})
    write_crowd_tasks(str(release), str(tmp_path / "tasks"), OPTIONS)
    ids = task_ids(tmp_path / "tasks")
    report = _apply(tmp_path, verdicts=[_verdict(ids[f"{DEV}__{number}"]) for number in (0, 5)])
    assert report["questions"]["replaced"] == 1
    assert _after(tmp_path)[f"{SIMPLE} P50__Q1"].paraphrase is None


def test_nothing_is_drawn_from_another_subset_or_relation(tmp_path: Path, tasks: Path) -> None:
    ids = task_ids(tasks)
    report = _apply(tmp_path, verdicts=[_verdict(ids[f"{OTHER}__{number}"]) for number in range(6)])
    assert report["questions"] == {"replaced": 0, "not_replaced": 1}
    assert [question_read.qid for question_read in _after(tmp_path).values() if question_read.split == "dev"] == [DEV]
    left = _after(tmp_path)[f"{COMPOSITION} P86__P50__Q2"]
    assert (left.answers, left.qid) == ((), None)


def test_how_many_answers_are_enough_can_be_said(tmp_path: Path, tasks: Path) -> None:
    ids = task_ids(tasks)
    report = _apply(tmp_path, verdicts=[_verdict(ids[f"{OTHER}__{number}"]) for number in range(2)], least=4)
    assert report["questions"] == {"replaced": 0, "not_replaced": 0}
    assert len(_after(tmp_path)[f"{COMPOSITION} P86__P50__Q2"].answers) == 4


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
    assert structs.replace(after, paraphrase=None) == crowd_questions()[0]
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
    assert all(question_read.paraphrase is None for question_read in _after(tmp_path).values())


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
    rows = [*read_table(str(tmp_path / "judged"), "rejected")]

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
    assert [
        question_read.paraphrase for question_read in _after(tmp_path).values() if question_read.paraphrase is not None
    ] == ["What is?"]


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
    assert [verdict["name"] for verdict in manifest["inputs"]["verdicts"]] == ["verdicts.jsonl"]
    assert json.loads((tmp_path / "judged" / "report.json").read_text()) == report
    queries = [[*read_table(str(folder), "queries")] for folder in (release, tmp_path / "judged")]
    assert queries[0] == queries[1]
    counts = write_crowd_tasks(str(tmp_path / "judged"), str(tmp_path / "next"), OPTIONS)
    assert counts["answers"] == 18
    known = {line["task_id"] for line in read_lines(tasks / "validation_key.jsonl") if not line["is_wrong"]}
    again = {line["task_id"] for line in read_lines(tmp_path / "next" / "validation_key.jsonl") if not line["is_wrong"]}
    assert len(known & again) == 12


def test_what_does_not_belong_together_is_refused(tmp_path: Path, tasks: Path) -> None:
    other = write_qampari(tmp_path / "other", crowd_questions()[:2])
    new = str(tmp_path / "new")
    with pytest.raises(SetupError, match="these tasks were not made from"):
        apply_crowd(str(other), str(tasks), new)
    with pytest.raises(
        SetupError, match=r"not a folder of tasks, .* name the folder that kbsource qampari-tasks export wrote"
    ):
        apply_crowd(str(other), str(other), new)
    with pytest.raises(SetupError, match="a finished release"):
        apply_crowd(str(tmp_path / "release"), str(tasks), str(other))
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
    with pytest.raises(SetupError, match=f"{file} is damaged or changed"):
        apply_crowd(str(release), str(tasks), str(tmp_path / "new"))
    if file.startswith("release"):
        with pytest.raises(SetupError, match=f"{file} is damaged or changed"):
            write_crowd_tasks(str(release), str(tmp_path / "new"), OPTIONS)
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


NAMES = [f"Mill {number}" for number in range(7)]


@pytest.mark.parametrize("form", ["csv", "label-studio"])
def test_a_verdict_drops_its_answer(form: TaskForm, tmp_path: Path) -> None:
    facts = {"release": {"manifest_sha256": "1"}}
    release = write_qampari(tmp_path / "release", [drawn(question("P50__Q1", NAMES), 0, "dev")], facts=facts)
    write_crowd_tasks(str(release), str(tmp_path / "tasks"), TaskOptions(form=form))
    said = tmp_path / f"said.{form}"
    if form == "csv":
        with open(tmp_path / "tasks" / "validation.csv", newline="") as file:
            rows: list[Any] = list(csv.DictReader(file))
        assert " https://" in rows[0]["proofs"]
        with open(said, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerow({**rows[0], "label": "incorrect", "worker_id": "w"})
            writer.writerow(rows[1])  # not filled in
    else:
        rows = json.loads((tmp_path / "tasks" / "validation.json").read_text())
        marks = [{"type": "labels", "value": {"start": start, "end": start + 2}} for start in (0, 5)]
        result = [{"type": "choices", "value": {"choices": ["incorrect"]}}, *marks]
        said.write_text(json.dumps([{**rows[0], "annotations": [{"completed_by": {"id": 7}, "result": result}]}]))
    report = apply_crowd(*(str(tmp_path / name) for name in ("release", "tasks", "judged")), verdicts=[str(said)])
    assert (report["answers"]["judged"], report["answers"]["dropped"]) == (1, 1)
    worker = "w" if form == "csv" else "7"
    assert report["workers"] == {worker: {"verdicts": 1, "wrong_judged": 0, "wrong_accepted": 0}}
    assert report["rejected"] == {}


def test_questions_of_files_that_no_manifest_lists_are_no_tasks(tmp_path: Path) -> None:
    release = write_qampari(tmp_path / "qampari", [drawn(question("P50__Q5", ["Brack", "Sorn"]), 0, "dev")])
    file = release / shard_path("questions", 0, 1)
    manifest = QAMPARI_RELEASE.read(str(release))
    expected = [*read_questions(str(release), manifest)]
    (release / shard_path("questions", 1, 2)).write_bytes(file.read_bytes())
    (release / shard_path("questions", 2, 3)).symlink_to(file.rename(tmp_path / "outside.parquet"))
    file.write_bytes((tmp_path / "outside.parquet").read_bytes())
    assert len(expected) == 1
    assert [*read_questions(str(release), manifest)] == expected
