"""Predictions for the tasks of KILT: the official numbers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.files import LocalStorage
from kbsource.records import BadRecord
from mapping.metrics.kilt.evaluate import evaluate_kilt
from mapping.metrics.kilt.leaderboard import evaluate_tasks
from mapping.metrics.kilt.options import KiltEvaluation, KiltFiles
from mapping.metrics.kilt.scores import KiltScores, leaderboard_text, scores_text
from tests.support.kilt_metrics_oracle import scores_of

Record = dict[str, Any]


def lines(path: Path, records: Iterable[object]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def evaluated(
    folder: Path,
    gold: Iterable[object],
    guesses: Iterable[object],
    *,
    files: dict[str, str] | None = None,
    **options: Any,
) -> tuple[KiltScores, list[BadRecord]]:
    rejected: list[BadRecord] = []
    given = KiltFiles(lines(folder / "gold.jsonl", gold), lines(folder / "guess.jsonl", guesses), **(files or {}))
    scores = evaluate_kilt(given, LocalStorage(), KiltEvaluation(**options), reject=rejected.append)
    return scores, rejected


def gold(record_id: str, *outputs: Record, text: str = "") -> Record:
    return {"id": record_id, "input": text, "output": list(outputs)}


def pages(*page_ids: str | int, answer: str | None = None) -> Record:
    output: Record = {"provenance": [{"wikipedia_id": page_id} for page_id in page_ids]}
    return output if answer is None else {"answer": answer, **output}


@pytest.mark.parametrize(
    ("case", "gold_sets", "predicted", "expected"),
    [
        ("first", ["ab", "c"], "xab", {"recall@5": 0.5, "precision@5": 0.2, "Rprec": 0.5}),
        ("a page in two sets", ["ab", "b"], "ab", {"recall@5": 1.0, "Rprec": 1.0, "precision@1": 1.0}),
        ("a page that two sets share", ["ab", "ac"], "abc", {"recall@5": 1.0, "Rprec": 1.0}),
        ("no place at all", ["ab"], "", {"recall@5": 0.0, "Rprec": 0.0, "success_rate@5": 0.0}),
        ("equal sets are one", ["ab", "ba"], "ab", {"recall@5": 1.0, "precision@5": 0.2}),
    ],
)
def test_worked_examples(
    case: str, gold_sets: list[str], predicted: str, expected: dict[str, float], tmp_path: Path
) -> None:
    record = gold("1", *(pages(*one, answer="x") for one in gold_sets))
    scores, _ = evaluated(tmp_path, [record], [{"id": "1", "output": [pages(*predicted)]}])
    assert {name: scores.first.mean(name) for name in expected} == expected


ANSWERS = ["", "The", "a", "Ullane", "the Ullane", "River Ullane.", "Lake Miravel. It is deep.", ".", "1984", "U.S."]
TITLES = ["Ullane", "The", "River Ullane", "  ", "Halvane Isles", None]
TEXTS = ["The Ullane rises in Lake Miravel.", "", "Halvane Isles", "1984 was a year; the U.S. too"]


def random_span(chance: random.Random, *, with_text: bool) -> Record:
    span: Record = {"wikipedia_id": chance.choice(["1", 1, " 2", "3", 4, None])}
    if chance.random() < 0.1:
        del span["wikipedia_id"]
    if chance.random() < 0.8:
        span["section"] = chance.choice(["Lead", "History"])
    if chance.random() < 0.8:
        span["title"] = chance.choice(TITLES)
    if with_text and chance.random() < 0.7:
        span["text"] = chance.choice(TEXTS)
    return span


def random_output(chance: random.Random, *, with_text: bool) -> Record:
    output: Record = {}
    if chance.random() < 0.8:
        output["answer"] = chance.choice(ANSWERS)
    if chance.random() < 0.8:
        output["provenance"] = [random_span(chance, with_text=with_text) for _ in range(chance.randint(0, 5))]
    return output


def random_pair(chance: random.Random, number: int) -> tuple[Record, Record | None]:
    record = gold(f"{number}", *(random_output(chance, with_text=False) for _ in range(chance.randint(1, 4))))
    record["input"] = chance.choice(["Where does the Ullane rise?", "", "Halvane Isles [START_ENT] x"])
    if chance.random() < 0.1:
        del record["input"]
    if chance.random() < 0.1:
        return record, None
    n_outputs = 1 if chance.random() < 0.8 else chance.choice([0, 2])
    outputs = [random_output(chance, with_text=True) for _ in range(n_outputs)]
    return record, {"id": number if chance.random() < 0.5 else f" {number} ", "output": outputs}


@pytest.mark.parametrize("keys", [("wikipedia_id",), ("wikipedia_id", "section")])
def test_every_value_is_that_of_a_slow_evaluation(keys: tuple[str, ...], tmp_path: Path) -> None:
    chance = random.Random(f"kilt {keys}")
    pairs = [random_pair(chance, number) for number in range(500)]
    ks = (1, 2, 5)
    scores, _ = evaluated(
        tmp_path, [record for record, _ in pairs], [guess for _, guess in pairs if guess], ks=ks, rank_keys=keys
    )
    expected = [scores_of(record, guess, ks, keys) for record, guess in pairs]
    assert set(scores.first.names) == expected[0].keys()
    assert [sum(one[name] for one in expected) > 0 for name in scores.first.names] == [True] * len(scores.first.names)
    for row, values in zip(scores.first.values, expected, strict=True):
        assert dict(zip(scores.first.names, row, strict=True)) == pytest.approx(values, abs=1e-9)


def test_what_cannot_be_used_is_named_and_scores_nothing(tmp_path: Path) -> None:
    right = {"output": [pages("1", answer="Ullane")]}
    scores, rejected = evaluated(
        tmp_path,
        [gold(record_id, pages("1", answer="Ullane")) for record_id in "abcde"] + [{"id": "f", "output": []}],
        [
            {"id": "a", **right},
            {"id": "a", **right},
            {"id": "b", "output": [pages("1"), {"answer": "Ullane"}]},
            {"id": "c", "output": [pages("1"), pages("1", answer="Ullane")]},
            {"id": "z", **right},
            {"id": "d", "output": "Ullane"},
        ],
    )
    assert [(bad.reason, bad.stage, bad.key) for bad in rejected] == [
        ("duplicate_id", "predictions", "a"),
        ("several_provenances", "predictions", "c"),
        ("wrong_type", "predictions", "d"),
        ("no_answer", "predictions", "b"),
        ("no_answer", "predictions", "c"),
        ("no_output", "gold", "f"),
        ("unknown_id", "predictions", "z"),
    ]
    value = scores.to_json()
    assert (value["records"], value["without_prediction"], value["downstream"]["accuracy"]) == (5, 2, 0.2)
    assert value["retrieval"]["Rprec"] == 0.4


def test_a_retriever_is_evaluated_by_its_places_alone(tmp_path: Path) -> None:
    scores, rejected = evaluated(
        tmp_path, [gold("a", pages("1", answer="x"))], [{"id": "a", "output": [pages("1"), {"answer": "x"}]}]
    )
    assert (rejected, list(scores.to_json())[:2]) == ([], ["records", "retrieval"])
    assert "no prediction has an answer" in scores_text(scores)


@pytest.mark.parametrize(
    ("quirk", "gold_output", "name", "plain", "released"),
    [
        ("empty_sets", {"answer": "x", "provenance": []}, "recall@5", 1.0, 0.5),
        ("partial_ids", {"provenance": [{"section": "Lead"}]}, "recall@5", 1.0, 0.5),
        ("null_ids", {"provenance": [{"wikipedia_id": None}]}, "recall@5", 1.0, 0.5),
        ("empty_answers", {"answer": "The"}, "answer_in_context@1", 0.0, 1.0),
    ],
)
def test_quirks(quirk: str, gold_output: Record, name: str, plain: float, released: float, tmp_path: Path) -> None:
    record = gold("a", pages("1", answer="Ullane"), gold_output)
    guess = {"id": "a", "output": [{"provenance": [{"wikipedia_id": "1", "text": "water"}]}]}
    values = [
        evaluated(tmp_path, [record], [guess], quirks=frozenset(quirks))[0].first.mean(name) for quirks in ((), [quirk])
    ]
    assert values == [plain, released]


def test_a_long_answer_is_scored(tmp_path: Path) -> None:
    text = " ".join(f"w{number}" for number in range(1500))
    scores, _ = evaluated(tmp_path, [gold("a", {"answer": text})], [{"id": "a", "output": [{"answer": text}]}])
    assert scores.first.mean("rougel") == pytest.approx(1, abs=1e-6)


def test_two_systems_are_compared(tmp_path: Path) -> None:
    records = [gold(f"{number}", {"answer": "x"}) for number in range(40)]
    wrong, right = [
        [{"id": f"{number}", "output": [{"answer": "x" if number >= first else "y"}]} for number in range(40)]
        for first in (20, 0)
    ]
    second = {"compare": lines(tmp_path / "second.jsonl", right)}
    scores, _ = evaluated(tmp_path, records, wrong, files=second, resamples=2000)
    low, high = scores.first.intervals["accuracy"]
    assert 0.3 < low < 0.4
    assert 0.6 < high < 0.7
    difference = scores.differences["accuracy"]
    assert difference.mean == 0.5
    assert difference.interval.low > 0.3
    assert difference.p < 0.001
    assert scores.differences["Rprec"].p == 1
    assert scores.to_json() == evaluated(tmp_path, records, wrong, files=second, resamples=2000)[0].to_json()
    assert "+50.00" in scores_text(scores)


def test_the_leaderboard(tmp_path: Path) -> None:
    for folder in ("gold", "guess"):
        (tmp_path / folder).mkdir()
    for task in ("nq", "fever", "wow"):
        lines(tmp_path / "gold" / f"{task}-dev-kilt.jsonl", [gold("a", pages("1", answer="The Ullane"))])
    for task in ("nq", "fever"):
        guess = {"id": "a", "output": [pages("1", answer="Ullane")]}
        lines(tmp_path / "guess" / f"{task}-dev-kilt.jsonl", [guess])
    files = KiltFiles(str(tmp_path / "gold"), all_tasks=str(tmp_path / "guess"))
    scores, missing = evaluate_tasks(files, LocalStorage(), KiltEvaluation(), reject=lambda _: None)
    assert missing == ["wow-dev-kilt.jsonl"]
    text = leaderboard_text(scores)
    assert [line.split() for line in text.splitlines()] == [
        ["records", "metric", "score", "KILT", "Rprec", "rec@5"],
        ["fever-dev-kilt.jsonl", "1", "accuracy", "0.00", "0.00", "100.00", "100.00"],
        ["nq-dev-kilt.jsonl", "1", "em", "100.00", "100.00", "100.00", "100.00"],
    ]


def test_another_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="records of KILT with id and output"):
        evaluated(tmp_path, [{"id": "a", "input": "x"}], [{"id": "a", "output": []}])
