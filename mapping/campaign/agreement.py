"""How far people agree: Cohen's kappa of every two, and Fleiss' kappa of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

MIN_COMMON = 10
"""Labels that two people must both have given for their kappa to count."""

Labels = Mapping[str, Mapping[str, bool]]
"""By passage what each person said: whether it holds enough to answer the question."""


class PairKappa(NamedTuple):
    """The agreement of two people.

    Attributes:
        first, second: who, in alphabetical order.
        n_common: passages that both judged.
        kappa: Cohen's; None with fewer than ``MIN_COMMON`` of them.
    """

    first: str
    second: str
    n_common: int
    kappa: float | None


def pair_kappas(labels: Labels) -> list[PairKappa]:
    """Gives the agreement of every two people with a passage in common, in alphabetical order."""
    common: defaultdict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for said in labels.values():
        for first, second in combinations(sorted(said), 2):
            common[first, second].append((said[first], said[second]))
    return [
        PairKappa(*pair, len(both), cohen_kappa(both) if len(both) >= MIN_COMMON else None)
        for pair, both in sorted(common.items())
    ]


def cohen_kappa(both: list[tuple[bool, bool]]) -> float:
    """Gives Cohen's kappa of two people's labels; 1 where both say always the same one thing.

    >>> round(cohen_kappa([(True, True), (True, False), (False, False), (False, False)]), 3)
    0.5
    """
    n = len(both)
    observed = sum(first == second for first, second in both) / n
    firsts, seconds = (sum(column) / n for column in zip(*both, strict=True))
    return _kappa(observed, firsts * seconds + (1 - firsts) * (1 - seconds))


def mean_kappa(pairs: list[PairKappa]) -> float | None:
    """Gives the mean over the pairs that count; None without any."""
    kappas = [pair.kappa for pair in pairs if pair.kappa is not None]
    return sum(kappas) / len(kappas) if kappas else None


def fleiss_kappa(labels: Labels) -> float | None:
    """Gives Fleiss' kappa over the passages that at least two judged, however many; None without any.

    Source: Fleiss (1971), with the number of judgements of each passage in place of one for all.
    """
    counts = [(sum(said.values()), len(said)) for said in labels.values() if len(said) > 1]
    if not counts:
        return None
    agreed = [(yes * (yes - 1) + (n - yes) * (n - yes - 1)) / (n * (n - 1)) for yes, n in counts]
    share = sum(yes for yes, _ in counts) / sum(n for _, n in counts)
    return _kappa(sum(agreed) / len(agreed), share * share + (1 - share) * (1 - share))


def _kappa(observed: float, expected: float) -> float:
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)
