"""How the cost of some work grows with the size of its input, as a law that holds on a busy machine too."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time

_SECONDS = 0.01  # less than this is not measured, but noise
_TURNS = 5


def assert_linear(work: Callable[[int], object], n: int) -> None:
    """Work of four times the size costs less than eight times as much, in one of five turns.

    Work by the square costs sixteen times as much in each of them. The size begins at `n` and is doubled until the work
    costs ten milliseconds. Collections of garbage are left out, as they cost what else the process holds.
    """
    work(n)  # what is only made once is made here
    while _seconds(work, n) < _SECONDS:
        n *= 2
    turns = []
    for _ in range(_TURNS):
        small, large = _seconds(work, n), _seconds(work, 4 * n)
        turns.append((small, large))
        if large < 8 * max(small, _SECONDS):
            return
    raise AssertionError(f"work of the sizes {n} and {4 * n} costs, in seconds: {turns}")


def _seconds(work: Callable[[int], object], n: int) -> float:
    gc.disable()
    try:
        started = process_time()
        work(n)
        return process_time() - started
    finally:
        gc.enable()
