"""Titles of a release that look like titles it does not have.

Comparing thousands of missing titles with millions is out of reach, so only likely ones are compared. Titles are cut
into sequences of three bytes, and the smallest of their numbers under ``N_HASHES`` fixed orders are compared: titles
that share the part J of their sequences agree in each with probability J. ``N_AGREED`` of them must, which is probable
to 99.97 % where half is shared, to 94 % where a quarter is. One pass over the index serves all missing titles at once.

Source: Broder, On the resemblance and containment of documents (1997).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz import fuzz, process, utils

from kbsource.index.title_index import ARTICLE, TitleIndex

N_HASHES = 16
N_AGREED = 2
N_SUGGESTIONS = 5
MIN_SCORE = 60.0
"""Below this, on a scale of 0 to 100, titles have nothing to do with each other."""
FEW = 6
"""So many missing titles are compared with every title: that is quicker than to look for the likely ones."""
QUERIES_AT_ONCE = 10_000
"""Missing titles served by one pass."""
PAIRS_AT_ONCE = 1 << 18
"""Agreements in one number between missing titles and others that are held at a time."""

_N_BYTES = 3
_QUALIFIER = r"^(.+?) \([^()]*\)$"
# Odd multipliers, from the digits of pi: the order of the products is the order of the sequences.
_MULTIPLIERS = np.array(
    [
        *(0x243F6A89, 0x85A308D3, 0x13198A2F, 0x03707345, 0xA4093823, 0x299F31D1, 0x082EFA99, 0xEC4E6C89),
        *(0x452821E7, 0x38D01377, 0xBE5466CF, 0x34E90C6D, 0xC0AC29B7, 0xC97C50DD, 0x3F84D5B5, 0xB5470917),
    ],
    np.uint32,
)
_TABLE_BITS = 20
_NONE = np.uint32(0xFFFFFFFF)

Suggestion = tuple[str, float]


def suggest_titles(
    missing: Iterable[str],
    index: TitleIndex,
    *,
    n_suggestions: int = N_SUGGESTIONS,
    min_score: float = MIN_SCORE,
) -> dict[str, tuple[Suggestion, ...]]:
    """Gives for missing titles the most similar titles that lead to an article, with scores from 0 to 100.

    Best first, equal scores by title. Of several titles of one article only the best is given. A title without any
    is left out of the answer.

    Args:
        missing: titles in normal form.
        index: the titles of a release.
        n_suggestions: how many at most for each.
        min_score: lowest score that counts.
    """
    wanted = sorted(set(missing))
    found: dict[str, tuple[Suggestion, ...]] = {}
    for first in range(0, len(wanted), QUERIES_AT_ONCE):
        found.update(_suggest(wanted[first : first + QUERIES_AT_ONCE], index, n_suggestions, min_score))
    return found


def similarity(one: str, other: str) -> float:
    """Gives how alike two titles are, 0 to 100: by characters or by their words in order of the alphabet.

    Letter case and punctuation do not count.

    >>> similarity("Tidal harp", "Harp, tidal")
    100.0
    """
    first, second = utils.default_process(one), utils.default_process(other)
    return max(fuzz.ratio(first, second), fuzz.token_sort_ratio(first, second))


class _Queries:
    """Missing titles, ready to be compared with many.

    Attributes:
        forms: what is compared of each.
    """

    def __init__(self, titles: list[str]) -> None:
        self.forms = [utils.default_process(title) for title in titles]
        signatures = _signatures(pa.array(titles, pa.string()))
        self._orders = [np.argsort(row, kind="stable") for row in signatures]
        self._keys = [row[order] for row, order in zip(signatures, self._orders, strict=True)]
        # Most numbers of other titles are no query's, which a look into a small table says.
        self._tables = []
        for row in signatures:
            table = np.zeros(1 << _TABLE_BITS, bool)
            table[row[row != _NONE] >> np.uint32(32 - _TABLE_BITS)] = True
            self._tables.append(table)

    def pairs(
        self, signatures: npt.NDArray[np.uint32], chosen: npt.NDArray[np.bool_]
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Gives (query, row) of all that agree in ``N_AGREED`` numbers; rows that are not chosen are not.

        As many rows after each other at a time as ``PAIRS_AT_ONCE`` allows, sorted by query.
        """
        agreements = []
        n_of_row = np.zeros(len(chosen), np.int64)
        for row, keys, order, table in zip(signatures, self._keys, self._orders, self._tables, strict=True):
            likely = np.flatnonzero(table[row >> np.uint32(32 - _TABLE_BITS)] & chosen & (row != _NONE))
            first = np.searchsorted(keys, row[likely], side="left")
            count = np.searchsorted(keys, row[likely], side="right") - first
            n_of_row[likely] += count
            agreements.append((order, likely, first, count))
        block = np.cumsum(n_of_row) // PAIRS_AT_ONCE
        for start, end in pairwise([0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(chosen)]):
            parts = []
            for order, likely, first, count in agreements:
                here = slice(*np.searchsorted(likely, (start, end)))
                rows, firsts, counts = likely[here], first[here], count[here]
                ends = np.cumsum(counts)
                within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
                parts.append(order[np.repeat(firsts, counts) + within] << 32 | np.repeat(rows, counts))
            found, times = np.unique(np.concatenate(parts), return_counts=True)
            found = found[times >= N_AGREED]
            yield found >> 32, found & 0xFFFFFFFF


