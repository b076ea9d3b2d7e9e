"""Searches a release for evidence: resolves its pages, divides it into chunks of neighbouring pages, and searches
them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby, islice
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from kbsource.columns import batch_of, rows_of, schema_of
from kbsource.errors import DataError, RecordError
from kbsource.records import Page
from kbsource.runtime.chunks import BatchRef, Work, read_stored
from mapping.entail.verification import entailment_questions
from mapping.records import NOWHERE, SCORED, Alignment, Suggestion
from mapping.search.page_search import PageSearch, SearchSettings, locate_nowhere
from mapping.search.resolve import QUERIES_AT_ONCE, ResolvedPage, Resolver, read_moves, suggest_titles
from mapping.search.tokens import Tokeniser
from pipelines.primitives.page_texts import PageTexts, ReleasePages

ROWS_AT_ONCE = 1_000
"""Rows per batch."""
MOST_BYTES = 4 << 20
"""Maximum bytes of evidence text per chunk of pages, with ``ROW_BYTES`` per row for the other columns."""
MISSING_BYTES = 64 << 20
"""Bytes of evidence text per chunk of evidence without a page. These chunks are larger because each needs one pass over
all titles of a release."""
ROW_BYTES = 1_000
PAGE_BYTES = 16_000
"""Cost of a page in bytes of evidence: reading and tokenising a page takes as long as searching it for this many bytes.
"""
N_SHARES, LEAST_BYTES = 64, 1 << 20
"""Number of chunks that evidence with pages is divided into, so that many workers can search it, and the minimum bytes
of such a chunk. Memory may require more chunks."""
ORDER = ("position", "ordinal", "output", "evidence")
"""Columns that the outcomes of a chunk of records are sorted by."""
MAX_LOST = 3
"""Number of failed pieces of evidence on one page after which its remaining evidence is not searched for."""


@lru_cache(maxsize=1)
def resolver_of(folder: str, title_map: str | None = None) -> Resolver:
    """Returns a resolver of pages in a release, which uses a file of known page moves. A process has at most one
    open.
    """
    moves = None if title_map is None else read_moves(title_map)
    return Resolver.open(folder, moves=moves)


FindPage: TypeAlias = Callable[[Alignment], Alignment]
"""Returns a piece of evidence with its page, if a release has it."""


def page_finder(pages: ReleasePages, title_map: str | None = None) -> FindPage:
    """Returns a function that finds the pages of evidence in a release, with a file of known page moves."""
    return partial(_find_page, resolver=resolver_of(pages.folder, title_map), starts=pages.starts())


def _find_page(wanted: Alignment, *, resolver: Resolver, starts: Sequence[int]) -> Alignment:
    return _on_page(wanted, resolver.resolve(wanted.page, fallback=wanted.fallback), resolver, starts)


def resolve_rows(batches: Iterable[pa.RecordBatch], find_page: FindPage) -> pa.RecordBatch:
    """Returns the evidence of a chunk with its pages, in page order. Evidence without a page comes first, grouped by
    title."""
    rows = [find_page(wanted) for batch in batches for wanted in rows_of(batch, Alignment)]
    return batch_of(sorted(rows, key=attrgetter("position")), Alignment)


def _on_page(wanted: Alignment, found: ResolvedPage, resolver: Resolver, starts: Sequence[int]) -> Alignment:
    if found.page_id is not None:
        shard, row = resolver.location(found.page_id)
        position = starts[shard] + row
    elif found.requested:
        position = NOWHERE - int.from_bytes(hashlib.sha256(found.requested.encode()).digest()[:7])
    else:
        position = NOWHERE
    return replace(wanted, position=position, **found._asdict())


class _StoredPositions(NamedTuple):
    """The positions of the pages of a file's rows, and the size in bytes that each row counts for."""

    positions: npt.NDArray[np.int64]
    n_bytes: npt.NDArray[np.int64]
    batch_ends: npt.NDArray[np.int64]  # number of rows up to the end of each batch


def search_chunks(stored: Sequence[BatchRef]) -> Iterator[tuple[BatchRef, ...]]:
    """Divides evidence with pages into chunks for the search, each with the evidence of neighbouring pages. Returns,
    for each chunk, its rows in the files.

    A chunk ends between two pages; only a page with more than ``MOST_BYTES`` is divided. Chunks are small enough for
    memory, and for many workers. Evidence without a page comes first. It is divided between titles; a chunk has as many
    rows as one pass over all titles can handle. Memory: a few numbers per row.

    Args:
        stored: whole files, each sorted by position.
    """
    files = [_stored_positions(rows) for rows in stored]
    positions = np.concatenate([np.empty(0, np.int64), *(file.positions for file in files)])
    n_bytes = np.concatenate([np.empty(0, np.int64), *(file.n_bytes for file in files)])
    numbers = np.repeat(np.arange(len(files)), [len(file.positions) for file in files])
    order = np.argsort(positions, kind="stable")
    positions, n_bytes, numbers = positions[order], n_bytes[order], numbers[order]
    n_missing = int(np.searchsorted(positions, 0))
    ends = [
        *_ends_of_missing(positions[:n_missing], n_bytes[:n_missing]),
        *(n_missing + end for end in _ends_of_pages(positions[n_missing:], n_bytes[n_missing:])),
    ]
    start, first_rows = 0, np.zeros(len(files), np.int64)
    for end in ends:
        n_rows = np.bincount(numbers[start:end], minlength=len(files))
        yield tuple(
            _rows_of_file(stored[number], files[number].batch_ends, int(first_rows[number]), int(n_rows[number]))
            for number in np.flatnonzero(n_rows).tolist()
        )
        start, first_rows = end, first_rows + n_rows


