"""Scores of predictions for KILT: as JSON under the published names, and for reading."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mapping.metrics.kilt.uncertainty import Difference, Interval, Values

METRICS: Mapping[str, str] = {
    "fever": "accuracy",
    "aidayago2": "accuracy",
    "wned": "accuracy",
    "cweb": "accuracy",
    "trex": "accuracy",
    "structured_zeroshot": "accuracy",
    "nq": "em",
    "hotpotqa": "em",
    "triviaqa": "em",
    "eli5": "rougel",
    "wow": "f1",
}
"""The metric of each task, by the beginning of its file's name. Source: Petroni et al., KILT (2021), table 1."""


def metric_of(name: str) -> str | None:
    """Gives the metric that is reported for a file.

    >>> metric_of("nq-dev-kilt.jsonl"), metric_of("quiz.jsonl")
    ('em', None)
    """
    return METRICS.get(name.partition("-")[0])


_RETRIEVAL_ONLY = "no prediction has an answer: provenance alone is evaluated"


@dataclass(slots=True)
class SystemScores:
    """The scores of one system.

    Attributes:
        path: of its predictions.
        ids: of the gold records, in their order.
        names: metrics.
        values: of each record (row) by metric (column), 0 to 1.
        intervals: of the means by metric, where they were asked for.
        without_prediction: records without one; they score 0.
        without_answers: records without a gold answer; likewise.
        rejected: lines or parts of lines by file's role and reason.
        moved: predicted places by what became of them; empty without a crosswalk.
    """

    path: str
    ids: list[str] = field(default_factory=list)
    names: tuple[str, ...] = ()
    values: Values = field(default_factory=lambda: np.zeros((0, 0)))
    intervals: dict[str, Interval] = field(default_factory=dict)
    without_prediction: int = 0
    without_answers: int = 0
    rejected: dict[str, Counter[str]] = field(default_factory=dict)
    moved: Counter[str] = field(default_factory=Counter)

    @property
    def records(self) -> int:
        """Gold records."""
        return len(self.ids)

    def mean(self, name: str) -> float | None:
        """Gives the mean of a metric, correctly rounded; None where it was not evaluated."""
        if name not in self.names:
            return None
        return math.fsum(self.values[:, self.names.index(name)]) / self.records

    def columns(self, names: Sequence[str]) -> Values:
        """Gives the values of some metrics."""
        return self.values[:, [self.names.index(name) for name in names]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Gives id and values of every record."""
        for record_id, row in zip(self.ids, self.values.tolist(), strict=True):
            yield {"id": record_id, **dict(zip(self.names, row, strict=True))}

    def to_json(self) -> dict[str, Any]:
        """Gives the means in the published form, and what they leave out."""
        result: dict[str, Any] = {"records": self.records}
        for group, names in grouped(self.names).items():
            result[group] = {name: self.mean(name) for name in names}
        if self.intervals:
            result["intervals"] = {name: list(interval) for name, interval in self.intervals.items()}
        result["without_prediction"] = self.without_prediction
        result["without_answers"] = self.without_answers
        if self.moved:
            result["crosswalk"] = dict(sorted(self.moved.items()))
        result["rejected"] = {role: dict(sorted(counts.items())) for role, counts in sorted(self.rejected.items())}
        return result


@dataclass(slots=True)
class KiltScores:
    """The scores of a system, and those of a second one with what it is better by, where there is one."""

    first: SystemScores
    second: SystemScores | None = None
    differences: dict[str, Difference] = field(default_factory=dict)

    @property
    def has_rejects(self) -> bool:
        """Whether something could not be used."""
        return bool(self.first.rejected or (self.second is not None and self.second.rejected))

    def to_json(self) -> dict[str, Any]:
        """Gives the scores as JSON."""
        value = self.first.to_json()
        if self.second is not None:
            value["compared"] = self.second.to_json()
            value["differences"] = {
                name: {"mean": one.mean, "interval": list(one.interval), "p": one.p}
                for name, one in self.differences.items()
            }
        return value


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Gives the metrics by the part of the published result that they stand in."""
    groups: dict[str, list[str]] = {}
    for name in names:
        is_answer = name in ("accuracy", "em", "f1", "rougel")
        group = "kilt" if name.startswith("KILT-") else "downstream" if is_answer else "retrieval"
        groups.setdefault(group, []).append(name)
    return groups


def scores_text(scores: KiltScores) -> str:
    """Gives the scores for reading, in per cent."""
    first, second = scores.first, scores.second
    lines = [f"records              {first.records:>9,}"]
    for system in (first,) if second is None else (first, second):
        of = "" if second is None else f" ({system.path})"
        if system.without_prediction:
            lines.append(f"without prediction   {system.without_prediction:>9,}{of}")
        lines += [f"rejected {role}: {reason} {count:,}{of}" for role, reason, count in _rejects(system)]
        lines += [
            f"places {outcome.replace('_', ' ')}: {count:,}{of}" for outcome, count in sorted(system.moved.items())
        ]
    if first.without_answers:
        lines.append(f"without gold answers {first.without_answers:>9,}")
    if first.records and "accuracy" not in first.names:
        lines.append(_RETRIEVAL_ONLY)
    for names in grouped(first.names).values():
        lines.append("")
        for name in names:
            line = f"{name:<28}{_percent(first.mean(name))}{_interval(first.intervals.get(name))}"
            if second is not None and name in second.names:
                line += f"{_percent(second.mean(name))}{_interval(second.intervals.get(name))}"
            if name in scores.differences:
                difference = scores.differences[name]
                line += f"  {100 * difference.mean:+.2f}{_interval(difference.interval)} p = {difference.p:.4f}"
            lines.append(line)
    return "\n".join(lines)


def _rejects(system: SystemScores) -> Iterable[tuple[str, str, int]]:
    for role, counts in sorted(system.rejected.items()):
        for reason, count in sorted(counts.items()):
            yield role, reason, count


def _percent(mean: float | None) -> str:
    return f"{'–':>8}" if mean is None else f"{100 * mean:>8.2f}"


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f" [{100 * interval.low:.2f}, {100 * interval.high:.2f}]"


def leaderboard_text(rows: Mapping[str, SystemScores]) -> str:
    """Gives the leaderboard's table: for each gold file the metric of its task, alone and with provenance."""
    width = max(map(len, rows), default=0)
    lines = [f"{'':<{width}}  {'records':>9}  {'metric':<8}{'score':>8}{'KILT':>8}{'Rprec':>8}{'rec@5':>8}"]
    for name, scores in rows.items():
        metric = metric_of(name) or ""
        shown = "".join(_percent(scores.mean(part)) for part in (metric, f"KILT-{metric}", "Rprec", "recall@5"))
        lines.append(f"{name:<{width}}  {scores.records:>9,}  {metric:<8}{shown}")
    return "\n".join(lines)
