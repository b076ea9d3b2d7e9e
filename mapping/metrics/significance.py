"""Confidence intervals of means, and tests whether two systems differ: the bootstrap, and a paired test.

Sources: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13, for intervals; Noreen,
Computer-Intensive Methods for Testing Hypotheses (1989), for the test. All draws use fixed seeds, so equal values have
equal intervals and p-values.
"""

from __future__ import annotations

import hashlib
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    """One row per item, one column per metric, 0 to 1."""
_AT_ONCE = 64
_TOLERANCE = 1e-12


class Interval(NamedTuple):
    """A 95 % confidence interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """The second system's mean minus the first's, over the items that count for both."""

    mean: float
    interval: Interval  # bootstrap interval of the mean
    #: Two-sided p-value of a randomisation test: how often the difference is as large when the two systems' values of
    #: each item are swapped at random; the observed assignment is included.
    p: float


def intervals(values: Values, resamples: int) -> list[Interval]:
    """Returns the percentile bootstrap interval of the mean of each column."""
    import numpy as np

    draw = _generator("bootstrap")
    n = len(values)
    means = np.concatenate(
        [
            draw.multinomial(n, np.full(n, 1 / n), size=min(_AT_ONCE, resamples - start)) @ values / n
            for start in range(0, resamples, _AT_ONCE)
        ]
    )
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def differences(first: Values, second: Values, resamples: int) -> list[Difference]:
    """Returns for each column how much better the second system is; both have the same items in the same order."""
    import numpy as np

    delta = second - first
    means = delta.mean(axis=0)
    draw = _generator("randomisation")
    n_as_large = np.zeros(delta.shape[1], dtype=np.int64)
    for start in range(0, resamples, _AT_ONCE):
        signs = draw.integers(0, 2, size=(min(_AT_ONCE, resamples - start), len(delta))) * 2.0 - 1.0
        n_as_large += (np.abs(signs @ delta / len(delta)) >= np.abs(means) - _TOLERANCE).sum(axis=0)
    p = (n_as_large + 1) / (resamples + 1)
    return [
        Difference(fsum(column) / len(column), interval, float(chance))
        for column, interval, chance in zip(delta.T, intervals(delta, resamples), p, strict=True)
    ]


def _generator(purpose: str) -> np.random.Generator:
    import numpy as np

    return np.random.default_rng(int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big"))
