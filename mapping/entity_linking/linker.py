"""The linker that the alias table alone is: the longest mentions of a text, each with the page that it mostly means.

Rows are found by the statistics of row groups; a few of these are in memory, however large the table is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.files import Storage, join
from kbsource.release.intact import check_sizes
from kbsource.release.reader import open_table
from mapping.entity_linking.aliases import TOKEN
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.options import LinkerOptions

_GROUPS_HELD = 64


@dataclass(frozen=True, slots=True)
class Alias:
    """A row of the alias table, see docs/tables.md."""

    mention: str
    page_id: int
    title: str
    count: int
    prior: float
    link_probability: float


class LinkedMention(NamedTuple):
    """A mention found at a span of a text."""

    start_char: int
    end_char: int
    alias: Alias


class AliasTable:
    """Look-ups in the alias table of a release of entity-linking data.

    Args:
        path: folder of the release.
        storage: of the folder.

    Raises:
        SetupError: there is no such release, or a file is missing or cut off.
    """

    def __init__(self, path: str, storage: Storage) -> None:
        entries = ENTITY_LINKING.read(path, storage).tables["aliases"]
        check_sizes(path, entries, storage)
        self._files = [open_table(join(path, entry.file), storage) for entry in entries]
        self._groups = [(file, number) for file in self._files for number in range(file.metadata.num_row_groups)]
        self._last = [_last_mention(*group) for group in self._groups]
        self._rows = lru_cache(_GROUPS_HELD)(self._read)

    def close(self) -> None:
        """Closes the files."""
        for file in self._files:
            file.close(force=True)

    def find(self, mention: str) -> tuple[Alias | None, bool]:
        """Gives the best row of a mention, None where there is none, and whether longer ones may begin with it."""
        group = bisect_left(self._last, mention)
        if group == len(self._groups):
            return None, False
        table, mentions = self._rows(group)
        first, behind = bisect_left(mentions, mention), bisect_right(mentions, mention)
        found = Alias(**table.slice(first, 1).to_pylist()[0]) if first < behind else None
        return found, behind == len(mentions) or mentions[behind].startswith(mention)

    def _read(self, group: int) -> tuple[pa.Table, list[str]]:
        file, number = self._groups[group]
        table = file.read_row_group(number, use_threads=False)
        return table, table["mention"].to_pylist()


def _last_mention(file: pq.ParquetFile, number: int) -> str:
    column = file.schema_arrow.get_field_index("mention")
    statistics = file.metadata.row_group(number).column(column).statistics
    if statistics is not None and statistics.has_min_max:
        return str(statistics.max)
    return str(file.read_row_group(number, columns=["mention"], use_threads=False)["mention"][-1])  # too long for them


def link_text(text: str, table: AliasTable, options: LinkerOptions) -> Iterator[LinkedMention]:
    """Gives the mentions of a text from left to right: at each token the longest one that counts, then what follows it.

    Mentions begin and end with whole tokens.
    """
    spans = [found.span() for found in TOKEN.finditer(text)]
    at = 0
    while at < len(spans):
        start, best = spans[at][0], None
        for number in range(at, len(spans)):
            end = spans[number][1]
            alias, goes_on = table.find(" ".join(text[start:end].split()))
            if alias is not None and _counts(alias, options):
                at, best = number, LinkedMention(start, end, alias)
            if not goes_on:
                break
        if best is not None:
            yield best
        at += 1


def _counts(alias: Alias, options: LinkerOptions) -> bool:
    return (
        alias.link_probability >= options.min_link_probability
        and alias.prior >= options.min_prior
        and alias.count >= options.min_count
    )
