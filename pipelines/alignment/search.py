"""The search of a release for evidence: its pages are looked up, put in the order of the release, and searched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from kbsource.columns import batch_of, rows_of, schema_of
from kbsource.errors import DataError, RecordError
from kbsource.records import Page
from kbsource.runtime.chunks import Work
from mapping.entail.verification import questions
from mapping.records import NOWHERE, SCORED, Alignment, Suggestion
from mapping.search.page_search import PageSearch, SearchSettings, locate_nowhere
from mapping.search.resolve import QUERIES_AT_ONCE, Resolved, Resolver, read_moves, suggest_titles
from mapping.search.tokens import Tokeniser
from pipelines.primitives.page_texts import PageTexts, ReleasePages

ROWS_AT_ONCE = 1_000
"""Rows of a batch."""
PIECE_BYTES = 4 << 20
"""Text of evidences that are one chunk, with ``ROW_BYTES`` for what else there is of each."""
MISSING_BYTES = 64 << 20
"""The same of evidences without a page: one pass over all titles of a release serves a whole chunk."""
ROW_BYTES = 1_000
MAX_LOST = 3
"""Evidences of a page that are given up before the page is, with all further ones."""


@lru_cache(maxsize=1)
def resolver_of(folder: str, title_map: str | None = None) -> Resolver:
    """What looks pages up in the release of a folder, with a file of known moves; a process opens one at a time."""
    moves = None if title_map is None else read_moves(title_map)
    return Resolver.open(folder, moves=moves)


def resolve_rows(batches: Iterable[pa.RecordBatch], resolver: Resolver, starts: Sequence[int]) -> pa.RecordBatch:
    """Evidences of a chunk with their pages, in the order of these; those without a page come first, title by title.

    ``starts`` has the position of the first page of each file of the release.
    """
    rows = [
        _on_page(wanted, resolver.resolve(wanted.page, fallback=wanted.fallback), resolver, starts)
        for batch in batches
        for wanted in rows_of(batch, Alignment)
    ]
    return batch_of(sorted(rows, key=attrgetter("position")), Alignment)


def _on_page(wanted: Alignment, found: Resolved, resolver: Resolver, starts: Sequence[int]) -> Alignment:
    if found.page_id is not None:
        shard, row = resolver.location(found.page_id)
        position = starts[shard] + row
    elif found.asked:
        position = NOWHERE - int.from_bytes(hashlib.sha256(found.asked.encode()).digest()[:7])
    else:
        position = NOWHERE
    return replace(wanted, position=position, **found._asdict())


def page_groups(batch: pa.RecordBatch, *, n_pages: int, n_groups: int) -> npt.NDArray[np.int64]:
    """For each row the group of its page, neighbours together; behind these a group for each part's rows without
    one."""
    positions = batch["position"].to_numpy()
    groups: npt.NDArray[np.int64] = np.where(
        positions < 0, n_groups + batch["part"].to_numpy().astype(np.int64), positions * n_groups // max(1, n_pages)
    )
    return groups


def cut_rows(batches: Iterable[pa.RecordBatch], *, have_pages: bool) -> Iterator[list[pa.RecordBatch]]:
    """Rows in the order of their positions in chunks that end between pages; a page that is more than a chunk is cut.

    Rows without a page are cut between titles, so many of them to a chunk as one pass over all titles serves.
    """
    most_bytes = PIECE_BYTES if have_pages else MISSING_BYTES
    held: list[pa.RecordBatch] = []
    n_bytes = n_runs = 0
    for batch in batches:
        begun = start = 0
        for end, run_bytes in _runs(batch, most_bytes):
            is_full = n_bytes + run_bytes > most_bytes or (not have_pages and n_runs == QUERIES_AT_ONCE)
            if n_runs and is_full:
                yield [*held, batch.slice(begun, start - begun)] if start > begun else held
                held, n_bytes, n_runs, begun = [], 0, 0, start
            n_bytes, n_runs, start = n_bytes + run_bytes, n_runs + 1, end
        held.append(batch.slice(begun))
    if held:
        yield held


def _runs(batch: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Where rows of one position end, and what they weigh; of those that are more than a chunk, each row."""
    texts = pc.fill_null(pc.binary_length(batch["evidence_text"]), 0).to_numpy()
    weights = np.cumsum(texts.astype(np.int64) + ROW_BYTES).tolist()
    start = before = 0
    for last in (*np.flatnonzero(np.diff(batch["position"].to_numpy())).tolist(), batch.num_rows - 1):
        ends = range(start, last + 1) if weights[last] - before > most_bytes else (last,)
        for end in ends:
            yield end + 1, weights[end] - before
            before = weights[end]
        start = last + 1


