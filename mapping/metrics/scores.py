"""Scores of QAMPARI: means over questions, as JSON and for reading."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from mapping.metrics.answer_lists import READER_METRICS

DECIMALS = 6


@dataclass(slots=True)
class Mean:
    """A mean that is being taken."""

    total: float = 0.0
    n: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.n += 1

    @property
    def value(self) -> float | None:
        """The mean, rounded to ``DECIMALS``; None of nothing."""
        return round(self.total / self.n, DECIMALS) if self.n else None


@dataclass(slots=True)
class QampariScores:
    """Means over questions, under the names that the released script gives them.

    Attributes:
        questions: gold questions.
        reader: those of ``READER_METRICS``, over the questions with a list of answers; empty without predictions.
        em: share of the questions with a single answer that are answered exactly; None without predictions.
        arecall: ARECALL@K by K; empty without retrieved passages.
        erecall: ERECALL@K by K, over questions with evidence.
        without_predictions: questions without a line of predictions; their scores are 0.
        without_passages: questions without a line of passages; likewise.
        without_evidence: questions whose answers have no evidence; no part of ERECALL@K.
        rejected: lines by file's role and reason.
    """

    questions: int = 0
    reader: dict[str, Mean] = field(default_factory=dict)
    em: Mean | None = None
    arecall: dict[int, Mean] = field(default_factory=dict)
    erecall: dict[int, Mean] = field(default_factory=dict)
    without_predictions: int = 0
    without_passages: int = 0
    without_evidence: int = 0
    rejected: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def has_lists(self) -> bool:
        """Whether a question has a list of answers; also where there is no question at all."""
        return self.em is None or self.questions != self.em.n or not self.questions

    def to_json(self) -> dict[str, Any]:
        """Gives the scores as JSON, means alone."""
        value: dict[str, Any] = {"questions": self.questions}
        if self.reader and self.has_lists:
            value["reader"] = {name: mean.value for name, mean in self.reader.items()}
        if self.em is not None:
            if self.em.n:
                value["single_answer"] = {"questions": self.em.n, "em": self.em.value}
            value["without_predictions"] = self.without_predictions
        if self.arecall:
            value["arecall"] = {str(k): mean.value for k, mean in self.arecall.items()}
            value["erecall"] = {str(k): mean.value for k, mean in self.erecall.items()}
            value["without_passages"] = self.without_passages
            value["without_evidence"] = self.without_evidence
        value["rejected"] = {role: dict(sorted(counts.items())) for role, counts in sorted(self.rejected.items())}
        return value


def scores_text(scores: QampariScores) -> str:
    """Gives the scores for reading, in per cent."""
    lines = [f"questions            {scores.questions:>9,}"]
    if scores.em is not None:
        lines.append(f"without predictions  {scores.without_predictions:>9,}")
        if scores.has_lists:
            lines += [f"{READER_METRICS[name][0]:<21}{_percent(mean)}" for name, mean in scores.reader.items()]
        if scores.em.n:
            lines.append(f"of a single answer   {scores.em.n:>9,}")
            lines.append(f"{'exact match':<21}{_percent(scores.em)}")
    if scores.arecall:
        lines.append(f"without passages     {scores.without_passages:>9,}")
        lines.append(f"without evidence     {scores.without_evidence:>9,}")
        lines += [f"{f'ARECALL@{k}':<21}{_percent(mean)}" for k, mean in scores.arecall.items()]
        lines += [f"{f'ERECALL@{k}':<21}{_percent(mean)}" for k, mean in scores.erecall.items()]
    for role, counts in sorted(scores.rejected.items()):
        lines += [f"rejected {role}: {reason} {count:,}" for reason, count in sorted(counts.items())]
    return "\n".join(lines)


def _percent(mean: Mean) -> str:
    return f"{'–':>9}" if mean.value is None else f"{100 * mean.value:>8.2f}%"
