"""Sentences that an NLI model is asked about."""

from __future__ import annotations

import pytest

from mapping.decide.policy import POLICIES
from mapping.entail.hypotheses import DATASET_HYPOTHESES, Hypothesis, make_hypothesis
from mapping.records import Evidence, Example, Output, PageKey


def example(given: str | None, answer: str | None) -> tuple[Example, Evidence]:
    evidence = Evidence(PageKey("title", "T"), "The  old\ntext.")
    return Example("1", given, (Output(answer, (evidence,)),), None, "f", 1, (evidence,)), evidence


@pytest.mark.parametrize(
    ("kind", "given", "answer", "expected"),
    [
        ("claim", "Ada lives.", "SUPPORTS", Hypothesis("Ada lives.", "claim")),
        ("claim", "Ada lives.", "REFUTES", Hypothesis("Ada lives.", "claim", "contradiction")),
        ("claim", "Ada lives.", " Refuted ", Hypothesis("Ada lives.", "claim", "contradiction")),
        ("claim", "Ada lives.", None, Hypothesis("Ada lives.", "claim")),
        ("answer", "who lives", "Ada", Hypothesis("Ada lives.", "answer")),
        ("triple", "Ada [SEP] father", "Bo", Hypothesis("Bo is the father of Ada.", "triple")),
        ("evidence", "who lives", "Ada", Hypothesis("The old text.", "evidence")),
        # what is missing is made up for by the evidence itself
        ("claim", None, "SUPPORTS", Hypothesis("The old text.", "evidence")),
        ("answer", "who lives", None, Hypothesis("The old text.", "evidence")),
        ("triple", "no separator", "Bo", Hypothesis("The old text.", "evidence")),
        ("triple", "Ada [SEP] father", " . ", Hypothesis("The old text.", "evidence")),
        ("answer", "who lives", " .\n", Hypothesis("The old text.", "evidence")),
        # of what is open the dataset says neither
        ("claim", "Ada lives.", "NOT ENOUGH INFO", Hypothesis("The old text.", "evidence")),
    ],
)
def test_each_kind_has_its_sentence(kind: str, given: str | None, answer: str | None, expected: Hypothesis) -> None:
    record, evidence = example(given, answer)

    assert make_hypothesis(record, (0, 0), evidence, kind) == expected  # type: ignore[arg-type]


def test_partial_evidence_has_no_answer_of_its_own() -> None:
    record, evidence = example("who lives", "Ada")

    found = make_hypothesis(record, (-1, 0), evidence, "answer")

    assert found == Hypothesis("The old text.", "evidence")


def test_nothing_to_say_gives_no_hypothesis() -> None:
    record, _ = example(None, None)

    assert make_hypothesis(record, (0, 0), Evidence(PageKey("title", "T"), " "), "answer") is None


def test_datasets_have_their_kind() -> None:
    assert set(DATASET_HYPOTHESES) <= set(POLICIES)