class Search:
    """Looks for evidences in their pages: rows of ``Alignment`` with their pages -> the same with what was found there.

    A page that comes in rows after each other is read and tokenised once. What ended the process, and did so again
    when it was alone, is given up. No threshold is known here.

    Args:
        by_part: settings by number of the dataset.
    """

    schema = schema_of(Alignment)

    def __init__(self, pages: ReleasePages, settings: SearchSettings, by_part: Mapping[int, SearchSettings]) -> None:
        self._release = pages
        self._starts = pages.starts()
        self._texts = PageTexts(pages)
        self._tokeniser = Tokeniser(pages.lang)
        self._settings, self._by_part = settings, by_part

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        numbered = [pair for first, batch in rows for pair in enumerate(rows_of(batch, Alignment), first)]
        yield from in_batches(self._rows(numbered, work))

    def _rows(self, numbered: list[tuple[int, Alignment]], work: Work) -> Iterator[Alignment]:
        missing = {wanted.asked for _, wanted in numbered if wanted.position < 0 and wanted.asked}
        similar = suggest_titles(missing, resolver_of(self._release.folder).index) if missing else {}
        taken = ((number, self._taken(wanted, similar)) for number, wanted in numbered)
        for position, group in groupby(taken, key=lambda pair: pair[1].position):
            if position < 0:
                for _, wanted in group:
                    yield locate_nowhere(wanted)
                    work.beat.done(pages=0, amount=1)
            else:
                yield from self._of_page(self._texts.page(position), list(group), work)

    def _taken(self, wanted: Alignment, similar: Mapping[str, tuple[Suggestion, ...]]) -> Alignment:
        """An evidence with the page of the most similar title, where that is asked for, else with similar titles."""
        if wanted.position >= 0 or not wanted.asked:
            return wanted
        suggestions = similar.get(wanted.asked, ())
        accepted = self._settings_of(wanted).accept_fuzzy
        if accepted is not None and suggestions and suggestions[0].score >= accepted:
            resolver = resolver_of(self._release.folder)
            found = resolver.resolve_similar(suggestions[0].title)
            if found.page_id is not None:
                return _on_page(wanted, found, resolver, self._starts)
        return replace(wanted, suggestions=suggestions)

    def _settings_of(self, wanted: Alignment) -> SearchSettings:
        return self._by_part.get(wanted.part, self._settings)

    def _of_page(self, page: Page, group: list[tuple[int, Alignment]], work: Work) -> Iterator[Alignment]:
        """What became of evidences of one page; most often all are searched for in one way."""
        ways: dict[SearchSettings, list[tuple[int, Alignment]]] = {}
        for number, wanted in group:
            ways.setdefault(self._settings_of(wanted), []).append((number, wanted))
        for settings, same in ways.items():
            search = PageSearch(page, self._tokeniser, settings)
            for found in _located(search, same, work):
                if found.hypothesis is None or found.outcome not in ("exact", SCORED):
                    yield found
                    continue
                n_sentences = settings.rescue_sentences if found.outcome == SCORED else 0
                yield replace(found, questions=tuple(questions(found, search, n_sentences=n_sentences)))
        work.beat.done(pages=1, amount=len(group))


def in_batches(rows: Iterable[Alignment]) -> Iterator[pa.RecordBatch]:
    """Rows as batches of ``ROWS_AT_ONCE``."""
    source = iter(rows)
    while part := list(islice(source, ROWS_AT_ONCE)):
        yield batch_of(part, Alignment)


def _located(search: PageSearch, group: list[tuple[int, Alignment]], work: Work) -> Iterator[Alignment]:
    n_lost, fate = 0, ""
    for number, wanted in group:
        if number in work.verdicts:
            n_lost, fate = n_lost + 1, f"search_{work.verdicts[number][1]}"
        if number in work.verdicts or n_lost >= MAX_LOST:
            yield replace(wanted, outcome=fate)
            continue
        work.beat.enter(number)
        try:
            found = search.locate(wanted)
        except RecordError as error:
            page = search.page
            raise DataError(f"page {page.page_id}, {page.title!r}: {error}. Report this, it is a defect.") from error
        work.beat.leave()
        yield found
