"""What steps count for the pages of runners, as metrics of Beam, and how long they take.

They are a window: what a release says is counted by rows that travel as data, since not every runner gives metrics
back. All are in the namespace ``kbsource``, and docs/running.md has their names.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from apache_beam.metrics import Metrics, MetricsFilter

from kbsource.records import BadRecord

NAMESPACE = "kbsource"
MILLISECONDS = "milliseconds"
"""A distribution: how long a step worked on each element, without what steps behind it did."""
_SHOWN_STEPS = 12
_NAME = re.compile("[a-z][a-z0-9_]*")

T = TypeVar("T")


def count(counts: Mapping[str, int]) -> None:
    """Adds counts to the counters of the step that runs, those whose names are words: a name that holds a number or a
    relation is one of no end of them, which a runner would keep for each step."""
    for name, n in counts.items():
        if n and _NAME.fullmatch(name):
            Metrics.counter(NAMESPACE, name).inc(n)


def count_rejected(rejected: Iterable[BadRecord]) -> None:
    """Counts records that cannot be used by reason, whose slugs are few."""
    count({f"rejected_{reason}": n for reason, n in Counter(bad.reason for bad in rejected).items()})


def timed(made: Iterator[T]) -> Iterator[T]:
    """What comes, with the time that it took to make in the step's distribution."""
    seconds, started = 0.0, time.perf_counter()
    for element in made:
        seconds += time.perf_counter() - started
        yield element
        started = time.perf_counter()
    seconds += time.perf_counter() - started
    Metrics.distribution(NAMESPACE, MILLISECONDS).update(round(1000 * seconds))


class StepNames:
    """The outermost transforms that steps belong to, by the names that runners have for steps.

    Args:
        labels: of all transforms of the pipeline.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._outermost = {_reference(label): label.partition("/")[0] for label in labels}

    def __call__(self, step: str) -> str:
        # Beam's job servers give references, with a number behind, other runners labels.
        return self._outermost.get(step.rpartition("_")[0]) or step.partition("/")[0]


def _reference(label: str) -> str:
    """What Beam refers to a transform by: ``PipelineContext``'s ``ComponentIdMap``, 2.77."""
    return re.sub("[^a-zA-Z0-9-_]+", "-", unicodedata.normalize("NFC", f"ref_AppliedPTransform_{label}"))[:100]


def counted(result: Any) -> Counter[str]:
    """What the steps of a pipeline counted by name; empty where the runner does not say."""
    counts: Counter[str] = Counter()
    with suppress(NotImplementedError, AttributeError):
        for one in result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]:
            counts[one.key.metric.name] += one.committed or one.attempted
    return counts


def seconds_of_steps(result: Any, names: StepNames) -> dict[str, float]:
    """How many seconds the steps of a pipeline worked in all processes, the longest first, by the outermost transforms
    they belong to; empty where the runner does not say."""
    try:
        found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE).with_name(MILLISECONDS))
    except (NotImplementedError, AttributeError):
        return {}
    seconds: Counter[str] = Counter()
    for one in found["distributions"]:
        seconds[names(one.key.step)] += (one.committed or one.attempted).sum
    return {step: n / 1000 for step, n in seconds.most_common(_SHOWN_STEPS) if n}
