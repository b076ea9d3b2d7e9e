"""Entity linking with only the alias table.

The linker finds the longest mentions in a text and returns the most frequent page of each. It finds rows by the
statistics of row groups, and keeps only a few row groups in memory.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.columns import rows_of
from kbsource.files import join
from kbsource.release.reader import check_sizes, open_table
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.records import Alias, LinkerOptions

TOKEN = re.compile(r"\w+|[^\w\s]")
"""Words, and other characters one by one. A mention starts and ends with such a token."""
_GROUPS_HELD = 64


class LinkedMention(NamedTuple):
    """A mention found at a span of a text."""

    start_char: int
    end_char: int
    alias: Alias


class AliasTable:
    """Looks up mentions in the alias table of a release of entity-linking data.

    Raises:
        SetupError: there is no such release, or a file is missing or truncated.
    """

    def __init__(self, path: str) -> None:
        entries = ENTITY_LINKING.read(path).tables["aliases"]
        check_sizes(path, entries)
        self._files = [open_table(join(path, entry.file)) for entry in entries]
        self._groups = [(file, number) for file in self._files for number in range(file.metadata.num_row_groups)]
        self._last = [_last_mention(*group) for group in self._groups]
        self._rows = lru_cache(_GROUPS_HELD)(self._read)

    def close(self) -> None:
        """Closes the files."""
        for file in self._files:
            file.close(force=True)

    def find(self, mention: str) -> tuple[Alias | None, bool]:
        """Returns the best row of a mention, or None, and whether longer mentions may start with it."""
        group = bisect_left(self._last, mention)
        if group == len(self._groups):
            return None, False
        table, mentions = self._rows(group)
        first, behind = bisect_left(mentions, mention), bisect_right(mentions, mention)
        found = rows_of(table.slice(first, 1), Alias)[0] if first < behind else None
        return found, behind == len(mentions) or mentions[behind].startswith(mention)

    def meanings(self, mention: str) -> Iterator[Alias]:
        """Reads all rows of a mention, the most frequent page first."""
        for group in range(bisect_left(self._last, mention), len(self._groups)):
            table, mentions = self._rows(group)
            first, behind = bisect_left(mentions, mention), bisect_right(mentions, mention)
            yield from rows_of(table.slice(first, behind - first), Alias)
            if behind < len(mentions):
                return

    def _read(self, group: int) -> tuple[pa.Table, list[str]]:
        file, number = self._groups[group]
        table = file.read_row_group(number, use_threads=False)
        return table, table["mention"].to_pylist()


def _last_mention(file: pq.ParquetFile, number: int) -> str:
    column = file.schema_arrow.get_field_index("mention")
    statistics = file.metadata.row_group(number).column(column).statistics
    if statistics is not None and statistics.has_min_max:
        return str(statistics.max)
    # The mention is too long for the statistics.
    return str(file.read_row_group(number, columns=["mention"], use_threads=False)["mention"][-1])


def rank_pages(text: str, table: AliasTable, options: LinkerOptions) -> list[tuple[Alias, float]]:
    """Returns the distinct pages that the mentions of a text may mean, the most probable first, ties by page id.

    The score of a page is the probability that its mention is a link, times the probability that such a link points to
    the page.
    """
    return rank_meanings([linked.alias.mention for linked in link_text(text, table, options)], table, options)


def rank_meanings(
    mentions: Iterable[str], table: AliasTable, options: LinkerOptions, *, are_certain: bool = False
) -> list[tuple[Alias, float]]:
    """Returns the pages that mentions may mean, ranked as in ``rank_pages``.

    Args:
        are_certain: true if the mentions were not found with the table; then the probability that they are links is
            ignored.
    """
    if are_certain:
        options = replace(options, min_link_probability=0.0)
    found: dict[int, tuple[Alias, float]] = {}
    for mention in dict.fromkeys(mentions):
        for alias in filter(options.counts, table.meanings(mention)):
            likelihood = alias.prior if are_certain else alias.link_probability * alias.prior
            if alias.page_id not in found or found[alias.page_id][1] < likelihood:
                found[alias.page_id] = alias, likelihood
    return sorted(found.values(), key=lambda scored: (-scored[1], scored[0].page_id))


def link_text(text: str, table: AliasTable, options: LinkerOptions) -> Iterator[LinkedMention]:
    """Finds the mentions in a text from left to right. At each token it takes the longest mention that meets the
    options, and continues after this mention.

    Mentions start and end with whole tokens.
    """
    spans = [found.span() for found in TOKEN.finditer(text)]
    at = 0
    while at < len(spans):
        start, best = spans[at][0], None
        for number in range(at, len(spans)):
            end = spans[number][1]
            alias, goes_on = table.find(" ".join(text[start:end].split()))
            if alias is not None and options.counts(alias):
                at, best = number, LinkedMention(start, end, alias)
            if not goes_on:
                break
        if best is not None:
            yield best
        at += 1
