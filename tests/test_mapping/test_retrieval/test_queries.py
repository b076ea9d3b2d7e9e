"""What records of KILT, AmbER sets and QAMPARI ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import RecordError, SetupError
from mapping.retrieval.queries import Hit, Query, benchmark_of_file, queries_of, read_queries

URL = "https://en.wikipedia.org/wiki/"
OUTPUT = {"answer": ["guitar", "guitarist"], "provenance": [{"wikipedia_id": "7", "title": "Sorn"}], "meta": {}}
SET = {
    "name": "Abe",
    "qids": {
        "Q1": {"is_head": True, "queries": [{"id": "a=1", "input": "What does Abe play?", "output": OUTPUT}]},
        "Q2": {
            "is_head": False,
            "queries": [
                {"id": "b=1", "input": "Abe [SEP] sport", "output": [OUTPUT | {"answer": "SUPPORTS"}]},
                {"id": "b=2", "input": "Abe rows.", "output": OUTPUT | {"answer": "REFUTES", "provenance": []}},
            ],
        },
    },
}
QUESTION = {
    "qid": "4__wikidata_simple__dev",
    "question_text": "Who  plays?",
    "answer_list": [
        {"answer_text": "Sorn", "aliases": ["Sorn", "S."], "proof": [{"found_in_url": f"{URL}River_Sorn"}]},
        {"answer_text": "Tey", "aliases": []},
    ],
}
CASES: list[tuple[Any, list[Query]]] = [
    (
        {
            "id": 4,
            "input": " near [START_ENT] the Sorn [END_ENT] they ",
            "output": [
                {"answer": "Brack", "provenance": [{"wikipedia_id": "7"}]},
                {"answer": "Brack"},
                {"provenance": [{"wikipedia_id": 9}]},
            ],
        },
        [
            Query(
                "4",
                " near [START_ENT] the Sorn [END_ENT] they ",
                ("Brack",),
                ("7", "9"),
                subject="the Sorn",
                is_mention=True,
            )
        ],
    ),
    ({"id": "a", "input": "b"}, [Query("a", "b")]),
    ({"id": "a", "input": "Sorn [SEP] mouth"}, [Query("a", "Sorn [SEP] mouth", subject="Sorn")]),
    (
        SET,
        [
            Query("a=1", "What does Abe play?", ("guitar", "guitarist"), ("7",), benchmark="amber"),
            Query("b=1", "Abe [SEP] sport", ("SUPPORTS",), ("7",), benchmark="amber", subject="Abe"),
            Query("b=2", "Abe rows.", ("REFUTES",), benchmark="amber"),
        ],
    ),
    (
        QUESTION,
        [
            Query(
                "4__wikidata_simple__dev",
                "Who  plays?",
                ("Sorn", "S.", "Tey"),
                titles=("river sorn",),
                benchmark="qampari",
            )
        ],
    ),
    (
        {"id": "nq_0", "question": "who?", "answers": ["Sorn", "S."]},
        [Query("nq_0", "who?", ("Sorn", "S."), benchmark="qampari")],
    ),
]


@pytest.mark.parametrize(("record", "expected"), CASES)
def test_what_a_record_asks(record: Any, expected: list[Query]) -> None:
    assert list(queries_of(record)) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (" near [START_ENT] the Sorn [END_ENT] they ", "near the Sorn they"),
        ("Sorn [SEP] mouth", "Sorn mouth"),
        ("Hello.\nDo you know  the Sorn?", "Hello. Do you know the Sorn?"),
        ("[START_ENT][END_ENT]", ""),
    ],
)
def test_words_are_searched_for_without_marks(given: str, words: str) -> None:
    (asked,) = queries_of({"id": "a", "input": given})
    assert (asked.input, asked.text) == (given, words)


@pytest.mark.parametrize(
    "record",
    [{"id": "a"}, {"qids": {"Q1": {}}}, {"qids": {"Q1": {"queries": [{"id": "a"}]}}}, {"question_text": "who?"}],
)
def test_a_record_that_asks_nothing_is_told(record: Any) -> None:
    with pytest.raises(RecordError, match="missing_field"):
        queries_of(record)


def test_gold_pages_are_known_by_id_or_by_the_title_of_a_proof() -> None:
    (asked,) = queries_of(QUESTION)
    assert asked.has_gold(Hit("1__0", "1", "River Sorn", ""))
    assert not asked.has_gold(Hit("1__0", "1", "Tey", ""))
    assert queries_of(SET)[0].has_gold(Hit("7", "7", "x", ""))


def test_files_are_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(f"{{\n{json.dumps(SET)}\n")
    assert benchmark_of_file(str(path)) == "amber"
    with pytest.raises(SetupError, match=r"line 1: malformed_json.* AmbER sets or QAMPARI's questions"):
        list(read_queries(str(path)))
    path.write_text(f"{json.dumps(SET)}\n{json.dumps(QUESTION)}\n")
    assert [query.query_id for query in read_queries(str(path))] == ["a=1", "b=1", "b=2", "4__wikidata_simple__dev"]
    path.write_text("\n")
    with pytest.raises(SetupError, match="there are no questions"):
        list(read_queries(str(path)))
