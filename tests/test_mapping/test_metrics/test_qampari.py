"""QAMPARI's metrics over files: means, joins, what is rejected."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from kbsource.records import BadRecord
from mapping.metrics.evaluation import QAMPARI_QUIRKS, QampariEvaluation, QampariFiles
from mapping.metrics.evaluator import EvaluationResult
from mapping.metrics.qampari import REASONS, QampariScores, evaluate_qampari, share_within
from tests.support.alignments import write_records
from tests.support.real_data import ROOT

URL = "https://en.wikipedia.org/wiki/"


def _answer(qid: str, number: int, *names: str, proofs: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    aid = f"{qid}__{number}"
    proof = [
        {"proof_text": text, "found_in_url": f"{URL}{title}", "pid": f"{aid}__{i}"}
        for i, (title, text) in enumerate(proofs)
    ]
    return {"answer_text": names[0], "aid": aid, "aliases": list(names), "proof": proof}


RISES = "Many rivers rise in the lake."
FALLS = "The Ullane falls into the sea at Halvane."
SIMPLE, OTHER = "0__wikidata_simple__dev", "1__wikidata_comp__dev"
GOLD = [
    {
        "qid": SIMPLE,
        "question_text": "Which rivers rise in Lake Miravel?",
        "answer_list": [
            _answer(SIMPLE, 0, "River Ullane", "Ullane", proofs=(("Lake_Miravel", RISES), ("River_Ullane", FALLS))),
            _answer(SIMPLE, 1, "Brack", proofs=(("Lake_Miravel", RISES),)),
            _answer(SIMPLE, 2, "Sorn", proofs=(("Sorn", "The Sorn is short, and it rises in the lake."),)),
            _answer(SIMPLE, 3, "Tey"),
        ],
    },
    {"qid": OTHER, "answer_list": [_answer(OTHER, 0, "Halvane"), _answer(OTHER, 1, "Miravel")]},
]
PREDICTIONS = [
    {"qid": OTHER, "predictions": ["halvane", "Thames", "Seine"]},
    {"qid": SIMPLE, "predictions": ["the Ullane", "Brack", "Brack.", "Tey"]},
]
RETRIEVED = [
    {
        "qid": SIMPLE,
        "ctxs": [
            {"id": "4__0", "title": "Brack", "text": "The Brack is a river.", "score": 9.5},
            {"id": "2__0", "title": "Lake Miravel", "text": f"It is deep. {RISES} The Tey is one.", "score": 9},
            {"id": "3__1", "title": "River Ullane", "text": FALLS, "score": 8},
        ],
    }
]


def _evaluate(
    folder: Path,
    gold: list[Any],
    predictions: list[Any] | None = None,
    retrieved: list[Any] | None = None,
    extended: list[Any] | None = None,
    **options: Any,
) -> tuple[EvaluationResult[QampariScores], list[BadRecord]]:
    given = {"gold": gold, "predictions": predictions, "retrieved": retrieved, "extended": extended}
    files = QampariFiles(
        **{name: str(write_records(folder / f"{name}.jsonl", rows)) for name, rows in given.items() if rows is not None}
    )
    rejected: list[BadRecord] = []
    scores = evaluate_qampari(files, QampariEvaluation(**options), reject=rejected.append)
    return scores, rejected


def test_scores_of_a_reader_by_hand(tmp_path: Path) -> None:
    scores, rejected = _evaluate(tmp_path, GOLD, PREDICTIONS)

    assert rejected == []
    assert scores.to_json() == {
        "questions": 2,
        "reader": {
            "recall": 0.625,  # 3/4, 1/2
            "precision": 0.666667,  # 3/3, 1/3
            "f1": 0.628571,  # 6/7, 2/5
            "f1_above": 0.5,
            "rec_above": 0.0,
        },
        "without_predictions": 0,
        "by_kind": {
            "wikidata_simple": {"questions": 1, "reader": _reader(0.75, 1.0, 0.857143, 1.0)},
            "wikidata_comp": {"questions": 1, "reader": _reader(0.5, 0.333333, 0.4, 0.0)},
        },
        "rejected": {},
    }


def _reader(recall: float, precision: float, f1: float, f1_above: float) -> dict[str, float]:
    return {"recall": recall, "precision": precision, "f1": f1, "f1_above": f1_above, "rec_above": 0.0}


def _alone(scores: EvaluationResult[QampariScores]) -> dict[str, Any]:
    """The means over all questions."""
    return {
        name: value for name, value in scores.to_json().items() if name in ("questions", "reader", "arecall", "erecall")
    }


def test_kinds_have_the_scores_that_they_have_alone(tmp_path: Path) -> None:
    retrieved = [*RETRIEVED, {"qid": OTHER, "ctxs": []}]
    both, _ = _evaluate(tmp_path, [*GOLD, *SINGLE], PREDICTIONS, retrieved, ks=(1, 3))
    for gold_record, kind in zip(GOLD, ("wikidata_simple", "wikidata_comp"), strict=True):
        alone, _ = _evaluate(tmp_path, [gold_record], PREDICTIONS, retrieved, ks=(1, 3))
        assert both.to_json()["by_kind"][kind] == _alone(alone)
    assert sum(of_kind["questions"] for of_kind in both.to_json()["by_kind"].values()) == len(GOLD)


def test_further_answers_are_scored_beside_the_gold_ones(tmp_path: Path) -> None:
    # Thames is further; Miravel is the gold answer under another name, whether it is given again or not.
    further = [{"answer_text": "Thames", "aliases": ["the Thames"]}, {"answer_text": "Lake", "aliases": ["Miravel"]}]
    extended = [{"qid": OTHER, "answer_list": further}, {"qid": SIMPLE, "answer_list": GOLD[0]["answer_list"]}]
    retrieved = [{"qid": OTHER, "ctxs": [{"title": "Thames", "text": "A river."}]}]
    scores, rejected = _evaluate(tmp_path, [*GOLD, GOLD[1] | {"qid": "x"}], PREDICTIONS, retrieved, extended, ks=(1,))
    assert rejected == []
    without, whole = scores.to_json()["extended_set"].pop("gold_answers"), scores.to_json()["extended_set"]
    alone, _ = _evaluate(tmp_path, GOLD, PREDICTIONS, retrieved, ks=(1,))
    assert without == _alone(alone)
    assert whole["added_answers"] == {
        "mean": 0.5,
        "median": 0.5,
        "most": 1,
        "questions_without": 1,
        "questions_by_number": {"0": 1, "1": 1},
    }
    # 3/4 and 2/3 of the answers, 3/3 and 2/3 of the predictions.
    assert whole["all_answers"]["reader"] == _reader(0.708333, 0.833333, 0.761905, 1.0)
    assert whole["all_answers"]["arecall"] == {"1": 0.166667}
    assert [line.split()[:3] for line in scores.to_text().splitlines()[-2:]] == [
        ["extended,", "gold", "2"],
        ["extended,", "all", "2"],
    ]


def test_scores_of_a_retriever_by_hand(tmp_path: Path) -> None:
    scores, rejected = _evaluate(tmp_path, GOLD, retrieved=RETRIEVED, ks=(1, 2, 3))
    assert rejected == []
    assert scores.to_json() == {
        "questions": 2,
        # Of the four answers Brack stands in the first passage, the Tey in the second, the Ullane in the third.
        "arecall": {"1": 0.125, "2": 0.25, "3": 0.375},
        # Three answers have evidence: the Ullane two pieces, one of them the Brack's; that of the Sorn is not found.
        "erecall": {"1": 0.0, "2": 0.5, "3": 0.666667},
        "without_passages": 1,
        "without_evidence": 1,
        "by_kind": {
            "wikidata_simple": {
                "questions": 1,
                "arecall": {"1": 0.25, "2": 0.5, "3": 0.75},
                "erecall": {"1": 0.0, "2": 0.5, "3": 0.666667},
            },
            "wikidata_comp": {
                "questions": 1,
                "arecall": {"1": 0.0, "2": 0.0, "3": 0.0},
                "erecall": {"1": None, "2": None, "3": None},
            },
        },
        "rejected": {},
    }


def test_as_released_evidence_counts_by_question(tmp_path: Path) -> None:
    scores, _ = _evaluate(tmp_path, GOLD, retrieved=RETRIEVED, ks=(2, 3), quirks=frozenset({"evidence_mean"}))
    # Four pieces: the passage that two answers share is given twice, and found once.
    assert scores.to_json()["erecall"] == {"2": 0.25, "3": 0.5}


def test_evidence_that_was_aligned_is_found_by_id(tmp_path: Path) -> None:
    contexts = [
        {"pid": f"{SIMPLE}__0__0", "chunk_id": "2__0", "title": "", "text": ""},
        {"pid": f"{SIMPLE}__0__1", "chunk_id": "8__8", "title": "", "text": ""},
        {"pid": f"{SIMPLE}__1__0", "chunk_id": "2__0", "title": "", "text": ""},
    ]
    gold = [GOLD[0] | {"positive_ctxs": contexts}]
    scores, rejected = _evaluate(tmp_path, gold, retrieved=RETRIEVED, ks=(1, 2), evidence_match="id")
    assert rejected == []
    assert scores.to_json()["erecall"] == {"1": 0.0, "2": 0.75}


def test_an_empty_list_of_contexts_is_no_evidence_with_ids_and_leaves_the_proofs_as_texts(tmp_path: Path) -> None:
    gold = [GOLD[0] | {"positive_ctxs": []}]
    by_id, rejected = _evaluate(tmp_path, gold, PREDICTIONS[1:], RETRIEVED, ks=(3,), evidence_match="id")
    by_text, _ = _evaluate(tmp_path, gold, PREDICTIONS[1:], RETRIEVED, ks=(3,))
    assert rejected == []
    assert (by_id.first.without_evidence, by_id.to_json()["erecall"]) == (1, {"3": None})
    assert (by_text.first.without_evidence, by_text.to_json()["erecall"]) == (0, {"3": 0.666667})


SINGLE = [
    {"id": "nq_0", "question": "What falls into the sea at Halvane?", "answers": ["River Ullane", "the Ullane"]},
    {"id": "nq_1", "answers": ["1852"]},
    {"id": "nq_2", "answers": ["Brack"]},
    {"id": "nq_3", "answers": ["Tey"]},
]
SINGLE_PREDICTED = [
    {"id": "nq_0", "prediction": "Ullane."},
    {"qid": "nq_1", "predictions": ["1852"]},
    {"id": "nq_2", "predictions": ["Brack", "Sorn"]},
]


def test_questions_with_a_single_answer_are_answered_exactly_or_not(tmp_path: Path) -> None:
    scores, rejected = _evaluate(tmp_path, SINGLE, SINGLE_PREDICTED)

    assert rejected == []
    assert scores.to_json() == {
        "questions": 4,
        "single_answer": {"questions": 4, "em": 0.5},
        "without_predictions": 1,
        "rejected": {},
    }
    assert scores.to_text().splitlines() == [
        "questions                          4",
        "without predictions                1",
        "of a single answer                 4",
        "",
        "exact match                    50.00",
    ]


def test_single_answers_are_no_part_of_the_means_of_lists(tmp_path: Path) -> None:
    lists, _ = _evaluate(tmp_path, GOLD, PREDICTIONS)
    both, rejected = _evaluate(tmp_path, [*SINGLE, *GOLD], [*PREDICTIONS, *SINGLE_PREDICTED])
    assert rejected == []
    assert both.to_json()["reader"] == lists.to_json()["reader"]
    assert both.to_json()["single_answer"] == {"questions": 4, "em": 0.5}


def test_a_single_answer_is_retrieved_by_any_of_its_names_and_has_no_evidence(tmp_path: Path) -> None:
    retrieved = [{"id": "nq_0", "ctxs": [{"title": "Brack", "text": "No."}, {"title": "Ullane", "text": "Yes."}]}]
    scores, rejected = _evaluate(tmp_path, SINGLE, retrieved=retrieved, ks=(1, 2))
    assert rejected == []
    assert scores.to_json() == {
        "questions": 4,
        "arecall": {"1": 0.0, "2": 0.25},
        "erecall": {"1": None, "2": None},
        "without_passages": 3,
        "without_evidence": 4,
        "rejected": {},
    }


def test_names_of_many_answers_are_not_taken_for_one_answer(tmp_path: Path) -> None:
    as_read = {"id": "x", "answers": ["Ullane", "Brack"], "ans_mappings": {"Ullane": ["Ullane"], "Brack": ["Brack"]}}
    _, rejected = _evaluate(tmp_path, [*GOLD, as_read], PREDICTIONS)
    assert [(bad_record.key, bad_record.reason) for bad_record in rejected] == [("x", "missing_field")]


def test_a_released_file_with_predictions_is_gold_and_predictions(tmp_path: Path) -> None:
    both = [
        gold_record | {"predictions": [answer["answer_text"] for answer in gold_record["answer_list"]]}
        for gold_record in GOLD
    ]
    path = tmp_path / "both.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, both)).encode()))
    rejected: list[BadRecord] = []
    files = QampariFiles(str(path), predictions=str(path))
    scores = evaluate_qampari(files, QampariEvaluation(), reject=rejected.append)
    assert rejected == []
    assert set(scores.to_json()["reader"].values()) == {1.0}


def test_a_question_without_predictions_counts(tmp_path: Path) -> None:
    scores, _ = _evaluate(tmp_path, GOLD, PREDICTIONS[:1])
    assert (scores.first.without_predictions, scores.to_json()["reader"]["recall"]) == (1, 0.25)


@pytest.mark.parametrize(
    ("role", "line", "reason"),
    [
        ("gold", "{", "malformed_json"),
        ("gold", {"question_text": "?"}, "missing_field"),
        ("gold", {"qid": "x"}, "missing_field"),
        ("gold", {"qid": "x", "answer_list": []}, "no_answers"),
        ("gold", {"qid": "x", "answers": []}, "no_answers"),
        ("gold", {"qid": "x", "answers": "Ullane"}, "wrong_type"),
        ("gold", {"qid": "x", "answer_list": [{"answer_text": 5}]}, "wrong_type"),
        ("gold", {"qid": "x", "answer_list": [{"answer_text": "a", "aliases": "a"}]}, "wrong_type"),
        ("gold", {"qid": "x", "answer_list": [_answer("x", 1, "a"), _answer("x", 1, "b")]}, "duplicate_answer"),
        ("gold", {"qid": "x", "answer_list": [{"answer_text": "a", "proof": [{}]}]}, "missing_field"),
        ("gold", GOLD[0] | {"qid": "x", "positive_ctxs": [{"pid": "y__0__0"}]}, "unknown_answer"),
        ("gold", GOLD[0], "duplicate_question"),
        ("predictions", {"qid": SIMPLE, "predictions": []}, "duplicate_question"),
        ("predictions", {"qid": "x", "predictions": ["a"]}, "unknown_question"),
        ("predictions", {"qid": "x", "predictions": "a"}, "wrong_type"),
        ("predictions", {"qid": "x", "prediction": ["a"]}, "wrong_type"),
        ("predictions", {"qid": "x", "predictions": ["a", None]}, "wrong_type"),
        ("predictions", {"qid": "x", "answers": ["a"]}, "missing_field"),
        ("predictions", {"qid": True, "predictions": ["a"]}, "wrong_type"),
        ("predictions", '{"qid": "x", "predictions": ["\\ud800"]}', "bad_encoding"),
        ("extended", {"qid": "x", "answer_list": []}, "unknown_question"),
        ("extended", {"qid": SIMPLE, "answer_list": []}, "duplicate_question"),
        ("extended", {"qid": "x", "answer_list": [{}]}, "missing_field"),
        ("retrieved", {"qid": "x", "ctxs": []}, "unknown_question"),
        ("retrieved", {"qid": "x", "ctxs": [{"title": "T"}]}, "missing_field"),
        ("retrieved", ["qid"], "wrong_type"),
    ],
)
def test_a_bad_line_is_named_and_the_others_count(tmp_path: Path, role: str, line: Any, reason: str) -> None:
    given: dict[str, list[Any]] = {"gold": [*GOLD], "predictions": [*PREDICTIONS], "retrieved": [*RETRIEVED]}
    given["extended"] = [{"qid": SIMPLE, "answer_list": [{"answer_text": "Thames"}]}]
    good, _ = _evaluate(tmp_path, *given.values())
    given[role].append(line)
    scores, (bad,) = _evaluate(tmp_path, *given.values())
    assert (bad.stage, bad.file, bad.reason) == (role, f"{role}.jsonl", reason)
    assert bad.detail.startswith(f"line {len(given[role])}: ")
    assert reason in REASONS
    assert scores.to_json() == good.to_json() | {"rejected": {role: {reason: 1}}}


def test_every_reason_and_quirk_is_documented() -> None:
    manual, commands = ((ROOT / "docs" / name).read_text("utf-8") for name in ("manual.md", "commands.md"))
    assert [name for name in QAMPARI_QUIRKS if f"{name}: " not in commands] == []
    assert [name for name in REASONS if f"`{name}`" not in manual] == []


def test_ids_are_needed_where_evidence_is_found_by_id(tmp_path: Path) -> None:
    unnamed = {"qid": SIMPLE, "ctxs": [{"title": "T", "text": "t"}]}
    _, bad = _evaluate(tmp_path, GOLD, retrieved=[unnamed], evidence_match="id")
    assert [(bad_record.stage, bad_record.reason) for bad_record in bad] == [
        ("retrieved", "missing_field"),
        ("gold", "missing_field"),
    ]


def test_a_file_of_something_else_stops_the_evaluation(tmp_path: Path) -> None:
    with pytest.raises(
        SetupError,
        match=r"gold\.jsonl is not what was expected: JSON Lines or an array with qid and answer_list or answers",
    ):
        _evaluate(tmp_path, [{"qid": 1}], PREDICTIONS)
    with pytest.raises(SetupError, match=r"nowhere\.jsonl: no such file"):
        evaluate_qampari(
            QampariFiles(str(tmp_path / "gold.jsonl"), predictions="nowhere.jsonl"), QampariEvaluation(), reject=print
        )
    with pytest.raises(SetupError, match="--predictions, --retrieved, or both"):
        _evaluate(tmp_path, GOLD)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ks": ()}, "--k is "),
        ({"ks": (0, 5)}, "--k is 0,5"),
        ({"ks": (5, 5)}, "--k is 5,5"),
        ({"evidence_match": "url"}, "--evidence-match is url. Choose one of text, id"),
        ({"matching": "best"}, "--matching is best"),
        ({"quirks": frozenset({"odd"})}, "--quirk odd"),
        ({"quirks": frozenset({"last_owner"}), "matching": "maximum"}, "leave one of the two options out"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        QampariEvaluation(**options)


def test_the_scores_for_reading(tmp_path: Path) -> None:
    scores, _ = _evaluate(tmp_path, GOLD, [*PREDICTIONS, {"qid": "x", "predictions": []}], RETRIEVED, ks=(2,))

    assert scores.to_text().splitlines() == [
        "questions                          2",
        "without predictions                0",
        "without passages                   1",
        "without evidence                   1",
        "rejected predictions: unknown_question 1",
        "",
        "recall                         62.50",
        "precision                      66.67",
        "F1                             62.86",
        "F1 >= 0.5                      50.00",
        "recall >= 0.8                   0.00",
        "",
        "ARECALL@2                      25.00",
        "ERECALL@2                      50.00",
        "",
        "kind                  questions         recall      precision             F1      F1 >= 0.5  recall >= 0.8"
        "      ARECALL@2      ERECALL@2",
        "wikidata_comp                 1          50.00          33.33          40.00           0.00           0.00"
        "           0.00              –",
        "wikidata_simple               1          75.00         100.00          85.71         100.00           0.00"
        "          50.00          50.00",
    ]


def test_every_quirk_changes_a_score(tmp_path: Path) -> None:
    late = _answer("r", 0, "Sorn", proofs=(("Sorn", "cdefghijkl"),))
    twins = [{"answer_text": "M", "aliases": ["x"]}, {"answer_text": "M", "aliases": ["y"]}, {"answer_text": "Tey"}]
    gold = [*GOLD, {"qid": "m", "answer_list": twins}, {"qid": "r", "answer_list": [late]}]
    predictions = [*PREDICTIONS, {"qid": "m", "predictions": ["x", "y", "X", "Tey"]}]
    retrieved = [*RETRIEVED, {"qid": "m", "ctxs": [{"id": "1", "title": "Teys", "text": "none"}]}]
    retrieved.append({"qid": "r", "ctxs": [{"id": "2", "title": "Sorn", "text": "abcdefghij"}]})
    plain, _ = _evaluate(tmp_path, gold, predictions, retrieved, ks=(2,))
    for quirk in QAMPARI_QUIRKS:
        quirky, _ = _evaluate(tmp_path, gold, predictions, retrieved, ks=(2,), quirks=frozenset({quirk}))
        assert quirky.to_json() != plain.to_json(), quirk


RANKS = st.lists(st.none() | st.integers(1, 9), min_size=1, max_size=8)


@given(RANKS, st.integers(1, 8))
def test_more_passages_find_no_less(ranks: list[int | None], k: int) -> None:
    assert 0 <= share_within(ranks, k) <= share_within(ranks, k + 1) <= 1
    assert share_within(ranks, 9) == sum(rank is not None for rank in ranks) / len(ranks)
