"""Training examples of every form, and their lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from kbsource.errors import RecordError, SetupError
from mapping.retrieval.queries import Hit, Query
from mapping.retrieval.training import (
    FORMS,
    TRAINING_REASONS,
    TrainingOptions,
    TrainingQuery,
    batches_of,
    examples_of,
    line_of,
)
from tests.support.real_data import ROOT

RISES = Hit("7__0", "7", "Sorn", "The Sorn rises in Brack.", 3.5)
FISH = Hit("7__4", "7", "Sorn", "Its fish are old.", 0.5)
NAMES = Hit("9__2", "9", "Tey", "The Tey rises in Brak.", 2.0)
GOATS = Hit("9__1", "9", "Tey", "It has goats.", 1.0)
LAST = Hit("8__0", "8", "Last", "It is the last.", 0.25)
MARKED = "near [START_ENT] Sorn [END_ENT]"
QUERY = Query("q", MARKED, ("Brack", "Old Brack"), ("7",))
ASKED = TrainingQuery("nq-train", QUERY, (RISES,), (NAMES, RISES, GOATS, FISH, LAST), (FISH,))
CLAIM = ASKED._replace(dataset="fever-train", query=Query("c", "It rises.", ("REFUTES",), ("7",)))
SLOT = ASKED._replace(query=Query("s", "Sorn [SEP] source", ("Brack",), ("7",), subject="Sorn"))
PLAIN = ASKED._replace(query=replace(QUERY, input="where?"))
LISTED = ASKED._replace(
    query=Query("l", "Which?", ("Brack", "Tey"), titles=("sorn",)),
    evidence=(RISES, FISH),
    targets={"7__0": "Brack#Tey", "7__4": "Tey"},
    target="Brack#Tey",
)


def _lines(source: TrainingQuery, form: Any, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line_of(example, form)) for example in examples_of(source, TrainingOptions(form, **options))]


def _ids(contexts: list[dict[str, Any]], key: str = "id") -> list[str]:
    return [context[key] for context in contexts]


def test_positives_are_the_evidence_and_negatives_of_other_pages_without_an_answer() -> None:
    (line,) = _lines(ASKED, "dpr", negatives=5)
    assert (line["question"], line["answers"]) == (MARKED, ["Brack", "Old Brack"])
    assert line["positive_ctxs"] == [{"passage_id": "7__0", "title": "Sorn", "text": RISES.text, "score": 3.5}]
    assert _ids(line["hard_negative_ctxs"], "passage_id") == ["9__1", "8__0"]  # 9__2 nearly names Brack
    (line,) = _lines(ASKED._replace(ranked=(GOATS, LAST)), "dpr")
    assert line["positive_ctxs"][0]["score"] == 0
    assert _ids(line["hard_negative_ctxs"], "passage_id") == ["9__1"]


def test_a_label_is_no_answer_that_a_negative_could_name() -> None:
    refutes = replace(GOATS, text="It refutes.")
    (line,) = _lines(CLAIM._replace(ranked=(refutes,)), "dpr")
    assert _ids(line["hard_negative_ctxs"], "passage_id") == ["9__1"]


def test_every_answer_is_a_target_behind_the_first_passages() -> None:
    lines = _lines(ASKED, "seq2seq", top=2)
    assert [line["target"] for line in lines] == ["Brack", "Old Brack"]
    assert {line["input"] for line in lines} == {MARKED}
    assert NAMES.text in lines[0]["source"]
    assert RISES.text in lines[0]["source"]
    assert GOATS.text not in lines[0]["source"]
    assert lines[0]["source"].index(NAMES.text) < lines[0]["source"].index(MARKED)
    (closed, _) = _lines(ASKED._replace(ranked=()), "seq2seq")
    assert closed["source"] == f"Question: {MARKED}\nAnswer:"


def test_a_list_is_one_target() -> None:
    assert [link["target"] for link in _lines(LISTED, "seq2seq")] == ["Brack#Tey"]
    (line,) = _lines(LISTED, "fid", top=2)
    assert (line["target"], line["answers"], _ids(line["ctxs"])) == ("Brack#Tey", ["Brack", "Tey"], ["9__2", "7__0"])
    (line,) = _lines(ASKED, "fid")
    assert (line["target"], len(line["ctxs"])) == ("Brack", 5)


def test_each_passage_has_the_answers_that_it_proves_or_is_not_relevant() -> None:
    ranked = (NAMES, GOATS, LAST)
    lines = _lines(LISTED._replace(ranked=ranked), "pig")
    # "Tey" is the title of 9__2 and 9__1, so they name an answer.
    assert [(line["target"], _ids(line["ctxs"])) for line in lines] == [
        ("Brack#Tey", ["7__0"]),
        ("Tey", ["7__4"]),
        ("Not Relevant", ["8__0"]),
    ]
    old = replace(RISES, document="7__1", text="Once it rose in Old Brack.")
    lines = _lines(ASKED._replace(query=replace(QUERY, answers=("Tey", "Old Brack")), evidence=(old, RISES)), "pig")
    assert [line["target"] for line in lines] == ["Old Brack", "Tey", "Not Relevant"]
    assert _ids(lines[-1]["ctxs"]) == ["7__4"]  # of a gold page, but no evidence


def test_claims_are_neutral_to_other_pages_and_to_other_passages_of_their_pages() -> None:
    others = tuple(replace(FISH, document=f"7__{number}") for number in range(2, 9))
    lines = _lines(CLAIM._replace(others=others), "fact-checking")
    assert [(line["label"], line["id"]) for line in lines[:2]] == [("REFUTES", "c@7__0"), ("NEUTRAL", "c@9__2")]
    assert lines[0] == {"id": "c@7__0", "claim": "It rises.", "title": "Sorn", "text": RISES.text, "label": "REFUTES"}
    assert len(lines) == 3
    assert lines == _lines(CLAIM._replace(others=others[::-1]), "fact-checking")  # drawn by a hash of names
    drawn = {_lines(CLAIM._replace(dataset=str(n), others=others), "fact-checking")[2]["id"] for n in range(20)}
    assert len(drawn) > 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SLOT, [("Brack", "target"), ("none", "target")]),
        (CLAIM, [("REFUTES", "label"), ("NEUTRAL", "label")]),
        (
            PLAIN,
            [({"text": ["Brack"], "answer_start": [18]}, "answers"), ({"text": [], "answer_start": []}, "answers")],
        ),
    ],
)
def test_the_best_other_page_has_no_answer(source: TrainingQuery, expected: list[tuple[Any, str]]) -> None:
    lines = _lines(source, "amber")
    assert [(line[key], key) for line, (_, key) in zip(lines, expected, strict=True)] == expected
    # One passage a page, the best one, even if it names an answer: the page is not gold.
    found = [example.passages[0].passage_id for example in examples_of(source, TrainingOptions("amber", negatives=9))]
    assert found == ["7__0", "9__2", "8__0"]


@pytest.mark.parametrize(
    ("source", "form", "reason"),
    [
        (ASKED._replace(evidence=()), "dpr", "no_evidence"),
        (ASKED._replace(query=replace(QUERY, answers=())), "seq2seq", "no_answers"),
        (ASKED._replace(ranked=()), "fid", "not_ranked"),
        (ASKED, "fact-checking", "no_label"),
        (PLAIN._replace(evidence=(FISH,)), "amber", "no_answer_span"),
        (ASKED._replace(query=replace(QUERY, is_mention=True)), "amber", "other_task"),
    ],
)
def test_a_question_without_examples_has_a_reason(source: TrainingQuery, form: Any, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        examples_of(source, TrainingOptions(form))
    assert reason in TRAINING_REASONS


@pytest.mark.parametrize("form", FORMS)
def test_an_option_of_another_form_is_refused(form: Any) -> None:
    option = "top" if form not in ("seq2seq", "fid") else "negatives"
    with pytest.raises(SetupError, match=f"--for {form} does not use --{option}"):
        TrainingOptions(form, **{option: 2})


def test_batches_are_of_one_dataset_in_turn() -> None:
    options = TrainingOptions("dpr", examples_per_task=5, batch_size=2, epochs=2)
    batches = list(batches_of({"a": 2, "none": 0, "b": 9}, options))
    assert [(batch.epoch, batch.batch, batch.dataset, len(batch.examples)) for batch in batches[:6]] == [
        (0, 0, "a", 2),
        (0, 1, "b", 2),
        (0, 2, "a", 2),
        (0, 3, "b", 2),
        (0, 4, "a", 1),
        (0, 5, "b", 1),
    ]
    assert [(batch.epoch, batch.batch) for batch in batches[6:8]] == [(1, 0), (1, 1)]
    small = [number for batch in batches[:6:2] for number in batch.examples]
    assert sorted(small[:2]) == sorted(small[2:4]) == [0, 1]  # all come before one comes again
    large = [
        [n for batch in batches if (batch.epoch, batch.dataset) == (epoch, "b") for n in batch.examples]
        for epoch in (0, 1)
    ]
    assert [len(set(batch)) for batch in large] == [5, 5]
    assert large[0] != large[1]
    assert batches == list(batches_of({"a": 2, "none": 0, "b": 9}, options))
    assert list(batches_of({"none": 0}, options)) == []


def test_docs_explain_every_form_and_reason() -> None:
    page = (ROOT / "docs" / "training_data.md").read_text("utf-8")
    assert [form for form in FORMS if f"| `{form}` |" not in page] == []
    assert [slug for slug, meaning in TRAINING_REASONS.items() if f"| `{slug}` | {meaning} |" not in page] == []
