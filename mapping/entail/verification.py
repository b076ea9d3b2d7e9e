"""Verifies an alignment with an NLI model: the pairs to judge for a span, the model's verdicts, and how they agree with
BLEU.

A text that was found should entail the hypothesis: the claim, the question with its answer, the triple, or the old text
of the evidence. The premises are the span with its surrounding sentences, and other sentences of the page that may
support the hypothesis better.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace

from kbsource.records import Page
from kbsource.sentences import sentence_spans
from mapping.acceptance import Rule
from mapping.entail.signal import UnjudgedPair, Verdict
from mapping.entail.statements import ended, state_answer, state_triple
from mapping.records import PARTIAL, Alignment, EntailmentQuestion, Evidence, EvidenceKey, Example, Span
from mapping.sources.source import HypothesisKind

if TYPE_CHECKING:
    from mapping.search.page_search import PageSearch

_REFUTES = frozenset(("refutes", "refuted", "refute"))
# For such a claim the dataset has no verdict.
_OPEN = frozenset(("not enough info", "not_enough_info", "nei"))


class Hypothesis(NamedTuple):
    """A sentence that a model judges against a text of the page."""

    text: str  # text of the sentence
    kind: HypothesisKind  # source of the sentence; "evidence" if the requested source is not available
    expected_verdict: Literal["entailment", "contradiction"] = "entailment"
    """The dataset's verdict: ``entailment``, or ``contradiction`` for a refuted claim."""


def make_hypothesis(example: Example, key: EvidenceKey, evidence: Evidence, kind: HypothesisKind) -> Hypothesis | None:
    """Returns the hypothesis that a piece of evidence should entail.

    If the input, the answer or the separator that the kind requires is missing (partial evidence has no answer), the
    text of the evidence is used. The result is None if that is missing too.
    """
    answer = None if key[0] == PARTIAL else example.outputs[key[0]].answer
    made = _hypothesis_of(example.input, answer, kind)
    if made is None and evidence.text is not None and evidence.text.strip():
        made = Hypothesis(" ".join(evidence.text.split()), "evidence")
    return made


def _hypothesis_of(given: str | None, answer: str | None, kind: HypothesisKind) -> Hypothesis | None:
    if given is None or not given.strip() or kind == "evidence":
        return None
    if kind == "claim":
        verdict = "" if answer is None else answer.strip().lower()
        if verdict in _OPEN:
            return None
        is_refuted = verdict in _REFUTES
        return Hypothesis(" ".join(given.split()), kind, "contradiction" if is_refuted else "entailment")
    if answer is None or not answer.strip(" \t\r\n."):
        return None
    text = state_triple(given, answer) if kind == "triple" else state_answer(given, answer)
    return None if text is None else Hypothesis(text, kind)


CONTEXT_SENTENCES = 2
"""Number of sentences before and after the span that belong to the premise."""
# Scripts without spaces between words: each letter counts as a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


class Premise(NamedTuple):
    """Text assumed to be true; ``core`` is the half-open span of its relevant part."""

    text: str
    core: tuple[int, int]


class PageSentence(NamedTuple):
    """A sentence of a page: half-open code points of an element."""

    element: int
    start_char: int
    end_char: int
    text: str


def span_premise(page: Page, span: Span, *, n_context: int = CONTEXT_SENTENCES) -> Premise:
    """Returns the sentences that contain a span, and this number of sentences on either side.

    The sentences before and after are from the span's own elements, since a paragraph has little to do with the next
    one.
    """
    texts = [element.text for element in page.elements[span.start_element : span.end_element + 1]]
    text = "\n".join(texts)
    start = span.start_char
    end = len(text) - len(texts[-1]) + span.end_char
    spans = sentence_spans(text)
    touched = [number for number, (first, last) in enumerate(spans) if first < end and last > start]
    if not touched:
        return Premise(text[start:end], (0, end - start))
    left = min(start, spans[max(0, touched[0] - n_context)][0])
    right = max(end, spans[min(len(spans) - 1, touched[-1] + n_context)][1])
    return Premise(text[left:right], (start - left, end - left))


def likely_sentences(page: Page, hypothesis: str, *, elements: Iterable[int], n_most: int) -> list[PageSentence]:
    """Returns the sentences, in some elements of a page, that share most words with a hypothesis, in page order;
    headings and the title are ignored."""
    wanted = _words(hypothesis)
    ranked = []
    for number in sorted(elements):
        element = page.elements[number]
        if element.kind in _TITLES:
            continue
        for start, end in sentence_spans(element.text):
            sentence = PageSentence(number, start, end, element.text[start:end])
            if n_shared := len(wanted & _words(sentence.text)):
                ranked.append((-n_shared, sentence))
    return sorted(sentence for _, sentence in sorted(ranked)[:n_most])


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


