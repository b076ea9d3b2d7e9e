"""Runs of TREC, predictions of KILT, and lines that retrievers are trained on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import RecordError
from kbsource.records import BadRecord
from mapping.retrieval.index import Hit
from mapping.retrieval.queries import Query
from mapping.retrieval.runs import (
    RankedDocument,
    answered,
    converted,
    found_line,
    found_of,
    prediction_line,
    predictions_of,
    run_line,
    training_line,
    trec_lines,
)
from mapping.sources.raw_records import RawRecord

HITS = [
    Hit("7__0", 7, "Sorn", "The Sorn rises in Brack.", 3.5),
    Hit("9__2", 9, "Tey", "The Tey rises in Brak.", 2.0),
    Hit("9__1", 9, "Tey", "It has goats.", 1.0),
    Hit("7__4", 7, "Sorn", "Its fish are old.", 0.5),
]


def _raws(lines: Iterable[str | dict[str, Any]]) -> list[RawRecord]:
    texts = (one if isinstance(one, str) else json.dumps(one) for one in lines)
    return [RawRecord("run", number, 0, text.encode()) for number, text in enumerate(texts, start=1)]


def test_a_prediction_has_one_output_of_places() -> None:
    line = json.loads(prediction_line(Query("q", "where?"), HITS[:1]))
    place = {"wikipedia_id": "7", "title": "Sorn", "text": HITS[0].text, "score": "3.500000", "passage_id": "7__0"}
    assert line == {"id": "q", "input": "where?", "output": [{"provenance": [place]}]}


PAGE = Hit("", 9, "Tey", "", 0.25)
SORN = {"id": "7__0", "title": "Sorn", "text": HITS[0].text, "score": 3.5}
TEY = {"id": "9", "title": "Tey", "text": "", "score": 0.25}


@pytest.mark.parametrize(
    ("benchmark", "form", "expected"),
    [
        ("qampari", None, {"qid": "q", "question": "where?", "ctxs": [SORN, TEY]}),
        ("kilt", "ctxs", {"id": "q", "question": "where?", "ctxs": [SORN, TEY]}),
    ],
)
def test_contexts_are_passages_or_pages(benchmark: Any, form: Any, expected: object) -> None:
    line = found_line(Query("q", "where?", benchmark=benchmark), [HITS[0], PAGE], form)
    assert json.loads(line) == expected
    assert run_line(expected) == ("q", b"q Q0 7__0 1 3.500000 kbsource\nq Q0 9 2 0.250000 kbsource\n")  # type: ignore[arg-type]


def test_the_output_of_a_set_s_query_is_one_and_a_page_has_no_text() -> None:
    line = json.loads(found_line(Query("q", "where?", benchmark="amber"), [PAGE], None))
    output = {"provenance": [{"wikipedia_id": "9", "title": "Tey", "score": "0.250000"}]}
    assert line == {"id": "q", "input": "where?", "output": output}
    assert run_line(line) == ("q", b"q Q0 9 1 0.250000 kbsource\n")


def test_negatives_are_of_no_gold_page_and_name_no_answer() -> None:
    line = json.loads(training_line(Query("q", "where?", ("Brack",), frozenset({"7"})), HITS, n_negatives=5))
    assert (line["question"], line["answers"]) == ("where?", ["Brack"])
    assert [one["passage_id"] for one in line["positive_ctxs"]] == ["7__0", "7__4"]
    assert [one["passage_id"] for one in line["hard_negative_ctxs"]] == ["9__1"]
    with pytest.raises(RecordError, match="missing_field"):
        training_line(Query("q", "where?", ("Brack",)), HITS, n_negatives=5)
    of_titles = Query("q", "where?", ("Brack",), titles=frozenset({"sorn"}))
    assert json.loads(training_line(of_titles, HITS, n_negatives=5)) == line


def test_runs_become_predictions_and_runs_again() -> None:
    run = b"q1 Q0 7__0 1 3.500000 kbsource\nq1 Q0 9__2 2 2.000000 kbsource\nq0 Q0 12 1 0.500000 kbsource\n"
    bad: list[BadRecord] = []
    predictions = list(
        predictions_of(_raws(run.decode().splitlines()), bad.append, texts={"q0": "who?", "q1": "where?"})
    )
    assert [json.loads(one) for one in predictions] == [
        {
            "id": "q1",
            "input": "where?",
            "output": [
                {
                    "provenance": [
                        {"wikipedia_id": "7", "score": "3.500000", "passage_id": "7__0"},
                        {"wikipedia_id": "9", "score": "2.000000", "passage_id": "9__2"},
                    ]
                }
            ],
        },
        {"id": "q0", "input": "who?", "output": [{"provenance": [{"wikipedia_id": "12", "score": "0.500000"}]}]},
    ]
    texts = (one.decode() for one in predictions)
    again = converted(_raws(texts), bad.append, lines_of=lambda record: [run_line(record)])
    assert b"".join(again) == run
    assert bad == []


def test_ranks_say_the_order_and_white_space_parts_columns() -> None:
    bad: list[BadRecord] = []
    lines = ["q\tQ0\t8\t2\t9.5\tx", "q Q0 7 1 0.5 x"]
    (line,) = predictions_of(_raws(lines), bad.append, texts={})
    assert [one["wikipedia_id"] for one in json.loads(line)["output"][0]["provenance"]] == ["7", "8"]
    assert "input" not in json.loads(line)


def test_pages_that_are_found_twice_are_one_document() -> None:
    spans = [{"wikipedia_id": "7"}, {"wikipedia_id": "9", "score": 0.4}, {"wikipedia_id": "7"}]
    record = {"id": "q", "output": [{"answer": "x"}, {"provenance": spans}]}
    assert trec_lines(*found_of(record)) == b"q Q0 7 1 1.000000 kbsource\nq Q0 9 2 0.400000 kbsource\n"
    with pytest.raises(RecordError, match="wrong_type"):
        trec_lines("q 1", [RankedDocument("7", 1.0)])


def test_lines_that_cannot_be_used_are_told() -> None:
    lines = ["q Q0 7 1 0.5", "q Q0 7 first 0.5 x", "q Q0 7 1 much x", "a Q0 doc7 1 1 x", "b Q0 7 1 1 x", "u Q0 7 1 1 x",
             "b Q0 7 1 1 x"]  # fmt: skip
    bad: list[BadRecord] = []
    assert len(list(predictions_of(_raws(lines), bad.append, texts={"a": "?", "b": "?"}))) == 1
    assert [(one.key, one.reason) for one in bad] == [
        ("line 1", "wrong_type"),
        ("line 2", "wrong_type"),
        ("line 3", "wrong_type"),
        ("line 4", "wrong_type"),
        ("line 6", "unknown_question"),
        ("line 7", "duplicate_question"),
    ]
    bad.clear()
    records: list[str | dict[str, Any]] = [{"id": "a", "input": "?"}, "{", {"id": "a", "input": "?"}, {"input": "?"}]
    done = answered(_raws(records), bad.append, line_of=lambda query: query.text.encode())
    assert list(done) == [b"?"]
    assert [one.reason for one in bad] == ["malformed_json", "duplicate_question", "missing_field"]


def test_a_run_is_read_by_ranx(tmp_path: Path) -> None:
    ranx = pytest.importorskip("ranx")
    (tmp_path / "run.trec").write_bytes(trec_lines("q", [RankedDocument("7__0", 3.5), RankedDocument("9__1", 1.0)]))
    run = ranx.Run.from_file(str(tmp_path / "run.trec"), kind="trec")
    assert run.to_dict() == {"q": {"7__0": 3.5, "9__1": 1.0}}