def _stored_positions(stored: BatchRef) -> _StoredPositions:
    found = []
    for batch in read_stored(stored, ["position", "evidence_text"]):
        texts = pc.fill_null(pc.binary_length(batch["evidence_text"]), 0).to_numpy()
        found.append((batch["position"].to_numpy(), texts.astype(np.int64) + ROW_BYTES))
    positions, n_bytes = zip(*found, strict=True) if found else ((np.empty(0, np.int64),),) * 2
    return _StoredPositions(
        np.concatenate(positions), np.concatenate(n_bytes), np.cumsum([len(of_batch) for of_batch in positions])
    )


def _rows_of_file(stored: BatchRef, batch_ends: npt.NDArray[np.int64], first_row: int, n_rows: int) -> BatchRef:
    first, last = np.searchsorted(batch_ends, (first_row, first_row + n_rows - 1), "right").tolist()
    skipped = int(batch_ends[first - 1]) if first else 0
    return BatchRef(stored.path, stored.first_batch + first, last - first + 1, n_rows, 0, first_row - skipped)


def _ends_of_missing(positions: npt.NDArray[np.int64], n_bytes: npt.NDArray[np.int64]) -> Iterator[int]:
    """Finds the ends of the chunks of rows without a page, which are sorted by title."""
    held_bytes = n_held = start = 0
    for end, title_bytes in _page_ends(positions, n_bytes, MISSING_BYTES):
        if n_held and (held_bytes + title_bytes > MISSING_BYTES or n_held == QUERIES_AT_ONCE):
            yield start
            held_bytes = n_held = 0
        held_bytes, n_held, start = held_bytes + title_bytes, n_held + 1, end
    if n_held:
        yield start


def _ends_of_pages(positions: npt.NDArray[np.int64], n_bytes: npt.NDArray[np.int64]) -> Iterator[int]:
    """Finds the ends of the chunks of rows with a page, which are sorted by page."""
    work = np.cumsum(n_bytes + PAGE_BYTES * (np.diff(positions, prepend=-1) != 0)).tolist()
    most_work = max(LEAST_BYTES, work[-1] // N_SHARES) if work else 0
    held_bytes = held_work = start = 0
    for end, page_bytes in _page_ends(positions, n_bytes, MOST_BYTES):
        if held_bytes and (held_bytes + page_bytes > MOST_BYTES or work[end - 1] - held_work > most_work):
            yield start
            held_bytes, held_work = 0, work[start - 1]
        held_bytes, start = held_bytes + page_bytes, end
    if held_bytes:
        yield start


def _page_ends(
    positions: npt.NDArray[np.int64], n_bytes: npt.NDArray[np.int64], most_bytes: int
) -> Iterator[tuple[int, int]]:
    """Finds the ends and bytes of runs of rows with one position. If a run is larger than ``most_bytes``, each row is a
    run."""
    sums = np.cumsum(n_bytes).tolist()
    start = before = 0
    page_ends = [*(np.flatnonzero(np.diff(positions)) + 1).tolist(), len(sums)] if sums else []
    for page_end in page_ends:
        ends = range(start + 1, page_end + 1) if sums[page_end - 1] - before > most_bytes else (page_end,)
        for end in ends:
            yield end, sums[end - 1] - before
            before = sums[end - 1]
        start = page_end


class Search:
    """Searches pages for evidence. Receives rows of ``Alignment`` with their pages, and returns them with the results.

    The returned rows are grouped by the chunk of their record and sorted by ``ORDER``; a batch has rows of only one
    chunk.

    A page is read and tokenised once for all consecutive rows that belong to it. Evidence that crashes the process is
    searched for again by itself, and is given up if it crashes the process again. The search does not depend on a
    threshold.

    Args:
        by_part: settings of each dataset, by its number.
    """

    schema = schema_of(Alignment)

    def __init__(self, pages: ReleasePages, settings: SearchSettings, by_part: Mapping[int, SearchSettings]) -> None:
        self._release = pages
        self._starts = pages.starts()
        self._texts = PageTexts(pages)
        self._tokeniser = Tokeniser(pages.lang)
        self._settings, self._by_part = settings, by_part

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        # A chunk has rows of several files, each in the order of the pages.
        numbered = sorted(
            (pair for first, batch in rows for pair in enumerate(rows_of(batch, Alignment), first)),
            key=lambda pair: pair[1].position,
        )
        found = sorted(self._rows(numbered, work), key=attrgetter("part", "chunk", *ORDER))
        for _, own in groupby(found, key=attrgetter("part", "chunk")):
            yield from in_batches(own)

    def _rows(self, numbered: list[tuple[int, Alignment]], work: Work) -> Iterator[Alignment]:
        missing = {wanted.requested for _, wanted in numbered if wanted.position < 0 and wanted.requested}
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
        if wanted.position >= 0 or not wanted.requested:
            return wanted
        suggestions = similar.get(wanted.requested, ())
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
                n_sentences = settings.candidate_sentences if found.outcome == SCORED else 0
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
