"""The metrics of AmbER sets, counted by hand."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import RecordError
from mapping.metrics.amber import answer_f1, gap_bin, parse_amber_prediction, parse_set
from pipelines.cli import main
from tests.support.alignments import write_records

Record = dict[str, Any]


def _pages(*ids: object) -> list[Record]:
    return [{"wikipedia_id": item_id, "wikipedia_title": f"Page {item_id}"} for item_id in ids]


def _query(query_id: str, *gold: object, answer: Any = ("Vietnam War",)) -> Record:
    return {
        "id": query_id,
        "input": "Which war did Abe Lincoln fight?",
        "output": {"answer": answer, "provenance": _pages(*gold), "meta": {"values": [], "additional_values": []}},
        "meta": {"pid": "P607"},
    }


def _entity(is_head: bool, popularity: float, page: object, *queries: Record) -> Record:
    return {"is_head": is_head, "popularity": popularity, "wikipedia": _pages(page), "queries": list(queries)}


GOLD: list[Record] = [
    {
        "name": "Abe Lincoln",
        "qids": {
            "Q91": _entity(True, 5.0, "307", _query("h1", "307"), _query("h2", 307)),
            "Q92": _entity(False, 4.0, "400", _query("t1", "400")),
            "Q93": _entity(False, 2.0, "500"),
        },
    },
    {
        "name": "Lantern",
        "qids": {"Q1": _entity(True, 4.0, "1", _query("h3", "1")), "Q2": _entity(False, 3.0, "2", _query("t2", "2"))},
    },
]
PREDICTED: list[Record] = [
    {"id": "h1", "output": {"provenance": _pages("307", "400")}},
    {"id": "h2", "output": {"provenance": _pages("None", "500", "500", "307")}},
    {"id": "t1", "output": {"provenance": _pages("307", "9")}},
    {"id": "h3", "output": {"provenance": _pages("1")}},
    {"id": "t2", "output": {"provenance": _pages("77")}},
]


@pytest.fixture
def evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(gold: list[Record], predicted: list[Record], *flags: str, code: int = 0) -> Any:
        paths = write_records(tmp_path / "gold.jsonl", gold), write_records(tmp_path / "predicted.jsonl", predicted)
        argv = ["evaluate", "amber", *map(str, paths), *flags]
        assert main([*argv, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return run


def test_pages_are_counted_once_before_the_first_k_are_taken(evaluate: Any) -> None:
    said = evaluate(GOLD, PREDICTED, "--k", "1,2")
    assert said["metrics@1"] == {
        "accuracy": 40.0,
        "head": {"accuracy": 66.6667},
        "tail": {"accuracy": 0.0},
        "consistency": 0.0,
    }
    # "None" goes, and a page that comes again: 307 is the second page of h2.
    assert said["metrics@2"]["head"] == {"accuracy": 100.0}
    assert (said["sets"], said["queries"], said["without_predictions"]) == (2, 5, 0)


def test_a_set_is_consistent_when_all_its_queries_are_right(evaluate: Any) -> None:
    right = [{"id": "t2", "output": {"provenance": _pages(2)}}, *PREDICTED[:4]]
    assert evaluate(GOLD, right)["metrics@1"]["consistency"] == 50.0


def test_another_entity_above_the_gold_page_is_confusion(evaluate: Any) -> None:
    said = evaluate(GOLD, PREDICTED)
    # h2 has 500 above 307, t1 has 307 and never 400; of t2 neither page is there.
    assert said["entity_confusion"] == {"all": 40.0, "head": 33.3333, "tail": 50.0}
    assert said["entity_confusion_of_retrieved"] == {"all": 50.0, "head": 33.3333, "tail": 100.0}


def test_heads_are_told_before_tails(evaluate: Any) -> None:
    turned = [{**gold_record, "qids": dict(reversed(gold_record["qids"].items()))} for gold_record in GOLD]
    assert [*evaluate(turned, PREDICTED)["entity_confusion"]] == ["all", "head", "tail"]


def test_a_gold_page_of_two_entities_is_no_confusion(evaluate: Any) -> None:
    gold = [{"name": "A", "qids": {"Q1": _entity(True, 3, 1, _query("a", 1)), "Q2": _entity(False, 2, 1)}}]
    said = evaluate(gold, [{"id": "a", "output": {"provenance": _pages(1)}}])
    assert "entity_confusion" not in said
    assert said["metrics@1"] == {"accuracy": 100.0, "head": {"accuracy": 100.0}, "consistency": 100.0}


def test_a_missing_prediction_scores_nothing_and_is_counted(evaluate: Any) -> None:
    said = evaluate(GOLD, PREDICTED[:1])
    assert (said["metrics@1"]["accuracy"], said["without_predictions"]) == (20.0, 4)


def test_gaps_are_binned_by_pairs_with_queries(evaluate: Any) -> None:
    said = evaluate(GOLD, PREDICTED)["popularity_gap"]
    # (5 - 4) / 4 = 25 % with h1, h2 against t1; (4 - 3) / 3 = 33 % with h3 against t2; Q93 has no query.
    assert [
        (percent_bin["from"], percent_bin["head_queries"], percent_bin["tail_queries"]) for percent_bin in said["bins"]
    ] == [
        (0, 0, 0),
        (20, 3, 2),
        (40, 0, 0),
        (60, 0, 0),
        (80, 0, 0),
    ]
    assert (said["bins"][1]["difference"], said["bins"][0]["difference"], said["all"]) == (66.6667, None, 66.6667)
    views = evaluate(GOLD, PREDICTED, "--gap-on", "views")["popularity_gap"]["bins"]
    assert [view["head_queries"] for view in views] == [0, 0, 0, 0, 3]


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        (3.0, 3.0, 0),
        (1.19, 1.0, 0),
        (1.2, 1.0, 1),
        (1.6, 1.0, 3),
        (1.8, 1.0, 4),
        (2.0, 1.0, 4),
        (9.0, 1.0, 4),
        (1, 0, 4),
    ],
)
def test_a_bin_takes_in_its_lower_end(head: float, tail: float, expected: int) -> None:
    assert gap_bin(head, tail, on_views=False) == expected


def test_answers_have_the_f1_of_the_best_name(evaluate: Any) -> None:
    output = {"answer": "the Vietnam-war of 1955", "provenance": _pages(307)}
    said = evaluate(GOLD, [{"id": "h1", "output": output}, {"id": "t2", "output": [{"answer": "Vietnam War"}]}])
    assert said["answer_f1"] == {"all": 33.3333, "head": 22.2222, "tail": 50.0}
    assert answer_f1("...", "!!!") == 0


def test_labels_have_an_accuracy(evaluate: Any) -> None:
    queries = _query("a", 1, answer="SUPPORTS"), _query("b", 1, answer="REFUTES")
    gold = [{"name": "A", "qids": {"Q1": _entity(True, 3, 1, *queries), "Q2": _entity(False, 2, 2)}}]
    predicted = [{"id": query_id, "output": {"answer": "SUPPORTS"}} for query_id in "ab"]
    assert evaluate(gold, predicted)["answer_accuracy"] == {"all": 50.0, "head": 50.0}


def test_lines_that_cannot_be_used_are_named(evaluate: Any, tmp_path: Path) -> None:
    predicted = [*PREDICTED, PREDICTED[0], {"id": "x", "output": {"provenance": []}}, {"id": "y", "output": {}}]
    said = evaluate([*GOLD, GOLD[1]], predicted, code=1)
    assert said["rejected"] == {
        "gold": {"duplicate_question": 1},
        "predictions": {"duplicate_question": 1, "missing_field": 1, "unknown_question": 1},
    }
    assert (said["sets"], said["metrics@1"]["accuracy"]) == (2, 40.0)


def test_the_files_of_the_released_tool_and_a_plot_are_written(evaluate: Any, tmp_path: Path) -> None:
    said = evaluate(
        GOLD, PREDICTED, "--k", "1,20", "--metrics", str(tmp_path / "m"), "--plot", str(tmp_path / "p.html")
    )
    assert json.loads((tmp_path / "m" / "metrics@20.json").read_text()) == said["metrics@20"]
    # As the released script works them out, with all their decimals.
    assert json.loads((tmp_path / "m" / "metrics@1.json").read_text()) == {
        "accuracy": 100 * statistics.mean([1, 0, 0, 1, 0]),
        "head": {"accuracy": 100 * sum([1, 0, 1]) / 3},
        "tail": {"accuracy": 0.0},
        "consistency": 0,
    }
    raw = json.loads((tmp_path / "m" / "raw_metrics@1.json").read_text())
    assert raw == {"accuracy": {"h1": 1, "h2": 0, "t1": 0, "h3": 1, "t2": 0}}
    plot = json.loads(re.findall("data-plot='(.*?)'", (tmp_path / "p.html").read_text())[0])
    assert [value for _, value in plot["rows"] if value is not None] == [said["popularity_gap"]["all"]]


def test_the_first_form_of_the_release_is_read() -> None:
    first = json.loads(json.dumps(GOLD[1]))
    for entity in first["qids"].values():
        for query in entity["queries"]:
            query["output"] = [query["output"]]
    assert parse_set(first) == parse_set(GOLD[1])


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ([], "missing_field"),
        ({"provenance": "307"}, "wrong_type"),
        ({"answer": 5}, "wrong_type"),
        ("307", "wrong_type"),
    ],
)
def test_a_prediction_of_another_form_is_rejected(output: Any, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_amber_prediction({"id": "a", "output": output})
    assert caught.value.reason == reason


def test_a_set_of_another_form_is_rejected() -> None:
    for broken in (
        {"name": "A", "qids": {"Q1": {**_entity(True, 3, 1), "popularity": "many"}}},
        {"name": "A", "qids": {"Q1": _entity(True, 3, 1, _query("a", 1, answer=[5]))}},
        {"name": "A", "qids": {"Q1": _entity(True, 3, 1, {**_query("a", 1), "output": []})}},
    ):
        with pytest.raises(RecordError):
            parse_set(broken)


def test_the_scores_are_printed_for_reading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_records(tmp_path / "g", GOLD), write_records(tmp_path / "p", PREDICTED)
    assert main(["evaluate", "amber", *map(str, paths), "--k", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "sets                               2",
        "accuracy@2                     60.00",
        "accuracy@2 head               100.00",
        "accuracy@2 tail                 0.00",
        "consistency@2                   0.00",
        "gap in popularity 20–40 %     +66.67 points",
    ):
        assert line in lines, lines
    assert not any(line.startswith("accuracy@1") for line in lines)
