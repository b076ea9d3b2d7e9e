"""The search of pages for their evidences; see ``pipelines.transforms.align_spans``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import DataError, RecordError
from kbsource.kilt_names import section_name
from kbsource.records import Page
from kbsource.runtime.chunks import Work
from mapping.entail.hypotheses import Hypothesis
from mapping.entail.premises import PageSentence
from mapping.entail.verification import RESCUED, questions
from mapping.records import Alignment, Span
from mapping.search.bleu import bleu
from mapping.search.numbering import Placed, numbered_elements, place_alignments
from mapping.search.page_search import PageSearch, SearchOptions, locate_nowhere, without_span
from mapping.search.resolve import Resolved
from mapping.search.suggest import Suggestion, suggest_titles
from mapping.search.tokens import Tokeniser
from pipelines.alignment.release_pages import ReleasePages, SearchSettings, resolver_of
from pipelines.alignment.resolving import page_position
from pipelines.alignment.rows import KEY, NOWHERE, OUTCOMES, QUESTION, RESOLVED, batch_rows, batches_of, outcome_columns

MAX_LOST = 3
"""Evidences of a page that are given up before the page is, with all further ones."""
_SEARCHED = frozenset(("exact", "near", "weak"))
_N_KEY = len(KEY)
_OUTCOME = OUTCOMES.get_field_index("outcome")
_FIRST_SPAN, _END_SPAN = (OUTCOMES.get_field_index(name) - _OUTCOME for name in ("section", "suggestions"))
_QUESTION_NAMES = [field.name for field in QUESTION]


class _Wanted(NamedTuple):
    """An evidence.

    Attributes:
        number: of its row in the chunk, from 1.
        key: part, chunk, record, output and evidence.
        position: of its page; ``NOWHERE`` for none.
        page_value: the page as the dataset names it.
        found: how it was found.
        text: that is looked for.
        hypothesis: that a model is to judge it by; None for none.
        similar: titles like the one that is missing.
    """

    number: int
    key: tuple[int, ...]
    position: int
    page_value: str
    found: Resolved
    text: str | None
    hypothesis: Hypothesis | None
    similar: tuple[Suggestion, ...] = ()


class Search:
    """Looks for evidences in their pages: rows of ``RESOLVED`` -> rows of ``OUTCOMES``.

    A page that comes in rows after each other is read and tokenised once. What ended the process, and did so again
    when it was alone, is given up.

    Args:
        pages: of the release.
        settings: of all datasets but those of ``by_part``.
        by_part: settings by number of the dataset.
    """

    schema = OUTCOMES

    def __init__(self, pages: ReleasePages, settings: SearchSettings, by_part: Mapping[int, SearchSettings]) -> None:
        self._release = pages
        self._starts = pages.starts()
        self._texts = pages.texts()
        self._tokeniser = Tokeniser(pages.lang)
        self._settings, self._by_part = settings, by_part

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        yield from batches_of(self._rows(list(rows), work), OUTCOMES)

    def _rows(self, chunk: list[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[tuple[Any, ...]]:
        similar = self._similar([batch for _, batch in chunk])
        wanted = (
            self._taken(_wanted(number, row), similar)
            for first, batch in chunk
            for number, row in enumerate(batch_rows(batch.select(RESOLVED.names)), first)
        )
        for position, group in groupby(wanted, key=itemgetter(_Wanted._fields.index("position"))):
            if position == NOWHERE:
                for passage in group:
                    yield _nowhere(passage)
                    work.beat.done(pages=0, amount=1)
            else:
                yield from self._of_page(self._texts.page(position), list(group), work)

    def _similar(self, batches: list[pa.RecordBatch]) -> dict[str, tuple[Suggestion, ...]]:
        """Gives the titles of the release that are like those it does not have."""
        titles = {
            title
            for batch in batches
            for title in pc.unique(batch["asked"].filter(pc.equal(batch["position"], NOWHERE))).to_pylist()
            if title
        }
        return suggest_titles(titles, resolver_of(self._release.folder).index) if titles else {}

    def _taken(self, wanted: _Wanted, similar: dict[str, tuple[Suggestion, ...]]) -> _Wanted:
        """Gives an evidence with the page of the most similar title, where that is asked for."""
        if wanted.position != NOWHERE or not wanted.found.asked:
            return wanted
        found = similar.get(wanted.found.asked, ())
        accepted = self._settings_of(wanted).accept_fuzzy
        if accepted is not None and found and found[0][1] >= accepted:
            resolver = resolver_of(self._release.folder)
            resolved = resolver.resolve_similar(found[0][0])
            position = page_position(resolved, resolver, self._starts)
            if position != NOWHERE:
                return wanted._replace(position=position, found=resolved)
        return wanted._replace(similar=found)

    def _settings_of(self, wanted: _Wanted) -> SearchSettings:
        return self._by_part.get(wanted.key[0], self._settings)

    def _of_page(self, page: Page, group: list[_Wanted], work: Work) -> Iterator[tuple[Any, ...]]:
        """Gives what became of evidences of one page."""
        for settings, same in _by_settings(group, self._settings_of):
            located = list(self._located(page, same, settings, work))
            alignments = {(index, 0): one for index, one in enumerate(located)}
            placed = place_alignments(alignments, page, settings.numbering)
            for one, (key, alignment) in zip(same, alignments.items(), strict=True):
                asked = list(self._questions(one, alignment, page, settings))
                yield _row(one, alignment, placed[key], asked)
        work.beat.done(pages=1, amount=len(group))

    def _located(self, page: Page, group: list[_Wanted], settings: SearchSettings, work: Work) -> Iterator[Alignment]:
        search = PageSearch(page, self._tokeniser, SearchOptions(*settings[:4]))
        n_lost, fate = 0, ""
        for passage in group:
            if passage.number in work.verdicts:
                n_lost, fate = n_lost + 1, f"search_{work.verdicts[passage.number][1]}"
                yield without_span(fate, passage.found)
                continue
            if n_lost >= MAX_LOST:
                yield without_span(fate, passage.found)
                continue
            work.beat.enter(passage.number)
            try:
                alignment = search.locate(passage.found, passage.text)
            except RecordError as error:
                raise DataError(
                    f"page {page.page_id}, {page.title!r}: {error}. Report this, it is a defect."
                ) from error
            work.beat.leave()
            yield alignment

    def _questions(
        self, wanted: _Wanted, found: Alignment, page: Page, settings: SearchSettings
    ) -> Iterator[tuple[Any, ...]]:
        """Gives what a model is asked about an evidence, rows of ``QUESTION``."""
        if wanted.hypothesis is None or found.outcome not in _SEARCHED:
            return
        n_sentences = settings.rescue_sentences if found.outcome == "weak" else 0
        elements = numbered_elements(page, settings.numbering) if n_sentences else ()
        for question in questions(page, found.span, wanted.hypothesis, elements=elements, n_sentences=n_sentences):
            sentence = question.sentence
            span = (
                (None,) * (_END_SPAN - _FIRST_SPAN)
                if sentence is None
                else self._span_columns(wanted, found, sentence, page, settings)
            )
            yield (*question.hypothesis, question.premise.text, *question.premise.core, *span)

    def _span_columns(
        self, wanted: _Wanted, found: Alignment, sentence: PageSentence, page: Page, settings: SearchSettings
    ) -> tuple[Any, ...]:
        """Gives the columns of the span that a sentence is."""
        forms = self._tokeniser.forms
        number, start, end, text = sentence
        span = Span(number, start, number, end, bleu(forms(wanted.text or ""), forms(text)), RESCUED)
        section = section_name(page.elements[number].section)
        alignment = replace(found, section=section, span=span, text=text)
        placed = place_alignments({(0, 0): alignment}, page, settings.numbering)[0, 0]
        return outcome_columns(alignment, placed)[_FIRST_SPAN:_END_SPAN]


def _by_settings(
    group: list[_Wanted], settings_of: Callable[[_Wanted], SearchSettings]
) -> Iterator[tuple[SearchSettings, list[_Wanted]]]:
    """Parts a page's evidences by how they are searched for; most often there is one way."""
    ways: dict[SearchSettings, list[_Wanted]] = {}
    for passage in group:
        ways.setdefault(settings_of(passage), []).append(passage)
    yield from ways.items()


def _wanted(number: int, row: tuple[Any, ...]) -> _Wanted:
    position, page_value, page_id, title, found_by, hops, asked, text, *said = row[_N_KEY:]
    hypothesis = None if said[0] is None else Hypothesis(*said)
    found = Resolved(page_id, title, found_by, hops, asked)
    return _Wanted(number, row[:_N_KEY], position, page_value, found, text, hypothesis)


def _nowhere(wanted: _Wanted) -> tuple[Any, ...]:
    found = Resolved(None, None, None, 0, wanted.found.asked)
    return _row(wanted, replace(locate_nowhere(found, wanted.text), suggestions=wanted.similar), None, [])


def _row(wanted: _Wanted, alignment: Alignment, placed: Placed | None, asked: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return (
        *wanted.key,
        wanted.position,
        wanted.page_value,
        wanted.text,
        *outcome_columns(alignment, placed),
        [dict(zip(_QUESTION_NAMES, values, strict=True)) for values in asked],
    )
