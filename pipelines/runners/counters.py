"""Counts and durations of steps as Beam metrics, which runners display.

Metrics are only for display: the counts in a release are passed as data, because not every runner returns metrics. All
metrics are in the namespace ``kbsource``; docs/running.md lists their names.
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
"""A distribution: how long a step worked on each element, excluding later steps."""
_SHOWN_STEPS = 12
_NAME = re.compile("[a-z][a-z0-9_]*")

T = TypeVar("T")


def count(counts: Mapping[str, int]) -> None:
    """Adds counts to the counters of the current step if their names are words. Names that contain a number or a
    relation are unlimited, and a runner would store them for each step."""
    for name, n in counts.items():
        if n and _NAME.fullmatch(name):
            Metrics.counter(NAMESPACE, name).inc(n)


def count_rejected(rejected: Iterable[BadRecord]) -> None:
    """Counts unusable records by reason; there are only a few slugs."""
    count({f"rejected_{reason}": n for reason, n in Counter(bad.reason for bad in rejected).items()})


def timed(made: Iterator[T]) -> Iterator[T]:
    """Passes elements on, and records the time to make each in the step's distribution."""
    seconds, started = 0.0, time.perf_counter()
    for element in made:
        seconds += time.perf_counter() - started
        yield element
        started = time.perf_counter()
    seconds += time.perf_counter() - started
    Metrics.distribution(NAMESPACE, MILLISECONDS).update(round(1000 * seconds))


class StepNames:
    """Maps the names that runners use for steps to the outermost transforms of the steps.

    Args:
        labels: labels of all transforms of the pipeline.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._outermost = {_reference(label): label.partition("/")[0] for label in labels}

    def __call__(self, step: str) -> str:
        # Beam's job servers return references followed by a number, other runners return labels.
        return self._outermost.get(step.rpartition("_")[0]) or step.partition("/")[0]


def _reference(label: str) -> str:
    """Returns Beam's reference to a transform, as in ``PipelineContext``'s ``ComponentIdMap``, 2.77."""
    return re.sub("[^a-zA-Z0-9-_]+", "-", unicodedata.normalize("NFC", f"ref_AppliedPTransform_{label}"))[:100]


def step_counts(result: Any) -> Counter[str]:
    """Returns the counts of a pipeline's steps by name; empty if the runner does not report them."""
    counts: Counter[str] = Counter()
    with suppress(NotImplementedError, AttributeError):
        for counter in result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]:
            counts[counter.key.metric.name] += counter.committed or counter.attempted
    return counts


def seconds_of_steps(result: Any, names: StepNames) -> dict[str, float]:
    """Returns the seconds that a pipeline's steps worked in all processes, by outermost transform, the longest first;
    empty if the runner does not report them."""
    try:
        found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE).with_name(MILLISECONDS))
    except (NotImplementedError, AttributeError):
        return {}
    seconds: Counter[str] = Counter()
    for distribution in found["distributions"]:
        seconds[names(distribution.key.step)] += (distribution.committed or distribution.attempted).sum
    return {step: n / 1000 for step, n in seconds.most_common(_SHOWN_STEPS) if n}