def _suggest(
    titles: list[str], index: TitleIndex, n_suggestions: int, min_score: float
) -> Iterator[tuple[str, tuple[Suggestion, ...]]]:
    """Makes one pass over the index and gives the suggestions of each title that has any."""
    queries = _Queries(titles)
    is_few = len(titles) <= FEW
    best: list[dict[int, tuple[float, str]]] = [{} for _ in titles]
    for batch in index.title_batches():
        final_rows, status = batch["final_row"].to_numpy(), batch["status"].to_numpy()
        leads = (status == ARTICLE) | (final_rows >= 0)
        if is_few:
            _compare_all(
                queries.forms, batch["title"].filter(pa.array(leads)).to_pylist(), final_rows[leads], best, min_score
            )
            best = [_pruned(found, n_suggestions) for found in best]
            continue
        for numbers, rows in queries.pairs(_signatures(batch["title"]), leads):
            likely = batch["title"].take(pa.array(rows)).to_pylist()
            edges = [*np.flatnonzero(np.diff(numbers, prepend=-1)).tolist(), len(numbers)]
            for start, end in pairwise(edges):
                number = int(numbers[start])
                articles = final_rows[rows[start:end]]
                forms = [utils.default_process(title) for title in likely[start:end]]
                _compare(queries.forms[number], likely[start:end], forms, articles, best[number], min_score)
                best[number] = _pruned(best[number], n_suggestions)
    for title, found in zip(titles, best, strict=True):
        if ranked := _ranked(found)[:n_suggestions]:
            yield title, tuple((other, round(score, 1)) for _, (score, other) in ranked)


def _pruned(found: dict[int, tuple[float, str]], n_best: int) -> dict[int, tuple[float, str]]:
    """Gives the best so far: what is not among them now never will be, unless by a title that is yet to come."""
    return found if len(found) <= n_best else dict(_ranked(found)[:n_best])


def _ranked(found: dict[int, tuple[float, str]]) -> list[tuple[int, tuple[float, str]]]:
    return sorted(found.items(), key=lambda item: (-item[1][0], item[1][1]))


def _compare_all(
    queries: list[str],
    titles: list[str],
    articles: npt.NDArray[Any],
    best: list[dict[int, tuple[float, str]]],
    min_score: float,
) -> None:
    """Adds titles to the best of every query, by article."""
    forms = [utils.default_process(title) for title in titles]
    for query, found in zip(queries, best, strict=True):
        _compare(query, titles, forms, articles, found, min_score)


def _compare(
    query: str,
    titles: list[str],
    forms: list[str],
    articles: npt.NDArray[Any],
    best: dict[int, tuple[float, str]],
    min_score: float,
) -> None:
    """Adds titles, given also in the form that is compared, to the best of one query, by article."""
    if not query:
        return
    for scorer in (fuzz.ratio, fuzz.token_sort_ratio):
        for _, score, place in process.extract_iter(query, forms, scorer=scorer, score_cutoff=min_score):
            article, title = int(articles[place]), titles[place]
            known = best.get(article)
            if known is None or (-score, title) < (-known[0], known[1]):
                best[article] = (score, title)


def _signatures(titles: pa.Array) -> npt.NDArray[np.uint32]:
    """Gives the smallest number of each title under each order, of shape (N_HASHES, titles); ``_NONE`` without any.

    What stands in parentheses at the end, which tells pages of one name apart, does not count. ASCII letters count as
    lower case. Titles of fewer than three bytes have no number.
    """
    titles = pc.replace_substring_regex(titles, _QUALIFIER, r"\1")
    n_titles = len(titles)
    result = np.full((N_HASHES, n_titles), _NONE, np.uint32)
    _, offsets_buffer, data = titles.buffers()
    if n_titles == 0 or data is None:
        return result
    offsets = np.frombuffer(offsets_buffer, np.int32)[titles.offset : titles.offset + n_titles + 1].astype(np.int64)
    raw = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    long = np.flatnonzero(lengths >= _N_BYTES)
    if not len(long):
        return result
    lower = np.where((raw >= ord("A")) & (raw <= ord("Z")), raw | 0x20, raw).astype(np.uint32)
    every = lower[:-2] << np.uint32(16) | lower[1:-1] << np.uint32(8) | lower[2:]
    # Only sequences that do not reach into the next title: up to two fewer than bytes for each title.
    n_own = np.maximum(lengths - _N_BYTES + 1, 0)
    ends = np.cumsum(n_own)
    positions = np.arange(ends[-1]) + np.repeat(starts - (ends - n_own), n_own)
    grams = every[positions]
    firsts = (ends - n_own)[long]
    for number, multiplier in enumerate(_MULTIPLIERS):
        result[number, long] = np.minimum.reduceat(grams * multiplier, firsts)
    return result