_TITLES = frozenset(("title", "heading"))


MODEL_CHOICE = "model"
"""``match`` of a span that an NLI model chose."""
MODEL_FLOOR = 0.5
"""Minimum probability of the dataset's verdict for a sentence to be chosen."""
LISTED = 50
"""Maximum number of disagreements in a report."""
SHOWN = 10
"""Number of disagreements printed as text."""

VERDICTS = ("supported", "neutral", "contradicted", "not_supported", "not_judged")
BANDS = ("1.00", "0.75", "0.50", "0.25", "0.00", "no span")
"""Lower bounds of BLEU in the cross table."""


def support(aligned: Alignment) -> float | None:
    """Returns the probability that the model gives to the verdict of the dataset; None if nothing was judged, or if the
    model does not report this probability.
    """
    return aligned.contradiction if aligned.expected_verdict == "contradiction" else aligned.entailment


def verdict_kind(aligned: Alignment) -> str:
    """Returns a model's verdict on the hypothesis: one of ``VERDICTS``."""
    if aligned.entailment is None:
        return "not_judged"
    label = Verdict(aligned.entailment, aligned.neutral, aligned.contradiction).label
    if aligned.expected_verdict == "contradiction":
        label = {"entailment": "contradiction", "contradiction": "entailment"}.get(label, label)
    return {"entailment": "supported", "contradiction": "contradicted", "neutral": "neutral"}.get(
        label, "not_supported"
    )


def signals(aligned: Alignment) -> dict[str, float | None]:
    """Returns the values that a rule such as ``bleu>=0.7 or entailment>=0.9`` compares, by name.

    For a claim that the dataset calls refuted, entailment and contradiction are swapped: ``entailment`` is always the
    probability of the dataset's verdict.
    """
    return {
        "bleu": aligned.score,
        "entailment": support(aligned),
        "neutral": aligned.neutral,
        "contradiction": aligned.entailment if aligned.expected_verdict == "contradiction" else aligned.contradiction,
    }


def entailment_questions(aligned: Alignment, search: PageSearch, *, n_sentences: int) -> Iterator[EntailmentQuestion]:
    """Returns the premises to judge for a piece of evidence: its span first, then the sentences that may replace it."""
    if aligned.span is not None:
        premise = span_premise(search.page, aligned.span)
        yield EntailmentQuestion(premise.text, *premise.core)
    if n_sentences and aligned.hypothesis is not None:
        likely = likely_sentences(search.page, aligned.hypothesis, elements=search.elements, n_most=n_sentences)
        for number, start, end, text in likely:
            # The sentence is judged without its neighbours; pronouns on a page usually refer to its title.
            head = f"{ended(search.page.title)} "
            span = Span(number, start, number, end, search.score(aligned.evidence_text or "", text), MODEL_CHOICE)
            yield EntailmentQuestion(head + text, len(head), len(head) + len(text), **search.location_columns(span))


def with_verdict(
    aligned: Alignment, answers: Sequence[tuple[EntailmentQuestion, Verdict | UnjudgedPair]], rule: Rule | None = None
) -> Alignment:
    """Returns a piece of evidence with the model's verdict. If another sentence of the page supports the hypothesis
    better than the span, it replaces the span.

    A sentence replaces the span if its probability of the dataset's verdict is at least ``MODEL_FLOOR`` and higher than
    the span's. Of several such sentences, the most probable is chosen; if some are equally probable, the first of them.
    If there is none, the span is kept. A text that the rule of --accept accepts is preferred to a text that it rejects.

    The first of the model's answers must be the answer about the span.
    """
    best: Alignment | None = None
    of_span, highest = -1.0, (False, -1.0)
    for question, answer in answers:
        judged = _with_answer(aligned, question, answer)
        found = support(judged)
        is_taken = rule is not None and rule.holds(signals(judged))
        if not judged.is_chosen_by_model:
            of_span = -1.0 if judged.entailment is None else found or 0.0
            best, highest = judged, (is_taken, of_span)
        elif found is not None and found >= MODEL_FLOOR and found > of_span and (is_taken, found) > highest:
            best, highest = judged, (is_taken, found)
    return aligned if best is None else best


