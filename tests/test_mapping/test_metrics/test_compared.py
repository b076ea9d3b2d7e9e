"""Intervals, comparisons and values of every item, which all benchmarks have."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbsource.errors import SetupError
from mapping.metrics.amber import AmberScores, evaluate_amber
from mapping.metrics.evaluation import (
    AmberEvaluation,
    AmberFiles,
    KiltEvaluation,
    KiltFiles,
    QampariEvaluation,
    QampariFiles,
)
from mapping.metrics.evaluator import EvaluationResult, MetricValues, differences_of, intervals_of
from mapping.metrics.kilt import evaluate_kilt
from mapping.metrics.qampari import evaluate_qampari
from mapping.metrics.significance import differences, intervals
from pipelines.cli import main
from tests.support.alignments import write_records

N = 40
Record = dict[str, Any]
QAMPARI_GOLD: list[Record] = [
    {"qid": f"{n}__wikidata_simple__dev", "question_text": "?", "answer_list": [{"answer_text": "x"}]} for n in range(N)
]
KILT_GOLD: list[Record] = [
    {"id": f"{n}", "input": "?", "output": [{"answer": "x", "provenance": [{"wikipedia_id": "1"}]}]} for n in range(N)
]
AMBER_GOLD: list[Record] = [
    {
        "name": f"N{n}",
        "qids": {
            f"Q{n}{side}": {
                "is_head": side == "h",
                "popularity": 4.0 if side == "h" else 2.0,
                "wikipedia": [{"wikipedia_id": f"{n}{side}"}],
                "queries": [
                    {"id": f"{n}{side}", "output": {"answer": ["x"], "provenance": [{"wikipedia_id": f"{n}{side}"}]}}
                ],
            }
            for side in "ht"
        },
    }
    for n in range(N)
]


def _answer(is_right: bool) -> str:
    return "x" if is_right else "y"


def _qampari(n_wrong: int) -> list[Record]:
    return [{"qid": question["qid"], "predictions": [_answer(n >= n_wrong)]} for n, question in enumerate(QAMPARI_GOLD)]


def _kilt(n_wrong: int) -> list[Record]:
    return [{"id": f"{n}", "output": [{"answer": _answer(n >= n_wrong)}]} for n in range(N)]


def _amber(n_wrong: int) -> list[Record]:
    return [
        {"id": f"{n}{side}", "output": {"provenance": [{"wikipedia_id": f"{n}{side}" if n >= n_wrong else "none"}]}}
        for n in range(N)
        for side in "ht"
    ]


def _never(bad: object) -> None:
    pytest.fail(str(bad))


def _run(
    family: str, folder: Path, first: list[Record], second: list[Record] | None, **options: Any
) -> EvaluationResult[Any]:
    gold = {"qampari": QAMPARI_GOLD, "kilt": KILT_GOLD, "amber": AMBER_GOLD}[family]
    gold_path, path = (str(write_records(folder / name, rows)) for name, rows in (("gold", gold), ("first", first)))
    compare = None if second is None else str(write_records(folder / "second", second))
    if family == "qampari":
        files = QampariFiles(gold_path, predictions=path, compare=compare)
        return evaluate_qampari(files, QampariEvaluation(**options), reject=_never)
    if family == "kilt":
        given = KiltFiles(gold_path, path, compare=compare)
        return evaluate_kilt(given, KiltEvaluation(**options), reject=_never)
    return evaluate_amber(AmberFiles(gold_path, path, compare=compare), AmberEvaluation(**options), reject=_never)


FAMILIES: dict[str, tuple[Callable[[int], list[Record]], str, int]] = {
    "kilt": (_kilt, "accuracy", 1),
    "qampari": (_qampari, "F1", 1),
    "amber": (_amber, "accuracy@1", 100),
}
"""What is predicted with so many wrong answers, a metric, and what its values are multiplied with in JSON."""


@pytest.mark.parametrize("family", FAMILIES)
def test_two_systems_are_compared_with_intervals(family: str, tmp_path: Path) -> None:
    predicted, name, scale = FAMILIES[family]
    found = _run(family, tmp_path, predicted(20), predicted(0), resamples=2000)
    low, high = found.first.intervals[name]
    assert 0.3 < low < 0.42
    assert 0.58 < high < 0.7
    difference = found.differences[name]
    assert difference.mean == 0.5
    assert difference.interval.low > 0.3
    assert difference.p < 0.001
    value = found.to_json()
    assert value["intervals"][name] == [scale * low, scale * high]
    assert value["differences"][name]["mean"] == scale * 0.5
    assert value["compared"]["intervals"][name] == [scale, scale]
    assert value == _run(family, tmp_path, predicted(20), predicted(0), resamples=2000).to_json()
    [line] = [line for line in found.to_text().splitlines() if line.split("  ")[0] == name]
    assert "50.00 [" in line
    assert "+50.00 [" in line
    assert "p = 0.0005" in line


@pytest.mark.parametrize("family", FAMILIES)
def test_without_resamples_there_is_neither_interval_nor_test(family: str, tmp_path: Path) -> None:
    predicted, *_ = FAMILIES[family]
    value = _run(family, tmp_path, predicted(20), predicted(0)).to_json()
    assert "intervals" not in value
    assert value["differences"] == {}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_second_file_is_checked_as_the_first(family: str, tmp_path: Path) -> None:
    predicted, *_ = FAMILIES[family]
    others = [
        {key: f"other {value}" if key in ("id", "qid") else value for key, value in record.items()}
        for record in predicted(0)
    ]
    with pytest.raises(SetupError, match="have no id in common"):
        _run(family, tmp_path, predicted(20), others)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_second_file_that_predicts_nothing_is_refused(family: str, tmp_path: Path) -> None:
    predicted, *_ = FAMILIES[family]
    silent = [{key: value for key, value in record.items() if key in ("id", "qid")} for record in predicted(0)]
    with pytest.raises(SetupError, match="second has no record with"):
        _run(family, tmp_path, predicted(20), [{**silent_record, "output": []} for silent_record in silent])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_system_is_as_good_as_itself(family: str, tmp_path: Path) -> None:
    predicted, name, _ = FAMILIES[family]
    found = _run(family, tmp_path, predicted(7), predicted(7), resamples=50)
    assert found.second is not None
    assert found.first.columns == found.second.columns
    assert {difference.mean for difference in found.differences.values()} == {0.0}
    assert found.differences[name].p == 1


def test_what_cannot_be_used_of_a_second_system_is_told(tmp_path: Path) -> None:
    gold, first, second = (
        str(write_records(tmp_path / name, rows))
        for name, rows in (("gold", KILT_GOLD), ("a", _kilt(0)), ("b", [*_kilt(0), *_kilt(0)[:3]]))
    )
    told: list[Any] = []
    found = evaluate_kilt(KiltFiles(gold, first, compare=second), KiltEvaluation(), reject=told.append)
    assert found.has_rejects
    assert [bad.reason for bad in told] == ["duplicate_id"] * 3
    assert found.to_json()["compared"]["rejected"] == {"predictions": {"duplicate_id": 3}}


@pytest.mark.parametrize("family", FAMILIES)
def test_values_of_every_item_are_written(family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predicted, name, _ = FAMILIES[family]
    found = _run(family, tmp_path, predicted(15), None)
    flags = ["--predictions"] if family == "qampari" else []
    items = tmp_path / "items.jsonl"
    argv = ["evaluate", family, f"{tmp_path}/gold", *flags, f"{tmp_path}/first", "--items", str(items)]
    assert main(argv) == 0
    rows = [json.loads(line) for line in items.read_text().splitlines()]
    values = [row[name] for row in rows if name in row]
    assert sum(values) / len(values) == found.first.mean(name)
    assert [row["id"] for row in rows] == found.first.ids
    capsys.readouterr()


def test_consistency_is_of_sets_and_accuracy_of_queries(tmp_path: Path) -> None:
    predicted = [query for query in _amber(0) if query["id"] != "0t"]
    scores = _run("amber", tmp_path, predicted, None, resamples=100).first
    assert isinstance(scores, AmberScores)
    rows = {row["id"]: row for row in scores.rows()}
    assert rows["N0"] == {"id": "N0", "consistency@1": 0.0}
    assert rows["N1"] == {"id": "N1", "consistency@1": 1.0}
    assert rows["0t"].keys() >= {"accuracy@1", "accuracy@1 tail"}
    assert "accuracy@1 head" not in rows["0t"]
    assert scores.columns["consistency@1"].n == N
    assert scores.columns["accuracy@1"].n == 2 * N


def test_a_second_system_of_questions_with_many_answers_gives_answers_passages_or_both(tmp_path: Path) -> None:
    passages = [{"qid": gold_record["qid"], "ctxs": [{"title": "x", "text": "x"}]} for gold_record in QAMPARI_GOLD]
    paths = {
        name: str(write_records(tmp_path / name, rows))
        for name, rows in {
            "gold": QAMPARI_GOLD,
            "answers": _qampari(20),
            "passages": passages,
            "both": [{**prediction, **other} for prediction, other in zip(_qampari(0), passages, strict=True)],
        }.items()
    }
    first = {"predictions": paths["answers"], "retrieved": paths["passages"]}
    for second, names in {
        "answers": {"recall", "precision", "F1", "F1 >= 0.5", "recall >= 0.8"},
        "passages": {"ARECALL@1"},
        "both": {"recall", "precision", "F1", "F1 >= 0.5", "recall >= 0.8", "ARECALL@1"},
    }.items():
        files = QampariFiles(paths["gold"], **first, compare=paths[second])
        found = evaluate_qampari(files, QampariEvaluation(ks=(1,), resamples=50), reject=_never)
        assert {name for name in found.differences if "wikidata" not in name} == names


def _column(items: list[int], values: list[float]) -> MetricValues:
    column = MetricValues()
    for item, value in zip(items, values, strict=True):
        column.add(item, value)
    return column


def test_only_items_that_count_for_both_are_compared() -> None:
    draw = random.Random(7)
    first, second = AmberScores(), AmberScores()
    pairs = {}
    for name, step in (("a", 1), ("b", 2), ("c", 3)):
        of_first, of_second = range(0, 60, step), range(0, 60, 4)
        first_values, other = ([draw.random() for _ in items] for items in (of_first, of_second))
        first.columns[name], second.columns[name] = _column([*of_first], first_values), _column([*of_second], other)
        common = sorted({*of_first} & {*of_second})
        pairs[name] = [
            np.array([[dict(zip(items, values, strict=True))[item]] for item in common])
            for items, values in ((of_first, first_values), (of_second, other))
        ]
    first.columns["d"] = _column([1], [1.0])
    second.columns["d"] = _column([2], [1.0])
    found = differences_of(first, second, 300)
    assert [*found] == ["a", "b", "c"]
    for name, (left, right) in pairs.items():
        [expected] = differences(left, right, 300)
        assert found[name].mean == pytest.approx(expected.mean)
        assert found[name].p == expected.p
        assert found[name].interval == pytest.approx(expected.interval)


def test_columns_of_several_sizes_have_the_intervals_that_they_have_alone() -> None:
    draw = random.Random(8)
    columns = {f"{n}": _column([*range(n)], [draw.random() for _ in range(n)]) for n in (3, 10, 50)}
    columns["other"] = _column([*range(10)], [draw.random() for _ in range(10)])
    columns["none"] = MetricValues()
    found = intervals_of(columns, 200)
    assert [*found] == ["3", "10", "50", "other"]
    for name, interval in found.items():
        assert interval == pytest.approx(intervals(np.array([columns[name].values]).T, 200)[0])


def test_rows_have_what_counts_for_an_item() -> None:
    scores = AmberScores(ids=["a", "b", "c"])
    scores.columns["x"], scores.columns["y"] = _column([0, 2], [0.5, 0.25]), _column([1], [1.0])
    assert [*scores.rows()] == [{"id": "a", "x": 0.5}, {"id": "b", "y": 1.0}, {"id": "c", "x": 0.25}]
