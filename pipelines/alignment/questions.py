"""A chunk's evidences with the pages that they were found in: the questions that an NLI model is asked about them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import accumulate, groupby
from typing import Any, NamedTuple

from kbsource.beat import Beat
from kbsource.kilt_names import section_name
from kbsource.records import Page
from kbsource.release.layout import INDEX
from kbsource.release.locations import Locations
from mapping.bleu import bleu
from mapping.hypotheses import Hypothesis, make_hypothesis
from mapping.places import numbered_elements, place_alignments
from mapping.premises import PageSentence
from mapping.records import Alignment, Span
from mapping.sources.base import iter_evidence
from mapping.verification import RESCUED, questions
from pipelines.alignment.align import tokeniser
from pipelines.alignment.settled import searched_records
from pipelines.alignment.staging import MapJob, settled_row
from pipelines.alignment.verify import END_SPAN_COLUMN, FIRST_SPAN_COLUMN, question_row, write_questions
from pipelines.page_texts import PageTexts

_SEARCHED = frozenset(("exact", "near", "weak"))


class _Asked(NamedTuple):
    """An evidence whose page was searched; sorted, they are in the order of the pages."""

    position: int
    key: tuple[int, int, int]
    hypothesis: Hypothesis
    evidence: str
    alignment: Alignment


def ask_chunk(staging: str, number: int, job: MapJob, beat: Beat) -> None:
    """Stages the questions about a chunk, page by page in the order of the release, each read once."""
    asked = sorted(_asked(staging, number, job), key=lambda one: one[:2])
    pages = PageTexts(job.kb, job.pages, job.page_rows)
    try:
        write_questions(_rows(asked, pages, job, beat), staging, number)
    finally:
        pages.close()


def _asked(staging: str, number: int, job: MapJob) -> Iterator[_Asked]:
    assert job.hypothesis is not None
    locations = Locations(os.path.join(job.kb, INDEX))
    starts = list(accumulate(job.page_rows, initial=0))
    for ordinal, example, found, _ in searched_records(staging, number):
        for key, evidence in iter_evidence(example):
            alignment = found[key].alignment
            hypothesis = make_hypothesis(example, key, evidence, job.hypothesis)
            if alignment.outcome not in _SEARCHED or hypothesis is None:
                continue
            assert alignment.page_id is not None
            place = locations.page(alignment.page_id)
            assert place is not None  # pages of the release only are found
            shard, row = place
            yield _Asked(starts[shard] + row, (ordinal, *key), hypothesis, evidence.text or "", alignment)


def _rows(asked: list[_Asked], pages: PageTexts, job: MapJob, beat: Beat) -> Iterator[tuple[Any, ...]]:
    for position, group in groupby(asked, key=lambda one: one.position):
        page = pages.page(position)
        for one in group:
            yield from _rows_of(one, page, job)
            beat.done(pages=0, n_bytes=len(one.evidence))


def _rows_of(one: _Asked, page: Page, job: MapJob) -> Iterator[tuple[Any, ...]]:
    n_sentences = job.rescue_sentences if one.alignment.outcome == "weak" else 0
    elements = numbered_elements(page, job.numbering) if n_sentences else ()
    for question in questions(page, one.alignment.span, one.hypothesis, elements=elements, n_sentences=n_sentences):
        sentence = question.sentence
        yield question_row(one.key, question, None if sentence is None else _span_columns(one, sentence, page, job))


def _span_columns(one: _Asked, sentence: PageSentence, page: Page, job: MapJob) -> tuple[Any, ...]:
    """Gives the columns of the span that a sentence is."""
    forms = tokeniser(job.lang).forms
    score = bleu(forms(one.evidence), forms(sentence.text))
    number, start, end, text = sentence
    found = one.alignment
    alignment = Alignment(
        found.outcome,
        found.page_id,
        found.title,
        found.found_by,
        found.hops,
        section_name(page.elements[number].section),
        Span(number, start, number, end, score, RESCUED),
        text,
    )
    placed = place_alignments({(0, 0): alignment}, page, job.numbering)[0, 0]
    return settled_row(one.key, alignment, placed)[FIRST_SPAN_COLUMN:END_SPAN_COLUMN]
