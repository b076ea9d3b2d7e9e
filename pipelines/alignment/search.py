"""Searches a release for evidence: resolves its pages, sorts them in the order of the release, and searches them."""

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
from mapping.entail.verification import entailment_questions
from mapping.records import NOWHERE, SCORED, Alignment, Suggestion
from mapping.search.page_search import PageSearch, SearchSettings, locate_nowhere
from mapping.search.resolve import QUERIES_AT_ONCE, Resolved, Resolver, read_moves, suggest_titles
from mapping.search.tokens import Tokeniser
from pipelines.primitives.page_texts import PageTexts, ReleasePages

ROWS_AT_ONCE = 1_000
"""Rows per batch."""
PIECE_BYTES = 4 << 20
"""Bytes of evidence text per chunk, with ``ROW_BYTES`` per row for the other columns."""
MISSING_BYTES = 64 << 20
"""Bytes of evidence text per chunk of evidence without a page. These chunks are larger because each needs one pass over
all titles of a release."""
ROW_BYTES = 1_000
ORDER = ("position", "ordinal", "output", "evidence")
"""Columns that the outcomes of a chunk of records are sorted by."""
MAX_LOST = 3
"""Number of failed pieces of evidence after which a page is given up with all its remaining evidence."""


@lru_cache(maxsize=1)
def resolver_of(folder: str, title_map: str | None = None) -> Resolver:
    """Returns a resolver of pages in a release, with a file of known page moves. A process opens one at a time."""
    moves = None if title_map is None else read_moves(title_map)
    return Resolver.open(folder, moves=moves)


def resolve_rows(batches: Iterable[pa.RecordBatch], resolver: Resolver, starts: Sequence[int]) -> pa.RecordBatch:
    """Returns the evidence of a chunk with its pages, in page order. Evidence without a page comes first, grouped by
    title.

    ``starts`` contains the position of the first page of each file of the release.
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
    """Returns the group of each row. Neighbouring pages share a group; further groups contain each part's rows without
    a page."""
    positions = batch["position"].to_numpy()
    groups: npt.NDArray[np.int64] = np.where(
        positions < 0, n_groups + batch["part"].to_numpy().astype(np.int64), positions * n_groups // max(1, n_pages)
    )
    return groups


def cut_rows(batches: Iterable[pa.RecordBatch], *, have_pages: bool) -> Iterator[list[pa.RecordBatch]]:
    """Divides rows, ordered by position, into chunks that end between pages. A page larger than a chunk is divided too.

    Rows without a page are divided between titles; a chunk has as many rows as one pass over all titles can handle.
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
    """Finds the ends and sizes of runs of rows with one position. If a run is larger than a chunk, each row is a
    run."""
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
    """Searches pages for evidence: rows of ``Alignment`` with their pages -> the same rows with the results, by the
    chunks of their records and sorted by ``ORDER``, each batch of one chunk.

    A page of consecutive rows is read and tokenised once. Evidence that crashes the process is searched for again by
    itself, and is given up if it crashes the process again. The search does not depend on a threshold.

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
        found = sorted(self._rows(numbered, work), key=attrgetter("part", "chunk", *ORDER))
        for _, own in groupby(found, key=attrgetter("part", "chunk")):
            yield from in_batches(own)

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
        """Returns a piece of evidence with the page of the most similar title if requested, else with similar
        titles."""
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
        """Searches a page for its evidence and returns the outcomes; usually all pieces have the same settings."""
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
                yield replace(found, questions=tuple(entailment_questions(found, search, n_sentences=n_sentences)))
        work.beat.done(pages=1, amount=len(group))


def in_batches(rows: Iterable[Alignment]) -> Iterator[pa.RecordBatch]:
    """Groups rows into batches of ``ROWS_AT_ONCE``."""
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
            raise DataError(
                f"page {page.page_id}, {page.title!r}: {error}. This is a bug; please report it."
            ) from error
        work.beat.leave()
        yield found
