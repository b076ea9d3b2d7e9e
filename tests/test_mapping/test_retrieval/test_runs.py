"""Runs of TREC and predictions of KILT."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import RecordError
from kbsource.records import BadRecord
from mapping.contexts.gold import Reject
from mapping.retrieval.queries import Hit, Query
from mapping.retrieval.runs import (
    hits_line,
    of_queries,
    prediction_id,
    prediction_line,
    ranked_documents,
    ranked_queries,
    run_prediction_line,
    searched_queries,
    trec_lines,
)

HITS = [
    Hit("7__0", "7", "Sorn", "The Sorn rises in Brack.", 3.5),
    Hit("9__2", "9", "Tey", "The Tey rises in Brak.", 2.0),
    Hit("9__1", "9", "Tey", "It has goats.", 1.0),
    Hit("7__4", "7", "Sorn", "Its fish are old.", 0.5),
]


def _written(folder: Path, lines: Iterable[str | bytes | dict[str, Any]]) -> str:
    path = folder / "lines"
    contents = (json.dumps(line) if isinstance(line, dict) else line for line in lines)
    path.write_bytes(
        b"".join(content if isinstance(content, bytes) else f"{content}\n".encode() for content in contents)
    )
    return str(path)


def _predictions(path: str, texts: dict[str, str], reject: Reject) -> list[Any]:
    found = of_queries(ranked_queries(path, reject), reject, partial(run_prediction_line, texts=texts))
    return [json.loads(line) for line in found]


def _run_line(record: Any) -> bytes:
    return trec_lines(prediction_id(record), ranked_documents(record))


def test_a_prediction_has_one_output_of_places() -> None:
    line = json.loads(prediction_line(Query("q", "where?"), HITS[:1]))
    place = {"wikipedia_id": "7", "title": "Sorn", "text": HITS[0].text, "score": "3.500000", "passage_id": "7__0"}
    assert line == {"id": "q", "input": "where?", "output": [{"provenance": [place]}]}


PAGE = Hit("9", "9", "Tey", "", 0.25)
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
    line = hits_line(Query("q", "where?", benchmark=benchmark), [HITS[0], PAGE], form)
    assert json.loads(line) == expected
    assert _run_line(expected) == b"q Q0 7__0 1 3.500000 kbsource\nq Q0 9 2 0.250000 kbsource\n"


def test_the_output_of_a_set_s_query_is_one_and_a_page_has_no_text() -> None:
    line = json.loads(hits_line(Query("q", "where?", benchmark="amber"), [PAGE], None))
    output = {"provenance": [{"wikipedia_id": "9", "title": "Tey", "score": "0.250000"}]}
    assert line == {"id": "q", "input": "where?", "output": output}
    assert _run_line(line) == b"q Q0 9 1 0.250000 kbsource\n"


MARKED = Query("q", "near [START_ENT] Tey [END_ENT]\nthey", ("Brack",), ("7",))


def test_every_line_has_the_input_of_its_record() -> None:
    lines = [
        prediction_line(MARKED, HITS),
        prediction_line(MARKED, HITS, "Tey"),
        hits_line(MARKED, HITS, "ctxs"),
    ]
    read = [json.loads(line) for line in lines]
    assert [query.get("input", query.get("question")) for query in read] == [MARKED.input] * 3


def test_runs_become_predictions_and_runs_again(tmp_path: Path) -> None:
    run = b"q1 Q0 7__0 1 3.500000 kbsource\nq1 Q0 9__2 2 2.000000 kbsource\nq0 Q0 12 1 0.500000 kbsource\n"
    bad: list[BadRecord] = []
    predictions = _predictions(_written(tmp_path, [run]), {"q0": "who?", "q1": "where?"}, bad.append)
    assert predictions == [
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
    path = _written(tmp_path, predictions)
    assert b"".join(of_queries(ranked_queries(path, bad.append), bad.append, trec_lines)) == run
    assert bad == []


def test_ranks_say_the_order_and_white_space_parts_columns(tmp_path: Path) -> None:
    bad: list[BadRecord] = []
    (line,) = _predictions(_written(tmp_path, ["q\tQ0\t8\t2\t9.5\tx", "q Q0 7 1 0.5 x"]), {}, bad.append)
    assert [span["wikipedia_id"] for span in line["output"][0]["provenance"]] == ["7", "8"]
    assert "input" not in line


def test_pages_that_are_found_twice_are_one_document() -> None:
    spans = [{"wikipedia_id": "7"}, {"wikipedia_id": "9", "score": 0.4}, {"wikipedia_id": "7"}]
    record = {"id": "q", "output": [{"answer": "x"}, {"provenance": spans}]}
    assert _run_line(record) == b"q Q0 7 1 1.000000 kbsource\nq Q0 9 2 0.400000 kbsource\n"
    with pytest.raises(RecordError, match="wrong_type"):
        trec_lines("", [("7", 1.0)])


def test_scores_of_a_run_fall_with_its_ranks() -> None:
    found = [("7", 2.0), ("3", 2.0), ("9", 2.0000004), ("4", 1.9999999), ("8", 1.0), ("1", 3.0)]
    lines = [line.split() for line in trec_lines("q", found).decode().splitlines()]
    assert [line[2] for line in sorted(lines, key=lambda line: -float(line[4]))] == [document for document, _ in found]
    assert [line[4] for line in lines] == ["2.000000", "1.999999", "1.999998", "1.999997", "1.000000", "0.999999"]


def test_white_space_in_ids_comes_back_from_a_run(tmp_path: Path) -> None:
    bad: list[BadRecord] = []
    ids = ["1testa A\tB\u00a0C:0", "100%", "100%25", "a%20b", "a b"]
    run = b"".join(trec_lines(query_id, [("7", 1.0)]) for query_id in ids)
    assert run.splitlines()[0] == b"1testa%20A%09B%C2%A0C:0 Q0 7 1 1.000000 kbsource"
    assert [prediction["id"] for prediction in _predictions(_written(tmp_path, [run]), {}, bad.append)] == ids


def test_lines_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    lines = ["q Q0 7 1 0.5", "q Q0 7 first 0.5 x", "q Q0 7 1 much x", "a Q0 doc7 1 1 x", "b Q0 7 1 1 x", "u Q0 7 1 1 x",
             "b Q0 7 1 1 x"]  # fmt: skip
    bad: list[BadRecord] = []
    assert len(_predictions(_written(tmp_path, lines), {"a": "?", "b": "?"}, bad.append)) == 1
    assert [(bad_record.key, bad_record.reason) for bad_record in bad] == [
        ("line 1", "wrong_type"),
        ("line 2", "wrong_type"),
        ("line 3", "wrong_type"),
        ("line 4", "wrong_type"),
        ("line 6", "unknown_question"),
        ("line 7", "duplicate_question"),
    ]
    bad.clear()
    records: list[str | dict[str, Any]] = [{"id": "a", "input": "?"}, "{", {"id": "a", "input": "?"}, {"input": "?"}]
    searched: list[str] = []

    def search(queries: Sequence[Query]) -> list[list[Hit]]:
        searched.extend(query.query_id for query in queries)
        return [[PAGE] for _ in queries]

    queries = searched_queries(_written(tmp_path, records), bad.append, search=search)
    assert list(of_queries(queries, bad.append, lambda _, found: found)) == [(Query("a", "?"), [PAGE])]
    assert searched == ["a", "a"]
    assert [bad_record.reason for bad_record in bad] == ["malformed_json", "missing_field", "duplicate_question"]


def test_a_run_is_read_by_ranx(tmp_path: Path) -> None:
    ranx = pytest.importorskip("ranx")
    (tmp_path / "run.trec").write_bytes(trec_lines("q", [("7__0", 3.5), ("9__1", 1.0)]))
    run = ranx.Run.from_file(str(tmp_path / "run.trec"), kind="trec")
    assert run.to_dict() == {"q": {"7__0": 3.5, "9__1": 1.0}}
