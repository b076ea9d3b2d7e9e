"""Sentences that an NLI model is asked about."""

from __future__ import annotations

import pytest

from mapping.declarative import state_answer, state_triple
from mapping.hypotheses import DATASET_HYPOTHESES, Hypothesis, make_hypothesis
from mapping.policy import POLICIES
from mapping.records import Evidence, Example, Output, PageKey


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        # the question word is the subject
        ("Who wrote Hamlet?", "Shakespeare", "Shakespeare wrote Hamlet."),
        ("who is playing the lantern", "Ada", "Ada is playing the lantern."),
        ("Who's the mayor of Port Sellick?", "Ada", "Ada is the mayor of Port Sellick."),
        (
            "What is the capital of the Halvane Isles?",
            "Port Sellick",
            "Port Sellick is the capital of the Halvane Isles.",
        ),
        ("what has four legs", "a chair", "a chair has four legs."),
        ("who got the first prize", "A. B. Cee.", "A. B. Cee got the first prize."),
        # it is not, or the rules cannot tell
        ("When did the war end?", "1945", 'The answer to the question "When did the war end?" is 1945.'),
        ("who did she marry", "Bruno", 'The answer to the question "who did she marry?" is Bruno.'),
        ("who was he shot by", "Bruno", 'The answer to the question "who was he shot by?" is Bruno.'),
        ("What year is it?", "1945", 'The answer to the question "What year is it?" is 1945.'),
        ("Is it so?", "yes", 'The answer to the question "Is it so?" is yes.'),
        ("  who \n is\tit ? ", "Ada", "Ada is it."),
        ("?", "x", 'The answer to the question "?" is x.'),
        ("who", "x", 'The answer to the question "who?" is x.'),
    ],
)
def test_a_question_and_its_answer_become_a_sentence(question: str, answer: str, sentence: str) -> None:
    assert state_answer(question, answer) == sentence


@pytest.mark.parametrize(
    ("query", "obj", "sentence"),
    [
        ("Ada Lovelace [SEP] place of birth", "London", "Ada Lovelace was born in London."),
        ("Ada [SEP] Occupation", "mathematician", "Ada works or worked as a mathematician."),
        ("A [SEP] B [SEP] father", "C", "C is the father of A [SEP] B."),
        ("Ada [SEP] shoe size", "37", "The shoe size of Ada is 37."),
        ("{s} [SEP] {o}", "{r}", "The {o} of {s} is {r}."),
        ("Ada was born in London", "x", None),
        (" [SEP] father", "x", None),
        ("Ada [SEP] ", "x", None),
    ],
)
def test_a_triple_becomes_a_sentence(query: str, obj: str, sentence: str | None) -> None:
    assert state_triple(query, obj) == sentence


def example(given: str | None, answer: str | None) -> tuple[Example, Evidence]:
    evidence = Evidence(PageKey("title", "T"), "The  old\ntext.")
    return Example("1", given, (Output(answer, (evidence,)),), None, "f", 1, (evidence,)), evidence


@pytest.mark.parametrize(
    ("kind", "given", "answer", "expected"),
    [
        ("claim", "Ada lives.", "SUPPORTS", Hypothesis("Ada lives.", "claim")),
        ("claim", "Ada lives.", "REFUTES", Hypothesis("Ada lives.", "claim", "contradiction")),
        ("claim", "Ada lives.", None, Hypothesis("Ada lives.", "claim")),
        ("answer", "who lives", "Ada", Hypothesis("Ada lives.", "answer")),
        ("triple", "Ada [SEP] father", "Bo", Hypothesis("Bo is the father of Ada.", "triple")),
        ("evidence", "who lives", "Ada", Hypothesis("The old text.", "evidence")),
        # what is missing is made up for by the evidence itself
        ("claim", None, "SUPPORTS", Hypothesis("The old text.", "evidence")),
        ("answer", "who lives", None, Hypothesis("The old text.", "evidence")),
        ("triple", "no separator", "Bo", Hypothesis("The old text.", "evidence")),
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
