"""Tasks for people about a release, and the wrong answers among them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.qampari.crowd.tasks import (
    TaskOptions,
    candidate_of,
    export_tasks,
    validation_record,
    validation_tasks,
)
from mapping.qampari.records import Question
from mapping.qampari.selection import draw_key
from tests.support.alignments import read_lines
from tests.support.crowd import (
    DEV,
    FIRST,
    OPTIONS,
    OTHER,
    SECOND,
    STORAGE,
    TEST,
    THIRD,
    crowd_questions,
    task_ids,
)
from tests.support.qampari import FORM, drawn, question
from tests.support.verified import verified


def test_every_answer_of_the_pool_is_a_task_and_some_are_wrong(release: Path, tasks: Path) -> None:
    shown, key = read_lines(tasks / "validation.jsonl"), read_lines(tasks / "validation_key.jsonl")
    right = [one for one in key if not one["is_wrong"]]
    wrong = [one for one in key if one["is_wrong"]]

    assert [one["task_id"] for one in shown] == [one["task_id"] for one in key]
    assert len({one["task_id"] for one in key}) == len(key)
    assert {one["aid"] for one in right} == {f"{qid}__{n}" for qid in (DEV, OTHER, TEST) for n in range(6)}
    # The composition stands alone in its subset, so nothing is wrong for it.
    assert len(wrong) == round(18 * 0.2 / 0.8)
    for one in wrong:
        assert (one["qid"], one["aid"].rpartition("__")[0]) in {(DEV, TEST), (TEST, DEV)}
    assert all(set(one) == {"task_id", "qid", "question_text", "answer_text", "links", "proofs"} for one in shown)


def test_a_task_shows_the_answer_with_its_pages_and_proofs(tasks: Path) -> None:
    task_id = task_ids(tasks)[f"{OTHER}__0"]
    (shown,) = (one for one in read_lines(tasks / "validation.jsonl") if one["task_id"] == task_id)
    source = crowd_questions()[1].question
    answer = source.answers[0]
    pages = [f"https://en.wikipedia.org/wiki/{one.title.replace(' ', '_')}" for one in answer.proofs]

    assert shown == {
        "task_id": task_id,
        "qid": OTHER,
        "question_text": source.text,
        "answer_text": "Brack Falls",
        "links": pages,
        "proofs": [{"text": one.text, "url": page} for one, page in zip(answer.proofs, pages, strict=True)],
    }


def test_links_open_in_a_browser() -> None:
    asked = question("P50__Q1", FIRST[:1])
    answer = asked.answers[0]._replace(title="100% Łódź: What's Up, Doc?", proofs=())
    (task,) = validation_tasks([drawn(asked._replace(answers=(answer,)), 0, "dev")], OPTIONS)

    assert validation_record(task, FORM)["links"] == ["https://en.wikipedia.org/wiki/100%25_Łódź:_What's_Up,_Doc%3F"]


def test_questions_of_the_pool_and_drawn_training_ones_are_written_anew(tasks: Path) -> None:
    asked = read_lines(tasks / "paraphrase.jsonl")
    train = crowd_questions()[3:5]
    first = min(train, key=lambda one: draw_key(candidate_of(one), OPTIONS.seed, "paraphrase"))

    assert [one["qid"] for one in asked] == [DEV, OTHER, TEST, first.qid]
    assert asked[0] == {
        "qid": DEV,
        "question_text": "What is by Lake Miravel (P50__Q1)?",
        "entities": ["Lake Miravel"],
        "answers": FIRST,
    }


def test_the_same_release_gives_the_same_tasks(tmp_path: Path, release: Path, tasks: Path) -> None:
    counts = export_tasks(str(release), str(tmp_path / "again"), STORAGE, OPTIONS)
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

    assert sum(not one.is_wrong for one in found) == n_right
    assert len(found) - n_right <= round(n_right * share / (1 - share))
    assert len({one.task_id for one in found}) == len(found)
    for one in found:
        has_it = one.answer.text in [answer.text for answer in one.asked.question.answers]
        assert has_it != one.is_wrong
        owner = next(other for other in pool if other.qid == one.aid.rpartition("__")[0])
        assert owner.question.answers[int(one.aid.rpartition("__")[2])] == one.answer


def _without_pages(one: Question) -> Question:
    return one._replace(answers=tuple(answer._replace(title=None) for answer in one.answers))


@pytest.mark.parametrize(("share", "n_wrong"), [(0.5, 12), (0.25, 4), (0.1, 1), (0, 0)])
def test_the_share_of_wrong_answers_is_that_of_all_tasks(share: float, n_wrong: int) -> None:
    asked = [_without_pages(question(f"P50__Q{number}", names)) for number, names in enumerate((FIRST, SECOND))]
    pool = [drawn(one, number, "dev") for number, one in enumerate(asked)]

    found = validation_tasks(pool, TaskOptions(wrong_share=share))
    assert Counter(one.is_wrong for one in found) == Counter({False: 12, True: n_wrong})


@pytest.mark.parametrize(("share", "n_wrong"), [(0.6, 27), (0.9, 36)])
def test_more_wrong_answers_than_right_ones_are_given_as_long_as_there_are_any(share: float, n_wrong: int) -> None:
    asked = [_without_pages(question(f"P50__Q{number}", one)) for number, one in enumerate((FIRST, SECOND, THIRD))]
    pool = [drawn(one, number, "dev") for number, one in enumerate(asked)]

    found = validation_tasks(pool, TaskOptions(wrong_share=share))
    assert Counter(one.is_wrong for one in found) == {False: 18, True: n_wrong}
    assert len({one.task_id for one in found}) == len(found)


def test_a_right_answer_under_another_name_is_no_wrong_answer() -> None:
    first, second = question("P50__Q1", FIRST[:1]), question("P50__Q2", ["The Mill"])
    assert first.answers[0].title == second.answers[0].title

    for one, n_wrong in ((second, 0), (_without_pages(second), 1)):
        pool = [drawn(first, 0, "dev"), drawn(one, 1, "dev")]
        found = validation_tasks(pool, TaskOptions(wrong_share=0.9))
        assert sum(task.is_wrong for task in found if task.asked is pool[0]) == n_wrong


def test_what_is_asked_about_is_no_wrong_answer() -> None:
    others = [question("P50__Q1", FIRST, entity="Tey Falls"), question("P50__Q2", ["Lake Miravel", "The Tey Falls"])]
    pool = [drawn(_without_pages(one), number, "dev") for number, one in enumerate(others)]

    wrong = [one for one in validation_tasks(pool, TaskOptions(wrong_share=0.9)) if one.is_wrong]
    assert {(one.asked.question.key, one.answer.text) for one in wrong if one.asked is pool[0]} == {
        ("P50__Q1", "Lake Miravel")
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"wrong_share": 1}, "--wrong-share .* below 1"),
        ({"n_train_paraphrases": -1}, "--train-paraphrases is -1; give at least 0"),
    ],
)
def test_options_are_checked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        TaskOptions(**options)
