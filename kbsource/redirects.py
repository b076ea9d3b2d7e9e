"""Redirect pages: where their text leads, and the released table of them."""

from __future__ import annotations

import html
import re
import urllib.parse
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

import numpy as np

from kbsource.languages import language
from kbsource.records import RedirectRow
from kbsource.title_index import ARTICLE, TitleIndex
from kbsource.titles import clean_title

_LINK = re.compile(r"\s*:?\s*\[\[([^\[\]|]*)(?:\|.*?)?\]\]", re.DOTALL)
_INVALID = re.compile(r"[\[\]{}|<>\n\t\x00-\x1f\x7f]")

ROWS_AT_ONCE = 200_000
"""Redirects sorted in memory at a time."""


@cache
def _opening(lang: str) -> re.Pattern[str]:
    words = sorted(language(lang).redirect_words, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, words)), re.IGNORECASE)


def parse_redirect(text: str, lang: str) -> tuple[str, str | None] | None:
    """Gives target and section of a redirect's wikitext, None when the text is no redirect.

    The target is decoded (entities, percent escapes) and cleaned, but keeps its letter case and prefix: it
    is for ``titles.normalise_title``. The section is None when absent or empty.

    Source: WikitextContentHandler::extractRedirectTargetAndText of MediaWiki: the magic word opens the
        text, a colon may follow, then the first link at once.
    """
    start = len(text) - len(text.lstrip())
    word = _opening(lang).match(text, start)
    if word is None:
        return None
    link = _LINK.match(text, word.end())
    if link is None:
        return None
    target = link[1]
    if "%" in target:
        target = urllib.parse.unquote(target)
    target = html.unescape(target)
    title, _, fragment = target.partition("#")
    title = clean_title(clean_title(title).lstrip(":"))
    if not title or _INVALID.search(title):
        return None
    return title, clean_title(fragment) or None


def redirect_rows(index: TitleIndex) -> Iterator[RedirectRow]:
    """Gives every redirect of the index, by title in code-point order, then by page id.

    Memory: 4 bytes per redirect and ``ROWS_AT_ONCE`` titles.
    """
    n_redirects = sum(int(np.count_nonzero(batch["status"].to_numpy() != ARTICLE)) for batch in index.title_batches())
    # Titles lie in the order of their hashes, so every n-th of them is a fair sample to cut the alphabet by.
    n_parts = n_redirects // ROWS_AT_ONCE + 1
    sample = sorted(title for _, title in _redirects(index, step=max(1, n_redirects // (64 * n_parts))))
    cuts = [sample[len(sample) * part // n_parts] for part in range(1, n_parts)]
    parts = [array("i") for _ in range(n_parts)]
    for row, title in _redirects(index, step=1):
        parts[bisect_right(cuts, title)].append(row)
    for rows in parts:
        # An entry begins with title and page id, which together are unique.
        for entry in sorted(map(index.entry, rows)):
            yield RedirectRow(
                page_id=entry.page_id,
                title=entry.title,
                target_title=entry.target_title or "",
                fragment=entry.fragment,
                final_title=entry.final_title,
                final_page_id=entry.final_page_id,
                hops=entry.hops,
                status=entry.status,
            )


def _redirects(index: TitleIndex, *, step: int) -> Iterator[tuple[int, str]]:
    """Gives row and title of every ``step``-th redirect."""
    start, skipped = 0, 0
    for batch in index.title_batches():
        rows = np.flatnonzero(batch["status"].to_numpy() != ARTICLE)
        chosen = rows[(-skipped) % step :: step]
        yield from zip((start + chosen).tolist(), batch["title"].take(chosen).to_pylist(), strict=True)
        start, skipped = start + batch.num_rows, skipped + len(rows)
