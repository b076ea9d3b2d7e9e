"""The project's own format."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.errors import SetupError
from mapping.records import Evidence, Output, PageKey
from tests.support.dataset_sources import DATA, read_source, write_lines

GOOD = {"id": "a", "input": "q", "output": [{"answer": "x"}]}


def test_every_field_is_carried_over() -> None:
    first, second, third = read_source("jsonl", DATA / "own/own.jsonl").examples
    assert (first.example_id, first.input, first.meta) == (
        "q1",
        "Where does the River Ullane rise?",
        {"level": "easy"},
    )
    url = "https://mini.example.org/wiki/Lake_Miravel"
    text = Evidence(PageKey("title", "River Ullane"), "It rises in Lake Miravel.", {"n": 1})
    page_alone = Evidence(PageKey("url", url), None)
    assert first.outputs == (Output("Lake Miravel", (text, page_alone), {"votes": 3}), Output("the lake"))
    assert (second.example_id, second.input, second.meta) == ("2", None, None)
    assert [one.page for one in second.outputs[0].evidence] == [PageKey("page_id", "15"), PageKey("qid", "Q9000030")]
    assert third.outputs == ()


@pytest.mark.parametrize(
    ("bad", "key", "reason"),
    [
        ({"id": 1.5}, "line 2", "wrong_type"),
        ({"input": "q", "output": []}, "line 2", "missing_field"),
        ({"id": "b", "input": 3}, "b", "wrong_type"),
        ({"id": "b", "outputs": []}, "b", "unknown_field"),
        ({"id": "b", "output": {}}, "b", "wrong_type"),
        ({"id": "b", "output": ["x"]}, "b", "wrong_type"),
        ({"id": "b", "output": [{}]}, "b", "missing_field"),
        ({"id": "b", "output": [{"answer": "x", "provenance": []}]}, "b", "unknown_field"),
        ({"id": "b", "output": [{"evidence": [{"text": "t"}]}]}, "b", "missing_field"),
        ({"id": "b", "output": [{"evidence": [{"title": "T", "qid": "Q1"}]}]}, "b", "ambiguous_page"),
        ({"id": "b", "output": [{"evidence": [{"title": 1}]}]}, "b", "wrong_type"),
        ({"id": "b", "output": [{"evidence": [{"title": "T", "text": None}]}]}, "b", "wrong_type"),
        ({"id": "b", "meta": []}, "b", "wrong_type"),
        (GOOD, "a", "duplicate_id"),
    ],
)
def test_a_bad_record_is_rejected_and_the_rest_goes_on(tmp_path: Path, bad: object, key: str, reason: str) -> None:
    reading = read_source("jsonl", write_lines(tmp_path / "own.jsonl", [GOOD, bad, {**GOOD, "id": "c"}]))
    assert [one.example_id for one in reading.examples] == ["a", "c"]
    assert reading.reasons == [("source", key, reason)]


@pytest.mark.parametrize("other", ["hotpotqa/dev.json", "kilt/nq-dev-kilt.jsonl", "wned/wned.xml", "fever/wiki-pages"])
def test_the_wrong_input_altogether_stops_at_once(other: str) -> None:
    with pytest.raises(SetupError):
        read_source("jsonl", DATA / other)
