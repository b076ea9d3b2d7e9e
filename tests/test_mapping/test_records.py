"""Examples between the steps of a job."""

from __future__ import annotations

import pytest

from kbsource.errors import DataError
from mapping.records import (
    PARTIAL,
    Alignment,
    Evidence,
    Example,
    Output,
    PageKey,
    example_from_json,
    example_to_json,
    input_from_json,
    iter_evidence,
)

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
    outputs = (Output("a", (evidence, evidence)), Output("b"))
    example = Example("1", "?", outputs, {"z": 1, "y": []}, file="f", line=7, partial=(evidence,))
    rows = {
        key: Alignment(piece.page, piece.text, fallback=piece.fallback, output=key[0], evidence=key[1])
        for key, piece in iter_evidence(example)
    }
    text = example_to_json(example)

    assert example_from_json(text, rows) == example
    assert input_from_json(text) == "?"
    assert "Q1" not in text  # evidence is in its rows only
    del rows[PARTIAL, 0]
    with pytest.raises(DataError, match="f, line 7: evidence -1, 0 has no outcome"):
        example_from_json(text, rows)
