"""What becomes of two signals: which text stands, what a rule sees, and how a report counts them."""

from __future__ import annotations

import random

import pytest

from kbsource.records import Element, Page
from mapping.entail.hypotheses import Hypothesis
from mapping.entail.premises import PageSentence, Premise
from mapping.entail.signal import Verdict
from mapping.entail.verification import (
    LISTED,
    NOT_VERIFIED,
    EntailmentQuestion,
    VerificationCounts,
    Verified,
    choose,
    questions,
    verification_text,
)

SAYS = Hypothesis("Ada lives.", "claim")
REFUTED = Hypothesis("Ada lives.", "claim", "contradiction")
YES, OPEN, NO = Verdict(0.9, 0.08, 0.02), Verdict(0.1, 0.8, 0.1), Verdict(0.02, 0.08, 0.9)


def verified(hypothesis: Hypothesis, verdict: Verdict | None, *, is_rescued: bool = False) -> Verified:
    return Verified(hypothesis, verdict, None if verdict else "hypothesis_too_long", is_rescued)


@pytest.mark.parametrize(
    ("hypothesis", "verdict", "kind", "entailment", "contradiction"),
    [
        (SAYS, YES, "supported", 0.9, 0.02),
        (SAYS, OPEN, "neutral", 0.1, 0.1),
        (SAYS, NO, "contradicted", 0.02, 0.9),
        # what a refuted claim should get is contradiction
        (REFUTED, YES, "contradicted", 0.02, 0.9),
        (REFUTED, OPEN, "neutral", 0.1, 0.1),
        (REFUTED, NO, "supported", 0.9, 0.02),
        (SAYS, Verdict(0.9, None, None), "supported", 0.9, None),
        (SAYS, Verdict(0.3, None, None), "not_supported", 0.3, None),
        (REFUTED, Verdict(0.3, None, None), "not_supported", None, 0.3),
        (SAYS, None, "not_judged", None, None),
    ],
)
def test_signals_say_how_probable_is_what_the_dataset_says(
    hypothesis: Hypothesis, verdict: Verdict | None, kind: str, entailment: float | None, contradiction: float | None
) -> None:
    one = verified(hypothesis, verdict)

    signals = one.signals(0.4)

    assert (one.kind, signals["bleu"]) == (kind, 0.4)
    assert (signals["entailment"], signals["contradiction"]) == (entailment, contradiction)


def question(sentence: int | None, hypothesis: Hypothesis = SAYS) -> EntailmentQuestion:
    place = None if sentence is None else PageSentence(sentence, 0, 4, "Text")
    return EntailmentQuestion(hypothesis, Premise("Text", (0, 4)), place)


@pytest.mark.parametrize(
    ("span", "sentences", "chosen"),
    [
        (OPEN, [OPEN, YES, YES], 2),
        (OPEN, [OPEN, NO], 0),
        (YES, [YES], 0),
        (Verdict(0.6, 0.2, 0.2), [OPEN, Verdict(0.61, 0.2, 0.19)], 2),
        (OPEN, [Verdict(0.49, 0.3, 0.21)], 0),
        (OPEN, [Verdict(0.5, 0.3, 0.2)], 1),
        (None, [None, YES], 2),
        (OPEN, [], 0),
    ],
)
def test_a_sentence_stands_where_it_says_it_more_surely(
    span: Verdict | None, sentences: list[Verdict | None], chosen: int
) -> None:
    judged = [(question(None), span), *((question(place), one) for place, one in enumerate(sentences))]

    assert choose(judged) == chosen


def test_without_a_span_only_a_sentence_that_says_it_stands() -> None:
    assert choose([(question(0), OPEN), (question(1), YES)]) == 1
    assert choose([(question(0), OPEN), (question(1), NO)]) is None
    assert choose([(question(0, REFUTED), YES), (question(1, REFUTED), NO)]) == 1
    assert choose([]) is None


@pytest.mark.parametrize(
    ("span", "sentences", "taken", "chosen"),
    [
        # what the rule takes does not give way to what it does not
        (OPEN, [YES], [True, False], 0),
        (OPEN, [YES, Verdict(0.6, 0.2, 0.2)], [True, False, True], 2),
        (OPEN, [YES], [True, True], 1),
        (OPEN, [YES, Verdict(0.6, 0.2, 0.2)], [False, False, True], 2),
        # where it takes nothing the likeliest stands
        (OPEN, [YES, Verdict(0.6, 0.2, 0.2)], [False, False, False], 1),
        (YES, [Verdict(0.6, 0.2, 0.2)], [False, True], 0),
        (None, [YES], [True, False], 0),
    ],
)
def test_what_the_rule_takes_goes_first(
    span: Verdict | None, sentences: list[Verdict], taken: list[bool], chosen: int
) -> None:
    judged = [(question(None), span), *((question(place), one) for place, one in enumerate(sentences))]

    assert choose(judged, taken) == chosen


