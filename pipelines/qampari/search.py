"""A part of the release, searched for the sentences that may say facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from kbsource.runtime.chunks import Work, rows_batch
from mapping.qampari.facts.evidence import Candidate, PageSentences, Sought
from mapping.qampari.lists.table_evidence import find_words
from pipelines.primitives.page_texts import PageTexts
from pipelines.qampari.plan import FOUND, WORDS, Plan

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class SearchPages:
    """Makes what looks for things in pages.

    Attributes:
        plan: names the release.
    """

    plan: Plan

    def __call__(self) -> FactSearch:
        return FactSearch(self.plan)


class FactSearch:
    """Rows of WANTED, by position of the page -> rows of FOUND. A look that ends its process finds nothing."""

    schema = FOUND

    def __init__(self, plan: Plan) -> None:
        self._pages = PageTexts(plan.kb, plan.pages, plan.page_rows, has_anchors=True)
        self._n_before = plan.options.sentences_before

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        found = self._found(rows, work)
        while part := list(islice(found, _ROWS_AT_ONCE)):
            yield rows_batch(part, FOUND)

    def _found(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[tuple[Any, ...]]:
        last, sentences = -1, None
        for first, batch in rows:
            numbered = enumerate(zip(*(column.to_pylist() for column in batch.columns), strict=True), first)
            looks = [(number, look) for number, look in numbered if number not in work.verdicts]
            work.report.counts["given_up"] += batch.num_rows - len(looks)
            in_turn = self._pages.pages(dict.fromkeys(position for _, (position, *_) in looks if position != last))
            for number, (position, fact, direction, names, page_id) in looks:
                work.beat.enter(number)
                if sentences is None or position != last:
                    last, sentences = position, PageSentences(next(in_turn), n_before=self._n_before)
                for place, one in enumerate(_candidates(sentences, direction, names, page_id)):
                    yield (fact, direction, place, *one, sentences.page.title)
                work.beat.leave()
            work.beat.done(pages=0, amount=batch.num_rows)


def _candidates(
    sentences: PageSentences, direction: int, names: list[str], page_id: int | None
) -> list[Candidate] | tuple[Candidate, ...]:
    if direction == WORDS:
        found = find_words(sentences.page, names, n_before=sentences.n_before)
        return () if found is None else (found,)
    return sentences.find(Sought(tuple(names), page_id))
