"""What a verification finds: one entry per file and rule, however many cases there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RULES = {
    "manifest": "the manifest is not what was written",
    "missing": "a listed file is not there",
    "unlisted": "a file is there that the manifest does not list",
    "size": "a file has another size",
    "sha256": "a file's content changed",
    "unreadable": "a file is not what its name says",
    "schema": "a table's columns are not those of its schema",
    "rows": "a file has another number of rows",
    "statistics": "a row group's statistics are not those of its ids",
    "counts": "counts do not add up",
}
"""Rules of every kind of release, and what it means that one is broken."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken in one file: how often, and the first case."""

    file: str
    rule: str
    n_cases: int
    example: str


class Findings:
    """Findings as they come in; of each file and rule the first example is kept.

    Args:
        rules: slugs that may be broken, with their meanings.
    """

    def __init__(self, rules: Mapping[str, str]) -> None:
        self._rules = rules
        self._found: dict[tuple[str, str], Finding] = {}

    def add(self, file: str, rule: str, example: str, n_cases: int = 1) -> None:
        """Takes cases of a rule that is broken in a file."""
        assert rule in self._rules
        before = self._found.get((file, rule))
        if before is not None:
            n_cases, example = n_cases + before.n_cases, before.example
        self._found[(file, rule)] = Finding(file, rule, n_cases, example)

    def sorted(self) -> tuple[Finding, ...]:
        """Gives what was found, by file and rule."""
        return tuple(one for _, one in sorted(self._found.items()))