def test_a_sentence_stands_behind_its_title_which_ends_once() -> None:
    texts = ("It is a city.", "It has two rivers.")
    elements = tuple(Element("paragraph", 0, None, "", (), one) for one in texts)
    empty: tuple[()] = ()
    page = Page(1, "Arlin, A.C.", None, False, 1, None, "", "", elements, *(empty,) * 8, "ok")  # type: ignore[arg-type]

    found = list(questions(page, None, Hypothesis("It has rivers.", "claim"), elements=(0, 1), n_sentences=9))

    assert [one.premise.text for one in found] == [f"Arlin, A.C. {text}" for text in texts]
    assert [one.premise.text[slice(*one.premise.core)] for one in found] == list(texts)


def counted(rows: list[tuple[Verified, float | None]]) -> VerificationCounts:
    counts = VerificationCounts()
    for ordinal, (one, score) in enumerate(rows):
        known = {"ordinal": ordinal, "example_id": f"e{ordinal}", "output": 0, "evidence": 0}
        counts.add(one, score, threshold=0.5, known=known)
    return counts


ROWS = [
    (verified(SAYS, YES), 1.0),
    (verified(SAYS, NO), 0.6),
    (verified(REFUTED, YES), 0.5),
    (verified(SAYS, OPEN), 0.5),
    (verified(SAYS, YES, is_rescued=True), 0.1),
    (verified(SAYS, NO), 0.1),
    (verified(SAYS, None), 0.9),
    (NOT_VERIFIED, None),
]


def test_the_two_signals_are_crossed() -> None:
    value = counted(ROWS).to_json()

    assert value["bleu_by_verdict"] == {
        "1.00": {"supported": 1},
        "0.75": {"not_judged": 1},
        "0.50": {"neutral": 1, "contradicted": 2},
        "0.25": {},
        "0.00": {"supported": 1, "contradicted": 1},
        "no span": {"not_judged": 1},
    }
    assert (value["rescued"], value["refusals"]) == (1, {"hypothesis_too_long": 1})
    assert value["hypotheses"] == {"claim": 7, "none": 1}
    assert sum(count for row in value["bleu_by_verdict"].values() for count in row.values()) == len(ROWS)


def test_contradictions_come_first() -> None:
    found = counted(ROWS).to_json()["disagreements"]

    assert [(one["example_id"], one["disagreement"]) for one in found] == [
        ("e1", "contradicted"),
        ("e2", "contradicted"),
        ("e3", "not_supported"),
        ("e4", "supported_only"),
    ]


def test_the_strongest_disagreements_come_first_in_each_kind() -> None:
    surer, less = Verdict(0.99, 0.01, 0.0), Verdict(0.6, 0.1, 0.3)
    denied, doubted = Verdict(0.3, 0.1, 0.6), Verdict(0.0, 0.01, 0.99)
    rows = [(verified(SAYS, less), 0.1), (verified(SAYS, surer), 0.1)]
    rows += [(verified(SAYS, denied), 0.9), (verified(SAYS, doubted), 0.9), (verified(SAYS, OPEN), 0.9)]

    found = counted(rows).to_json()["disagreements"]

    assert [one["example_id"] for one in found] == ["e3", "e2", "e4", "e1", "e0"]


def test_counts_of_chunks_add_up_to_those_of_the_whole() -> None:
    rng = random.Random(1)
    rows = [
        (verified(SAYS, Verdict(share, 0.0, round(1 - share, 2))), rng.choice((0.2, 0.6, 1.0)))
        for share in (rng.randrange(100) / 100 for _ in range(3 * LISTED))
    ]
    whole, parts = counted(rows), VerificationCounts()

    for start in range(0, len(rows), 40):
        part = VerificationCounts()
        for ordinal, (one, score) in enumerate(rows[start : start + 40], start=start):
            known = {"ordinal": ordinal, "example_id": f"e{ordinal}", "output": 0, "evidence": 0}
            part.add(one, score, threshold=0.5, known=known)
        parts.merge(VerificationCounts.from_json(part.to_json()))

    assert parts.to_json() == whole.to_json()
    assert len(whole.to_json()["disagreements"]) == LISTED


def test_the_report_is_shown_for_reading() -> None:
    text = verification_text(counted(ROWS).to_json())

    assert text.splitlines() == [
        "BLEU from      supported        neutral   contradicted     not_judged",
        "  1.00                 1              0              0              0",
        "  0.75                 0              0              0              1",
        "  0.50                 0              1              2              0",
        "  0.25                 0              0              0              0",
        "  0.00                 1              0              1              0",
        "  no span              0              0              0              1",
        "not judged, hypothesis_too_long: 1",
        "spans that the model chose: 1",
        "where the two disagree, contradictions first:",
        "  contradicted    BLEU 0.60, entailment 0.02, contradiction 0.90  e1: Ada lives.",
        "  contradicted    BLEU 0.50, entailment 0.02, contradiction 0.90  e2: Ada lives.",
        "  not_supported   BLEU 0.50, entailment 0.10, contradiction 0.10  e3: Ada lives.",
        "  supported_only  BLEU 0.10, entailment 0.90, contradiction 0.02  e4: Ada lives.",
    ]
