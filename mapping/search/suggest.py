"""Titles of a release that look like titles it does not have.

Every missing title is compared with every title, block by block: RapidFuzz does ten million pairs a second on a core,
which is sooner than likely ones are found. One pass over the index serves all missing titles at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rapidfuzz import fuzz, process, utils

from kbsource.index.title_index import ARTICLE, TitleIndex

N_SUGGESTIONS = 5
MIN_SCORE = 60.0
"""Below this, on a scale of 0 to 100, titles have nothing to do with each other."""
QUERIES_AT_ONCE = 1_000
"""Missing titles served by one pass."""
BLOCK = (64, 1 << 14)
"""Missing titles and titles that are compared at a time: 8 MB of scores."""

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


def _suggest(
    titles: list[str], index: TitleIndex, n_suggestions: int, min_score: float
) -> Iterator[tuple[str, tuple[Suggestion, ...]]]:
    """Makes one pass over the index and gives the suggestions of each title that has any."""
    n_queries, n_titles = BLOCK
    queries = _forms(titles)
    best: list[dict[int, tuple[float, str]]] = [{} for _ in titles]
    for batch in index.title_batches():
        final_rows, status = batch["final_row"].to_numpy(), batch["status"].to_numpy()
        leads = (status == ARTICLE) | (final_rows >= 0)
        others, articles = batch["title"].filter(pa.array(leads)), final_rows[leads]
        for start in range(0, len(others), n_titles):
            block = others.slice(start, n_titles).to_pylist()
            forms = _forms(block)
            for first in range(0, len(titles), n_queries):
                some = slice(first, first + n_queries)
                scores = _scores([form[some] for form in queries], forms, min_score)
                for found, row in zip(best[some], scores, strict=True):
                    _add(found, row, block, articles[start:], n_suggestions, min_score)
    for title, query, found in zip(titles, queries[0], best, strict=True):
        if query and found:
            yield title, tuple((other, round(score, 1)) for score, other in _ranked(found)[:n_suggestions])


def _forms(titles: list[str]) -> tuple[list[str], list[str]]:
    """Gives what is compared of titles: their characters, and their words in order of the alphabet."""
    plain = [utils.default_process(title) for title in titles]
    return plain, [" ".join(sorted(form.split())) for form in plain]


def _scores(queries: list[list[str]], titles: tuple[list[str], list[str]], min_score: float) -> npt.NDArray[np.float64]:
    """Gives the similarity of missing titles and titles, one row a missing one; 0 below ``min_score``."""
    plain, by_words = (
        process.cdist(some, others, scorer=fuzz.ratio, score_cutoff=min_score, dtype=np.float64)
        for some, others in zip(queries, titles, strict=True)
    )
    scores: npt.NDArray[np.float64] = np.maximum(plain, by_words)
    return scores


def _add(
    found: dict[int, tuple[float, str]],
    scores: npt.NDArray[np.float64],
    titles: list[str],
    articles: npt.NDArray[np.int64],
    n_best: int,
    min_score: float,
) -> None:
    """Adds the titles of a block to the best of a missing one, by article."""
    lowest = _ranked(found)[n_best - 1][0] if len(found) >= n_best else min_score
    for place in np.flatnonzero(scores >= lowest).tolist():
        article, candidate = int(articles[place]), (float(scores[place]), titles[place])
        found[article] = min(found.get(article, candidate), candidate, key=_rank)
    for article in sorted(found, key=lambda article: _rank(found[article]))[n_best:]:
        del found[article]  # never among the best, unless by a title that is yet to come


def _ranked(found: dict[int, tuple[float, str]]) -> list[tuple[float, str]]:
    return sorted(found.values(), key=_rank)


def _rank(scored: tuple[float, str]) -> tuple[float, str]:
    return -scored[0], scored[1]
