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
    "counts": "counts do not add up",
    "offset_law": "a span does not hold what it claims",
    "page_law": "a page is not built as pages are",
    "duplicate_page_id": "two pages have one page id",
    "duplicate_qid": "two pages have one Wikidata item",
    "page_order": "page ids do not ascend though the manifest says so",
    "dangling_target": "a link leads to a page that is not there",
    "target_title": "a link names its page by another title",
    "redirects_disagree": "pages, redirects table and index tell different redirects",
    "items_disagree": "pages and the table of their items tell different items",
    "entity_law": "a row of Wikidata is not built as such rows are",
    "duplicate_entity": "two rows have one entity",
    "classes_disagree": "the class closure is not that of the statements",
    "index_disagrees": "the index and the tables tell different things",
}
"""Every rule and what it means that it is broken."""


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

    def __init__(self, rules: Mapping[str, str] = RULES) -> None:
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
