"""Examples between the steps of a job."""

from __future__ import annotations

import pytest

from mapping.records import Evidence, Example, Output, PageKey, example_from_json, example_to_json

ITEM, TITLE = PageKey("qid", "Q1"), PageKey("title", "Ágrund/1")


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(ITEM, "text"),
        Evidence(TITLE, None),
        Evidence(ITEM, "", {"b": 1, "a": 9999999999999999999}),
        Evidence(ITEM, "text", {}, TITLE),
        Evidence(ITEM, "text", None, TITLE),
    ],
)
def test_an_example_is_the_same_after_a_step(evidence: Evidence) -> None:
    example = Example("1", None, (Output("a", (evidence,)), Output("b")), {"z": 1, "y": []}, file="f", line=7)
    assert example_from_json(example_to_json(example)) == example
