"""The second signal of an alignment: what an NLI model says of the span, beside BLEU; and how the two agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kbsource.records import Page
from mapping.entail.declarative import ended
from mapping.entail.hypotheses import Hypothesis
from mapping.entail.premises import PageSentence, Premise, likely_sentences, span_premise
from mapping.entail.signal import Verdict
from mapping.records import Span

RESCUED = "rescued"
"""How the text of a span was matched that an NLI model chose."""
RESCUE_FLOOR = 0.5
"""Lowest probability of what the dataset says at which a sentence is taken."""
LISTED = 50
"""Disagreements that a report lists."""
SHOWN = 10
"""Those of them that are shown for reading."""

VERDICTS = ("supported", "neutral", "contradicted", "not_supported", "not_judged")
BANDS = ("1.00", "0.75", "0.50", "0.25", "0.00", "no span")
"""Lower bounds of BLEU in the cross table."""


class EntailmentQuestion(NamedTuple):
    """A hypothesis and text of its page to judge it by.

    Attributes:
        hypothesis: what should be said.
        premise: the span with its neighbours, or a sentence that may take its place.
        sentence: that sentence; None for the span itself.
    """

    hypothesis: Hypothesis
    premise: Premise
    sentence: PageSentence | None


class Verified(NamedTuple):
    """What came of the verification of one evidence.

    Attributes:
        hypothesis: None where none could be made.
        verdict: None where nothing was judged.
        refusal: why a pair was not, see ``mapping.entail.signal.REFUSALS``; else None.
        is_rescued: the span is a sentence that the model chose.
    """

    hypothesis: Hypothesis | None
    verdict: Verdict | None
    refusal: str | None
    is_rescued: bool

    @property
    def support(self) -> float | None:
        """Probability of what the dataset says of the hypothesis; None where nothing was judged."""
        return None if self.verdict is None else support(self.verdict, self.hypothesis)

    @property
    def denial(self) -> float | None:
        """Probability of the contrary; None where it is not known."""
        if self.verdict is None:
            return None
        return self.verdict.entailment if _is_refuted(self.hypothesis) else self.verdict.contradiction

    @property
    def kind(self) -> str:
        """One of ``VERDICTS``."""
        if self.verdict is None:
            return "not_judged"
        label = self.verdict.label
        if _is_refuted(self.hypothesis):
            label = {"entailment": "contradiction", "contradiction": "entailment"}.get(label, label)
        return {"entailment": "supported", "contradiction": "contradicted", "neutral": "neutral"}.get(
            label, "not_supported"
        )

    def signals(self, score: float | None) -> dict[str, float | None]:
        """Gives the signals that a rule of ``mapping.decide.acceptance`` looks at.

        For a claim that the dataset calls refuted, entailment and contradiction change places: ``entailment`` is always
        the probability of what the dataset says.
        """
        neutral = None if self.verdict is None else self.verdict.neutral
        return {"bleu": score, "entailment": self.support, "neutral": neutral, "contradiction": self.denial}

    def columns(self) -> tuple[Any, ...]:
        """Gives the values of the columns that the table of alignments has beside the others."""
        hypothesis = self.hypothesis or (None, None, None)
        return (*hypothesis, *(self.verdict or (None, None, None)), self.refusal, self.is_rescued)


NOT_VERIFIED = Verified(None, None, None, False)


def support(verdict: Verdict, hypothesis: Hypothesis | None) -> float | None:
    """Gives the probability of what the dataset says; None where a model does not tell it."""
    return verdict.contradiction if _is_refuted(hypothesis) else verdict.entailment


def _is_refuted(hypothesis: Hypothesis | None) -> bool:
    return hypothesis is not None and hypothesis.expects == "contradiction"


def questions(
    page: Page, span: Span | None, hypothesis: Hypothesis, *, elements: Iterable[int], n_sentences: int
) -> Iterator[EntailmentQuestion]:
    """Gives what a model is asked about one evidence: its span first, then the sentences that may take its place.

    Args:
        page: the page of the evidence.
        span: where it was found; None for nowhere.
        hypothesis: what it should entail.
        elements: of the page that may be named.
        n_sentences: sentences that are tried; 0 for none.
    """
    if span is not None:
        yield EntailmentQuestion(hypothesis, span_premise(page, span), None)
    if n_sentences:
        for one in likely_sentences(page, hypothesis.text, elements=elements, n_most=n_sentences):
            # Alone, so that its neighbours are not taken for it; a page's pronouns mostly stand for its title.
            head = f"{ended(page.title)} "
            yield EntailmentQuestion(hypothesis, Premise(head + one.text, (len(head), len(head) + len(one.text))), one)


def choose(
    verdicts: Sequence[tuple[EntailmentQuestion, Verdict | None]], taken: Sequence[bool] | None = None
) -> int | None:
    """Gives the place of the question whose text stands for the evidence: of a better sentence, else of the span.

    A sentence takes the span's place where what the dataset says is at least ``RESCUE_FLOOR`` probable by it, and more
    so than by the span. Of several the likeliest, of equal ones the first. None where there is neither.

    Args:
        verdicts: what a model says, of the span first where there is one.
        taken: whether the rule of --accept takes the text of each. What it takes goes before what it does not, and
            gives way to nothing that it does not. None without a rule.
    """
    first = 0 if verdicts and verdicts[0][0].sentence is None else None
    of_span = -1.0
    best, highest = first, (False, -1.0)
    if first is not None:
        if verdicts[0][1] is not None:
            of_span = support(verdicts[0][1], verdicts[0][0].hypothesis) or 0.0
        highest = (taken is not None and taken[0], of_span)
    for place, (question, verdict) in enumerate(verdicts):
        found = None if question.sentence is None or verdict is None else support(verdict, question.hypothesis)
        if found is None or found < RESCUE_FLOOR or found <= of_span:
            continue
        if (rank := (taken is not None and taken[place], found)) > highest:
            best, highest = place, rank
    return best


@dataclass(slots=True)
class VerificationCounts:
    """How the two signals of a dataset's evidences agree.

    Attributes:
        hypotheses: evidences by what their hypothesis was made from.
        cross: evidences by band of BLEU and verdict.
        refusals: pairs that were not judged, by reason.
        rescued: evidences whose span the model chose.
        disagreements: the strongest, at most ``LISTED``; contradictions first.
    """

    hypotheses: Counter[str] = field(default_factory=Counter)
    cross: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    rescued: int = 0
    disagreements: list[dict[str, Any]] = field(default_factory=list)

    def add(self, verified: Verified, score: float | None, *, threshold: float, known: Mapping[str, Any]) -> None:
        """Counts one evidence.

        Args:
            verified: what came of it.
            score: BLEU of its span.
            threshold: from which BLEU speaks for a span.
            known: what names the evidence in a list.
        """
        self.hypotheses["none" if verified.hypothesis is None else verified.hypothesis.kind] += 1
        self.cross[band(score), verified.kind] += 1
        self.rescued += verified.is_rescued
        if verified.refusal is not None:
            self.refusals[verified.refusal] += 1
        disagreement = _disagreement(verified.kind, score, threshold)
        if disagreement is not None:
            assert verified.hypothesis is not None
            values = {"bleu": score, "entailment": verified.support, "contradiction": verified.denial}
            self.disagreements.append(
                {"disagreement": disagreement, **known, **values, "hypothesis": verified.hypothesis.text}
            )
            if len(self.disagreements) > 2 * LISTED:
                self._keep_strongest()

    def merge(self, other: VerificationCounts) -> None:
        """Adds another's counts."""
        self.hypotheses += other.hypotheses
        self.cross += other.cross
        self.refusals += other.refusals
        self.rescued += other.rescued
        self.disagreements += other.disagreements
        self._keep_strongest()

    def to_json(self) -> dict[str, Any]:
        """Gives the counts as JSON values."""
        self._keep_strongest()
        return {
            "hypotheses": dict(sorted(self.hypotheses.items())),
            "bleu_by_verdict": {
                row: {verdict: self.cross[row, verdict] for verdict in VERDICTS if self.cross[row, verdict]}
                for row in BANDS
            },
            "refusals": dict(sorted(self.refusals.items())),
            "rescued": self.rescued,
            "disagreements": self.disagreements,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> VerificationCounts:
        """Gives back what ``to_json`` gave."""
        cross = {(row, name): count for row, of in value["bleu_by_verdict"].items() for name, count in of.items()}
        return cls(
            Counter(value["hypotheses"]),
            Counter(cross),
            Counter(value["refusals"]),
            value["rescued"],
            list(value["disagreements"]),
        )

    def _keep_strongest(self) -> None:
        self.disagreements = sorted(self.disagreements, key=_strength)[:LISTED]


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
    """Gives the band of a score.

    >>> band(1.0), band(0.99), band(0.1), band(None)
    ('1.00', '0.75', '0.00', 'no span')
    """
    if score is None:
        return "no span"
    return next(name for name in BANDS if score >= float(name))


def verification_text(value: Mapping[str, Any]) -> str:
    """Gives the counts of a report, as ``VerificationCounts.to_json`` has them, for reading."""
    table = value["bleu_by_verdict"]
    shown = [name for name in VERDICTS if any(name in table[row] for row in BANDS)]
    lines = ["BLEU from" + "".join(f"{name:>15}" for name in shown)]
    lines += [f"  {row:<7}" + "".join(f"{table[row].get(name, 0):>15,}" for name in shown) for row in BANDS]
    lines += [f"not judged, {name}: {count:,}" for name, count in value["refusals"].items()]
    if value["rescued"]:
        lines.append(f"spans that the model chose: {value['rescued']:,}")
    if value["disagreements"]:
        lines.append("where the two disagree, contradictions first:")
    for disagreement in value["disagreements"][:SHOWN]:
        bleu, probabilities = (
            "-" if disagreement["bleu"] is None else f"{disagreement['bleu']:.2f}",
            _shown(disagreement),
        )
        lines.append(
            f"  {disagreement['disagreement']:<15} BLEU {bleu}, {probabilities}  "
            f"{disagreement['example_id']}: {disagreement['hypothesis']}"
        )
    return "\n".join(lines)


def _shown(row: Mapping[str, Any]) -> str:
    names = ("entailment", "contradiction")
    return ", ".join(f"{name} {row[name]:.2f}" for name in names if row[name] is not None)
