"""What a model is asked about an evidence, what of its answers stands, and how a report counts them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kbsource.records import Element, Page
from kbsource.sentences import sentence_spans
from mapping.acceptance import read_rule
from mapping.entail.signal import UnjudgedPair, Verdict
from mapping.entail.verification import (
    LISTED,
    Hypothesis,
    entailment_questions,
    likely_sentences,
    make_hypothesis,
    signals,
    span_premise,
    verdict_kind,
    verification_text,
    verification_values,
    with_verdict,
)
from mapping.records import Alignment, EntailmentQuestion, Evidence, Example, Output, PageKey, Place, Span
from mapping.search.page_search import PageSearch, SearchSettings
from mapping.search.tokens import Tokeniser
from tests.support.aligned import aligned
from tests.support.growth import assert_linear


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


def page(title: str, *paragraphs: str) -> Page:
    """A page of paragraphs."""
    elements = [
        Element("title", 1, None, "", (), title),
        *(Element("paragraph", 0, None, "", (), text) for text in paragraphs),
    ]
    empty: tuple[()] = ()
    return Page(1, title, None, False, 1, None, "", "", tuple(elements), *(empty,) * 9, "ok")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("He said “No.” Then he left.", ["He said “No.”", "Then he left."]),
        ("Dr. A. B. Smith of the U.S. Navy came at 5 p.m. on Mon. with 3.5 kg.", None),
        ("It ended in 1945. 1946 was calm.", ["It ended in 1945.", "1946 was calm."]),
        ("What is 3.14? It is pi… It is.", ["What is 3.14?", "It is pi…", "It is."]),
        ("yes. but no", None),
        ("first line\nsecond line", ["first line", "second line"]),
        ("これは文です。次の文です。", ["これは文です。", "次の文です。"]),
        ("هل أنت بخير؟ نعم. انتهى", ["هل أنت بخير؟", "نعم.", "انتهى"]),
        ("यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("នេះជាប្រយោគ។នេះទៀត៕", ["នេះជាប្រយោគ។", "នេះទៀត៕"]),
        ("  spaced .  Out  ", ["spaced .", "Out"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_they_end(text: str, sentences: list[str] | None) -> None:
    assert [text[start:end] for start, end in sentence_spans(text)] == ([text] if sentences is None else sentences)


@given(st.text(alphabet="aB.!? \n\"'”)。Dr1", max_size=60))
def test_sentences_hold_all_that_is_no_white_space_once_and_in_order(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)


@pytest.mark.parametrize("piece", [".", ". ", "A. ", "... ", '."'])
def test_long_rows_of_stops_take_time_as_they_are_long(piece: str) -> None:
    """A row that is looked at anew from each of its places, or copied at each, would take minutes."""
    assert_linear(lambda n: sentence_spans(piece * n), 5_000)


ELEMENTS = ["T", "One aa. Two bb. Three cc. Four dd. Five ee. Six ff.", "Seven gg. Eight hh."]


@pytest.mark.parametrize(
    ("words", "premise"),
    [
        ("Three cc", "One aa. Two bb. Three cc. Four dd. Five ee."),
        ("One", "One aa. Two bb. Three cc."),
        ("ff.", "Four dd. Five ee. Six ff."),
        ("cc. Four", "One aa. Two bb. Three cc. Four dd. Five ee. Six ff."),
        ("One aa. Two bb. Three cc. Four dd. Five ee. Six ff.", "One aa. Two bb. Three cc. Four dd. Five ee. Six ff."),
    ],
)
def test_a_span_comes_with_two_sentences_on_either_side(words: str, premise: str) -> None:
    start = ELEMENTS[1].index(words)
    found = span_premise(page(*ELEMENTS), Span(1, start, 1, start + len(words), 1.0, "exact"))
    assert found.text == premise
    assert found.text[slice(*found.core)] == words


def test_context_is_of_the_elements_of_the_span_alone() -> None:
    premise_page = page("T", "One aa.", "", "Two bb。", "Three cc.", "Four dd.")
    found = [
        span_premise(premise_page, Span(first, 0, last, end, 1.0, "exact"))
        for first, last, end in ((3, 3, 3), (1, 4, 5))
    ]
    assert [sentence.text for sentence in found] == ["Two bb。", "One aa.\n\nTwo bb。\nThree cc."]
    assert [sentence.text[slice(*sentence.core)] for sentence in found] == ["Two", "One aa.\n\nTwo bb。\nThree"]


@given(st.lists(st.text(alphabet="aB.。؟א\U0001f600 \n", max_size=20), min_size=1, max_size=4), st.data())
def test_the_core_of_a_premise_is_the_span_over_any_elements(texts: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(texts)))
    last = data.draw(st.integers(first, len(texts)))
    start = data.draw(st.integers(0, len(texts[first - 1])))
    end = data.draw(st.integers(start if first == last else 0, len(texts[last - 1])))
    pieces = texts[first - 1 : last]
    pieces[-1] = pieces[-1][:end]
    pieces[0] = pieces[0][start:]
    found = span_premise(page("T", *texts), Span(first, start, last, end, 1.0, "exact"))
    assert found.text[slice(*found.core)] == "\n".join(pieces)
    assert found.text in "\n".join(texts[first - 1 : last])


def test_the_sentences_with_most_of_the_words_are_tried_in_the_order_of_the_page() -> None:
    headed_page = page("Four dd gg", *ELEMENTS[1:])
    headed_page = replace(
        headed_page, elements=(*headed_page.elements, Element("heading", 2, None, "", ("Four",), "Four dd gg hh"))
    )
    found = likely_sentences(headed_page, "Four dd, Two and gg.", elements=range(len(headed_page.elements)), n_most=2)
    assert [(sentence.element, sentence.text) for sentence in found] == [(1, "Two bb."), (1, "Four dd.")]
    assert likely_sentences(page("T", "他出生于北京。他死了。"), "孔子出生于曲阜。", elements=(1,), n_most=1)[
        0
    ].text == ("他出生于北京。")
    assert likely_sentences(headed_page, "zebra", elements=range(3), n_most=9) == []
    assert [sentence.text for sentence in likely_sentences(headed_page, "Four gg", elements=(2,), n_most=9)] == [
        "Seven gg."
    ]


SAYS, REFUTED = "entailment", "contradiction"
YES, OPEN, NO = Verdict(0.9, 0.08, 0.02), Verdict(0.1, 0.8, 0.1), Verdict(0.02, 0.08, 0.9)
LONG = UnjudgedPair("hypothesis_too_long", "")


def judged(expected_verdict: str, answer: Verdict | None, score: float | None = 0.4, **further: Any) -> Alignment:
    """An evidence that a model was asked about; None for a pair that it refused."""
    said: dict[str, Any] = {"unjudged_reason": LONG.reason} if answer is None else answer._asdict()
    hypothesis = {"hypothesis": "Ada lives.", "hypothesis_kind": "claim", "expected_verdict": expected_verdict}
    return aligned("weak", score=score, **hypothesis, **said, **further)


@pytest.mark.parametrize(
    ("expected_verdict", "verdict", "kind", "entailment", "contradiction"),
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
    expected_verdict: str, verdict: Verdict | None, kind: str, entailment: float | None, contradiction: float | None
) -> None:
    found = judged(expected_verdict, verdict)
    assert (verdict_kind(found), signals(found)["bleu"]) == (kind, 0.4)
    assert (signals(found)["entailment"], signals(found)["contradiction"]) == (entailment, contradiction)


def chosen(
    span: Verdict | UnjudgedPair | None,
    sentences: list[Verdict | UnjudgedPair],
    *,
    expected_verdict: str = SAYS,
    rule: str | None = None,
    scores: Sequence[float] = (),
) -> int | None:
    """Which text stands for an evidence: 0 for its span, else the number of the sentence; None for neither.

    ``scores`` are those of the span and of the sentences.
    """
    scores = scores or [0.4] * (1 + len(sentences))
    wanted = replace(judged(expected_verdict, None, None if span is None else scores[0]), unjudged_reason=None)
    answers: list[tuple[EntailmentQuestion, Verdict | UnjudgedPair]] = []
    if span is not None:
        answers.append((EntailmentQuestion("Text", 0, 4), span))
    for number, (answer, score) in enumerate(zip(sentences, scores[1:], strict=True), 1):
        answers.append(
            (EntailmentQuestion("Text", 0, 4, span=Span(number, 0, number, 4, score, "model"), text="Text"), answer)
        )
    found = with_verdict(wanted, answers, None if rule is None else read_rule(rule))
    if not found.is_chosen_by_model:
        assert found.span == wanted.span
        return None if found == wanted else 0
    assert found.span is not None
    assert (found.text, Verdict(found.entailment or 0, found.neutral, found.contradiction)) == (
        "Text",
        sentences[found.span.start_element - 1],
    )
    return found.span.start_element


@pytest.mark.parametrize(
    ("span", "sentences", "expected"),
    [
        (OPEN, [OPEN, YES, YES], 2),
        (OPEN, [OPEN, NO], 0),
        (YES, [YES], 0),
        (Verdict(0.6, 0.2, 0.2), [OPEN, Verdict(0.61, 0.2, 0.19)], 2),
        (OPEN, [Verdict(0.49, 0.3, 0.21)], 0),
        (OPEN, [Verdict(0.5, 0.3, 0.2)], 1),
        (LONG, [LONG, YES], 2),
        (OPEN, [], 0),
    ],
)
def test_a_sentence_stands_where_it_says_it_more_surely(
    span: Verdict | UnjudgedPair, sentences: list[Verdict | UnjudgedPair], expected: int
) -> None:
    assert chosen(span, sentences) == expected


def test_without_a_span_only_a_sentence_that_says_it_stands() -> None:
    assert chosen(None, [OPEN, YES]) == 2
    assert chosen(None, [OPEN, NO]) is None
    assert chosen(None, [YES, NO], expected_verdict=REFUTED) == 2
    assert chosen(None, []) is None


HIGH, LOW = 0.9, 0.1


@pytest.mark.parametrize(
    ("span", "sentences", "scores", "expected"),
    [
        # what the rule takes does not give way to what it does not
        (OPEN, [YES], [HIGH, LOW], 0),
        (OPEN, [YES, Verdict(0.6, 0.2, 0.2)], [HIGH, LOW, HIGH], 2),
        (OPEN, [YES], [HIGH, HIGH], 1),
        (OPEN, [YES, Verdict(0.6, 0.2, 0.2)], [LOW, LOW, HIGH], 2),
        # where it takes nothing the likeliest stands
        (OPEN, [YES, Verdict(0.6, 0.2, 0.2)], [LOW, LOW, LOW], 1),
        (YES, [Verdict(0.6, 0.2, 0.2)], [LOW, HIGH], 0),
        (LONG, [YES], [HIGH, LOW], 0),
    ],
)
def test_what_the_rule_takes_goes_first(
    span: Verdict | UnjudgedPair, sentences: list[Verdict | UnjudgedPair], scores: list[float], expected: int
) -> None:
    assert chosen(span, sentences, rule="bleu>=0.5", scores=scores) == expected


def test_a_sentence_stands_behind_its_title_which_ends_once() -> None:
    texts = ("It is a city.", "It has two rivers.")
    city = page("Arlin, A.C.", *texts)
    search = PageSearch(
        replace(city, elements=city.elements[1:]), Tokeniser("en"), SearchSettings(numbering="elements")
    )
    found = list(entailment_questions(aligned("scored", hypothesis="It has rivers."), search, n_sentences=9))
    assert [premise.premise for premise in found] == [f"Arlin, A.C. {text}" for text in texts]
    assert (
        [premise.premise[premise.core_start : premise.core_end] for premise in found]
        == [premise.text for premise in found]
        == list(texts)
    )
    assert [premise.place for premise in found] == [Place(n, 0, n, len(text)) for n, text in enumerate(texts)]


def counted(rows: list[Alignment]) -> dict[str, Any]:
    numbered = (replace(row, ordinal=ordinal, example_id=f"e{ordinal}") for ordinal, row in enumerate(rows))
    return verification_values(numbered, threshold=0.5)


ROWS = [
    judged(SAYS, YES, 1.0),
    judged(SAYS, NO, 0.6),
    judged(REFUTED, YES, 0.5),
    judged(SAYS, OPEN, 0.5),
    judged(SAYS, YES, 0.1, is_chosen_by_model=True),
    judged(SAYS, NO, 0.1),
    judged(SAYS, None, 0.9),
    aligned("weak"),
]


def test_the_two_signals_are_crossed() -> None:
    value = counted(ROWS)
    assert value["bleu_by_verdict"] == {
        "1.00": {"supported": 1},
        "0.75": {"not_judged": 1},
        "0.50": {"neutral": 1, "contradicted": 2},
        "0.25": {},
        "0.00": {"supported": 1, "contradicted": 1},
        "no span": {"not_judged": 1},
    }
    assert (value["chosen_by_model"], value["unjudged_reasons"]) == (1, {"hypothesis_too_long": 1})
    assert value["hypotheses"] == {"claim": 7, "none": 1}
    assert sum(count for row in value["bleu_by_verdict"].values() for count in row.values()) == len(ROWS)


def test_contradictions_come_first() -> None:
    found = counted(ROWS)["disagreements"]
    assert [(disagreement["example_id"], disagreement["disagreement"]) for disagreement in found] == [
        ("e1", "contradicted"),
        ("e2", "contradicted"),
        ("e3", "not_supported"),
        ("e4", "supported_only"),
    ]


def test_the_strongest_disagreements_come_first_in_each_kind() -> None:
    surer, less = Verdict(0.99, 0.01, 0.0), Verdict(0.6, 0.1, 0.3)
    denied, doubted = Verdict(0.3, 0.1, 0.6), Verdict(0.0, 0.01, 0.99)
    rows = [judged(SAYS, less, 0.1), judged(SAYS, surer, 0.1)]
    rows += [judged(SAYS, answer, 0.9) for answer in (denied, doubted, OPEN)]
    found = counted(rows)["disagreements"]
    assert [disagreement["example_id"] for disagreement in found] == ["e3", "e2", "e4", "e1", "e0"]


def test_no_more_disagreements_are_listed_than_are_read() -> None:
    rows = [judged(SAYS, Verdict(n / 300, 0.0, 1 - n / 300), 0.2) for n in range(300)]
    found = counted(rows)["disagreements"]
    assert [disagreement["ordinal"] for disagreement in found] == [*range(299, 299 - LISTED, -1)]


def test_the_report_is_shown_for_reading() -> None:
    text = verification_text(counted(ROWS))

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
