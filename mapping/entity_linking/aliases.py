"""The alias table, and entity linking with only the table.

The table lists the pages that a mention means. Its counts come from the links of a release. It also records how often
the mention is a link at all. The linker finds the longest mentions of a text and returns the most frequent page of
each. It finds rows by the statistics of row groups, and holds only a few row groups in memory.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kbsource.columns import rows_of
from kbsource.files import join
from kbsource.release.reader import check_sizes, open_table
from kbsource.runtime.regroup import whole_runs
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.records import ALIASES, MENTION_ORDER, Alias, LinkerOptions

TOKEN = re.compile(r"\w+|[^\w\s]")
"""Words, and other characters one by one. A mention starts and ends with such a token."""
_WORD = re.compile(r"\w+")
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_PREFIX_BYTES = 16
_BETWEEN = " ___ "
"""A word between texts, which keeps a mention from crossing their borders."""


def count_occurrences(texts: Iterable[str], mentions: Iterable[str]) -> Counter[str]:
    """Returns how often mentions occur in texts. Only the words are compared, not the characters between them.

    >>> sorted(count_occurrences(["The art of a party, the art!"], ["art", "the art", "art of"]).items())
    [('art', 2), ('art of', 1), ('the art', 1)]
    """
    text = _BETWEEN.join(texts)
    words = (_ASCII_WORD if text.isascii() else _WORD).findall(text)
    of_words, found = Counter(words), Counter[str]()
    by_pair: defaultdict[tuple[str, str], list[tuple[list[str], str]]] = defaultdict(list)
    for mention in mentions:
        tokens = _WORD.findall(mention)
        if len(tokens) == 1:
            found[mention] = of_words[tokens[0]]
        elif tokens:
            by_pair[tokens[0], tokens[1]].append((tokens, mention))
    for at, pair in [hit for hit in enumerate(pairwise(words)) if hit[1] in by_pair]:
        for tokens, mention in by_pair.get(pair, ()):
            if len(tokens) == 2 or words[at : at + len(tokens)] == tokens:
                found[mention] += 1
    return found


def prefixes(mentions: Iterable[str]) -> npt.NDArray[np.int64]:
    """Returns the first 16 bytes of texts as two numbers each, which sort like the texts.

    >>> prefixes(["a", "b", "é"])[:, 0].tolist() == sorted(prefixes(["a", "b", "é"])[:, 0].tolist())
    True
    """
    cut = np.array([mention.encode()[:_PREFIX_BYTES] for mention in mentions], f"S{_PREFIX_BYTES}")
    numbers = cut.view(">u8").astype(np.uint64) ^ np.uint64(1 << 63)
    return numbers.view(np.int64).reshape(-1, 2)


def mention_rows(
    counts: Mapping[tuple[str, int], int], titles: Mapping[int, str], occurrences: Mapping[str, int]
) -> Iterator[tuple[Any, ...]]:
    """Yields rows of MENTIONS."""
    left = dict(occurrences)
    numbers = prefixes(mention for mention, _ in counts)
    for (prefix, more), ((mention, page_id), n_links) in zip(numbers.tolist(), counts.items(), strict=True):
        yield prefix, more, mention, page_id, titles[page_id], n_links, left.pop(mention, 0)


def mention_groups(batch: pa.RecordBatch, *, bounds: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Returns the group of each row of MENTIONS. Groups are ranges of prefixes that start at the bounds."""
    groups: npt.NDArray[np.int64] = np.searchsorted(
        np.array(bounds, np.int64), batch["prefix"].to_numpy(), side="right"
    ).astype(np.int64)
    return groups


def alias_rows(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields rows of ALIASES by mention: the most frequent page first, ties by page id.

    Memory: one batch, and the rows of mentions with the same first 16 bytes.

    Args:
        rows: rows of MENTIONS, in ``MENTION_ORDER``.
    """
    for batch in whole_runs(rows, MENTION_ORDER[:2]):
        table = pa.Table.from_batches([batch]).sort_by([("mention", "ascending"), ("page_id", "ascending")])
        mentions, pages = table["mention"].combine_chunks(), table["page_id"].to_numpy()
        is_mention = np.append(True, pc.not_equal(mentions[1:], mentions[:-1]).to_numpy(zero_copy_only=False))
        starts = np.flatnonzero(is_mention | np.append(True, pages[1:] != pages[:-1]))
        number = (np.cumsum(is_mention) - 1)[starts]
        of_mention = np.flatnonzero(is_mention)
        counts, occurrences = table["count"].to_numpy(), table["occurrences"].to_numpy()
        own, total = np.add.reduceat(counts, starts), np.add.reduceat(counts, of_mention)
        probability = total / np.add.reduceat(occurrences, of_mention)
        order = np.lexsort((pages[starts], -own, number))
        first = pa.array(starts[order])
        columns = (
            mentions.take(first),
            pages[starts][order],
            table["title"].combine_chunks().take(first),
            own[order],
            (own / total[number])[order],
            probability[number][order],
        )
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=ALIASES)


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

    The score of a page is the probability that its mention is a link, times the probability that such a link leads to
    it.
    """
    return rank_meanings([linked.alias.mention for linked in link_text(text, table, options)], table, options)


def rank_meanings(
    mentions: Iterable[str], table: AliasTable, options: LinkerOptions, *, are_certain: bool = False
) -> list[tuple[Alias, float]]:
    """Returns the pages that mentions may mean, ranked as in ``rank_pages``.

    Args:
        are_certain: the mentions were not found by the table, so it is ignored how often they are links.
    """
    if are_certain:
        options = replace(options, min_link_probability=0.0)
    found: dict[int, tuple[Alias, float]] = {}
    for mention in dict.fromkeys(mentions):
        for alias in filter(options.counts, table.meanings(mention)):
            likelihood = alias.prior if are_certain else alias.link_probability * alias.prior
            if alias.page_id not in found or found[alias.page_id][1] < likelihood:
                found[alias.page_id] = alias, likelihood
    return sorted(found.values(), key=lambda one: (-one[1], one[0].page_id))


def link_text(text: str, table: AliasTable, options: LinkerOptions) -> Iterator[LinkedMention]:
    """Yields the mentions of a text from left to right: at each token the longest mention that meets the options, then
    the text after it.

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
