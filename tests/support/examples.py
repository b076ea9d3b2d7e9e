"""How many examples a property is tried with."""

from hypothesis import settings


def examples(n: int) -> int:
    """Gives ``n``, or twenty times as many under ``make fuzz``."""
    return n * settings().max_examples // 100