def _with_answer(aligned: Alignment, question: EntailmentQuestion, answer: Verdict | UnjudgedPair) -> Alignment:
    said: dict[str, Any] = {"unjudged_reason": answer.reason} if isinstance(answer, UnjudgedPair) else answer._asdict()
    if question.span is not None:
        said |= {name: getattr(question, name) for name in ("section", "span", "text", "place")}
    return replace(aligned, is_chosen_by_model=question.span is not None, **said)


def verification_values(judged: Iterable[Alignment], *, threshold: float) -> dict[str, Any]:
    """Returns how far BLEU and the model agree on the evidence of a dataset, as JSON values. BLEU supports a span if
    its score reaches the threshold.

    The result contains at most ``LISTED`` disagreements, the strongest ones; contradictions come first.
    """
    hypotheses, unjudged_reasons, n_chosen = Counter[str](), Counter[str](), 0
    crossed = {name: dict.fromkeys(VERDICTS, 0) for name in BANDS}

    def disagreements() -> Iterator[dict[str, Any]]:
        nonlocal n_chosen
        for aligned in judged:
            kind = verdict_kind(aligned)
            hypotheses[aligned.hypothesis_kind or "none"] += 1
            crossed[band(aligned.score)][kind] += 1
            n_chosen += aligned.is_chosen_by_model
            if aligned.unjudged_reason is not None:
                unjudged_reasons[aligned.unjudged_reason] += 1
            if (disagreement := _disagreement(kind, aligned.score, threshold)) is not None:
                values = signals(aligned)
                named = ("ordinal", "example_id", "output", "evidence", "title", "text")
                yield {
                    "disagreement": disagreement,
                    **{name: getattr(aligned, name) for name in named},
                    **{name: values[name] for name in ("bleu", "entailment", "contradiction")},
                    "hypothesis": aligned.hypothesis,
                }

    strongest = nsmallest(LISTED, disagreements(), key=_strength)
    return {
        "hypotheses": dict(sorted(hypotheses.items())),
        "bleu_by_verdict": {name: {verdict: n for verdict, n in row.items() if n} for name, row in crossed.items()},
        "unjudged_reasons": dict(sorted(unjudged_reasons.items())),
        "chosen_by_model": n_chosen,
        "disagreements": strongest,
    }


_DISAGREEMENTS = ("contradicted", "not_supported", "supported_only")


def _disagreement(kind: str, score: float | None, threshold: float) -> str | None:
    is_near = score is not None and score >= threshold
    if is_near:
        return {"contradicted": "contradicted", "not_supported": "not_supported", "neutral": "not_supported"}.get(kind)
    return "supported_only" if kind == "supported" else None


def _strength(row: Mapping[str, Any]) -> tuple[Any, ...]:
    kind = _DISAGREEMENTS.index(row["disagreement"])
    entailment, contradiction = row["entailment"] or 0.0, row["contradiction"] or 0.0
    is_support = row["disagreement"] == "supported_only"
    strength = (-entailment, contradiction) if is_support else (-contradiction, entailment)
    return (kind, *strength, *(row[name] for name in ("ordinal", "output", "evidence")))


def band(score: float | None) -> str:
    """Returns the band of BLEU in which a score is.

    >>> band(1.0), band(0.99), band(0.1), band(None)
    ('1.00', '0.75', '0.00', 'no span')
    """
    if score is None:
        return "no span"
    return next(name for name in BANDS if score >= float(name))


def verification_text(value: Mapping[str, Any]) -> str:
    """Returns the counts of a report from ``verification_values`` as text."""
    table = value["bleu_by_verdict"]
    shown = [name for name in VERDICTS if any(name in table[row] for row in BANDS)]
    lines = ["BLEU from" + "".join(f"{name:>15}" for name in shown)]
    lines += [f"  {row:<7}" + "".join(f"{table[row].get(name, 0):>15,}" for name in shown) for row in BANDS]
    lines += [f"not judged, {name}: {count:,}" for name, count in value["unjudged_reasons"].items()]
    if value["chosen_by_model"]:
        lines.append(f"spans that the model chose: {value['chosen_by_model']:,}")
    if value["disagreements"]:
        lines.append("where the two disagree, contradictions first:")
    for disagreement in value["disagreements"][:SHOWN]:
        bleu = "-" if disagreement["bleu"] is None else f"{disagreement['bleu']:.2f}"
        said = ((name, disagreement[name]) for name in ("entailment", "contradiction"))
        shares = ", ".join(f"{name} {value:.2f}" for name, value in said if value is not None)
        lines.append(
            f"  {disagreement['disagreement']:<15} BLEU {bleu}, {shares}  "
            f"{disagreement['example_id']}: {disagreement['hypothesis']}"
        )
    return "\n".join(lines)
