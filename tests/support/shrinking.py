"""Makes what a fuzz found shorter."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

_MOST_SECONDS = 20


def shrunk(text: str, is_wrong: Callable[[str], bool]) -> str:
    """Returns a shorter text that breaks a rule as well; stops after some seconds."""
    size = len(text) // 2
    deadline = monotonic() + _MOST_SECONDS
    while size and monotonic() < deadline:
        at = 0
        while at < len(text) and monotonic() < deadline:
            shorter = text[:at] + text[at + size :]
            if is_wrong(shorter):
                text = shorter
            else:
                at += size
        size //= 2
    return text
