"""Makes the alias table.

The table lists the pages that a mention refers to, with counts from the links of a release. It also contains the share
of the mention's occurrences that are links.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

_WORD = re.compile(r"\w+")
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_BETWEEN = " ___ "
"""A word put between texts, so that no mention reaches from one text into the next."""
ALIAS_ROWS = """
with
    meanings as (
        select mention, page_id, min(title) as title, sum(count)::bigint as count
        from mentions group by mention, page_id
    ),
    totals as (
        select mention, sum(count)::bigint as links, sum(occurrences)::bigint as occurrences
        from mentions group by mention
    )
select mention, page_id, title, count, count / links as prior, links / occurrences as link_probability
from meanings join totals using (mention)
order by mention, count desc, page_id
"""
"""The alias table, from all rows of MENTIONS in the table ``mentions``."""


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


def mention_rows(
    counts: Mapping[tuple[str, int], int], titles: Mapping[int, str], occurrences: Mapping[str, int]
) -> Iterator[tuple[Any, ...]]:
    """Builds rows of ``MENTIONS``.

    Args:
        counts: number of links, by mention and page id.
        titles: titles of the pages, by page id.
        occurrences: how often each mention occurs in the texts, linked or not."""
    left = dict(occurrences)
    for (mention, page_id), n_links in counts.items():
        yield mention, page_id, titles[page_id], n_links, left.pop(mention, 0)
