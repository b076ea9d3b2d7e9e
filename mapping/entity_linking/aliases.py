"""Makes the alias table.

The table lists the pages that a mention means. Its counts come from the links of a release. It also says how often the
mention is a link at all.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.runtime.regroup import whole_runs
from mapping.entity_linking.records import ALIASES, MENTION_ORDER

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
