"""Resolves a dataset's name for a page (title, URL, page id, Wikidata item) to a page of a release, or to similar
titles.

A missing title is compared with every title, block by block: RapidFuzz makes ten million comparisons a second on a
core, which is faster than first selecting likely titles. One pass over the index serves all missing titles at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.errors import SetupError
from kbsource.files import Folder
from kbsource.index.title_index import ARTICLE, TitleIndex
from kbsource.numerals import unescape
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.pages.locations import Locations, index_folder
from kbsource.site import Site
from kbsource.titles import UrlParser, normalise_title
from mapping.records import PageKey, Suggestion

_CACHED_TITLES = 1 << 12


class ResolvedPage(NamedTuple):
    """The page that a key resolves to."""

    # the page; None if the release does not have it
    page_id: int | None
    title: str | None
    found_by: str | None
    """``title``, ``redirect``, ``url``, ``page_id``, ``qid``, ``title_map`` or ``fuzzy``; None if the page was not
    found."""
    hops: int  # number of redirects that were followed
    requested: str | None
    """The requested title in normal form, for which similar titles are suggested if the page is missing; None if the
    key contains no title.
    """


class Resolver:
    """Looks pages up in the memory-mapped index of a release, without reading any page.

    A title is looked up in this order, until it is found: in the table of known moves; in normal form, following
    redirects; with character references decoded (``AT&amp;T``); without a trailing ``#section``. A title counts as
    missing if it resolves to an article that the build rejected.
    """

    def __init__(
        self, site: Site, *, index: TitleIndex, locations: Locations, moves: Mapping[str, str] | None = None
    ) -> None:
        """``moves`` is the table of known moves, old title -> new title or page id, from ``read_moves``."""
        self._site = site
        self._parse_url = UrlParser(site).parse
        self._index = index
        self._locations = locations
        self._moves = {normalise_title(old, site): new for old, new in (moves or {}).items()}

    @classmethod
    def open(cls, release: str, *, moves: Mapping[str, str] | None = None) -> Resolver:
        """Opens the index of a release; raises SetupError if the folder contains no finished release."""
        manifest = PAGES_RELEASE.read(release)
        folder = index_folder(release, manifest)
        index = TitleIndex.open(folder, cache_size=_CACHED_TITLES)
        return cls(manifest.site, index=index, locations=Locations(folder), moves=moves)

    @property
    def index(self) -> TitleIndex:
        """The titles of the release."""
        return self._index

    def location(self, page_id: int) -> tuple[int, int]:
        """Returns the shard and row of a page that was found."""
        found = self._locations.page(page_id)
        if found is None:
            raise KeyError(page_id)
        return found

    def resolve(self, key: PageKey, *, fallback: PageKey | None = None) -> ResolvedPage:
        """Resolves a key. ``fallback`` is another name of the page, tried when the first does not resolve."""
        found = self._by_key(key)
        if found.page_id is None and fallback is not None:
            other = self._by_key(fallback)
            return other if other.page_id is not None or found.requested is None else found
        return found

    def resolve_similar(self, title: str) -> ResolvedPage:
        """Resolves a title that replaces a missing one because it is similar."""
        found = self._by_title(title)
        return found if found.page_id is None else found._replace(found_by="fuzzy")

    def _by_key(self, key: PageKey) -> ResolvedPage:
        if key.kind == "title":
            return self._by_written_title(key.value)
        if key.kind == "url":
            return self._by_url(key.value)
        if key.kind == "page_id":
            return self._by_id(key.value, "page_id")
        if key.kind == "qid":
            page_id = self._locations.page_of_qid(key.value.strip())
            return self._article(page_id, "qid")
        raise ValueError(f"unknown kind of key: {key.kind!r}")

    def _by_written_title(self, written: str) -> ResolvedPage:
        requested = normalise_title(written, self._site)
        if (new := self._moves.get(requested)) is not None:
            found = self._by_title(normalise_title(new, self._site))
            found = self._by_id(new, "title_map") if found.page_id is None else found
            if found.page_id is not None:
                return found._replace(found_by="title_map", requested=requested)
        forms = [requested]
        if "&" in written:
            forms.append(normalise_title(unescape(written), self._site))
        forms += [normalise_title(form.partition("#")[0], self._site) for form in forms if "#" in form]
        for form in forms:
            if form and (found := self._by_title(form)).page_id is not None:
                return found
        return ResolvedPage(None, None, None, 0, forms[-1] or requested)

    def _by_title(self, requested: str) -> ResolvedPage:
        found = self._index.resolve(requested)
        if found.page_id is None or self._locations.page(found.page_id) is None:
            return ResolvedPage(None, None, None, 0, requested)
        return ResolvedPage(found.page_id, found.title, "redirect" if found.hops else "title", found.hops, requested)

    def _by_url(self, url: str) -> ResolvedPage:
        address = self._parse_url(url)
        if address is None:
            return ResolvedPage(None, None, None, 0, None)
        if address.page_id is not None:
            found = self._article(address.page_id, "url")
            if found.page_id is not None or address.title is None:
                return found
        if address.title is None:
            return ResolvedPage(None, None, None, 0, None)
        found = self._by_written_title(address.title)
        return found if found.found_by in (None, "title_map") else found._replace(found_by="url")

    def _by_id(self, written: str, found_by: str) -> ResolvedPage:
        written = written.strip()
        if not (written.isascii() and written.isdecimal() and len(written) <= 18):
            return ResolvedPage(None, None, None, 0, None)
        return self._article(int(written), found_by)

    def _article(self, page_id: int | None, found_by: str) -> ResolvedPage:
        if page_id is None or self._locations.page(page_id) is None:
            return ResolvedPage(None, None, None, 0, None)
        return ResolvedPage(page_id, self._index.article_title(page_id), found_by, 0, None)


def read_moves(path: str) -> dict[str, str]:
    """Reads a table of known moves. Each line has an old title, a tab, and a new title or page id.

    Empty lines are skipped. A number is read as a title if such a title exists (``1984``), otherwise as a page id.

    Raises:
        SetupError: the file does not exist, a line has another form, or an old title occurs twice.
    """
    if not Folder.of(path).exists():
        raise SetupError(f"{path} does not exist; check the path given with --title-map.")
    with Folder.of(path).open() as file:
        try:
            lines = file.read().decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise SetupError(f"{path} is not in UTF-8 ({error}); convert it to UTF-8.") from error
    moves: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        old, new = (part.strip() for part in line.partition("\t")[::2])
        if not (old and new):
            raise SetupError(
                f"{path}, line {number}: {line[:80]!r} does not have the form: old title, tab, new title or page id."
            )
        if moves.get(old, new) != new:
            raise SetupError(
                f"{path}, line {number}: {old!r} was moved to {moves[old]!r} in an earlier line; keep only one of the "
                f"lines."
            )
        moves[old] = new
    return moves


N_SUGGESTIONS = 5
MIN_SCORE = 60.0
"""Minimum score, on a scale of 0 to 100. Titles that score lower are unrelated."""
QUERIES_AT_ONCE = 1_000
"""Maximum number of missing titles that one pass over the index compares."""
BLOCK = (64, 1 << 14)
"""Numbers of missing titles and of titles of the release that are compared at a time; their scores need 8 MB."""


def suggest_titles(
    missing: Iterable[str], index: TitleIndex, *, n_suggestions: int = N_SUGGESTIONS, min_score: float = MIN_SCORE
) -> dict[str, tuple[Suggestion, ...]]:
    """Returns, for each missing title in normal form, the most similar titles that resolve to an article, with scores
    from 0 to 100.

    They are ordered by score, then by title. If several titles belong to one article, only the best is returned.
    Missing titles without any similar title are omitted.
    """
    wanted = sorted(set(missing))
    found: dict[str, tuple[Suggestion, ...]] = {}
    for first in range(0, len(wanted), QUERIES_AT_ONCE):
        found.update(_suggest(wanted[first : first + QUERIES_AT_ONCE], index, n_suggestions, min_score))
    return found


def _suggest(
    titles: list[str], index: TitleIndex, n_suggestions: int, min_score: float
) -> Iterator[tuple[str, tuple[Suggestion, ...]]]:
    """Makes one pass over the index and yields the suggestions for each title that has any."""
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
            yield title, tuple(Suggestion(other, round(score, 1)) for score, other in _ranked(found)[:n_suggestions])


def _forms(titles: list[str]) -> tuple[list[str], list[str]]:
    """Returns two forms of each title for the comparison: the title itself, and its words in alphabetical order."""
    from rapidfuzz import utils

    plain = [utils.default_process(title) for title in titles]
    return plain, [" ".join(sorted(form.split())) for form in plain]


def _scores(queries: list[list[str]], titles: tuple[list[str], list[str]], min_score: float) -> npt.NDArray[np.float64]:
    """Returns the similarity of missing titles and titles, one row per missing title; 0 below ``min_score``."""
    from rapidfuzz import fuzz, process

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
    """Adds the titles of a block to the best of a missing title, by article."""
    lowest = _ranked(found)[n_best - 1][0] if len(found) >= n_best else min_score
    for place in np.flatnonzero(scores >= lowest).tolist():
        article, candidate = int(articles[place]), (float(scores[place]), titles[place])
        found[article] = min(found.get(article, candidate), candidate, key=_rank)
    for article in sorted(found, key=lambda article: _rank(found[article]))[n_best:]:
        del found[article]  # only a later title could make it one of the best


def _ranked(found: dict[int, tuple[float, str]]) -> list[tuple[float, str]]:
    return sorted(found.values(), key=_rank)


def _rank(scored: tuple[float, str]) -> tuple[float, str]:
    return -scored[0], scored[1]
